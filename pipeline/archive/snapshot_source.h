// Reads the files of a database in a directory, for a push. A snapshot keeps
// the files from being deleted, and the push reads them in place.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/archive/set_source.h"
#include "pipeline/snapshot/snapshot.h"

namespace sstferry {

// Reads the database of a push from a directory.
//
// Threads: like SetSource.
class SnapshotSource : public SetSource {
 public:
  // Takes a snapshot of the database, with options.as_files set. Returns the
  // errors of Snapshot::Create(), CheckNoKnownFault() and PlanClone().
  [[nodiscard]] static rocksdb::Status Take(
      SnapshotOptions options, std::unique_ptr<SnapshotSource>* source);

  const ArchiveSet& set() const override { return set_; }
  [[nodiscard]] rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) override;
  // Finishes the push. kSourceError: the database is on a read-only file
  // system, and a file was removed or replaced through another mount.
  [[nodiscard]] rocksdb::Status Finish() override;

 private:
  SnapshotSource(std::string directory, std::unique_ptr<Snapshot> snapshot,
                 std::function<bool()> cancelled)
      : directory_(std::move(directory)),
        snapshot_(std::move(snapshot)),
        cancelled_(std::move(cancelled)) {}
  [[nodiscard]] rocksdb::Status Describe();

  const std::string directory_;  // path of the database, for messages
  const std::unique_ptr<Snapshot> snapshot_;
  const std::function<bool()> cancelled_;
  ArchiveSet set_;
};

}  // namespace sstferry
