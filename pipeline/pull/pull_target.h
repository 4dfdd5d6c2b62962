// The target of a pull: a new directory that gets the name TARGET_DIR at the
// end (new_directory_target.h), or a database that already has data and stays
// where it is (refresh_target.h). Code that all targets share is in Puller and
// its members.
//
// A pull calls its target in this order; `lanes` are other threads:
//
//   ReadExisting()                           workspace, known fault
//   if there is a journal:
//     IsAsLeft()                             may it be resumed?
//   if it does not resume: the workspace is emptied
//     TakeCopy()                             copies the contents of TARGET_DIR
//   connect: the source makes its plan, using the result of ReadExisting()
//   BuildFamilies()                          fails if the plan does not fit
//   if it resumes, until damage is found:
//     Reopen()                               finds the chunks that are there
//     MakeStore(); the store takes the chunks in staging/
//   else:
//     after damage: CloseDatabase(); the workspace is emptied
//     reuse()->FindReused()                  files that need not be sent
//     a plan ends here
//     Create()
//   compare reused files with the source's:
//     reuse()->RejectReused()                files that must be sent after all
//   if all is reused: the pull ends here
//   if it is new: write the journal's head; MakeStore()
//   lanes, for each part:
//     comparer()                             to compare
//     store: Add() each chunk, EndPart()
//   both sides agree on the totals
//   Finish()                                 makes all data readable
//   lanes, with --verify: DigestPart()
//   Close(); Record()                        makes all data durable
//   new directories get their name here (exchange.h):
//     CheckNoNewFault()                      the last step before that
//   in_place()->CompactAndClose()
//   FillSummary(); CloseDatabase()           for every end of the pull
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

// Readahead of DigestPart() per lane; it reads files that were just written.
inline constexpr uint64_t kDigestReadaheadBytes = 1u << 20;

// Describes TARGET_DIR before the source is asked.
struct FoundTarget {
  std::unique_ptr<Workspace> workspace;  // open and locked
  HealthFile fault;  // known fault of TARGET_DIR, or of reuse_dir
  // Families of a replica that have entries, for the request of a refresh.
  std::vector<std::string> families;
  // Id of the last refresh in place of this replica that ended with OK. A
  // journal of the same transfer is only a leftover that could not be removed.
  std::optional<TransferId> transfer;
};

// Functions that only a target in place has: its database is not moved.
// Threads: the pull's.
class InPlaceTarget {
 public:
  virtual ~InPlaceTarget() = default;

  // Called when the source's plan is known. Checks that TARGET_DIR is not newer
  // than the source's snapshot at `sequence` (CheckNotNewer()).
  //   kRefused  TARGET_DIR is newer, without --adopt
  [[nodiscard]] virtual rocksdb::Status CheckNotTakenOver(
      uint64_t sequence) = 0;
  // Does the remaining work when the replica is complete: compacts, closes the
  // database, removes the workspace. A failure here is only noted, except
  // damage.
  //   kCorrupt  the replica's own files are damaged
  [[nodiscard]] virtual rocksdb::Status CompactAndClose() = 0;
};

// Finds files on this machine, so that they need not be sent. Only a target
// that is made of files has this. Threads: the pull's.
class FileReuse {
 public:
  virtual ~FileReuse() = default;

  // Links files of a database on this machine, and takes over files that an
  // unfinished pull had received. `earlier`: that pull's journal, or null. Sets
  // *verify if the database on this machine is known to be wrong, so that its
  // files must be compared with the source's. REQUIRES: the workspace holds no
  // data of another transfer, except the files of `earlier`.
  [[nodiscard]] virtual rocksdb::Status FindReused(const JournalState* earlier,
                                                   bool* verify,
                                                   ReusedParts* reused) = 0;
  // Removes from *reused the parts in `different` and all other parts of their
  // files: nothing may be written through a link.
  [[nodiscard]] virtual rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different, ReusedParts* reused) = 0;
};

// The objects of a pull that its target uses. All of them outlive the target.
struct TargetInputs {
  const PullOptions* options;
  const Plan* plan;     // the source's; set before BuildFamilies()
  LaneShared* lanes;     // a target sets what lanes need to know
  FirstFailure* failure;
  PullReporter* report;
};

// A target of one pull. Threads: the pull's; DigestPart() from any.
class PullTarget {
 public:
  // Journals contain `mode`; a later run compares it with its own.
  PullTarget(const TargetInputs& inputs, const char* mode)
      : inputs_(inputs), mode_(mode) {}
  virtual ~PullTarget() = default;
  PullTarget(const PullTarget&) = delete;
  PullTarget& operator=(const PullTarget&) = delete;

  const char* mode() const { return mode_; }
  // Returns true if a pull that builds a new database without the files of
  // TARGET_DIR would avoid the failure that ended this pull. Any thread.
  bool gives_way() const { return gives_way_; }
  // Returns RocksDB's last sequence number of the target's own database after
  // the transfer, for its record. Valid after Close(), or after Finish() if
  // HeldTheSame().
  std::optional<uint64_t> last_sequence() const { return last_sequence_; }
  // Returns null if the target becomes a new directory.
  InPlaceTarget* in_place() const { return in_place_; }
  // Returns null if the target is made of chunks, not of files.
  FileReuse* reuse() const { return reuse_; }
  // Finds all directories that the target writes to or links from. Returns the
  // errors of TargetDirectories().
  [[nodiscard]] rocksdb::Status Directories(
      std::vector<std::string>* dirs) const;

  // Opens the workspace beside TARGET_DIR and reads its state. With
  // WorkspaceUse::kLook the pull is only planned: nothing is changed from here
  // on. Even after an error, *found may have a workspace.
  [[nodiscard]] virtual rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) = 0;
  // Returns true if only the unfinished pull of `journal` has written to the
  // database since that pull examined it, and linked files may still be used.
  // Then the journal is still valid.
  virtual bool IsAsLeft(const JournalState& /*journal*/) const { return true; }
  // If the target starts with a copy of TARGET_DIR, copies it into the empty
  // db/. May change *found before the source is asked.
  [[nodiscard]] virtual rocksdb::Status TakeCopy(FoundTarget* /*found*/) {
    return rocksdb::Status::OK();
  }
  // Returns true if a pull that starts over keeps db/ as the copy of
  // TARGET_DIR.
  virtual bool keeps_copy() const { return false; }
  // Returns the object that compares parts for the lanes; null if there is no
  // data to compare with.
  virtual PartComparer* comparer() { return nullptr; }
  // Called if the source refuses a new transfer with this request, or if a
  // verify found a difference.
  virtual void OnDisagreement() {}
  // Chooses the options with which the plan's column families are built, and
  // sets LaneShared::families.
  //   kRefused, kIncompatible  the plan's data cannot be stored here
  [[nodiscard]] virtual rocksdb::Status BuildFamilies() = 0;
  // Prepares a target that has no chunks yet. Sets *held, for the journal, to
  // the files that the target had before, or to the origin of its links.
  [[nodiscard]] virtual rocksdb::Status Create(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      std::optional<JournalTargetFiles>* held) = 0;
  // Prepares a target on which an unfinished pull has worked, and finds out
  // which chunks of that pull's journal are there.
  //   kCorrupt  no pull leaves the target in such a state: it is damaged, or
  //             another process wrote to it
  [[nodiscard]] virtual rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) = 0;
  // Makes the object that stores chunks. It must be destroyed before the
  // database is closed.
  virtual std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) = 0;
  // Makes all chunks readable. After OK, DigestPart() returns the digests of
  // the data that was pulled.
  [[nodiscard]] virtual rocksdb::Status Finish() = 0;
  // Computes the digest of a part of the target's data. Called between Create()
  // or Reopen() and Close().
  [[nodiscard]] virtual rocksdb::Status DigestPart(const Part& part,
                                                   DigestReply* reply) = 0;
  // Returns true if TARGET_DIR had the same contents as the source when this
  // pull began, and no process has written to it since. Called if no chunk was
  // received.
  virtual bool HeldTheSame() const { return false; }
  // Checks that no new fault was recorded in the directory from which files
  // were linked, since ReadFaultAgain(). Must be the last check before the new
  // directory gets its name: an exchange moves the record away, but the files
  // stay in use.
  //   kCorrupt  a fault became known, or its record is damaged
  [[nodiscard]] rocksdb::Status CheckNoNewFault() const;
  // Makes everything durable and closes the journal.
  [[nodiscard]] virtual rocksdb::Status Close(JournalFile* journal) = 0;
  // Durably records the origin of the data, for the next refresh.
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
  // --- set by ReadExisting() -------------------------------------------------
  Workspace* workspace() const { return workspace_; }
  rocksdb::FileSystem* disk() const { return disk_.get(); }
  const std::shared_ptr<rocksdb::FileSystem>& shared_disk() const {
    return disk_;
  }
  const HealthFile& fault() const { return fault_; }
  bool is_only_planned() const { return use_ == WorkspaceUse::kLook; }

  // Keeps the arguments of ReadExisting().
  void SetUse(WorkspaceUse use,
              const std::shared_ptr<rocksdb::FileSystem>& disk);
  // Keeps the workspace in *found, and reads the known fault of TARGET_DIR or,
  // if files are linked from reuse_dir, of reuse_dir. If the record of
  // TARGET_DIR cannot be read, gives the fault an id for journals.
  [[nodiscard]] rocksdb::Status ReadFault(FoundTarget* found);
  // Reads the known fault again, just before files are linked from the
  // directory: another process may have recorded a fault meanwhile.
  [[nodiscard]] rocksdb::Status ReadFaultAgain();
  // Returns true if the new directory may share files with TARGET_DIR or, with
  // --reuse, with that directory.
  virtual bool uses_old_files() const { return false; }
  // Returns a text that changes if files that were linked may no longer be
  // used unread: if another directory has the name of the one that they come
  // from, if a transfer has changed or repaired that one (a fault of the files
  // is then no longer recorded there), or if they need another owner or mode.
  // Returns "" if there is no such directory, or it cannot be examined.
  std::string OriginOfLinks() const;
  // Returns true if the recorded text is OriginOfLinks() now.
  bool IsFromOrigin(const JournalTargetFiles& recorded) const;
  // Registers the optional interface of an in-place target. `open` is the
  // database that an application has open; null: this process opens it.
  void SetInPlace(InPlaceTarget* in_place, rocksdb::DB* open);
  void SetReuse(FileReuse* reuse) { reuse_ = reuse; }
  void SetLastSequence(uint64_t sequence) { last_sequence_ = sequence; }
  // Makes gives_way() true. Any thread.
  void GiveWay() { gives_way_ = true; }

 private:
  // Returns the directory whose files are linked, or that is changed in place.
  const std::string& DirectoryOfFault() const;

  const TargetInputs inputs_;
  const char* const mode_;
  InPlaceTarget* in_place_ = nullptr;
  FileReuse* reuse_ = nullptr;
  rocksdb::DB* open_db_ = nullptr;
  WorkspaceUse use_ = WorkspaceUse::kPull;
  std::shared_ptr<rocksdb::FileSystem> disk_;
  Workspace* workspace_ = nullptr;
  HealthFile fault_;
  std::optional<uint64_t> last_sequence_;
  std::atomic<bool> gives_way_{false};
};

using PullTargetFactory =
    std::function<std::unique_ptr<PullTarget>(const TargetInputs&)>;

}  // namespace sstferry
