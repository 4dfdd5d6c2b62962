// Looks at the files of a standby before anybody believes it, in milliseconds:
// reads its MANIFEST, and no table.
#pragma once

#include <string>

#include "format/follow_file.h"
#include "format/health_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks that the MANIFEST of the standby in `dir`, whose record this is, begins
// with the bytes of the last cut, that all files which it names are there with
// their sizes, and that no WAL is shorter than it was durable. The directory must
// not be exchanged meanwhile.
//   kCorrupt  a file is missing or has other bytes; the message names it
//   kDenied   this account may not look there
[[nodiscard]] rocksdb::Status CheckStandbyFiles(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const FollowFile& record);

// Finds what is wrong with the standby in `dir`, which a follower may exchange
// meanwhile: the fault that is recorded, or what CheckStandbyFiles() says now,
// which has no id. kNone: nothing is known.
//   others  it cannot be looked at
[[nodiscard]] rocksdb::Status FindStandbyFault(
    rocksdb::FileSystem* file_system, const std::string& dir,
    HealthFile* fault);

// Returns the command that mends it: its follower begins with a cut that compares
// all files with the source's.
std::string MendStandbyCommand(const std::string& source,
                               const std::string& dir);

}  // namespace sstferry
