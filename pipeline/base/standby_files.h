// Checks the files of a standby in milliseconds. Reads only the MANIFEST, and
// compares the sizes of the other files.
#pragma once

#include <functional>
#include <string>

#include "format/follow_file.h"
#include "format/health_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks the standby in `dir`. `record` is the record that its last cut wrote.
// Finds a fault if:
// - the MANIFEST does not begin with the bytes of the last cut;
// - a table or blob file is missing, or has another size than in the MANIFEST;
// - a WAL is shorter than at the last cut, or than the length that the follower
//   recorded as durable;
// - last_transfer.json is missing (RecordFault() removes it if it cannot write
//   the record of a fault).
// Does not read WALs; ReadStandbyWals() does. REQUIRES: no process exchanges
// the directory meanwhile.
//   kCorrupt  a file is missing or has wrong bytes; the message names the file
//   kDenied   this account may not access the directory
[[nodiscard]] rocksdb::Status CheckStandbyFiles(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const FollowFile& record);

// Finds a fault of the standby in `dir`. Uses the recorded fault if there is
// one. Otherwise runs CheckStandbyFiles() and then check_more() (may be empty).
// *fault is then the first fault found, without an id. Starts over if a
// follower replaces the record meanwhile. Sets *fault to kNone if the standby
// has no fault.
//   others  the directory cannot be read
[[nodiscard]] rocksdb::Status FindStandbyFault(
    rocksdb::FileSystem* file_system, const std::string& dir,
    HealthFile* fault,
    const std::function<rocksdb::Status(const FollowFile&)>& check_more = {});

// Returns the command that repairs the standby. It starts the follower, whose
// first cut compares all files with the source's files.
std::string MendStandbyCommand(const std::string& source,
                               const std::string& dir);

}  // namespace sstferry
