// Keeps a record of what is known to be wrong with a replica (its health). Each
// finding is recorded in the replica's directory at once
// (format/health_file.h). pull, serve, status and the metrics read the record.
//
//   complete --(a comparison finds a difference)--> different
//   complete, different --(a file is missing or its bytes are wrong)--> damaged
//   different --(a refresh compared all of it, or a verify finds it equal)-->
//       complete
//   damaged --(its directory is exchanged, or a verify of files finds it
//       equal)--> complete
//
// A pull does not end with OK while a recorded finding is not repaired. Several
// processes may call RecordFault() and ClearFault() at once.
#pragma once

#include <functional>
#include <string>

#include "format/health_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Records *fault durably in `dir`, and gives the fault an id if it has none. If
// a fault is already recorded, keeps the worse of the two, and widens its
// selection to include both. *fault receives what was recorded. If the record
// cannot be written, removes last_transfer.json. Then no refresh relies on the
// replica, and a standby counts as damaged.
//
// An exchange cannot miss the record: Workspace::Swap() checks for a fault and
// exchanges under the lock of the workspace, and this function takes the same
// lock. `holds`, unless null, is called under the lock. It returns false if
// another directory has the name `dir` now, so that the finding does not apply
// to it. Then nothing is recorded, and *fault becomes kNone.
[[nodiscard]] rocksdb::Status RecordFault(
    rocksdb::FileSystem* file_system, const std::string& dir,
    HealthFile* fault, const std::function<bool()>& holds = nullptr);

// Returns a fault with a new id and the current time.
HealthFile MakeFault(ReplicaFault fault, const std::string& what,
                     const Selection& looked_at);

// Removes the record of the fault `mended`, which was repaired. The removal is
// durable. Keeps a record with another id, because its fault was found later.
[[nodiscard]] rocksdb::Status ClearFault(rocksdb::FileSystem* file_system,
                                         const std::string& dir,
                                         const HealthFile& mended);

// Returns true if `asked` includes everything that was examined when the fault
// was found.
bool Includes(const Selection& asked, const HealthFile& fault);

// Returns the command that exchanges options.target_dir for a new copy.
std::string SwapCommand(const PullOptions& options);
// Returns SwapCommand() with --verify. The swap then also verifies the files
// that it reuses from the old copy.
std::string ReplaceCommand(const PullOptions& options);

// Returns kCorrupt with the finding and the command that repairs it. REQUIRES:
// `fault` is a fault, not kNone.
[[nodiscard]] rocksdb::Status FaultStatus(const PullOptions& options,
                                          const HealthFile& fault);

}  // namespace sstferry
