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
#include "pipeline/pull/pull_context.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the context, and sets its workspace and file systems.
// Threads:   the pull's own.
// Crash:     see "crash table" in pipeline/README.md.
class PullWorkspace {
 public:
  // The target of the context is there.
  explicit PullWorkspace(PullContext* context);

  // Locks it, and reads which fault is known of TARGET_DIR.
  [[nodiscard]] rocksdb::Status Open();
  // Finds out whether there is something to resume.
  [[nodiscard]] rocksdb::Status ReadUnfinished();
  // Makes it ready for the pull: empty, unless that resumes another.
  [[nodiscard]] rocksdb::Status Prepare();
  // Drops what an unfinished pull left: the target is closed. `keeps`: but for
  // its files, which lie in Workspace::earlier_dir() then.
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
  // Which snapshot of the source to use.
  void FillRequest(SnapshotUse use, OpenRequest* request) const;

  // With what is in `plan`, which answers `asked`. Durable when this returns.
  [[nodiscard]] rocksdb::Status CreateJournal(const OpenRequest& asked);
  [[nodiscard]] rocksdb::Status ReopenJournal();
  // The next run starts anew.
  [[nodiscard]] rocksdb::Status RemoveJournal();
  JournalFile* journal() const { return journal_.get(); }

  // Records whether a run that begins now could resume this one.
  void SetResumable(bool is_resumable) { is_resumable_ = is_resumable; }
  // After a failure with this status.
  void SayHowToResume(const rocksdb::Status& status) const;

 private:
  [[nodiscard]] rocksdb::Status ReadFault();
  [[nodiscard]] rocksdb::Status JudgeUnfinished();
  void DropUnfinished(const std::string& why);
  void TellOfUnfinished();
  void ChooseDurability();
  [[nodiscard]] rocksdb::Status AppendPlan();
  const PullOptions& options() const { return *context_->options; }

  PullContext* const context_;
  std::unique_ptr<Workspace> workspace_;
  JournalState unfinished_;
  std::optional<JournalState> earlier_;
  bool is_resuming_ = false;
  bool is_resumable_ = false;
  bool finishes_alone_ = false;
  std::optional<TransferId> dropped_;  // whose snapshot nobody needs any more
  std::unique_ptr<JournalFile> journal_;
};

}  // namespace sstferry
