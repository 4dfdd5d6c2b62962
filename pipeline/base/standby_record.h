// Reads the records of a standby (format/follow_file.h).
#pragma once

#include <string>

#include "format/follow_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the record of a standby. *found: the directory has a record, even if it
// is damaged.
//   kCorrupt  it is damaged
//   others    errors of ReadRecord()
[[nodiscard]] rocksdb::Status ReadStandbyRecord(const std::string& dir,
                                                bool* found,
                                                FollowFile* record);

// Returns true if the directory is a standby that was not promoted: it has the
// record but no CURRENT, so that RocksDB cannot open it.
bool IsStandby(const std::string& dir);

// Returns the newest whole mark of the standby in `dir`.
FollowMark ReadFollowMark(const std::string& dir);

// Returns the name of the MANIFEST of the record.
std::string ManifestNameOf(const FollowFile& record);

}  // namespace sstferry
