// Takes one cut of a standby: pulls a clone from the source, and exchanges the
// standby's directory with the clone's directory.
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

// Takes a cut. Another thread may cancel it through `slot`. `dialer` reaches
// the source, and `source_name` is the name of the database there. This
// function replaces all values in `options` that a cut requires. If `audit` is
// not null, stops the running audit before the cut, and prepares the next
// audit. The caller then starts the next audit.
//   kRefused  the source is another database than that of the standby, and
//             options.adopt is false
[[nodiscard]] rocksdb::Status MakeStandbyCut(const PullOptions& options,
                                             const CutRequest& request,
                                             const std::string& source_name,
                                             Dialer* dialer, Standby* standby,
                                             WorkerSlot<Puller>* slot,
                                             Summary* summary,
                                             StandbyAudit* audit = nullptr);

// Completes the first cut of an earlier run that was killed after the cut had
// replaced an adopted database. Renames that database to the name next to `dir`
// under which it is kept. Returns OK if there is no such database.
//   kBusy  another process uses the workspace of `dir`
[[nodiscard]] rocksdb::Status KeepAdopted(
    const std::string& dir,
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const LogFunction& log);

}  // namespace sstferry
