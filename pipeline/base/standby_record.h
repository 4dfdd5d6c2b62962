// Reads the records of a standby (format/follow_file.h).
#pragma once

#include <string>

#include "format/follow_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the record of a standby. *found: the directory has a record, even if
// the record is damaged.
//   kCorrupt  the record is damaged
//   others    errors of ReadRecord()
[[nodiscard]] rocksdb::Status ReadStandbyRecord(const std::string& dir,
                                                bool* found,
                                                FollowFile* record);

// Returns true if `dir` has a CURRENT other than that of a standby, so RocksDB
// may open it.
bool HasCurrent(const std::string& dir);

// Returns true if the directory is a standby that was not promoted: it has a
// record, and HasCurrent() is false. A standby of an earlier version has no
// CURRENT at all.
bool IsStandby(const std::string& dir);

// Checks that `dir` has no CURRENT except that of a standby or of a promotion
// (each promotion is recorded before it writes CURRENT). With any other
// CURRENT, another program made a database there, and may have written to it.
//   kRefused  another program made a database in the standby
[[nodiscard]] rocksdb::Status CheckNotTaken(const std::string& dir);

// Returns the newest complete mark of the standby in `dir`.
FollowMark ReadFollowMark(const std::string& dir);

// Returns the name of the MANIFEST that the record refers to.
std::string ManifestNameOf(const FollowFile& record);

}  // namespace sstferry
