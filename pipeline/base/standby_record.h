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

// Returns true if the directory is a standby that was not promoted: it has a
// record but no CURRENT, so RocksDB cannot open it.
bool IsStandby(const std::string& dir);

// Returns the newest complete mark of the standby in `dir`.
FollowMark ReadFollowMark(const std::string& dir);

// Returns the name of the MANIFEST that the record refers to.
std::string ManifestNameOf(const FollowFile& record);

}  // namespace sstferry
