// Checks an existing database directory that a pull is about to replace.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Holds RocksDB's lock on a directory, so that no process opens the database
// while the directory is exchanged. Threads: one.
class DatabaseLock {
 public:
  DatabaseLock() = default;
  ~DatabaseLock();
  DatabaseLock(const DatabaseLock&) = delete;
  DatabaseLock& operator=(const DatabaseLock&) = delete;

  // Takes the lock. Without a LOCK file no process has ever opened the
  // database: returns OK and creates none.
  //   kBusy     a process has the database open
  //   kRefused  this process cannot read the LOCK file
  [[nodiscard]] rocksdb::Status Take(const std::string& dir);

 private:
  int fd_ = -1;
};

// Returns true if `dir` contains a file that only a database or a replica has,
// even if the database is damaged.
bool HoldsDatabase(const std::string& dir);

// Checks a directory that a pull is about to make. RocksDB does not expect it
// inside a database, and a later exchange of that database would be refused.
//   kRefused  a directory above `target_dir` is a database or a replica
[[nodiscard]] rocksdb::Status CheckOutsideOfDatabases(
    const std::string& target_dir);

// Checks that the files or directories, of which some may be missing, can get
// another name or be replaced.
//   kRefused  one is immutable or append-only (chattr); the message names it
[[nodiscard]] rocksdb::Status CheckReplaceable(
    const std::string& target_dir, const std::vector<std::string>& paths);

// Checks that an exchange of `dir` removes the whole database and nothing else;
// the application's own files move to the new database (other_files.h).
//   kRefused  no database (a replica may have lost its CURRENT); a directory or
//             link that RocksDB did not make; a WAL in another directory, which
//             the new database would replay; or an immutable directory. The
//             message names it
// `in_place`: the command that changes the database where it is, if there is
// one.
[[nodiscard]] rocksdb::Status CheckExchangeable(
    const std::string& dir, const std::string& in_place = "");

}  // namespace sstferry
