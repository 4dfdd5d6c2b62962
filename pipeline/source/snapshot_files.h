// The procedure that takes one point in time out of a database directory that
// another process may be writing to, without writing to it:
//
//   1. list the WALs and link them into held/, so that they stay readable
//   2. copy CURRENT, MANIFEST, OPTIONS, IDENTITY into db/
//   3. link every SST and blob file into held/
//   4. list again: other WAL names, another CURRENT, or a file that vanished
//      mean that step 2 may not match step 1: start over
//   5. move the files the copied MANIFEST names from held/ to db/
//   6. copy the contents of the WALs of step 1 into db/, newest first, and
//      check them (wal_check.h)
//
// Why a prefix of the owner's history comes out: no WAL was born between 1 and
// 4, so the MANIFEST names nothing written to a WAL that is not held. Only the
// newest WAL still grows during 6; when any of its records is in the copy, the
// one before it was already complete, and it is copied after it.
//
// held/ is never opened by RocksDB, and only files the MANIFEST names reach
// db/: a file that the owner made later could get the number that RocksDB
// gives to a new file of the copy, and would be truncated through its link.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

struct LiveFile {
  std::string name;  // 000012.sst, 000013.blob
  uint64_t size_bytes = 0;
};

// One attempt's result, and whether another attempt can help.
struct Attempt {
  bool again = false;  // true: the source changed meanwhile, or a file misses
  std::string reason;  // when `again`
  // Two attempts with the same fingerprint and the same reason saw the same
  // source: it is not changing, and a third attempt is useless.
  std::string fingerprint;
};

// Threads: one. Borrows nothing; the directories must outlive it.
class SnapshotFiles {
 public:
  // `held` and `db` are empty directories on one file system.
  SnapshotFiles(std::string source_dir, std::string held, std::string db)
      : source_dir_(std::move(source_dir)),
        held_(std::move(held)),
        db_(std::move(db)) {}
  SnapshotFiles(const SnapshotFiles&) = delete;
  SnapshotFiles& operator=(const SnapshotFiles&) = delete;
  ~SnapshotFiles();
  // Polled between WALs; may be null. kCancelled when it says so.
  void set_cancelled(std::function<bool()> cancelled) {
    cancelled_ = std::move(cancelled);
  }

  // Steps 1 to 4.
  //   kSourceError  no CURRENT in the directory, a file cannot be read, linked
  //                 (EXDEV, EPERM say what to do), or the WAL directory is
  //                 missing.
  //   kRefused      WALs lie where it is not certain that they are this
  //                 database's.
  [[nodiscard]] rocksdb::Status Pin(Attempt* attempt);
  // Step 6. After Place(), which needs a directory without WALs to list it.
  //   kCorrupt  a WAL has damaged bytes.
  [[nodiscard]] rocksdb::Status CopyWals(Attempt* attempt);
  // Step 5.
  //   kCorrupt  a file has another size than the MANIFEST says.
  [[nodiscard]] rocksdb::Status Place(const std::vector<LiveFile>& files,
                                      Attempt* attempt);
  // Drops what only kept files alive.
  [[nodiscard]] rocksdb::Status ReleaseHeld();

  // The newest OPTIONS file's text; empty when there is none.
  const std::string& options_text() const { return options_text_; }
  // db/OPTIONS-..., empty when there is none.
  const std::string& options_path() const { return options_path_; }
  bool has_identity() const { return has_identity_; }
  // Where WALs were read from.
  const std::string& wal_dir() const { return wal_dir_; }
  uint64_t wal_files() const { return wals_.size(); }
  uint64_t wal_bytes() const { return wal_bytes_; }
  uint64_t linked_files() const { return linked_; }
  // None of the files asked of Place() was there.
  bool nothing_found() const { return nothing_found_; }

 private:
  [[nodiscard]] rocksdb::Status CheckStopped() const;
  struct HeldWal {
    std::string name;
    int fd = -1;  // the held file, open
  };

  [[nodiscard]] rocksdb::Status FindOptions(
      const std::vector<std::string>& names);
  [[nodiscard]] rocksdb::Status FindWalDir(
      const std::vector<std::string>& names);
  [[nodiscard]] rocksdb::Status HoldWals(Attempt* attempt);
  [[nodiscard]] rocksdb::Status CopyDescriptions(Attempt* attempt);
  [[nodiscard]] rocksdb::Status LinkTables(Attempt* attempt);
  [[nodiscard]] rocksdb::Status CheckUnchanged(Attempt* attempt);
  [[nodiscard]] rocksdb::Status CheckNotRecycled(Attempt* attempt);
  [[nodiscard]] rocksdb::Status CheckCopiedWals();

  std::function<bool()> cancelled_;
  const std::string source_dir_;
  const std::string held_;
  const std::string db_;
  std::string wal_dir_;
  std::string options_text_;
  std::string options_path_;
  std::string current_;
  std::string manifest_name_;
  std::string source_state_;  // for the fingerprint
  bool has_identity_ = false;
  bool may_recycle_ = false;
  bool nothing_found_ = false;
  std::vector<HeldWal> wals_;  // oldest first
  uint64_t wal_bytes_ = 0;
  uint64_t linked_ = 0;
};

}  // namespace sstferry
