// Which directories a database takes, and where they lie: by device and inode,
// so that a link, a mount or another spelling hides nothing.
#pragma once

#include <string>
#include <vector>

#include "format/message/messages.h"
#include "rocksdb/status.h"

namespace rocksdb {
class DB;
}

namespace sstferry {

// The newest OPTIONS file of a database directory; false: there is none, or it
// cannot be read.
bool ReadNewestOptions(const std::string& dir, std::string* text);

// As the newest OPTIONS file names them; empty: not named.
struct NamedDirectories {
  std::string wal_dir;
  std::string db_log_dir;
};
NamedDirectories DirectoriesNamedBy(const std::string& dir);

// Of what an application has open: all that RocksDB writes its data to.
std::vector<std::string> DirectoriesOf(rocksdb::DB* db);
// The same of a directory: itself, and where its WALs may lie.
std::vector<std::string> DirectoriesOf(const std::string& dir);

// False also where one of them is not there.
bool IsSameDirectory(const std::string& a, const std::string& b);
// Every link followed. False where it is not there.
bool LiesIn(const std::string& inner, const std::string& outer);

// These directories and all that they lie in, nearest first, as digests that
// tell nothing to another machine. Empty where this machine has no name that
// only it knows.
std::vector<Place> PlacesOf(const std::vector<std::string>& dirs);

// kRefused when one of `target_dirs` (which need not be there yet) is one of
// the source's directories, lies in it, or holds it. `source` and `target` are
// for the message.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::string& source, const std::vector<Place>& source_places,
    const std::string& target, const std::vector<std::string>& target_dirs);
// The same where both ends are directories of this process. A target may lie
// beside a snapshot of the source, but not hold it: `snapshot_dir`, if set.
[[nodiscard]] rocksdb::Status CheckApart(
    const std::vector<std::string>& source_dirs,
    const std::string& snapshot_dir, const std::string& target,
    const std::vector<std::string>& target_dirs);

}  // namespace sstferry
