// Makes one cut of a standby: the pull of a clone from a source, which takes
// DIR's place in an exchange.
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

// Runs it; another thread may cancel it through `slot`. `options` are those of
// a pull from `source_name`, which is reached through `dialer`; what makes it a
// cut is set here. `audit`, unless null, ends before it; after it the
// caller begins what it has prepared.
[[nodiscard]] rocksdb::Status MakeStandbyCut(const PullOptions& options,
                                             const CutRequest& request,
                                             const std::string& source_name,
                                             Dialer* dialer, Standby* standby,
                                             WorkerSlot<Puller>* slot,
                                             Summary* summary,
                                             StandbyAudit* audit = nullptr);

// Completes a first cut that was killed after it had taken the place of an
// adopted database: gives that its name beside `dir`. Nothing is done, nor is it
// an error, where none was.
//   kBusy  another process works on the directory
[[nodiscard]] rocksdb::Status KeepAdopted(
    const std::string& dir,
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const LogFunction& log);

}  // namespace sstferry
