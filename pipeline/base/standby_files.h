// Checks a standby's files within milliseconds: reads its MANIFEST, but no
// tables.
#pragma once

#include <functional>
#include <string>

#include "format/follow_file.h"
#include "format/health_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks the standby in `dir`, which has this record:
// - its MANIFEST begins with the bytes of the last cut;
// - all files in the MANIFEST exist with their recorded sizes;
// - no WAL is shorter than in the last cut, or than its recorded durable
//   length;
// - last_transfer.json exists (RecordFault() removes it if it cannot record a
//   fault).
// Reads no WAL (ReadStandbyWals() does). The directory must not be exchanged
// meanwhile.
//   kCorrupt  a file is missing or has wrong bytes; the message names it
//   kDenied   this account may not access the directory
[[nodiscard]] rocksdb::Status CheckStandbyFiles(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const FollowFile& record);

// Finds the fault of the standby in `dir`: the recorded fault, or else the
// result of CheckStandbyFiles() and then of check_more() (may be empty), as a
// fault without an id. A follower may exchange the directory meanwhile; then
// both run again. kNone: no fault is known.
//   others  the directory cannot be read
[[nodiscard]] rocksdb::Status FindStandbyFault(
    rocksdb::FileSystem* file_system, const std::string& dir,
    HealthFile* fault,
    const std::function<rocksdb::Status(const FollowFile&)>& check_more = {});

// Returns the command that repairs the standby: its follower begins with a cut
// that compares all files with the source's.
std::string MendStandbyCommand(const std::string& source,
                               const std::string& dir);

}  // namespace sstferry
