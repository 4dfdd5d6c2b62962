// The files of a database at one point in time that snapshots are made of
// later. Taken in two steps, so that several databases come to nearly one
// moment: see snapshot_files.h.
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

// Ownership: owns a private directory, which its destructor removes.
// Threads:   one until Confirm() has returned; Copy() and Snapshot::OfPinned()
//            from any, one at a time for each object.
class PinnedFiles {
 public:
  // Links everything that the database holds now. Of the options, `families`
  // and `as_files` do not count: both kinds of snapshots can be made. Errors of
  // all as Snapshot::Create().
  [[nodiscard]] static rocksdb::Status Link(const SnapshotOptions& options,
                                            std::unique_ptr<PinnedFiles>* out);
  // Finds what is new, and with it the point in time. Call Copy() soon: the
  // database's owner may write over a WAL, and then the moment is a later one.
  [[nodiscard]] rocksdb::Status Confirm();
  [[nodiscard]] rocksdb::Status Copy();
  // Calls the options' functions no more.
  void Forget();

  // Bounds of the point in time.
  std::chrono::steady_clock::time_point moment_begin() const {
    return files_->moment_begin();
  }
  std::chrono::steady_clock::time_point moment_end() const {
    return files_->moment_end();
  }
  // Seconds since 1970, not after the point in time.
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
