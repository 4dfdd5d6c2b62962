// Links files of a clone that a database on this machine already has, so that
// they need not be transferred.
//
// The database may be in use. A snapshot of its files by links, taken as at a
// source, shows which files it has; the snapshot is removed when the call
// returns. A file is the same if its identity is
// (format/rocksdb/file_identity.h). RocksDB writes to a table or a blob file
// only before a MANIFEST names it, and truncates one only if it has a single
// name: so both databases may be used afterwards.
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
  Access file_access;  // only files that have it are linked: all names of a
                       // file share its owner and permissions
  std::function<bool()> cancelled;
  // Only finds out which files would be linked. Takes no snapshot, so that a
  // database in use may seem to have fewer.
  bool looks = false;
  // Nobody opens the database during the call: its files are read in place.
  // kRefused: it has files that cannot be linked.
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

// Links the files into the layout's staging_dir, durably if it returns OK. If
// the database cannot be read (any status except kCancelled and, with
// is_closed, kRefused for a link: see *present), nothing is linked; that is no
// reason to fail a pull.
[[nodiscard]] rocksdb::Status LinkPresentFiles(
    const PresentDatabase& database, const CloneLayout& layout,
    rocksdb::FileSystem* file_system, PresentFiles* present);

}  // namespace sstferry
