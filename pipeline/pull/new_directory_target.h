// A new directory, built in the workspace, that takes the name of TARGET_DIR at
// the end: by a rename, or by an exchange (exchange.h).
#pragma once

#include <memory>
#include <string>

#include "format/interval_file.h"
#include "pipeline/disk/deferred_sync.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/pull_target.h"

namespace sstferry {

// Opens the workspace of a target that becomes a new directory, and chooses the
// access of its files.
[[nodiscard]] rocksdb::Status OpenForNewDirectory(
    const PullOptions& options, WorkspaceUse use,
    const std::shared_ptr<rocksdb::FileSystem>& disk, LaneShared* lanes,
    std::unique_ptr<Workspace>* workspace);

// Holds what becomes of a closed db/, but for its name.
struct NewDirectory {
  const PullOptions* options;
  const Plan* plan;
  const Workspace* workspace;
  const IntervalFile* intervals;
  bool syncs_at_once;     // else all of db/ is synced
  SyncBatch* last_files;  // what is synced with `syncs_at_once`
  rocksdb::FileSystem* disk;
};

// Writes what the next refresh wants to know, sets the access of all files and
// places those of the application. All of db/ is durable after OK.
[[nodiscard]] rocksdb::Status RecordNewDirectory(const NewDirectory& made,
                                                 const Summary& summary);

// A target that fills a directory of its own and then publishes it. Subclasses
// decide what they build there, and from which chunks.
class NewDirectoryTarget : public PullTarget {
 public:
  using PullTarget::PullTarget;

  [[nodiscard]] rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) override;
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;

 protected:
  bool is_exchanged() const { return IsSwap(options()); }
  // Closes what is open in db/.
  [[nodiscard]] virtual rocksdb::Status CloseFiles() = 0;
  // Returns the interval records that Record() writes for the next refresh.
  IntervalFile* intervals() { return &intervals_; }
  // Returns the batch of what Record() makes durable, all of it at once.
  SyncBatch* last_files();

 private:
  std::shared_ptr<SyncBatch> last_files_;
  IntervalFile intervals_;
};

}  // namespace sstferry
