#include "pipeline/target/memory/target_state.h"

#include <algorithm>
#include <filesystem>

#include "pipeline/base/file_lock.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/shell_word.h"
#include "pipeline/target/disk/workspace.h"
#include "pipeline/target/journal/journal_state.h"
#include "pipeline/target/journal/pull_identity.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

// The command that goes on with an unfinished pull.
std::string PullOf(const JournalTransfer& head, const std::string& target_dir) {
  std::string command = "sstferry pull " + ShellWord(head.source) + " " +
                        ShellWord(target_dir);
  for (const std::string& family : head.families) {
    command += " --cf " + ShellWord(family);
  }
  if (head.interval.begin.has_value()) {
    command += " --begin " + ShellWord(KeyToText(*head.interval.begin));
  }
  if (head.interval.end.has_value()) {
    command += " --end " + ShellWord(KeyToText(*head.interval.end));
  }
  if (head.format_version != 0) {
    command += " --format-version " + std::to_string(head.format_version);
  }
  if (head.carry != CarryMode::kAuto) {
    command += std::string(" --carry ") + CarryText(head.carry);
  }
  std::error_code error;
  const bool replaces = fs::is_directory(target_dir, error) &&
                        !fs::is_empty(target_dir, error);
  return command + (replaces ? " --replace" : "");
}

void Describe(const JournalState& journal, UnfinishedPull* out) {
  const JournalTransfer& head = journal.head;
  const Totals held = journal.HeldTotals();
  out->transfer_id = ToHex(head.transfer_id);
  out->source = head.source;
  out->snapshot_sequence = head.snapshot_sequence;
  out->planned_bytes = journal.planned_bytes();
  out->planned_bytes_done = journal.planned_bytes_done();
  out->chunks = held.chunks;
  out->sst_bytes = held.sst_bytes;
  out->all_received = journal.complete;
}

void ReadComplete(const std::string& target_dir, TargetState* state) {
  LastTransfer last;
  if (ReadLastTransfer(target_dir, &last)) {
    state->complete = CompletedPull{last.transfer_id, last.source,
                                    last.snapshot_sequence, last.finished_at};
  }
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

Status ReadTargetState(const std::string& target_dir, TargetState* state,
                       bool* is_target) {
  *state = TargetState();
  ReadComplete(target_dir, state);
  const std::string workspace = Workspace::DirOf(target_dir);
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
      unfinished.damage = "the machine went down since, and it was one with "
                          "--durability none";
    }
    state->next = PullOf(journal.head, target_dir);
  } else if (status.IsCorruption()) {
    unfinished.damage = MessageOf(status);
  } else if (!status.IsIncomplete() && !status.IsNotFound() &&
             !unfinished.running && Workspace::IsOne(workspace)) {
    return status;  // else: a pull has just removed it
  }
  if (!Workspace::IsOne(workspace)) {
    state->next.clear();
    ReadComplete(target_dir, state);  // it became complete meanwhile
    return Status::OK();
  }
  state->has_leftover =
      !unfinished.running && state->complete.has_value() &&
      state->complete->transfer_id == unfinished.transfer_id;
  if (!state->has_leftover) {
    state->unfinished = std::move(unfinished);
  }
  if (state->unfinished.has_value() && state->unfinished->running) {
    state->next.clear();  // to wait
  }
  return Status::OK();
}

}  // namespace sstferry
