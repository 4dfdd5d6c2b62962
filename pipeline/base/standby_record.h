// Reads the records of a standby (format/follow_file.h).
#pragma once

#include <string>

#include "format/follow_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// *found: the directory has the record, be it damaged.
//   kCorrupt  it is damaged
//   others    errors of ReadRecord()
[[nodiscard]] rocksdb::Status ReadStandbyRecord(const std::string& dir,
                                                bool* found,
                                                FollowFile* record);

// True if the directory is a standby that was not promoted: nothing can open
// it, because it has the record and no CURRENT.
bool IsStandby(const std::string& dir);

// Returns the newest mark of the standby in `dir` that is whole.
FollowMark ReadFollowMark(const std::string& dir);

// Returns the name of the MANIFEST that the record stands for.
std::string ManifestNameOf(const FollowFile& record);

}  // namespace sstferry
