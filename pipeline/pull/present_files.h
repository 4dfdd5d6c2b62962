// Links files of a clone that a database on this machine already has, so that
// they need not be transferred.
//
// The database may be in use. A snapshot made of links, like one that a source
// makes, shows which files the database has; the snapshot is removed when the
// call returns. Two files are the same if their identities are equal
// (format/rocksdb/file_identity.h). Both databases may be used afterwards:
// RocksDB writes to a table or a blob file only before a MANIFEST lists the
// file, and truncates only a file with a single hard link.
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

// The database to look at, and how.
struct PresentDatabase {
  std::string directory;
  Access file_access;  // only files with this access are linked: all
                       // names of a file share its owner and mode
  std::function<bool()> cancelled;
  // Only finds out which files would be linked. Takes no snapshot, so for a
  // database in use it may find fewer files.
  bool looks = false;
  // No process opens the database during the call: its files are read in place.
  // A file that cannot be linked is then an error (kRefused).
  bool is_closed = false;
};

// The result of linking files of a present database.
struct PresentFiles {
  std::set<uint64_t> numbers;  // the source's numbers of the linked files
  uint64_t other_access = 0;   // files not linked only because of their access
  Digest128 content;           // content of that database; all zero: unknown
  std::string database_id;
  bool links_none = false;  // is_closed is set and a link failed
};

// Links the files into the layout's staging_dir; they are durable after OK.
//   kCancelled  `cancelled` returned true
//   kRefused    with is_closed: a link failed (present->links_none)
//   others      the database cannot be read and nothing is linked; the pull can
//               continue
[[nodiscard]] rocksdb::Status LinkPresentFiles(
    const PresentDatabase& database, const CloneLayout& layout,
    rocksdb::FileSystem* file_system, PresentFiles* present);

}  // namespace sstferry
