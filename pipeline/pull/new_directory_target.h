// Builds a target as a new directory in the workspace. At the end, the
// directory gets the name TARGET_DIR, by a rename or by an exchange
// (exchange.h).
#pragma once

#include <memory>
#include <string>

#include "pipeline/disk/access.h"
#include "pipeline/disk/deferred_sync.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/pull_target.h"

namespace sstferry {

// Opens the workspace of a pull that makes a new directory, and chooses the
// owner and mode of its files.
[[nodiscard]] rocksdb::Status OpenForNewDirectory(
    const PullOptions& options, WorkspaceUse use,
    const std::shared_ptr<rocksdb::FileSystem>& disk, LaneShared* lanes,
    std::unique_ptr<Workspace>* workspace);

// Input of RecordNewDirectory(): a complete and closed db/.
struct NewDirectory {
  const PullOptions* options;
  const Workspace* workspace;
  bool syncs_at_once;     // false: Record() syncs all of db/
  SyncBatch* last_files;  // files to sync with `syncs_at_once`
  rocksdb::FileSystem* disk;
  // The access that files had when the pull linked them from another database;
  // null: db/ shares no file with another directory.
  const Access* shared_files;
};

// Writes the record of this pull (last_transfer.json), which the next refresh
// needs. Sets the owner and mode of all files, and puts the application's own
// files into db/. After OK, db/ is durable.
//   kRefused  files that another database shares would get another owner or
//             mode there, too
[[nodiscard]] rocksdb::Status RecordNewDirectory(const NewDirectory& made,
                                                 const Summary& summary);

// A target that fills a new directory, which later gets the name TARGET_DIR.
// Subclasses build the contents of the directory from the chunks that they
// receive.
class NewDirectoryTarget : public PullTarget {
 public:
  using PullTarget::PullTarget;

  [[nodiscard]] rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) override;
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;

 protected:
  bool is_exchanged() const { return MayExchange(options()); }
  // Closes the files and databases that are open in db/.
  [[nodiscard]] virtual rocksdb::Status CloseFiles() = 0;
  // Returns the batch of files that Record() makes durable together.
  SyncBatch* last_files();

 private:
  std::shared_ptr<SyncBatch> last_files_;
};

}  // namespace sstferry
