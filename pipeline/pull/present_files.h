// Links the files of a clone that a database here has already, so that they
// need not come.
//
// The database may be in use. A snapshot of its files by links, as a source
// takes it, tells which files it has; it is gone when the call returns. A file
// is the same if its identity is (format/rocksdb/file_identity.h). RocksDB
// writes a table or a blob file only before a MANIFEST names it, and truncates
// one only if it has one name: both databases may be used afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "format/digest.h"
#include "pipeline/disk/access.h"
#include "pipeline/pull/clone_layout.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Where to look, and how.
struct PresentDatabase {
  std::string directory;
  Access file_access;  // only files that have it are linked: an owner and
                       // permissions belong to all names of a file
  std::function<bool()> cancelled;
  // Finds out which files would be linked, and links none: no snapshot is
  // taken, so that a database in use may show fewer.
  bool looks = false;
  // Nobody opens it while this runs: it is read where it lies. What it has and
  // cannot be linked is kRefused.
  bool is_closed = false;
};

struct PresentFiles {
  std::set<uint64_t> numbers;  // the source's, of what was linked
  uint64_t other_access = 0;   // files not linked for their access only
  Digest128 content;           // of that database; all zero: not known
  std::string database_id;
  bool links_none = false;  // with is_closed: a link failed
};

// Links into the layout's staging_dir, durably if OK.
// A database that cannot be read (any status but kCancelled and, with is_closed,
// kRefused of a link: *present says so) is no reason to fail a pull: nothing is
// linked then.
[[nodiscard]] rocksdb::Status LinkPresentFiles(
    const PresentDatabase& database, const CloneLayout& layout,
    rocksdb::FileSystem* file_system, PresentFiles* present);

}  // namespace sstferry
