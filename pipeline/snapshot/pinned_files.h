// Keeps the files that a database has at one point in time, so that snapshots
// can be made from them later. This takes two steps, so that the points in time
// of several databases are close together (see snapshot_files.h).
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

// Keeps the files of one database in a private directory.
//
// Ownership: owns the private directory. The destructor removes it.
// Threads: used by one thread until Confirm() has returned. Afterwards, Copy()
// and Snapshot::OfPinned() may be called from any thread, but only one of them
// at a time for one object.
class PinnedFiles {
 public:
  // Links all files that the database has now. Ignores the options `families`
  // and `as_files`: both kinds of snapshots can be made later from the same
  // files. This and the next two functions return the errors of
  // Snapshot::Create().
  [[nodiscard]] static rocksdb::Status Link(const SnapshotOptions& options,
                                            std::unique_ptr<PinnedFiles>* out);
  // Links the files that are new since Link(), and sets the point in time. The
  // caller should call Copy() soon. If the application overwrites a WAL before
  // Copy(), Copy() sets a later point in time.
  [[nodiscard]] rocksdb::Status Confirm();
  [[nodiscard]] rocksdb::Status Copy();
  // Removes the callbacks from the options. They are then no longer called.
  void Forget();

  // Return the bounds of the point in time: it is not before moment_begin() and
  // not after moment_end().
  std::chrono::steady_clock::time_point moment_begin() const {
    return files_->moment_begin();
  }
  std::chrono::steady_clock::time_point moment_end() const {
    return files_->moment_end();
  }
  // Returns the time at which Confirm() was called, in seconds since 1970. The
  // point in time is not earlier.
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
