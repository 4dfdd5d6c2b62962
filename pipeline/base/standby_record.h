// Reads the records of a standby: a copy that follows its source
// (format/follow_file.h).
#pragma once

#include <string>

#include "format/follow_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the record of a standby. Sets *found to true if the directory has a
// record, even if the record is damaged.
//   kCorrupt  the record is damaged
//   others    errors of ReadRecord()
[[nodiscard]] rocksdb::Status ReadStandbyRecord(const std::string& dir,
                                                bool* found,
                                                FollowFile* record);

// Returns true if `dir` has a CURRENT with which RocksDB can open it. Returns
// false for the CURRENT of a standby, which RocksDB refuses to open.
bool HasCurrent(const std::string& dir);

// Returns true if `dir` is a standby that was not promoted: it has a standby's
// record, and HasCurrent() is false. (Earlier versions of sstferry wrote no
// CURRENT into a standby.)
bool IsStandby(const std::string& dir);

// Checks that no other program has made a database in the standby's directory.
// If the directory has a usable CURRENT, either a promotion or another program
// wrote it. A promotion writes its record before it writes CURRENT.
//   kRefused  another program made a database there, and may have written to it
[[nodiscard]] rocksdb::Status CheckNotTaken(const std::string& dir);

// Returns the newest mark of the standby in `dir`. A follower writes marks that
// tell how much of the WALs is durable. Ignores a mark that was written only in
// part.
FollowMark ReadFollowMark(const std::string& dir);

// Returns the name of the MANIFEST that the record refers to.
std::string ManifestNameOf(const FollowFile& record);

}  // namespace sstferry
