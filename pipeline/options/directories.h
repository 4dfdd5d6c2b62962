// Finds the directories of a database and compares them by device and inode, so
// that links, mounts and other spellings do not hide that two are the same.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace rocksdb {
class DB;
}

namespace sstferry {

// Reads the newest OPTIONS file of a database directory. Returns false if there
// is none or it cannot be read.
bool ReadNewestOptions(const std::string& dir, std::string* text);

// Directories that the newest OPTIONS file names; empty: not named.
struct NamedDirectories {
  std::string wal_dir;
  std::string db_log_dir;
};
NamedDirectories DirectoriesNamedBy(const std::string& dir);

// All directories into which RocksDB writes the data of an open database.
std::vector<std::string> DirectoriesOf(rocksdb::DB* db);
// The same for a database directory: itself and possible directories of its
// WALs.
std::vector<std::string> DirectoriesOf(const std::string& dir);

// Returns false also if one of them does not exist.
bool IsSameDirectory(const std::string& a, const std::string& b);
// Resolves all symbolic links. Returns false if `inner` does not exist.
bool LiesIn(const std::string& inner, const std::string& outer);

// Returns these directories and all their parents, nearest first, as digests
// that reveal nothing to another machine. Empty if this machine has no secret
// name (boot id).
std::vector<Place> PlacesOf(const std::vector<std::string>& dirs);

// kRefused: one of `target_dirs` (which may not exist yet) is one of the
// source's directories, is inside one, or contains one. `source` and `target`
// are used only in the message.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::string& source, const std::vector<Place>& source_places,
    const std::string& target, const std::vector<std::string>& target_dirs);
// The same if both sides are directories of this process. A target may be
// beside a snapshot of the source but must not contain `snapshot_dir`, if set.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::vector<std::string>& source_dirs,
    const std::string& snapshot_dir, const std::string& target,
    const std::vector<std::string>& target_dirs);

}  // namespace sstferry
