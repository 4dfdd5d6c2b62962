// Prepares the workspace of a pull and its journal. Both are new, or those of
// an unfinished pull that is resumed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "format/messages.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/journal_file.h"
#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/pull_target.h"
#include "rocksdb/status.h"

namespace sstferry {

// Opens and prepares the workspace of one pull.
//
// Ownership: borrows its arguments; sets the lanes' file system.
// Threads:   the pull's.
// Crash:     see "crash table" in pipeline/README.md.
class PullWorkspace {
 public:
  // `plans`: the pull is only planned, and changes nothing.
  PullWorkspace(const PullOptions* options, bool plans, LaneShared* lanes,
                PullReporter* report, PullTarget* target);

  // Lets the target open the workspace and set found().
  [[nodiscard]] rocksdb::Status Open();
  // Finds out whether there is an unfinished pull to resume.
  [[nodiscard]] rocksdb::Status ReadUnfinished();
  // Prepares the workspace for the pull: empties it, unless a pull is resumed.
  [[nodiscard]] rocksdb::Status Prepare();
  // Drops the remains of an unfinished pull. If `keeps` is true, moves its
  // files to Workspace::earlier_dir(). REQUIRES: the target is closed.
  [[nodiscard]] rocksdb::Status StartAnew(bool keeps);

  bool is_resuming() const { return is_resuming_; }
  // Returns true if this pull resumes a pull that has received everything.
  bool resumes_complete() const { return is_resuming_ && unfinished_.complete; }
  // Returns true if this pull may end without the source. The unfinished pull
  // must have received everything, its journal must have the same SOURCE, word
  // for word, and this pull must not be an adoption. Otherwise the source must
  // show that it has the data that was received.
  bool may_end_alone() const;
  // Returns the state of the unfinished pull. Valid while this pull resumes it.
  const JournalState& unfinished() const { return unfinished_; }
  // Returns the journal of the pull whose files were kept; null: no files were
  // kept.
  const JournalState* earlier() const {
    return earlier_.has_value() ? &*earlier_ : nullptr;
  }
  // Returns true in a plan if the pull would end without the source, because an
  // unfinished pull has received everything and nothing is verified.
  bool finishes_alone() const { return finishes_alone_; }
  bool plans() const { return plans_; }
  // Returns true if the pull verifies: because of its options, the unfinished
  // pull or a known fault.
  bool verifies() const { return verifies_; }
  void DemandVerify();
  // Returns what Open() found out about TARGET_DIR. Valid when the workspace is
  // open.
  const FoundTarget& found() const { return found_; }
  // Returns null before the workspace is open.
  Workspace* workspace() const { return found_.workspace.get(); }
  // Returns the caller's file system, changed so that files get the owner and
  // mode described in disk/access.h.
  const std::shared_ptr<rocksdb::FileSystem>& disk() const { return disk_; }
  // Returns disk() with syncs according to the durability. Prepare() sets it.
  const std::shared_ptr<rocksdb::FileSystem>& file_system() const {
    return file_system_;
  }
  // Sets the members of the request that select the source's snapshot.
  void FillRequest(SnapshotUse use, OpenRequest* request) const;

  // Writes a journal with `plan`, which is the source's answer to `asked`.
  // After OK, the journal is durable.
  [[nodiscard]] rocksdb::Status CreateJournal(const OpenRequest& asked,
                                              const Plan& plan);
  [[nodiscard]] rocksdb::Status ReopenJournal();
  // Makes the next run start over, because a verification failed. `difference`
  // says how the replica differs, and is recorded as its fault. If `difference`
  // is OK, bytes could not be read, and the code that read them has recorded
  // that.
  [[nodiscard]] rocksdb::Status MarkUnverified(
      const rocksdb::Status& difference);
  JournalFile* journal() const { return journal_.get(); }

  // Sets whether a later run could resume this pull.
  void SetResumable(bool is_resumable) { is_resumable_ = is_resumable; }
  // Logs what the same command would do if it were run again after this
  // failure. `has_all` is true if all parts have been received.
  void SayHowToResume(const rocksdb::Status& status, bool has_all) const;

 private:
  [[nodiscard]] rocksdb::Status RemoveJournal();
  [[nodiscard]] rocksdb::Status JudgeUnfinished();
  void DropUnfinished(const std::string& why);
  void KeepReceived();
  void TellOfUnfinished();
  void ChooseDurability();
  [[nodiscard]] rocksdb::Status RecordCommand();
  [[nodiscard]] rocksdb::Status AppendPlan(const Plan& plan);
  const PullOptions& options() const { return *options_; }

  const PullOptions* const options_;
  const bool plans_;
  LaneShared* const lanes_;
  PullReporter* const report_;
  PullTarget* const target_;
  const std::shared_ptr<rocksdb::FileSystem> disk_;
  std::shared_ptr<rocksdb::FileSystem> file_system_;
  bool verifies_;
  FoundTarget found_;
  JournalState unfinished_;
  std::optional<JournalState> earlier_;
  bool is_resuming_ = false;
  bool is_resumable_ = false;
  bool finishes_alone_ = false;
  std::optional<TransferId> dropped_;  // transfer whose snapshot is obsolete
  std::unique_ptr<JournalFile> journal_;
};

}  // namespace sstferry
