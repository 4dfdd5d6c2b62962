// Locks and checks an existing database directory that a pull is about to
// replace or change.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Holds RocksDB's lock on a directory. While this object exists, no other
// process, and no other thread of this process, can open the database for
// writing, whatever path it uses. A child process that this process forks
// meanwhile keeps the lock until it ends or executes a program.
//
// Threads: one.
class DatabaseLock {
 public:
  // Locks the LOCK file. If there is no LOCK file, no process has ever opened
  // the database. Then creates the file if `makes` is true, as RocksDB does;
  // otherwise returns OK and locks nothing.
  //
  // Never creates a LOCK file in a standby, which RocksDB does not open. Never
  // creates one in a copy if its OPTIONS are incomplete or name the WAL
  // directory of the original. With a LOCK file, sstferry would take these
  // OPTIONS for those of the copy.
  //   kBusy     a process has the database open
  //   kRefused  this process cannot open or lock the LOCK file
  [[nodiscard]] rocksdb::Status Take(const std::string& dir, bool makes);
  // Returns true if Take() has locked a LOCK file.
  bool is_held() const { return is_held_; }

 private:
  // The LOCK file. Stays open even if it could not be locked: RocksDB in this
  // process may hold a lock on it, which closing this descriptor would release.
  Descriptor file_;
  bool is_held_ = false;
};

// Returns true if `dir` contains a file that only databases and replicas have.
// The database may be damaged.
bool HoldsDatabase(const std::string& dir);

// Checks that a pull does not create its directory inside a database. RocksDB
// does not expect a directory there, and no swap could replace that database
// later.
//   kRefused  a parent directory of `target_dir` is a database or a replica
[[nodiscard]] rocksdb::Status CheckOutsideOfDatabases(
    const std::string& target_dir);

// Checks that the files or directories in `paths` can be renamed or replaced.
// Ignores paths that do not exist.
//   kRefused  a path is immutable or append-only (chattr); the message names it
[[nodiscard]] rocksdb::Status CheckReplaceable(
    const std::string& target_dir, const std::vector<std::string>& paths);

// Checks that an exchange of `dir` would remove a complete database and nothing
// else. Files of the application do not count, because the new database gets
// them (other_files.h). `in_place` is a command that changes the database
// without an exchange; empty: no such command. The message of a refusal names
// the cause:
//   kRefused  `dir` has neither CURRENT nor the record of a replica; or is
//             immutable; or contains a link, or a directory that RocksDB did
//             not create; or something is mounted below `dir`, such as a volume
//             for archived WALs; or its WALs are in another directory, so that
//             the new database would replay them; or its OPTIONS do not say
//             where its WALs are
[[nodiscard]] rocksdb::Status CheckExchangeable(
    const std::string& dir, const std::string& in_place = "");

}  // namespace sstferry
