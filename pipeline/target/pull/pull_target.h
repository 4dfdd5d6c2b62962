// What a pull fills: a new database that takes its place at the end
// (target/pull/seed_target.h), or one that holds data already
// (target/pull/refresh_target.h). The Puller has all they share: session, lanes,
// journal, failure and summary.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/record/journal.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/target/database/ingestor.h"
#include "pipeline/target/disk/target_directories.h"
#include "pipeline/target/disk/workspace.h"
#include "pipeline/target/journal/journal_file.h"
#include "pipeline/target/journal/journal_state.h"
#include "pipeline/target/lane/held_chunks.h"
#include "pipeline/target/lane/pull_state.h"
#include "pipeline/target/session/source_session.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"

namespace sstferry {

// Of the Puller, which owns all of it; set before the call that needs it.
struct PullContext {
  const PullOptions* options = nullptr;
  PullState* state = nullptr;
  const SourcePlan* plan = nullptr;
  Workspace* workspace = nullptr;
  // The caller's, on which files have the access that disk/access.h tells.
  std::shared_ptr<rocksdb::FileSystem> disk;
  std::shared_ptr<rocksdb::FileSystem> file_system;  // as durability asks
  StopSignal* stop = nullptr;                 // the pull has failed
  std::function<void(const std::string&)> say;   // to the log, and a note
  std::function<void(const std::string&)> note;  // of the summary
  std::function<Summary()> summary;              // as it is now
  // From any thread: ends the pull.
  std::function<void(const rocksdb::Status&, const std::string& where)> fail;
};

// Threads: the Puller's, but progress of RocksDB's own.
class PullTarget {
 public:
  // Borrows the context.
  explicit PullTarget(const PullContext* context) : context_(context) {}
  virtual ~PullTarget() = default;
  PullTarget(const PullTarget&) = delete;
  PullTarget& operator=(const PullTarget&) = delete;

  // What journals and summaries call it.
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
  // What is there. REQUIRES: the workspace is locked.
  [[nodiscard]] virtual rocksdb::Status Inspect() = 0;
  // Whether a journal is of a pull that had ended but for its workspace.
  virtual bool HasEnded(const JournalTransfer& head) const = 0;
  // Whether nobody but that pull wrote to it since it was judged for it: then
  // what the journal tells is still so.
  [[nodiscard]] virtual rocksdb::Status CheckAsLeft(
      const JournalState& journal, bool* as_left) = 0;
  // What a new transfer is asked for with.
  virtual void Describe(TargetMemory* memory) const = 0;

  // --- when the plan is there -----------------------------------------------
  // Sets state->families. kRefused, kIncompatible: what the plan tells of
  // cannot be held here.
  [[nodiscard]] virtual rocksdb::Status BuildFamilies() = 0;
  // Makes it ready for chunks, with nothing of them in it.
  [[nodiscard]] virtual rocksdb::Status Create() = 0;
  // The same when an unfinished pull has been at it. kCorrupt: damaged.
  [[nodiscard]] virtual rocksdb::Status Reopen() = 0;
  // Which chunks of that pull are there. kCorrupt: not what a pull leaves.
  [[nodiscard]] virtual rocksdb::Status FindHeld(const JournalState& journal,
                                                 HeldChunks* held) = 0;
  // Removes from staging/ what nobody waits for.
  [[nodiscard]] virtual rocksdb::Status ClearStaging(
      const HeldChunks& held) = 0;
  // An unfinished pull is not gone on with: closes what Reopen() opened.
  virtual void Drop() = 0;
  virtual std::unique_ptr<Ingestor> MakeIngestor(JournalFile* journal) = 0;
  // Before the first chunk is ingested; the journal's head is durable.
  [[nodiscard]] virtual rocksdb::Status Begin() = 0;

  // --- when all chunks have come and the totals are agreed on ----------------
  // After OK db() shows what the source's snapshot holds.
  [[nodiscard]] virtual rocksdb::Status Finish(Ingestor* ingestor) = 0;
  // A verify did not find all ranges equal: by range id, which it did. What is
  // recorded durably shall let no later run believe the others.
  [[nodiscard]] virtual rocksdb::Status Distrust(
      const std::vector<bool>& equal) = 0;
  // All of it is durable. Closes the journal.
  [[nodiscard]] virtual rocksdb::Status Close(JournalFile* journal) = 0;
  // Writes down durably what came from where.
  [[nodiscard]] virtual rocksdb::Status Record(const Summary& summary) = 0;
  // Gives it its name.
  [[nodiscard]] virtual rocksdb::Status Publish() = 0;
  // What is left to do without the source.
  [[nodiscard]] virtual rocksdb::Status Settle() = 0;
  // After a failure: records how far it came, where that is of use.
  virtual void Leave(const Summary& summary) = 0;
  virtual void FillSummary(Summary* summary) const = 0;

  // Between Create() or Reopen() and Close().
  virtual rocksdb::DB* db() const = 0;
  virtual rocksdb::ColumnFamilyHandle* handle(size_t family) const = 0;

 protected:
  const PullOptions& options() const { return *context_->options; }
  const SourcePlan& plan() const { return *context_->plan; }
  PullState* state() const { return context_->state; }
  const PullContext& context() const { return *context_; }

 private:
  const PullContext* const context_;
};

using PullTargetFactory =
    std::function<std::unique_ptr<PullTarget>(const PullContext*)>;

}  // namespace sstferry
