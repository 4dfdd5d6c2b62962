#include "pipeline/disk/access.h"
#include "pipeline/refresh/linked_target.h"

#include <sys/stat.h>

#include <algorithm>

#include "pipeline/base/known_fault.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/closed_files.h"
#include "pipeline/pull/first_sequence.h"
#include "pipeline/pull/new_directory_target.h"
#include "pipeline/pull/plan_options.h"
#include "pipeline/pull/replica.h"
#include "pipeline/pull/target_db.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {

using rocksdb::Status;

namespace {

std::string MergeOperatorOf(const rocksdb::ColumnFamilyOptions& options) {
  return options.merge_operator != nullptr ? options.merge_operator->Name()
                                           : "none";
}

std::string Differs(const std::string& family, const std::string& what,
                    const std::string& ours, const std::string& theirs) {
  return "column family '" + family + "': " + what + " is " + ours +
         " in TARGET_DIR and " + theirs + " at the source";
}

// Describes the database in `dir` by a text that changes when a process writes
// to the database. The text has the names, inodes, sizes and times of CURRENT,
// MANIFEST and WALs. Returns an empty text if a file cannot be examined.
std::string WrittenState(const std::string& dir) {
  std::vector<std::string> names;
  if (!ListDirectory(dir, &names).ok()) {
    return "";
  }
  std::string state;
  for (const std::string& name : names) {
    const bool tells = name == "CURRENT" || name.ends_with(".log") ||
                       name.starts_with("MANIFEST-");
    struct stat info;
    if (tells && lstat((dir + "/" + name).c_str(), &info) != 0) {
      return "";
    }
    if (tells) {
      state += name + " " + std::to_string(info.st_ino) + " " +
               std::to_string(info.st_size) + " " +
               std::to_string(info.st_mtim.tv_sec) + "." +
               std::to_string(info.st_mtim.tv_nsec) + "\n";
    }
  }
  return state;
}

bool IsAnyIngested(const JournalState& journal) {
  return std::any_of(journal.ingested.begin(), journal.ingested.end(),
                     [](const std::vector<bool>& of_part) {
                       return std::find(of_part.begin(), of_part.end(), true) !=
                              of_part.end();
                     });
}

}  // namespace

LinkedTarget::LinkedTarget(const TargetInputs& inputs)
    : RefreshTarget(inputs, kLinkedMode, OpenReplica(),
                    inputs.options->target_dir, /*drops_missing=*/true) {}

Status LinkedTarget::GiveWayAt(const Status& status) {
  const EndState state = EndStateOf(status);
  if (state != EndState::kOk && state != EndState::kCancelled &&
      state != EndState::kNoSpace) {
    GiveWay();
  }
  return status;
}

Status LinkedTarget::Own(const Status& status) {
  if (EndStateOf(status) == EndState::kCorrupt) {
    GiveWay();
  }
  return RefreshTarget::Own(status);
}

Status LinkedTarget::CheckWhole() const {
  return fault().fault == ReplicaFault::kNone
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "target " + options().target_dir + ": " +
                              FaultSentence(fault()));
}

// Examines the copy that an unfinished pull left. The caller checks the journal
// afterward. If the copy cannot be opened, TakeCopy() makes a new copy later.
Status LinkedTarget::ReadExisting(
    WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
    FoundTarget* found) {
  SetUse(use, disk);
  RETURN_IF_ERROR(OpenForNewDirectory(options(), use, disk, lanes(),
                                      &found->workspace));
  origin_ = OriginOfLinks();
  RETURN_IF_ERROR(ReadFault(found));
  const SwapState swap = workspace()->swap_state();
  if (is_only_planned()) {
    RETURN_IF_ERROR(GiveWayAt(CheckWhole()));
    return GiveWayAt(Look(found));
  }
  set_dir(workspace()->db_dir());
  if (workspace()->has_unfinished() &&
      (swap == SwapState::kNone || swap == SwapState::kBegun) &&
      !Look(found).ok()) {
    ForgetLive();
  }
  copy_ = CountLinks(options().target_dir, dir());
  return Status::OK();
}

Status LinkedTarget::CheckNothingPrepared() const {
  WalFacts facts;
  bool known = false;
  RETURN_IF_ERROR(ReadNeededWals(disk(), dir(), live()->db()->GetDBOptions(),
                                 &facts, &known));
  return facts.prepared().empty()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          options().target_dir + ": expected no prepared "
                              "transactions, found " +
                              std::to_string(facts.prepared().size()) +
                              " that are neither committed nor rolled back");
}

Status LinkedTarget::Look(FoundTarget* found) {
  Status status = OpenAndList();
  status = status.ok() ? CheckNothingPrepared() : status;
  found->families = FilledFamilies();
  return status;
}

// Returns true if the copy is as the unfinished pull left it. This is also the
// case if the journal says Complete and the pull has already ingested its
// chunks. One call ingests all chunks, so one ingested chunk proves that all
// are ingested. The record of this transfer in the copy proves it, too. Returns
// false if the files were linked from another directory. Always returns true for
// a plan, which has no copy.
bool LinkedTarget::IsAsLeft(const JournalState& journal) const {
  if (is_only_planned()) {
    return true;
  }
  TransferId made_by{};
  return live() != nullptr && journal.target_files.has_value() &&
         IsFromOrigin(*journal.target_files) &&
         ((journal.complete &&
           (IsAnyIngested(journal) ||
            (FindOwnTransfer(dir(), &made_by) &&
             made_by == journal.head.transfer_id))) ||
          RefreshTarget::IsAsLeft(journal));
}

// Makes the copy. Keeps an existing copy that a pull left when it started over.
Status LinkedTarget::TakeCopy(FoundTarget* found) {
  if (is_only_planned()) {
    return Status::OK();
  }
  Status status = GiveWayAt(CheckWhole());
  ForgetLive();
  const std::string current = dir() + "/CURRENT";
  if (status.ok() &&
      !disk()->FileExists(current, rocksdb::IOOptions(), nullptr).ok()) {
    const FirstFailure* const stop = failure();
    LinkedCopyOptions copy;
    copy.database_dir = options().target_dir;
    copy.scratch_dir = workspace()->staging_dir() + "/copy";
    copy.copy_dir = dir();
    copy.file_access = lanes()->file_access;
    copy.cancelled = [stop] { return stop->failed(); };
    copied_state_ = WrittenState(options().target_dir);
    status = GiveWayAt(MakeLinkedCopy(copy, disk(), &copy_));
    FaultPoint("LinkedTarget:CopyMade");
  }
  status = status.ok() ? GiveWayAt(Look(found)) : status;
  if (!status.ok()) {
    // Discard the workspace, which is useless because no transfer was begun.
    ForgetLive();
    workspace()->Discard().PermitUncheckedError();
  } else if (copy_.files_copied > 0) {
    report()->Say(std::to_string(copy_.files_copied) + " files of " +
                  options().target_dir +
                  " are copied, not linked, because their owner or permissions "
                  "differ from those that the new database gets");
  }
  return status;
}

Status LinkedTarget::BuildFamilies() {
  Status status = RefreshTarget::BuildFamilies();
  has_same_families_ =
      status.ok() && Missing().empty() &&
      std::all_of(plan().families.begin(), plan().families.end(),
                  [this](const Family& family) {
                    return live()->Find(family.description.name) != nullptr;
                  });
  status = status.ok() ? CheckShapes() : status;
  return GiveWayAt(status);
}

Status LinkedTarget::CheckShapes() const {
  for (size_t i = 0; i < plan().families.size(); ++i) {
    const std::string& name = plan().families[i].description.name;
    rocksdb::ColumnFamilyHandle* const known = live()->Find(name);
    if (known == nullptr) {
      continue;
    }
    const rocksdb::ColumnFamilyOptions ours = live()->db()->GetOptions(known);
    const rocksdb::ColumnFamilyOptions& theirs = built()[i].final_options;
    std::string why;
    if (MergeOperatorOf(ours) != MergeOperatorOf(theirs)) {
      why = Differs(name, "the merge operator", MergeOperatorOf(ours),
                    MergeOperatorOf(theirs));
    } else if (ours.compaction_style != theirs.compaction_style) {
      why = Differs(name, "the compaction style",
                    std::to_string(ours.compaction_style),
                    std::to_string(theirs.compaction_style));
    } else if (ours.num_levels != theirs.num_levels) {
      why = Differs(name, "the number of levels",
                    std::to_string(ours.num_levels),
                    std::to_string(theirs.num_levels));
    }
    if (!why.empty()) {
      return MakeStatus(EndState::kRefused, why);
    }
  }
  return Status::OK();
}

// Resumes the journal's plan with the existing copy. If the copy is damaged,
// gives way: a pull that starts over would use the same copy again.
Status LinkedTarget::Reopen(
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const JournalState& unfinished, ReceivedChunks* received) {
  const Status status =
      GiveWayAt(RefreshTarget::Reopen(file_system, unfinished, received));
  return status.IsCorruption() || status.IsInvalidArgument()
             ? MakeStatus(EndState::kRefused, MessageOf(status))
             : status;
}

// Returns true if the copy equals TARGET_DIR, so that no exchange is needed.
// Returns false if an earlier run made the copy, because TARGET_DIR may have
// changed since then. Also returns false if some files were copied to get
// another owner or mode: only an exchange puts these files into TARGET_DIR.
bool LinkedTarget::HeldTheSame() const {
  if (!HasAskedAccess(options())) {
    return false;
  }
  bool at_zero = true;
  return !copied_state_.empty() && has_same_families_ &&
         copy_.files_copied == 0 &&
         StandsAtZero(disk(), options().target_dir, &at_zero).ok() &&
         !at_zero && WrittenState(options().target_dir) == copied_state_;
}

// Finishes the copy. Syncs the journal first: if this run dies after it has
// dropped families or compacted files, the next run still knows that everything
// was ingested.
Status LinkedTarget::FinishDatabase(JournalFile* journal) {
  RETURN_IF_ERROR(journal->Sync());
  RETURN_IF_ERROR(DropMissing());
  // Do not compact while an application is stopped for the exchange and waits.
  const bool is_awaited = workspace()->swap_state() == SwapState::kBegun;
  if (options().compact && is_alone() && !is_awaited) {
    RETURN_IF_ERROR(Compact());
  }
  TakeLevels();
  RETURN_IF_ERROR(live()->Close());
  RETURN_IF_ERROR(RaiseLastSequence(disk(), dir(),
                                    plan().opened.snapshot_sequence));
  RaiseKnownSequence();
  std::string text;
  RETURN_IF_ERROR(OptionsTextOf(plan(), &text));
  return LeaveOnlyOptions(disk(), dir(), text);
}

Status LinkedTarget::Close(JournalFile* journal) {
  RETURN_IF_ERROR(FinishDatabase(journal));
  RETURN_IF_ERROR(journal->Close());
  FaultPoint("Puller:DatabaseClosed");
  last_files_ = std::make_shared<SyncBatch>(shared_disk());
  const Status status = lanes()->sync_chunks
                            ? SyncDirectory(last_files_.get(), dir())
                            : SyncTree(disk(), dir());
  FaultPoint("Puller:DatabaseSynced");
  return status;
}

Status LinkedTarget::Record(const Summary& summary) {
  return RecordNewDirectory(
      {&options(), workspace(), lanes()->sync_chunks, last_files_.get(),
       disk(), &lanes()->file_access},
      summary);
}

void LinkedTarget::FillSummary(Summary* summary) const {
  summary->bytes_read += read_bytes();
  FillLevels(summary);
  summary->files_reused = copy_.files_linked;
  summary->bytes_reused = copy_.bytes_linked;
  if (is_only_planned()) {
    for (const FamilyTables& family : tables()) {
      summary->files_reused += family.tables.size();
      for (const LiveTable& table : family.tables) {
        summary->bytes_reused += table.bytes;
      }
    }
  }
}

}  // namespace sstferry
