// Takes one cut of a standby: pulls a clone from a source and replaces DIR with
// it by exchanging the directories.
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

// Runs the cut; another thread may cancel it through `slot`. `options` describe
// a pull from database `source_name` at the source that `dialer` reaches; this
// function sets the options specific to a cut. Ends `audit`, unless null,
// before the cut and prepares the next audit, which the caller begins.
[[nodiscard]] rocksdb::Status MakeStandbyCut(const PullOptions& options,
                                             const CutRequest& request,
                                             const std::string& source_name,
                                             Dialer* dialer, Standby* standby,
                                             WorkerSlot<Puller>* slot,
                                             Summary* summary,
                                             StandbyAudit* audit = nullptr);

// Completes a first cut that was killed after it had replaced an adopted
// database: gives that database the name under which it is kept next to `dir`.
// Returns OK if there is no such database.
//   kBusy  another process works on the directory
[[nodiscard]] rocksdb::Status KeepAdopted(
    const std::string& dir,
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const LogFunction& log);

}  // namespace sstferry
