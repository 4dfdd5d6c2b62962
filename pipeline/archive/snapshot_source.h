// Reads the files of a database directory for a push. As for a clone, a
// snapshot pins the files, and they are read in place.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/archive/set_source.h"
#include "pipeline/snapshot/snapshot.h"

namespace sstferry {

// The source of a push that reads a directory.
//
// Threads: as SetSource.
class SnapshotSource : public SetSource {
 public:
  // Takes the snapshot and sets options.as_files. Returns the errors of
  // Snapshot::Create(), CheckNoKnownFault() and PlanClone().
  [[nodiscard]] static rocksdb::Status Take(
      SnapshotOptions options, std::unique_ptr<SnapshotSource>* source);

  const ArchiveSet& set() const override { return set_; }
  [[nodiscard]] rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) override;
  // kSourceError: the database is on a read-only file system, and a file was
  // removed or replaced through another mount.
  [[nodiscard]] rocksdb::Status Finish() override;

 private:
  SnapshotSource(std::string directory, std::unique_ptr<Snapshot> snapshot,
                 std::function<bool()> cancelled)
      : directory_(std::move(directory)),
        snapshot_(std::move(snapshot)),
        cancelled_(std::move(cancelled)) {}
  [[nodiscard]] rocksdb::Status Describe();

  const std::string directory_;  // for messages
  const std::unique_ptr<Snapshot> snapshot_;
  const std::function<bool()> cancelled_;
  ArchiveSet set_;
};

}  // namespace sstferry
