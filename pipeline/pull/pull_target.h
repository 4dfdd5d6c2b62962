// The target of a pull: a new directory that takes TARGET_DIR's name at the end
// (new_directory_target.h), or a database that holds data already and stays
// where it is (refresh_target.h). The Puller and its pieces have what all of
// them share.
//
// A pull calls its target in this order; `lanes` are other threads:
//
//   ReadExisting()                           workspace, known fault
//   if there is a journal:
//     IsAsLeft()                             may it be resumed?
//   if it does not resume: the workspace is emptied
//     TakeCopy()                             of what TARGET_DIR holds
//   connect: the source makes its plan, of what ReadExisting() found
//   BuildFamilies()                          or: this cannot be held here
//   if it resumes, until something turns out to be damaged:
//     Reopen()                               which chunks are there
//     MakeStore(); the store takes what staging/ still holds
//   else:
//     after damage: CloseDatabase(); the workspace is emptied
//     reuse()->FindReused()                  what need not come
//     a plan ends here
//     Create()
//   compare what is reused with the source's:
//     reuse()->RejectReused()                what has to come nevertheless
//   if all is reused: the pull ends here
//   if it is new: write the journal's head; MakeStore()
//   lanes, for each part:
//     comparer()                           to compare
//     store: Add() each chunk, EndPart()
//   both sides agree on the totals
//   Finish()                                 all of it can be read
//   lanes, with --verify: DigestPart()
//   Close(); Record()                        all of it is durable
//   new directories get their name here (exchange.h)
//   in_place()->CompactAndClose()
//   FillSummary(); CloseDatabase()           however the pull ends
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/health_file.h"
#include "format/journal.h"
#include "format/plan.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/journal_file.h"
#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/received_chunks.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"

namespace sstferry {

// For DigestPart(), per lane: it reads files that were written a moment ago.
inline constexpr uint64_t kDigestReadaheadBytes = 1u << 20;

// Tells what lies in TARGET_DIR before the source is asked.
struct FoundTarget {
  std::unique_ptr<Workspace> workspace;  // open and locked
  HealthFile fault;                      // known of TARGET_DIR
  // A new transfer is asked for with it. The target's; null: with nothing.
  const ReplicaRecord* replica = nullptr;
  // The transfer that a replica in place is of, once that ended with OK. A
  // journal of the same transfer is only what it could not remove.
  std::optional<TransferId> transfer;
  // A known fault demands that all entries are compared.
  bool compares_all = false;
};

// Answers what only a database that stays where it is can be asked for.
// Threads: the pull's own.
class InPlaceTarget {
 public:
  virtual ~InPlaceTarget() = default;

  // Does what is left to do once the replica is complete: compacts, closes the
  // database, removes the workspace. What fails here is a note, but for damage.
  //   kCorrupt  the replica's own files are damaged
  [[nodiscard]] virtual rocksdb::Status CompactAndClose() = 0;
};

// Finds the files that this machine has, so that they need not come. Only a
// target that is made of files can be asked for it. Threads: the pull's own.
class FileReuse {
 public:
  virtual ~FileReuse() = default;

  // Links files of a database that is here, and takes those that an unfinished
  // pull had received; `earlier` is its journal, null: there was none. Sets
  // *verify if what is linked must be compared with the source's, because that
  // database is known to be wrong. REQUIRES: nothing of another transfer is
  // left.
  [[nodiscard]] virtual rocksdb::Status FindReused(const JournalState* earlier,
                                                   bool* verify,
                                                   ReusedParts* reused) = 0;
  // Takes out of *reused these parts, which were compared and are others, and
  // all parts of the same files: nothing is written through a link.
  [[nodiscard]] virtual rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different, ReusedParts* reused) = 0;
};

// Holds what a target uses of its pull. All of it outlives the target.
struct TargetInputs {
  const PullOptions* options;
  const Plan* plan;     // the source's, from BuildFamilies() on
  LaneShared* lanes;     // a target sets what lanes need to know of it
  FirstFailure* failure;
  PullReporter* report;
};

// Threads: the pull's own; DigestPart() from any.
class PullTarget {
 public:
  // Calls itself `mode` in journals, which a later run compares.
  PullTarget(const TargetInputs& inputs, const char* mode)
      : inputs_(inputs), mode_(mode) {}
  virtual ~PullTarget() = default;
  PullTarget(const PullTarget&) = delete;
  PullTarget& operator=(const PullTarget&) = delete;

  const char* mode() const { return mode_; }
  // Returns true if what ended the pull is no reason against a new database
  // that is built without the one in TARGET_DIR. Any thread.
  bool gives_way() const { return gives_way_; }
  // Returns null if it becomes a new directory.
  InPlaceTarget* in_place() const { return in_place_; }
  // Returns null if it is not made of files, but of chunks.
  FileReuse* reuse() const { return reuse_; }
  // Returns all directories that it writes to or links from.
  std::vector<std::string> Directories() const;

  // Opens the workspace beside TARGET_DIR and looks at what is there. With
  // WorkspaceUse::kLook the pull is only planned: nothing is changed from here
  // on. After an error *found may have a workspace.
  [[nodiscard]] virtual rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) = 0;
  // Returns true if nobody but the unfinished pull of `journal` wrote to the
  // database since that pull judged it. Then what the journal says is still so.
  virtual bool IsAsLeft(const JournalState& /*journal*/) const { return true; }
  // Begins with what TARGET_DIR holds, in the empty db/, where a target is made
  // of that. What it finds may change *found, before the source is asked.
  [[nodiscard]] virtual rocksdb::Status TakeCopy(FoundTarget* /*found*/) {
    return rocksdb::Status::OK();
  }
  // Returns true if a pull that starts over keeps db/ as a copy of TARGET_DIR.
  virtual bool keeps_copy() const { return false; }
  // Compares the parts that lanes are asked to compare. Returns null if it
  // holds nothing yet.
  virtual PartComparer* comparer() { return nullptr; }
  // Learns that the source refuses a new transfer as it was asked for, or that
  // a verify found a difference.
  virtual void OnDisagreement() {}
  // Chooses what the plan's column families are built with, and sets
  // LaneShared::families.
  //   kRefused, kIncompatible  what the plan tells of cannot be held here
  [[nodiscard]] virtual rocksdb::Status BuildFamilies() = 0;
  // Makes it ready for chunks, with nothing of them in it. *held: the files
  // that it held before, for the journal; not set by a new directory.
  [[nodiscard]] virtual rocksdb::Status Create(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      std::optional<JournalTargetFiles>* held) = 0;
  // Makes it ready when an unfinished pull has been at it, and finds which of
  // the chunks in that pull's journal are there.
  //   kCorrupt  damaged, or not what a pull leaves
  [[nodiscard]] virtual rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) = 0;
  // Makes what stores chunks. It must be gone before the database is closed.
  virtual std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) = 0;
  // Makes all chunks readable: after OK DigestPart() is of what the source's
  // snapshot holds.
  [[nodiscard]] virtual rocksdb::Status Finish() = 0;
  // Digests what it holds of a part, between Create() or Reopen() and Close().
  [[nodiscard]] virtual rocksdb::Status DigestPart(const Part& part,
                                                   DigestReply* reply) = 0;
  // Returns true if TARGET_DIR held all that the source holds when this pull
  // began, and nobody has written to it since. Asked where no chunk came.
  virtual bool HeldTheSame() const { return false; }
  // Makes all of it durable and closes the journal.
  [[nodiscard]] virtual rocksdb::Status Close(JournalFile* journal) = 0;
  // Writes down durably what came from where, for the next refresh.
  [[nodiscard]] virtual rocksdb::Status Record(const Summary& summary) = 0;
  virtual void FillSummary(Summary* summary) const = 0;
  // Closes at once what Create() or Reopen() opened in the workspace.
  virtual void CloseDatabase() = 0;

 protected:
  const PullOptions& options() const { return *inputs_.options; }
  const Plan& plan() const { return *inputs_.plan; }
  LaneShared* lanes() const { return inputs_.lanes; }
  FirstFailure* failure() const { return inputs_.failure; }
  PullReporter* report() const { return inputs_.report; }
  // --- from ReadExisting() on ------------------------------------------------
  Workspace* workspace() const { return workspace_; }
  rocksdb::FileSystem* disk() const { return disk_.get(); }
  const std::shared_ptr<rocksdb::FileSystem>& shared_disk() const {
    return disk_;
  }
  const HealthFile& fault() const { return fault_; }
  bool is_only_planned() const { return use_ == WorkspaceUse::kLook; }

  // Keeps what ReadExisting() got.
  void SetUse(WorkspaceUse use,
              const std::shared_ptr<rocksdb::FileSystem>& disk);
  // Keeps the workspace that *found has, and reads which fault is known of
  // TARGET_DIR. A record of one that cannot be read gets an id, by which a
  // journal knows it.
  [[nodiscard]] rocksdb::Status ReadFault(FoundTarget* found);
  // Tells of what else it is. `open`: the database that an application has
  // open; null: this process opens it.
  void SetInPlace(InPlaceTarget* in_place, rocksdb::DB* open);
  void SetReuse(FileReuse* reuse) { reuse_ = reuse; }
  // Makes gives_way() true. Any thread.
  void GiveWay() { gives_way_ = true; }

 private:
  const TargetInputs inputs_;
  const char* const mode_;
  InPlaceTarget* in_place_ = nullptr;
  FileReuse* reuse_ = nullptr;
  rocksdb::DB* open_db_ = nullptr;
  WorkspaceUse use_ = WorkspaceUse::kPull;
  std::shared_ptr<rocksdb::FileSystem> disk_;
  Workspace* workspace_ = nullptr;
  HealthFile fault_;
  std::atomic<bool> gives_way_{false};
};

using PullTargetFactory =
    std::function<std::unique_ptr<PullTarget>(const TargetInputs&)>;

}  // namespace sstferry
