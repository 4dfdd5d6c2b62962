#include "pipeline/pull/target_state.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "pipeline/base/database_open.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/old_directories.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/closed_files.h"
#include "pipeline/pull/first_sequence.h"
#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/pull_identity.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

// Maximum size of a journal up to the end of its first record.
constexpr size_t kMaxHeadBytes =
    kJournalMagicBytes + kJournalHeaderBytes + kMaxJournalPayloadBytes;

void Describe(const JournalState& journal, UnfinishedPull* out) {
  const JournalTransfer& head = journal.head;
  const Totals received = journal.ReceivedTotals();
  out->transfer_id = ToHex(head.transfer_id);
  out->source = head.source;
  out->snapshot_sequence = head.snapshot_sequence;
  out->snapshot_taken_at = Rfc3339(journal.plan.opened.taken_seconds);
  out->planned_bytes = journal.plan.bytes();
  out->planned_bytes_done = journal.planned_bytes_done();
  out->chunks = received.chunks;
  out->sst_bytes = received.sst_bytes;
  out->all_received = journal.complete;
}

void ReadTarget(const std::string& target_dir, TargetState* state) {
  state->complete.reset();
  LastTransfer last;
  if (ReadLastTransfer(target_dir, &last)) {
    CompletedPull& pull = state->complete.emplace();
    pull.transfer_id = last.transfer_id;
    pull.source = last.source;
    pull.snapshot_sequence = last.snapshot_sequence;
    pull.finished_at = last.finished_at;
    pull.snapshot_taken_at = last.snapshot_taken_at;
    pull.promoted_at = last.promoted_at;
    const std::optional<ReplicaMoment> moment = MomentOf(last);
    if (moment.has_value() && last.promoted_at.empty()) {
      const auto now =
          static_cast<uint64_t>(std::max<std::time_t>(std::time(nullptr), 0));
      pull.as_of_seconds = moment->seconds;
      pull.age_seconds = KnownAge(now, moment->seconds);
      pull.source_ahead_seconds = moment->source_ahead_seconds;
    }
  }
}

// Moves the completed pull to state->previous if a later refresh in place has
// begun. The refresh writes its journal before it changes the target, so the
// target may or may not have changed.
void DoubtComplete(const JournalTransfer& head, TargetState* state) {
  if (head.mode == kInPlaceMode && state->complete.has_value() &&
      state->complete->transfer_id != ToHex(head.transfer_id)) {
    state->previous = std::move(state->complete);
    state->complete.reset();
  }
}

Status ReadState(const std::string& target_dir, TargetState* state,
                 bool* is_target) {
  *state = TargetState();
  // Fail if this account may not read the record. ReadTarget() would treat it
  // as missing.
  bool found = false;
  std::string start;
  RETURN_IF_ERROR(ReadRecord(target_dir + "/" + kLastTransferName, 1, &found,
                             &start));
  ReadTarget(target_dir, state);
  // Ignore errors: stands_at_zero stays false if target_dir has no database, or
  // if the database cannot be read.
  StandsAtZero(rocksdb::FileSystem::Default().get(), target_dir,
               &state->stands_at_zero)
      .PermitUncheckedError();
  const std::string workspace = Workspace::DirOf(target_dir);
  RETURN_IF_ERROR(Workspace::CheckMine(workspace));
  if (!Workspace::IsOne(workspace)) {
    *is_target = state->complete.has_value();
    return Status::OK();
  }
  *is_target = true;
  UnfinishedPull unfinished;
  unfinished.running = IsFileLocked(workspace + "/lock");
  JournalState journal;
  const Status status = ReadJournalState(
      rocksdb::FileSystem::Default().get(), workspace + "/journal", &journal);
  if (status.ok()) {
    Describe(journal, &unfinished);
    if (!SurvivedReboots(journal.head)) {
      unfinished.damage = "the machine was restarted since, and the pull ran "
                          "with --durability none";
    }
    DoubtComplete(journal.head, state);
    state->next = journal.head.command_line;
  } else if (status.IsCorruption()) {
    unfinished.damage = MessageOf(status);
  } else if (!status.IsIncomplete() && !status.IsNotFound() &&
             !unfinished.running && Workspace::IsOne(workspace)) {
    return status;  // if there is no workspace, a pull has removed it
  }
  if (!Workspace::IsOne(workspace)) {
    const bool at_zero = state->stands_at_zero;
    *state = TargetState();
    ReadTarget(target_dir, state);  // a pull has just completed the target
    state->stands_at_zero = at_zero;
    return Status::OK();
  }
  state->has_leftover =
      !unfinished.running && state->complete.has_value() &&
      state->complete->transfer_id == unfinished.transfer_id;
  // Skip this for a standby, because its follower runs no command of the
  // operator.
  if (!unfinished.running && !IsStandby(target_dir)) {
    RETURN_IF_ERROR(Workspace::FindAwaitedAfterSwap(
        target_dir, &state->awaits_after_swap));
  }
  if (!state->has_leftover) {
    state->unfinished = std::move(unfinished);
  }
  if (state->unfinished.has_value() && state->unfinished->running) {
    state->next.clear();  // the operator must wait
  }
  return Status::OK();
}

// Finds a recorded fault, or a damaged or missing file of a replica. Checks
// files only while no process has the database open, because an open database
// changes its files.
Status FindFault(const std::string& target_dir, const TargetState& state,
                 HealthFile* found) {
  RETURN_IF_ERROR(ReadKnownFault(target_dir, found));
  HealthFile& fault = *found;
  if (IsStandby(target_dir)) {
    return FindStandbyFault(rocksdb::FileSystem::Default().get(), target_dir,
                            found);
  }
  const bool looks = fault.fault == ReplicaFault::kNone &&
                     (state.complete.has_value() ||
                      state.previous.has_value()) &&
                     !IsDatabaseOpen(target_dir);
  const Status status =
      looks ? CheckFilesAreHere(rocksdb::FileSystem::Default().get(),
                                target_dir)
            : Status::OK();
  std::error_code error;
  if (looks && !fs::exists(target_dir + "/CURRENT", error)) {
    fault.fault = ReplicaFault::kDamaged;
    fault.what = target_dir + "/CURRENT is missing";
  } else if (EndStateOf(status) == EndState::kCorrupt) {
    fault.fault = ReplicaFault::kDamaged;
    fault.what = MessageOf(status);
  }
  return Status::OK();
}

Status TakeHealth(const std::string& target_dir, TargetState* state) {
  HealthFile fault;
  RETURN_IF_ERROR(FindFault(target_dir, *state, &fault));
  state->fault = fault.what;
  state->fault_found_at = Rfc3339(fault.found_seconds);
  state->health = fault.fault == ReplicaFault::kDamaged
                      ? ReplicaHealth::kDamaged
                  : fault.fault == ReplicaFault::kDifferent
                      ? ReplicaHealth::kDifferent
                  : state->complete.has_value() ? ReplicaHealth::kComplete
                                                : ReplicaHealth::kUnfinished;
  LastTransfer last;
  const bool runs = state->unfinished.has_value() && state->unfinished->running;
  if (runs || !ReadLastTransfer(target_dir, &last) ||
      !last.promoted_at.empty()) {
    return Status::OK();  // a promoted database no longer has a source
  }
  const std::string words = " " + ShellWord(last.source) + " " +
                            ShellWord(target_dir) + SelectionWords(last.holds);
  const bool is_wrong = state->health == ReplicaHealth::kDamaged ||
                        state->health == ReplicaHealth::kDifferent;
  if (is_wrong && IsStandby(target_dir)) {
    state->next = MendStandbyCommand(last.source, target_dir);
  } else if (state->health == ReplicaHealth::kDamaged && last.holds_more) {
    // Suggest no command. An exchange would also remove data that the source
    // does not have.
  } else if (state->health == ReplicaHealth::kDamaged) {
    // Suggest the same command as a failed verify and a refused refresh do.
    state->next = "sstferry swap" + words + " --verify";
  } else if (state->health == ReplicaHealth::kDifferent &&
             state->next.empty()) {
    state->next = "sstferry refresh" + words;
  }
  return Status::OK();
}

}  // namespace

double UnfinishedPull::percent() const {
  if (all_received) {
    return 100;
  }
  return planned_bytes == 0
             ? 0
             : std::min(99.9, 100.0 * static_cast<double>(planned_bytes_done) /
                                  static_cast<double>(planned_bytes));
}

std::string NoteOfZero(const std::string& dir) {
  bool at_zero = false;
  const Status status =
      StandsAtZero(rocksdb::FileSystem::Default().get(), dir, &at_zero);
  return status.ok() && at_zero
             ? dir + " is " + kAtZero + "; the next refresh repairs it"
             : "";
}

const char* ReplicaHealthName(ReplicaHealth health) {
  switch (health) {
    case ReplicaHealth::kComplete:
      return "complete";
    case ReplicaHealth::kUnfinished:
      return "unfinished";
    case ReplicaHealth::kDifferent:
      return "different";
    case ReplicaHealth::kDamaged:
      return "damaged";
  }
  return "unknown";
}

Status ReadTargetState(const std::string& target_dir, TargetState* state,
                       bool* is_target) {
  const Status status = ReadState(target_dir, state, is_target);
  state->old_directories = ListOldDirectories(target_dir);
  const Status looked = TakeHealth(target_dir, state);
  return status.ok() ? looked : status;
}

std::string UnfinishedMode(const std::string& target_dir) {
  if (target_dir.empty()) {
    return "";  // a plan without a directory
  }
  const std::string journal =
      ReadStart(Workspace::DirOf(target_dir) + "/journal", kMaxHeadBytes);
  JournalRecord record;
  JournalTransfer head;
  LastTransfer last;
  if (!CheckJournalMagic(journal).ok() ||
      !ReadJournalRecord(journal, kJournalMagicBytes, &record).ok() ||
      record.type != JournalRecordType::kTransfer ||
      !Decode(record.payload, &head).ok() ||
      (ReadLastTransfer(target_dir, &last) &&
       last.transfer_id == ToHex(head.transfer_id))) {  // the pull has ended
    return "";
  }
  return head.mode;
}

}  // namespace sstferry
