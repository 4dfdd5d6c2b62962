// Jobs on a standby, with or without a running follower.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "pipeline/api/standby_cut.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/follow/audit.h"
#include "pipeline/follow/promote.h"
#include "pipeline/follow/standby.h"
#include "pipeline/follow/standby_views.h"
#include "pipeline/options/options_text.h"
#include "pipeline/options/seen_options.h"
#include "pipeline/options/unknown_options.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/linked_copy.h"
#include "rocksdb/file_system.h"
#include "sstferry/follow.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::milliseconds kMostStop{30'000};

std::shared_ptr<rocksdb::FileSystem> DiskOf(
    const std::shared_ptr<rocksdb::FileSystem>& file_system) {
  return file_system != nullptr
             ? file_system
             : MakeFullDiskFileSystem(rocksdb::FileSystem::Default());
}

// Returns the milliseconds since `micros`. Returns 0 if `micros` is in the
// future because the clock was set back.
uint64_t MillisSince(uint64_t micros) {
  const uint64_t now = MicrosNow();
  return now > micros ? (now - micros) / 1000 : 0;
}

void TakeRecord(const FollowFile& record, StandbyState* state) {
  static_cast<StandbyOrigin&>(*state) = record;
  state->cut_reason = CutReasonName(record.reason);
  for (size_t i = 1; i < record.cuts.size(); ++i) {
    state->cuts[CutReasonName(static_cast<CutReason>(i))] = record.cuts[i];
  }
}

Status ReadAudit(const std::string& dir, AuditState* state) {
  AuditFile audit;
  RETURN_IF_ERROR(ReadAuditFile(dir, &audit, &state->damage));
  state->oldest_micros = audit.done_begun_micros;
  state->slices = audit.slices;
  state->entries = audit.entries;
  state->differences = audit.differences;
  state->unaudited_cuts = audit.unaudited_cuts;
  state->unaudited_reason = audit.unaudited_reason;
  state->difference = audit.difference;
  for (const UnauditedFamily& family : audit.families) {
    state->families[family.name] = family.reason;
  }
  return Status::OK();
}

// Returns the refusal to promote a directory without the record of a standby.
// Suggests `follow` only for a directory without a database. In a directory
// whose standby was already promoted, `follow` would make that database the
// standby of another one.
Status NoStandby(const std::string& dir) {
  struct stat info;
  if (stat(dir.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return MakeStatus(EndState::kRefused,
                      dir + ": expected a standby, found no such directory");
  }
  LastTransfer last;
  if (ReadLastTransfer(dir, &last) && !last.promoted_at.empty()) {
    return MakeStatus(EndState::kRefused,
                      dir + ": expected a standby, found a database that was "
                            "promoted at " + last.promoted_at +
                          "; nothing was changed");
  }
  const bool is_free =
      stat((dir + "/CURRENT").c_str(), &info) != 0 && errno == ENOENT;
  return MakeStatus(EndState::kRefused,
                    dir + ": expected a standby, found " +
                        (is_free ? std::string("no ") + kFollowFileName
                                 : "a database"),
                    is_free ? MendStandbyCommand("SOURCE", dir) : "");
}

class Promote : public StandbyJob {
 public:
  explicit Promote(const PromoteOptions& options)
      : options_(options), disk_(DiskOf(options.file_system)) {}

  Status Run(StandbyState* state) override {
    *state = StandbyState();
    bool found = false;
    RETURN_IF_ERROR(CheckOnlyRoot(options_.dir, /*in_place=*/true));
    RETURN_IF_ERROR(ReadStandbyState(options_.dir, &found, state));
    if (!found) {
      return NoStandby(options_.dir);
    }
    RETURN_IF_ERROR(CheckNotTaken(options_.dir));
    if (!state->is_promoted) {
      // The follower still appends, so DoIt() finds the end later.
      RETURN_IF_ERROR(CheckWhole(state, nullptr));
      RETURN_IF_ERROR(CheckSource(*state));
    }
    Status status = Call(options_.before, "before", false);
    if (status.ok()) status = DoIt(state);
    // Calls the `after` hook, which starts the application, only after a
    // promotion. Otherwise DIR is still a standby, and its source may be in
    // use.
    const Status after = state->is_promoted
                             ? Call(options_.after, "after", true)
                             : Status::OK();
    if (status.ok()) RemoveCut();
    return status.ok() ? after : status;
  }
  void Cancel() override { stop_.Stop(); }

 private:
  // Checks the standby before anything is changed. Does not record a fault that
  // it finds. RecordForced() records it later, if the standby is promoted in
  // spite of the fault. `end` is as for ProveStandby().
  Status CheckWhole(StandbyState* state, std::optional<StandbyPosition>* end) {
    HealthFile fault;
    RETURN_IF_ERROR(ProveStandby(disk_.get(), options_.dir, &fault, end));
    state->fault = fault.what;
    if (fault.fault == ReplicaFault::kNone) {
      return Status::OK();
    }
    fault_ = fault;
    const std::string found =
        options_.dir + ": the standby was not promoted, because " +
        FaultSentence(fault);
    if (options_.force) {
      return Status::OK();
    }
    return MakeStatus(
        EndState::kCorrupt,
        found + "; nothing was changed (--force promotes it as it is)",
        MendStandbyCommand(state->source, options_.dir));
  }

  // If CheckWhole() found a fault and the standby is promoted in spite of it,
  // records the fault.
  Status RecordForced() {
    if (fault_.fault == ReplicaFault::kNone) {
      return Status::OK();
    }
    if (options_.log) {
      options_.log(LogLevel::kWarning,
                   options_.dir + ": promoted by force, although " +
                       FaultSentence(fault_) + "; the record of this fault "
                                               "stays");
    }
    return fault_.id == TransferId()
               ? RecordFault(disk_.get(), options_.dir, &fault_)
               : Status::OK();
  }

  // Returns the command that promotes the standby with `option` and with the
  // same hooks.
  std::string Command(const std::string& option) const {
    return "sstferry promote " + ShellWord(options_.dir) + option +
           options_.hook_words;
  }

  // Asks the local follower's state whether the source may still be open.
  //   kBusy  a follower is running, and the command has no hook that stops it
  Status CheckSource(const StandbyState& state) {
    if (state.is_followed && !options_.before) {
      return MakeStatus(EndState::kBusy,
                        options_.dir +
                            ": a follower is running; give --before a command "
                            "that stops it, such as 'systemctl disable --now "
                            "sstferry-follow@NAME'");
    }
    if (options_.after_source_closed) {
      closed_before_ = ReadFollowMark(options_.dir).closed_micros;
      begun_micros_ = MicrosNow();
      return AwaitClosed(state.source);
    }
    if (options_.source_is_down) {
      return Status::OK();
    }
    const std::string unless = " (--source-is-down skips this check)";
    if (!state.is_followed) {
      return MakeStatus(EndState::kRefused,
                        options_.dir +
                            ": no follower is running, so it is unknown "
                            "whether the source is still open" + unless,
                        MendStandbyCommand(state.source, options_.dir));
    }
    const uint64_t heard_millis = MillisSince(state.heard_micros);
    const uint64_t begun_millis = MillisSince(state.begun_micros);
    const auto recent = static_cast<uint64_t>(
        std::chrono::milliseconds(kSourceHeard).count());
    if (state.source_process == SourceProcess::kOpen &&
        heard_millis <= recent) {
      return MakeStatus(EndState::kRefused,
                        options_.dir +
                            ": expected a source that is down, but a process "
                            "had " + state.source + " open " +
                            std::to_string(heard_millis) +
                            " ms ago, as the follower heard" + unless,
                        Command(" --after-source-closed"));
    }
    if (state.source_process == SourceProcess::kUnknown &&
        state.heard_micros != 0 && heard_millis <= recent) {
      return MakeStatus(EndState::kRefused,
                        options_.dir +
                            ": expected a source that is down, but " +
                            state.source + " answered " +
                            std::to_string(heard_millis) +
                            " ms ago, and it is unknown whether a process has "
                            "it open" + unless,
                        Command(""));
    }
    // If the clock was set back after the last answer, the age of the answer is
    // unknown.
    const bool has_heard = state.heard_micros >= state.begun_micros &&
                           state.heard_micros != 0 &&
                           state.heard_micros <= MicrosNow();
    const auto silent = static_cast<uint64_t>(
        std::chrono::milliseconds(kSourceSilent).count());
    if (!has_heard && (state.begun_micros == 0 || begun_millis <= silent)) {
      return MakeStatus(EndState::kRefused,
                        options_.dir +
                            ": the follower has just started and has no answer "
                            "from its source yet; wait " +
                            std::to_string(kSourceSilent.count()) + " s" +
                            unless,
                        Command(""));
    }
    if (has_heard && heard_millis <= recent) {
      return Status::OK();  // no process has the source open
    }
    const std::string last_answer =
        "last answer: " +
        (state.heard_micros == 0
             ? "never"
             : Rfc3339(state.heard_micros / 1'000'000) + ", " +
                   std::to_string(heard_millis / 1000) + " s ago");
    // If there was no answer, the source is silent only if the follower waited
    // for one.
    const bool is_silent = state.silent_micros != 0 &&
                           state.silent_micros <= MicrosNow() &&
                           MillisSince(state.silent_micros) <= recent;
    if (!is_silent) {
      return MakeStatus(EndState::kRefused,
                        options_.dir + ": the follower has not waited " +
                            std::to_string(kSourceSilent.count()) +
                            " s for an answer from " + state.source + " (" +
                            last_answer +
                            "): it takes a cut, waits for its disk or for "
                            "--max-rate, or gets errors from the source; its "
                            "log says which. So it is unknown whether the "
                            "source is still open; try again in a few seconds, "
                            "or add --source-is-down if the source is "
                            "certainly down",
                        Command(""));
    }
    if (options_.log) {
      options_.log(LogLevel::kWarning,
                   "the follower of " + options_.dir +
                       " gets no answer from the source, which may still be "
                       "open there; " + last_answer);
    }
    return Status::OK();
  }

  // Returns true if the follower's mark says that the source is closed and that
  // everything was received. The follower must have written this after the
  // promotion began. An older mark proves nothing, because the source may have
  // been opened since then while the follower could not reach it.
  //
  // If the clock was set back, an older mark may have a later time than the
  // promotion's start. Such a mark either equals closed_before_ or is ahead of
  // the clock, and is ignored.
  bool IsClosed() const {
    const uint64_t closed = ReadFollowMark(options_.dir).closed_micros;
    return closed != closed_before_ && closed >= begun_micros_ &&
           closed <= MicrosNow();
  }

  Status AwaitClosed(const std::string& source) {
    const Clock::time_point begin = Clock::now();
    while (!IsClosed()) {
      if (!IsFileLocked(options_.dir + "/" + kFollowFileName)) {
        return MakeStatus(EndState::kRefused,
                          options_.dir +
                              ": no follower is running, so nothing can report "
                              "that the source is closed",
                          MendStandbyCommand(source, options_.dir));
      }
      if (options_.wait.count() > 0 &&
          Clock::now() - begin >= options_.wait) {
        return MakeStatus(EndState::kDeadline,
                          options_.dir +
                              ": the follower did not report that the source "
                              "is closed and everything was received; the "
                              "source's application must be stopped, and the "
                              "follower must run",
                          Command(" --after-source-closed"));
      }
      if (stop_.WaitFor(kLook)) {
        return MakeStatus(EndState::kCancelled, "stopped on request");
      }
    }
    return Status::OK();
  }

  Status Call(const SwapHook& hook, const char* which, bool is_promoted) {
    if (!hook) {
      return Status::OK();
    }
    SwapEvent event;
    event.target_dir = options_.dir;
    event.exchanged = is_promoted;
    event.stopped = [this, is_before = std::string(which) == "before"] {
      return is_before && stop_.stopped();
    };
    return WithContext(hook(event), EndState::kRefused,
                       std::string(which) + " the promotion" +
                           (is_promoted ? ", which remains in effect" : ""));
  }

  // Locks the standby. Waits until the follower ends, because the `before` hook
  // may only have sent it a signal. The follower syncs before it ends.
  Status Lock(Descriptor* lock) {
    const Clock::time_point begin = Clock::now();
    for (bool has_waited = false;; has_waited = true) {
      const Status status = LockStandby(options_.dir, lock);
      if (EndStateOf(status) == EndState::kBusy && options_.before &&
          options_.log && !has_waited) {
        options_.log(LogLevel::kInfo,
                     "waiting up to " +
                         std::to_string(kMostStop.count() / 1000) +
                         " s for the follower of " + options_.dir +
                         " to end");
      }
      if (EndStateOf(status) != EndState::kBusy || !options_.before ||
          Clock::now() - begin >= kMostStop) {
        return status;
      }
      if (stop_.WaitFor(kLook)) {
        return MakeStatus(EndState::kCancelled, "stopped on request");
      }
    }
  }

  Status DoIt(StandbyState* state) {
    Descriptor lock;
    RETURN_IF_ERROR(Lock(&lock));
    const Clock::time_point begin = Clock::now();
    if (options_.after_source_closed && IsStandby(options_.dir) &&
        !IsClosed()) {
      return MakeStatus(EndState::kRefused,
                        options_.dir +
                            ": the source was opened again, or stopped "
                            "answering; nothing was promoted");
    }
    std::optional<StandbyPosition> end;
    if (IsStandby(options_.dir)) {
      // Checks again, because the follower may have taken another cut since
      // Run() checked.
      RETURN_IF_ERROR(CheckWhole(state, &end));
      RETURN_IF_ERROR(RecordForced());
    }
    Promotion promotion;
    const Status status = PromoteStandby(disk_.get(), options_.dir,
                                         options_.force, end, &promotion);
    state->seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    state->is_promoted =
        HasCurrent(options_.dir) && CheckNotTaken(options_.dir).ok();
    state->is_followed = false;
    if (!promotion.was_cut_short && promotion.end.last_sequence > 0) {
      state->sequence =
          std::max(promotion.end.last_sequence, promotion.record.sequence);
      state->durable_sequence = state->sequence;
    }
    return status;
  }

  // Removes the files next to DIR that an unfinished cut or audit left. Logs
  // failures.
  void RemoveCut() {
    RemoveLeftAudits(options_.dir, options_.log);
    const std::string dir = Workspace::DirOf(options_.dir);
    std::error_code error;
    if (!std::filesystem::exists(dir, error)) {
      return;
    }
    std::unique_ptr<Workspace> left;
    std::string unused;
    Status status = KeepAdopted(options_.dir, disk_, options_.log);
    if (status.ok()) {
      status = Workspace::Open(options_.dir, Existing::kSwap, disk_,
                               options_.log, &left);
    }
    if (status.ok() && left->swap_state() == SwapState::kExchanged) {
      status = left->RetireOld(/*keeps=*/false, &unused);
    }
    if (status.ok() && left->swap_state() == SwapState::kRetired) {
      status = left->RemoveOld(/*bytes_per_sec=*/0, &stop_);
    }
    if (status.ok()) status = left->Discard();
    if (!status.ok() && options_.log) {
      options_.log(LogLevel::kWarning, "the leftovers of a cut in " + dir +
                                           " were not removed: " +
                                           MessageOf(status));
    }
  }

  const PromoteOptions options_;
  const std::shared_ptr<rocksdb::FileSystem> disk_;
  StopSignal stop_;
  HealthFile fault_;  // the fault that --force ignores
  // When the promotion began: closed_micros of the follower's mark, and this
  // machine's time.
  uint64_t closed_before_ = 0;
  uint64_t begun_micros_ = 0;
};

class View : public StandbyJob {
 public:
  explicit View(const ViewOptions& options)
      : options_(options), disk_(DiskOf(options.file_system)) {}

  Status Run(StandbyState* state) override {
    *state = StandbyState();
    bool found = false;
    RETURN_IF_ERROR(ReadStandbyState(options_.dir, &found, state));
    if (found) {
      WarnOfFault();
    } else if (options_.log) {
      options_.log(LogLevel::kWarning,
                   options_.dir + " is not a standby; the view has the state "
                                  "that its files have now, without later "
                                  "writes");
    }
    const Clock::time_point begin = Clock::now();
    std::unique_ptr<Workspace> workspace;
    RETURN_IF_ERROR(Workspace::Open(options_.view_dir, Existing::kRefuse, disk_,
                                    options_.log, &workspace));
    Status status = Make(workspace.get());
    if (!status.ok()) {
      workspace->Clear().PermitUncheckedError();
      workspace->Discard().PermitUncheckedError();
      return status;
    }
    std::string note;
    status = workspace->Publish(&note);
    if (!note.empty() && options_.log) {
      options_.log(LogLevel::kWarning, note);
    }
    state->seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    return status;
  }
  void Cancel() override { stop_.Stop(); }

 private:
  // Warns if the standby has a fault, because the view then has the same fault.
  void WarnOfFault() const {
    HealthFile fault;
    const Status looked = ProveStandby(disk_.get(), options_.dir, &fault);
    if (options_.log &&
        (!looked.ok() || fault.fault != ReplicaFault::kNone)) {
      options_.log(LogLevel::kWarning,
                   "the standby of this view has a problem: " +
                       (looked.ok() ? FaultSentence(fault)
                                    : "its files cannot be checked: " +
                                          MessageOf(looked)));
    }
  }

  Status Make(Workspace* workspace) {
    RETURN_IF_ERROR(workspace->Clear());
    struct stat info;
    if (stat(options_.dir.c_str(), &info) != 0) {
      return MakeStatus(EndState::kSourceError,
                        options_.dir + ": expected a standby, found nothing");
    }
    const Access access{info.st_uid, info.st_gid, info.st_mode & 0777u};
    LinkedCopyOptions copy;
    copy.database_dir = options_.dir;
    copy.scratch_dir = workspace->staging_dir() + "/copy";
    copy.copy_dir = workspace->db_dir();
    copy.cancelled = [this] { return stop_.stopped(); };
    // All names of a file have the same owner and mode. So links only files
    // that already have the owner and mode of the standby's files. Gives copied
    // files this owner and mode.
    RETURN_IF_ERROR(AccessBeside(options_.dir, &copy.file_access));
    LinkedCopy made;
    RETURN_IF_ERROR(MakeLinkedCopy(copy, disk_.get(), &made));
    FaultPoint("View:Copied");
    const Access tree{copy.file_access.owner, copy.file_access.group,
                      access.mode, copy.file_access.mode};
    RETURN_IF_ERROR(SetTreeAccess(disk_.get(), workspace->db_dir(), tree));
    RETURN_IF_ERROR(SetAccess(workspace->db_dir(), access));
    return SyncTree(disk_.get(), workspace->db_dir());
  }

  const ViewOptions options_;
  const std::shared_ptr<rocksdb::FileSystem> disk_;
  StopSignal stop_;
};

}  // namespace

Status ReadStandbyState(const std::string& dir, bool* found,
                        StandbyState* state) {
  *state = StandbyState();
  state->dir = dir;
  FollowFile record;
  RETURN_IF_ERROR(ReadStandbyRecord(dir, found, &record));
  if (!*found) {
    return Status::OK();
  }
  TakeRecord(record, state);
  state->filtered_families.emplace();
  SeenOptions options(dir);
  RETURN_IF_ERROR(options.Look());
  const std::string text = options.TextFor({});
  state->unknown_options = FindUnknownOptions(text).count;
  if (!record.exact_filters) {
    state->filtered_families = OptionsText(text).FilteredFamilies();
  }
  RETURN_IF_ERROR(ReadAudit(dir, &state->audit));
  const FollowMark mark = ReadFollowMark(dir);
  state->durable_sequence = std::max(mark.last_sequence, record.sequence);
  state->sequence = state->durable_sequence;
  state->moment_micros = mark.read_micros;
  state->source_closed = mark.closed_micros != 0;
  static_cast<SourceHeard&>(*state) = mark;
  state->is_followed = IsFileLocked(dir + "/" + kFollowFileName);
  const Status own = CheckNotTaken(dir);
  state->is_promoted = own.ok() && !IsStandby(dir);
  ViewName view;
  if (FindNewestView(dir, &view)) {
    state->view_moment_micros = view.moment_micros;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator it(dir, error), end;
       !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".log") {
      std::error_code gone;
      const uint64_t bytes = it->file_size(gone);
      state->replay_bytes += gone ? 0 : bytes;
    }
  }
  HealthFile fault;
  const Status looked = ReadKnownFault(dir, &fault);
  state->fault = !own.ok()     ? MessageOf(own)
                 : looked.ok() ? fault.what
                               : MessageOf(looked);
  return looked;
}

std::unique_ptr<StandbyJob> MakePromote(const PromoteOptions& options) {
  return std::make_unique<Promote>(options);
}

std::unique_ptr<StandbyJob> MakeView(const ViewOptions& options) {
  return std::make_unique<View>(options);
}

}  // namespace sstferry
