// Checks an existing database directory that a pull is about to replace.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Holds RocksDB's lock on a directory, so that neither another process nor
// another thread of this one opens the database while the directory is
// exchanged. Threads: one.
class DatabaseLock {
 public:
  // Takes the lock. Without a LOCK file, no process has ever opened the
  // database: with `makes`, creates the file, as RocksDB does; otherwise
  // returns OK and holds nothing. Creates no LOCK in a standby, which RocksDB
  // does not open. Creates none in a copy whose OPTIONS are incomplete or name
  // the original's WAL directory: with a LOCK, they would count as the copy's.
  //   kBusy     a process has the database open
  //   kRefused  this process cannot open or lock the LOCK file
  [[nodiscard]] rocksdb::Status Take(const std::string& dir, bool makes);

 private:
  Descriptor file_;
};

// Returns true if `dir` contains a file that only databases and replicas have,
// even if the database is damaged.
bool HoldsDatabase(const std::string& dir);

// Checks a directory that a pull is about to create. RocksDB does not expect a
// directory inside a database, and would make a later exchange of that database
// fail.
//   kRefused  a parent directory of `target_dir` is a database or a replica
[[nodiscard]] rocksdb::Status CheckOutsideOfDatabases(
    const std::string& target_dir);

// Checks that the files or directories can be renamed or replaced. Missing ones
// are ignored.
//   kRefused  one is immutable or append-only (chattr); the message names it
[[nodiscard]] rocksdb::Status CheckReplaceable(
    const std::string& target_dir, const std::vector<std::string>& paths);

// Checks that an exchange of `dir` removes the complete database and nothing
// else. The application's own files move to the new database (other_files.h).
//   kRefused  not a database (a replica may have lost its CURRENT); a directory
//             or link that RocksDB did not create; a mount below `dir`, such as
//             a volume for archived WALs; a WAL in another directory, which the
//             new database would replay, or OPTIONS that do not say where it
//             is; or an immutable directory. The message names it
// `in_place`: the command that changes the database in place, if there is one.
[[nodiscard]] rocksdb::Status CheckExchangeable(
    const std::string& dir, const std::string& in_place = "");

}  // namespace sstferry
