// Defines the target of a pull, that is, the database that the pull fills. It
// is a new directory that gets the name TARGET_DIR at the end
// (new_directory_target.h), or an existing database that is changed in place
// (refresh_target.h). Puller and its members contain the code that all targets
// share.
//
// A pull calls its target in the following order. Lines that begin with "lanes"
// run on other threads.
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

// Readahead of DigestPart() for each lane. DigestPart() reads files that were
// just written.
inline constexpr uint64_t kDigestReadaheadBytes = 1u << 20;

// Facts about TARGET_DIR that are known before the source is asked.
struct FoundTarget {
  std::unique_ptr<Workspace> workspace;  // open and locked
  HealthFile fault;  // known fault of TARGET_DIR, or of reuse_dir
  // The replica's column families with entries. The request of a refresh
  // contains them.
  std::vector<std::string> families;
  // Transfer id of the latest refresh in place of this replica that ended with
  // OK. A journal with the same id is only a leftover that could not be
  // removed.
  std::optional<TransferId> transfer;
};

// Functions of a target in place. Such a target changes the database in
// TARGET_DIR, and exchanges no directories. Threads: the pull's.
class InPlaceTarget {
 public:
  virtual ~InPlaceTarget() = default;

  // Checks that TARGET_DIR is not newer than the source's snapshot
  // (CheckNotNewer()). `sequence` is the snapshot's sequence number. Called
  // when the source's plan is known.
  //   kRefused  TARGET_DIR is newer, without --adopt
  [[nodiscard]] virtual rocksdb::Status CheckNotTakenOver(
      uint64_t sequence) = 0;
  // Does the remaining work after the replica is complete: compacts, closes the
  // database, and removes the workspace. A failure in this work is only noted,
  // except damage of the database.
  //   kCorrupt  the replica's own files are damaged
  [[nodiscard]] virtual rocksdb::Status CompactAndClose() = 0;
};

// Finds files on this machine that the source need not send. Only a target that
// is made of files implements this interface. Threads: the pull's.
class FileReuse {
 public:
  virtual ~FileReuse() = default;

  // Sets *reused to the parts whose files are on this machine. Links files of
  // another database, and takes over files that an unfinished pull had
  // received. `earlier` is the journal of that pull, or null. Sets *verify if
  // the other database is known to be wrong; its files must then be compared
  // with the source's. REQUIRES: the workspace has no data of another transfer,
  // except the files of `earlier`.
  [[nodiscard]] virtual rocksdb::Status FindReused(const JournalState* earlier,
                                                   bool* verify,
                                                   ReusedParts* reused) = 0;
  // Removes the parts in `different` from *reused, and all other parts of the
  // same files. A file is either reused or received as a whole, because nothing
  // may be written through a link.
  [[nodiscard]] virtual rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different, ReusedParts* reused) = 0;
};

// The objects of a pull that its target uses. They outlive the target.
struct TargetInputs {
  const PullOptions* options;
  const Plan* plan;     // the source's; set before BuildFamilies()
  LaneShared* lanes;     // a target sets members that lanes need
  FirstFailure* failure;
  PullReporter* report;
};

// A target of one pull. Threads: the pull's; DigestPart() from any.
class PullTarget {
 public:
  // `mode` names the kind of target. It is written to the journal, and a later
  // run compares it with its own mode.
  PullTarget(const TargetInputs& inputs, const char* mode)
      : inputs_(inputs), mode_(mode) {}
  virtual ~PullTarget() = default;
  PullTarget(const PullTarget&) = delete;
  PullTarget& operator=(const PullTarget&) = delete;

  const char* mode() const { return mode_; }
  // Returns true if another pull would avoid the failure of this pull by
  // building a new database without the files of TARGET_DIR. Any thread.
  bool gives_way() const { return gives_way_; }
  // Returns RocksDB's last sequence number of the target's own database after
  // the transfer. The record of the transfer contains this number. Valid after
  // Close(); if HeldTheSame() returns true, valid after Finish().
  std::optional<uint64_t> last_sequence() const { return last_sequence_; }
  // Returns null if the target is a new directory.
  InPlaceTarget* in_place() const { return in_place_; }
  // Returns null if the target is made of chunks, not of files.
  FileReuse* reuse() const { return reuse_; }
  // Sets *dirs to all directories that the target writes to or links from.
  // Returns the errors of TargetDirectories().
  [[nodiscard]] rocksdb::Status Directories(
      std::vector<std::string>* dirs) const;

  // Opens the workspace beside TARGET_DIR and reads its state. With
  // WorkspaceUse::kLook, the pull is only planned, and changes nothing. Even
  // after an error, *found may have a workspace.
  [[nodiscard]] virtual rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) = 0;
  // Returns true if the journal of an unfinished pull is still valid. No other
  // process may have written to the database since that pull examined it, and
  // files that the pull linked must still be usable.
  virtual bool IsAsLeft(const JournalState& /*journal*/) const { return true; }
  // Copies TARGET_DIR into the empty db/ if the target starts with such a copy.
  // May change *found before the source is asked.
  [[nodiscard]] virtual rocksdb::Status TakeCopy(FoundTarget* /*found*/) {
    return rocksdb::Status::OK();
  }
  // Returns true if db/ is a copy of TARGET_DIR that a pull keeps when it
  // starts over.
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
  // Prepares a target that has no chunks yet. Sets *held, which is written to
  // the journal, to the files that the target had before, or to the origin of
  // its links.
  [[nodiscard]] virtual rocksdb::Status Create(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      std::optional<JournalTargetFiles>* held) = 0;
  // Prepares a target in which an unfinished pull has worked. Finds out which
  // chunks in the journal of that pull are still there.
  //   kCorrupt  no pull leaves the target in such a state: it is damaged, or
  //             another process wrote to it
  [[nodiscard]] virtual rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) = 0;
  // Makes the object that stores chunks. The caller must destroy it before it
  // closes the database.
  virtual std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) = 0;
  // Makes all chunks readable. After OK, DigestPart() returns the digests of
  // the data that was pulled.
  [[nodiscard]] virtual rocksdb::Status Finish() = 0;
  // Computes the digest of a part of the target's data. Called between Create()
  // or Reopen() and Close().
  [[nodiscard]] virtual rocksdb::Status DigestPart(const Part& part,
                                                   DigestReply* reply) = 0;
  // Returns true if TARGET_DIR had the same contents as the source when this
  // pull began, and no process has written to TARGET_DIR since. Called if no
  // chunk was received.
  virtual bool HeldTheSame() const { return false; }
  // Checks that no new fault was recorded since ReadFaultAgain() in the
  // directory from which files were linked. Must be the last check before the
  // new directory gets its name. After an exchange, that directory with its
  // record has another name, but the new database still uses its files.
  //   kCorrupt  a fault became known, or its record is damaged
  [[nodiscard]] rocksdb::Status CheckNoNewFault() const;
  // Makes everything durable and closes the journal.
  [[nodiscard]] virtual rocksdb::Status Close(JournalFile* journal) = 0;
  // Durably records which source and snapshot the data comes from, for the next
  // refresh.
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

  // Stores the arguments of ReadExisting().
  void SetUse(WorkspaceUse use,
              const std::shared_ptr<rocksdb::FileSystem>& disk);
  // Stores the workspace of *found, and reads the known fault of TARGET_DIR
  // into *found. If files are linked from reuse_dir, reads the fault of
  // reuse_dir instead. If the record of TARGET_DIR cannot be read, gives the
  // fault an id, which journals need.
  [[nodiscard]] rocksdb::Status ReadFault(FoundTarget* found);
  // Reads the known fault again, just before files are linked from the
  // directory. Another process may have recorded a fault meanwhile.
  [[nodiscard]] rocksdb::Status ReadFaultAgain();
  // Returns true if the new directory may share files with TARGET_DIR, or with
  // the directory of --reuse.
  virtual bool uses_old_files() const { return false; }
  // Returns a text that identifies the directory from which files are linked.
  // The text changes if linked files may no longer be used without reading
  // them: if another directory has the same name now, if a transfer has changed
  // or repaired the directory (its record then no longer contains a fault of
  // the files), or if linked files need another owner or mode. Returns "" if
  // there is no such directory, or if it cannot be examined.
  std::string OriginOfLinks() const;
  // Returns true if `recorded` contains the current result of OriginOfLinks().
  bool IsFromOrigin(const JournalTargetFiles& recorded) const;
  // Registers the optional interface of an in-place target. `open` is the
  // database that an application has open; null: this process opens it.
  void SetInPlace(InPlaceTarget* in_place, rocksdb::DB* open);
  void SetReuse(FileReuse* reuse) { reuse_ = reuse; }
  void SetLastSequence(uint64_t sequence) { last_sequence_ = sequence; }
  // Makes gives_way() true. Any thread.
  void GiveWay() { gives_way_ = true; }

 private:
  // Returns the directory whose files are linked, or the one that is changed in
  // place.
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
