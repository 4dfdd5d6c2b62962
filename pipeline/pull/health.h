// The health of a replica: what is known to be wrong with it. A finding is
// recorded in the replica's directory (format/health_file.h) when it is made,
// and is read by pull, serve, status and the metrics.
//
//   complete --(a comparison finds a difference)--> different
//   complete, different --(a file is missing or its bytes are wrong)--> damaged
//   different --(a refresh compared all of it, or a verify finds it equal)-->
//       complete
//   damaged --(its directory is exchanged, or a verify of files finds it
//       equal)--> complete
//
// A pull does not end with OK while a recorded finding is not repaired. The two
// functions that change the record may run in several processes at once.
#pragma once

#include <functional>
#include <string>

#include "format/health_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Records *fault durably in `dir`, and gives the fault an id if it does not
// have one. If a fault is already recorded, keeps the worse of the two, and
// widens its selection to include both. *fault receives the contents of the
// file. If the record cannot be written, removes last_transfer.json, so that no
// refresh relies on the replica, and a standby counts as damaged.
//
// No exchange overlooks the record: Workspace::Swap() checks for a fault and
// exchanges under the lock of the workspace, which this function also takes.
// `holds`, unless null, is called under the lock. It returns false if the
// finding is not about the directory that has the name `dir` now; then nothing
// is recorded, and *fault becomes kNone.
[[nodiscard]] rocksdb::Status RecordFault(
    rocksdb::FileSystem* file_system, const std::string& dir,
    HealthFile* fault, const std::function<bool()>& holds = nullptr);

// Returns a fault with a new id and the current time.
HealthFile MakeFault(ReplicaFault fault, const std::string& what,
                     const Selection& looked_at);

// Removes the record of the repaired fault `mended` durably. Keeps a record
// with another id: that fault was found later.
[[nodiscard]] rocksdb::Status ClearFault(rocksdb::FileSystem* file_system,
                                         const std::string& dir,
                                         const HealthFile& mended);

// Returns true if `asked` includes the whole selection in which the fault was
// found.
bool Includes(const Selection& asked, const HealthFile& fault);

// Returns the command that exchanges options.target_dir for a new copy.
std::string SwapCommand(const PullOptions& options);
// Returns SwapCommand() with --verify, which also verifies the files of the old
// copy that are reused.
std::string ReplaceCommand(const PullOptions& options);

// Returns kCorrupt with the finding and the command that repairs it. REQUIRES:
// `fault` is a fault, not kNone.
[[nodiscard]] rocksdb::Status FaultStatus(const PullOptions& options,
                                          const HealthFile& fault);

}  // namespace sstferry
