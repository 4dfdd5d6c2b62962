// The health of a replica: what is known to be wrong with it. A finding is
// recorded in the replica's directory (format/health_file.h) when it is
// made, and read by pull, serve, status and the metrics.
//
//   complete --(a comparison finds a difference)--> different
//   complete, different --(a file is missing or its bytes are wrong)--> damaged
//   different --(a refresh compared all of it, or a verify finds it equal)-->
//       complete
//   damaged --(its directory is exchanged, or a verify finds it equal)-->
//       complete
//
// No pull ends with OK while a finding is recorded that it has not mended.
#pragma once

#include <string>

#include "format/health_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Records *fault durably in `dir`, and gives it an id if it has none. Keeps a
// worse finding that is there, and joins what two findings were looked at; then
// *fault is what the file holds now. If the record cannot be written, removes
// sstferry.intervals, so that no refresh believes the replica.
[[nodiscard]] rocksdb::Status RecordFault(rocksdb::FileSystem* file_system,
                                          const std::string& dir,
                                          HealthFile* fault);

// Returns a finding of now.
HealthFile MakeFault(ReplicaFault fault, const std::string& what,
                     const Selection& looked_at);

// Removes the record of `mended` durably. Keeps one with another id: it was
// found since.
[[nodiscard]] rocksdb::Status ClearFault(rocksdb::FileSystem* file_system,
                                         const std::string& dir,
                                         const HealthFile& mended);

// Returns true if `asked` selects all that was looked at for this finding.
bool Includes(const Selection& asked, const HealthFile& fault);

// Returns the command that exchanges options.target_dir for a new copy, and
// reads what it keeps of the old one before it believes it.
std::string ReplaceCommand(const PullOptions& options);

// Returns kCorrupt with what was found and the command that mends it.
// REQUIRES: there is a fault.
[[nodiscard]] rocksdb::Status FaultStatus(const PullOptions& options,
                                          const HealthFile& fault);

}  // namespace sstferry
