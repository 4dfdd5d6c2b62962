// Makes one cut of a standby: pulls a clone from a source, which replaces DIR
// in an exchange.
#pragma once

#include <memory>
#include <string>

#include "pipeline/api/operation_parts.h"
#include "pipeline/follow/standby.h"
#include "pipeline/follow/standby_target.h"
#include "pipeline/pull/puller.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"

namespace sstferry {

// Runs the cut; another thread may cancel it through `slot`. `options` are
// those of a pull from `source_name`, which is reached through `dialer`; the
// options specific to a cut are set here. `audit`, unless null, is ended before
// the cut; afterwards the caller begins the audit that it has prepared.
[[nodiscard]] rocksdb::Status MakeStandbyCut(const PullOptions& options,
                                             const CutRequest& request,
                                             const std::string& source_name,
                                             Dialer* dialer, Standby* standby,
                                             WorkerSlot<Puller>* slot,
                                             Summary* summary,
                                             StandbyAudit* audit = nullptr);

// Completes a first cut that was killed after it had replaced an adopted
// database: gives that database its name beside `dir`. Does nothing, and
// returns OK, if there is none.
//   kBusy  another process works on the directory
[[nodiscard]] rocksdb::Status KeepAdopted(
    const std::string& dir,
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const LogFunction& log);

}  // namespace sstferry
