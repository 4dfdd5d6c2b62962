// The workspace of a pull and the journal in it: new ones, or those of an
// unfinished pull that is resumed.
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

// Ownership: borrows all it gets; sets what lanes write with.
// Threads:   the pull's own.
// Crash:     see "crash table" in pipeline/README.md.
class PullWorkspace {
 public:
  // `plans`: the pull is only planned, and changes nothing.
  PullWorkspace(const PullOptions* options, bool plans, LaneShared* lanes,
                PullReporter* report, PullTarget* target);

  // Lets the target open it, and keeps what the target found.
  [[nodiscard]] rocksdb::Status Open();
  // Finds out whether there is something to resume.
  [[nodiscard]] rocksdb::Status ReadUnfinished();
  // Makes it ready for the pull: empty, unless that resumes another.
  [[nodiscard]] rocksdb::Status Prepare();
  // Drops what an unfinished pull left. `keeps`: but for its files, which lie
  // in Workspace::earlier_dir() then. REQUIRES: the target is closed.
  [[nodiscard]] rocksdb::Status StartAnew(bool keeps);

  bool is_resuming() const { return is_resuming_; }
  // Returns true if it resumes a pull of which everything had come.
  bool resumes_complete() const { return is_resuming_ && unfinished_.complete; }
  // Returns what the unfinished pull left, while this one resumes it.
  const JournalState& unfinished() const { return unfinished_; }
  // Returns what the pull left whose files were kept; null: none was.
  const JournalState* earlier() const {
    return earlier_.has_value() ? &*earlier_ : nullptr;
  }
  // Returns true in a pull that is only planned if all of an unfinished one has
  // come, so that the pull ends without the source.
  bool finishes_alone() const { return finishes_alone_; }
  bool plans() const { return plans_; }
  // Returns true if the pull verifies: as asked for, or as the unfinished pull
  // or a known fault demands.
  bool verifies() const { return verifies_; }
  void DemandVerify();
  // Returns what the target found, once that is open.
  const FoundTarget& found() const { return found_; }
  // Returns null before it is open.
  Workspace* workspace() const { return found_.workspace.get(); }
  // Returns the caller's file system, on which files have the access that
  // disk/access.h tells.
  const std::shared_ptr<rocksdb::FileSystem>& disk() const { return disk_; }
  // Returns the same, with syncs as durability asks; from Prepare() on.
  const std::shared_ptr<rocksdb::FileSystem>& file_system() const {
    return file_system_;
  }
  // Tells in the request which snapshot of the source to use.
  void FillRequest(SnapshotUse use, OpenRequest* request) const;

  // Makes it of the plan, which answers `asked`. Durable when this returns.
  [[nodiscard]] rocksdb::Status CreateJournal(const OpenRequest& asked,
                                              const Plan& plan);
  [[nodiscard]] rocksdb::Status ReopenJournal();
  // Sees to it that the next run starts anew, and that nobody believes a
  // replica which a verify found to differ. `difference`: what it found; OK:
  // bytes could not be read, which who read them records.
  [[nodiscard]] rocksdb::Status MarkUnverified(
      const rocksdb::Status& difference);
  JournalFile* journal() const { return journal_.get(); }

  // Records whether a run that begins now could resume this one.
  void SetResumable(bool is_resumable) { is_resumable_ = is_resumable; }
  // Says what the same command does after a failure with this status.
  // `has_all`: all parts have come.
  void SayHowToResume(const rocksdb::Status& status, bool has_all) const;

 private:
  [[nodiscard]] rocksdb::Status RemoveJournal();
  [[nodiscard]] rocksdb::Status JudgeUnfinished();
  void DropUnfinished(const std::string& why);
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
  std::optional<TransferId> dropped_;  // whose snapshot nobody needs any more
  std::unique_ptr<JournalFile> journal_;
};

}  // namespace sstferry
