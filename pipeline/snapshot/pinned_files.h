// The files of a database at one point in time; snapshots are made of them
// later. Pinning takes two steps, so that several databases can be pinned at
// nearly the same moment: see snapshot_files.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_files.h"
#include "rocksdb/status.h"

namespace sstferry {

// Pins the files of one database in a private directory.
//
// Ownership: owns the private directory; the destructor removes it.
// Threads:   one thread until Confirm() has returned; Copy() and
//            Snapshot::OfPinned() may then be called from any thread, one call
//            at a time per object.
class PinnedFiles {
 public:
  // Links all files that the database contains now. Ignores the options
  // `families` and `as_files`, because both kinds of snapshots can be made
  // later. All functions return the errors of Snapshot::Create().
  [[nodiscard]] static rocksdb::Status Link(const SnapshotOptions& options,
                                            std::unique_ptr<PinnedFiles>* out);
  // Links files that are new since Link(), and sets the point in time. Call
  // Copy() soon: if the application overwrites a WAL before, Copy() sets a
  // later point in time.
  [[nodiscard]] rocksdb::Status Confirm();
  [[nodiscard]] rocksdb::Status Copy();
  // Drops the callbacks in the options; they are not called any more.
  void Forget();

  // Return the earliest and the latest possible point in time.
  std::chrono::steady_clock::time_point moment_begin() const {
    return files_->moment_begin();
  }
  std::chrono::steady_clock::time_point moment_end() const {
    return files_->moment_end();
  }
  // Seconds since 1970 when Confirm() was called; never after the point in
  // time.
  uint64_t taken_seconds() const { return taken_seconds_; }
  const SnapshotFiles& files() const { return *files_; }
  const PrivateDir& dir() const { return *dir_; }

 private:
  PinnedFiles(SnapshotOptions options, std::unique_ptr<PrivateDir> dir);

  SnapshotOptions options_;
  const std::unique_ptr<PrivateDir> dir_;
  const std::unique_ptr<SnapshotFiles> files_;
  uint64_t taken_seconds_ = 0;
};

}  // namespace sstferry
