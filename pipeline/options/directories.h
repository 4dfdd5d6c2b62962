// Finds the directories of a database, and compares directories. Two paths are
// equal if they lead to the same device and inode. So links, mounts and
// different spellings do not matter.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace rocksdb {
class DB;
}

namespace sstferry {

// Finds the WAL directory in the newest complete OPTIONS file of the database
// directory `dir`. Sets *wal_dir to an empty string if OPTIONS have no WAL
// directory, or if there is no OPTIONS file or no database directory.
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
// Returns a database directory and the directories that may have its WALs.
// Returns the errors of FindNamedWalDir(). After an error, *dirs has only the
// database directory.
[[nodiscard]] rocksdb::Status DirectoriesOf(const std::string& dir,
                                            std::vector<std::string>* dirs);

// Returns true if both paths lead to the same directory. Returns false if one
// path does not exist.
bool IsSameDirectory(const std::string& a, const std::string& b);
// Returns true if `inner` is inside `outer`, after resolving all symbolic
// links. Returns false if `inner` does not exist.
bool LiesIn(const std::string& inner, const std::string& outer);

// Returns digests of the directories in `dirs` and of their parents. For each
// directory, its own digest is first, then that of its parent, and so on.
// Another machine cannot learn the paths from the digests. Returns an empty
// list if this machine has no boot id, because the paths could then be guessed
// from the digests.
std::vector<Place> PlacesOf(const std::vector<std::string>& dirs);

// Checks that the target's directories are separate from the source's. Returns
// kRefused if one of `target_dirs` equals one of the source's directories, is
// inside it, or contains it. A target directory may be missing. `source` and
// `target` are used only in the message.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::string& source, const std::vector<Place>& source_places,
    const std::string& target, const std::vector<std::string>& target_dirs);
// Does the same if source and target are in this process. In addition, returns
// kRefused if a target directory contains `snapshot_dir` (if it is not empty).
// A target may be next to a snapshot of the source.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::vector<std::string>& source_dirs,
    const std::string& snapshot_dir, const std::string& target,
    const std::vector<std::string>& target_dirs);

}  // namespace sstferry
