// Finds the directories of a database. Compares directories by device and
// inode, so that links, mounts and different spellings do not hide that two
// paths lead to the same directory.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace rocksdb {
class DB;
}

namespace sstferry {

// Finds the WAL directory that the OPTIONS of a database directory specify.
// Uses the newest complete OPTIONS file. *wal_dir is empty if it specifies no
// WAL directory, or if there is no OPTIONS file or no database directory.
//   kRefused  the WAL directory is unknown: an OPTIONS file cannot be read, or
//             all are incomplete although RocksDB has opened the directory.
//             (RocksDB then creates a LOCK; with `as_opened`, the function does
//             not look for a LOCK.)
[[nodiscard]] rocksdb::Status FindNamedWalDir(const std::string& dir,
                                              std::string* wal_dir,
                                              bool as_opened = false);

// Returns all directories into which RocksDB writes the data of an open
// database.
std::vector<std::string> DirectoriesOf(rocksdb::DB* db);
// Finds a database directory and the possible directories of its WALs. Returns
// the errors of FindNamedWalDir(); *dirs then has only the first.
[[nodiscard]] rocksdb::Status DirectoriesOf(const std::string& dir,
                                            std::vector<std::string>* dirs);

// Returns true if both paths lead to the same directory. Returns false if one
// path does not exist.
bool IsSameDirectory(const std::string& a, const std::string& b);
// Returns true if `inner` is inside `outer`, after resolving all symbolic
// links. Returns false if `inner` does not exist.
bool LiesIn(const std::string& inner, const std::string& outer);

// Returns digests of these directories and all their parents, nearest first.
// The digests reveal nothing to another machine. Returns an empty list if this
// machine has no boot id, because the digests could then be guessed.
std::vector<Place> PlacesOf(const std::vector<std::string>& dirs);

// Returns kRefused if one of `target_dirs` (which need not exist yet) equals,
// is inside, or contains one of the source's directories. `source` and `target`
// are used only in the message.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::string& source, const std::vector<Place>& source_places,
    const std::string& target, const std::vector<std::string>& target_dirs);
// Like the other CheckApart(), for two sides in this process. A target may be
// next to a snapshot of the source, but must not contain `snapshot_dir`, if
// set.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::vector<std::string>& source_dirs,
    const std::string& snapshot_dir, const std::string& target,
    const std::vector<std::string>& target_dirs);

}  // namespace sstferry
