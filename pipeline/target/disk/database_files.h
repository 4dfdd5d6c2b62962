// What a target may ask of a database directory before it takes its place.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// True when a process, this one included, holds RocksDB's lock on the
// directory. Instances that take no lock (read-only and secondary ones) cannot
// be seen.
bool IsDatabaseOpen(const std::string& dir);

// RocksDB's lock on a directory, so that no process opens the database while
// it is taken away. Threads: one.
class DatabaseLock {
 public:
  DatabaseLock() = default;
  ~DatabaseLock();
  DatabaseLock(const DatabaseLock&) = delete;
  DatabaseLock& operator=(const DatabaseLock&) = delete;

  // Where there is no LOCK, nobody has opened it: OK, and nothing is made.
  //   kBusy     a process has the database open
  //   kRefused  nobody can tell
  [[nodiscard]] rocksdb::Status Take(const std::string& dir);

 private:
  int fd_ = -1;
};

// OK when an exchange of `dir` takes the whole database and nothing else.
//   kRefused  no database; a file or directory of it that RocksDB did not make
//             (nor this tool), or a WAL elsewhere, which the new database would
//             replay: the message names it
[[nodiscard]] rocksdb::Status CheckExchangeable(const std::string& dir);

// The same of one that is kept beside, whatever it holds: only WALs elsewhere
// are in the way.
[[nodiscard]] rocksdb::Status CheckReplaceable(const std::string& dir);

}  // namespace sstferry
