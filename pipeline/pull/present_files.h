// Links files that the clone and another database on this machine have in
// common. These files need not be transferred.
//
// The other database may be in use. A snapshot of it, which consists of links
// like a snapshot at a source, shows which files it has. The snapshot is
// removed when the call returns. Two files are the same if their identities are
// equal (format/rocksdb/file_identity.h). Both databases may be used
// afterwards. RocksDB writes to a table or a blob file only before a MANIFEST
// lists the file, and truncates a file only if it has a single hard link.
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

// The other database, and how to link its files.
struct PresentDatabase {
  std::string directory;
  // Owner and mode that a file must have to be linked. All links to a file have
  // the same owner and mode.
  Access file_access;
  std::function<bool()> cancelled;
  // True if the call only finds out which files it would link. It then takes no
  // snapshot, so it may find fewer files of a database that is in use.
  bool looks = false;
  // True if no process opens the database during the call. Its files are then
  // read in place, and a file that cannot be linked is an error (kRefused).
  bool is_closed = false;
};

// The result of LinkPresentFiles().
struct PresentFiles {
  std::set<uint64_t> numbers;  // the source's numbers of the linked files
  uint64_t other_access = 0;   // not linked only because of owner or mode
  Digest128 content;           // content of the database; all zero: unknown
  std::string database_id;
  bool links_none = false;  // is_closed was set, and a link failed
};

// Links the files into the staging_dir of `layout`. After OK, the links are
// durable.
//   kCancelled  `cancelled` returned true
//   kRefused    is_closed is set, and a link failed (present->links_none)
//   others      the database cannot be read and no file is linked; the pull can
//               continue
[[nodiscard]] rocksdb::Status LinkPresentFiles(
    const PresentDatabase& database, const CloneLayout& layout,
    rocksdb::FileSystem* file_system, PresentFiles* present);

}  // namespace sstferry
