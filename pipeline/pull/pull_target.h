// A pull fills a new directory that takes TARGET_DIR's name at the end
// (new_directory_target.h), or a database that holds data already
// (refresh_target.h). The Puller and its pieces have what all of them share.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/journal.h"
#include "pipeline/disk/target_directories.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/received_chunks.h"
#include "pipeline/pull/journal_file.h"
#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/pull_context.h"
#include "sstferry/options.h"

namespace sstferry {

// For DigestPart(), per lane: it reads files that were written a moment ago.
inline constexpr uint64_t kDigestReadaheadBytes = 1u << 20;

// Threads: the pull's own; StopStore() and DigestPart() from any.
class PullTarget {
 public:
  // Borrows the context.
  explicit PullTarget(const PullContext* context) : context_(context) {}
  virtual ~PullTarget() = default;
  PullTarget(const PullTarget&) = delete;
  PullTarget& operator=(const PullTarget&) = delete;

  // Returns its name in journals and summaries.
  virtual const char* mode() const = 0;

  // Beside it is the workspace.
  virtual std::string dir() const { return options().target_dir; }
  // All that it writes to.
  virtual std::vector<std::string> Directories() const {
    return TargetDirectories(options(), nullptr);
  }

  // --- before the source is asked -------------------------------------------
  [[nodiscard]] virtual rocksdb::Status OpenWorkspace(
      std::unique_ptr<Workspace>* workspace) = 0;
  // Looks at what is there. REQUIRES: the workspace is locked.
  [[nodiscard]] virtual rocksdb::Status Inspect() = 0;
  // Returns true if a journal is of a pull that had ended but for its
  // workspace.
  virtual bool HasEnded(const JournalTransfer& head) const = 0;
  // Sets *as_left if nobody but that pull wrote to it since it was judged for
  // it: then what the journal tells is still so.
  [[nodiscard]] virtual rocksdb::Status CheckAsLeft(
      const JournalState& journal, bool* as_left) = 0;
  // Finds the transfer that dir() holds; zeros: it holds nothing. Returns false
  // if it holds something of which nobody knows how old it is.
  bool FindOwnTransfer(TransferId* id) const;
  // Tells what a new transfer is asked for with.
  virtual void Describe(ReplicaRecord* replica) const = 0;

  // --- when the plan is there -----------------------------------------------
  // kRefused: what is there must not become this snapshot.
  [[nodiscard]] virtual rocksdb::Status CheckSnapshot() {
    return rocksdb::Status::OK();
  }
  // Sets state->families. kRefused, kIncompatible: what the plan tells of
  // cannot be held here.
  [[nodiscard]] virtual rocksdb::Status BuildFamilies() = 0;
  // Which parts of a new transfer need not come, because this machine has what
  // they hold. REQUIRES: nothing of another transfer is left.
  [[nodiscard]] virtual rocksdb::Status Reuse(std::vector<uint32_t>* parts) {
    parts->clear();
    return rocksdb::Status::OK();
  }
  // A pull that starts over with another snapshot may use files that an
  // unfinished one has received (Workspace::earlier_dir()).
  virtual bool KeepsFiles() const { return false; }
  // Returns those of them, also of a transfer that is resumed, whose bytes are
  // to be compared with the source's: all that can be with --verify, else those
  // that nothing else tells from others.
  virtual std::vector<uint32_t> ReusedToCompare() const { return {}; }
  // These were compared and are others. *parts: all that now have to come.
  [[nodiscard]] virtual rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different, std::vector<uint32_t>* parts) {
    *parts = different;
    return rocksdb::Status::OK();
  }
  // After Reuse(): the target holds what the source holds, and stays as it is.
  virtual bool is_current() const { return false; }
  // Records that it does.
  [[nodiscard]] virtual rocksdb::Status Keep(const Summary&) {
    return rocksdb::Status::OK();
  }
  // Makes it ready for chunks, with nothing of them in it.
  [[nodiscard]] virtual rocksdb::Status Create() = 0;
  // The same when an unfinished pull has been at it. kCorrupt: damaged.
  [[nodiscard]] virtual rocksdb::Status Reopen() = 0;
  // Which chunks of that pull are there. kCorrupt: not what a pull leaves.
  [[nodiscard]] virtual rocksdb::Status FindReceived(
      const JournalState& journal, ReceivedChunks* received) = 0;
  // Removes from staging/ what nobody waits for.
  [[nodiscard]] virtual rocksdb::Status ClearStaging(
      const ReceivedChunks& received) = 0;
  // An unfinished pull is not resumed: closes what Reopen() opened.
  virtual void Drop() = 0;
  // Before the first chunk is stored; the journal's head is durable.
  [[nodiscard]] virtual rocksdb::Status Begin() = 0;

  // --- when all chunks have come and the totals are agreed on ----------------
  // After OK DigestPart() is of what the source's snapshot holds.
  [[nodiscard]] virtual rocksdb::Status Finish() = 0;
  // A verify found a difference. Records it durably, if anybody may read what
  // was found to differ before another pull has mended it.
  [[nodiscard]] virtual rocksdb::Status Distrust(
      const rocksdb::Status& difference) = 0;
  // All of it is durable. Closes the journal.
  [[nodiscard]] virtual rocksdb::Status Close(JournalFile* journal) = 0;
  // Writes down durably what came from where.
  [[nodiscard]] virtual rocksdb::Status Record(const Summary& summary) = 0;
  // Gives it its name.
  [[nodiscard]] virtual rocksdb::Status Publish() = 0;
  // Does what is left to do without the source.
  [[nodiscard]] virtual rocksdb::Status Settle() = 0;
  virtual void FillSummary(Summary* summary) const = 0;

  // Digests what it holds of a part, between Create() or Reopen() and Close().
  [[nodiscard]] virtual rocksdb::Status DigestPart(const Part& part,
                                                    DigestReply* reply) = 0;
  // Reads what it holds of a piece of a part: see PullState::index and
  // PullState::outermost. REQUIRES: it is refreshed in place.
  [[nodiscard]] virtual rocksdb::Status IndexPart(
      const Part&, const KeyInterval&, GroupIndex*,
      std::optional<std::string>*) {
    return MakeStatus(EndState::kInternal, "compare: nothing to compare");
  }
  [[nodiscard]] virtual rocksdb::Status FindOutermost(
      const Part&, const KeyInterval&, std::optional<std::string>*,
      std::optional<std::string>*) {
    return MakeStatus(EndState::kInternal, "compare: nothing to compare");
  }

  // Where its chunks go, from OpenStore() to CloseStore(); else null.
  ChunkStore* store() const { return store_.get(); }
  void OpenStore(JournalFile* journal);
  void StopStore();
  void CloseStore();

 protected:
  virtual std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) = 0;

  const PullOptions& options() const { return *context_->options; }
  const Plan& plan() const { return *context_->plan; }
  PullState* state() const { return context_->state; }
  const PullContext& context() const { return *context_; }

 private:
  const PullContext* const context_;
  std::mutex mu_;
  std::unique_ptr<ChunkStore> store_;  // changes under mu_
};

using PullTargetFactory =
    std::function<std::unique_ptr<PullTarget>(const PullContext*)>;

}  // namespace sstferry
