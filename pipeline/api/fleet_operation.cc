// Pulls all databases of a source into a mirror, or runs another operation for
// each of them. Only a mirror takes the steps marked with (*):
//
//   list the databases of the source, by name
//   ReplicaTree: lock DIR, read its record, count missing databases (*)
//   pin all databases to pull: linked, then confirmed, then copied (*)
//   pull each database, `jobs` at once
//   move away the replicas of databases that were missing twice (*)
//
// If a step after the list fails for one database, the run continues with the
// others. If the list may be incomplete, the run also continues, but it fails
// at the end, and it counts no database as missing.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "format/archive.h"
#include "format/limits.h"
#include "format/printable.h"
#include "format/quantity.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/api/one_session.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/api/swap_window.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/base/database_name.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/disk/replica_tree.h"
#include "sstferry/fleet.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// After a database was missing in this many runs, its replica is moved away.
constexpr uint32_t kRunsToMove = 2;
// Maximum number of connections through one ssh, for all pulls together.
// Includes connections that are being closed.
constexpr uint32_t kMostSshConnections = 2 * kMaxLanes;

// Limits the number of concurrent pulls.
class Slots {
 public:
  explicit Slots(uint32_t slots) : free_(slots) {}
  void Take() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void Give() {
    const std::lock_guard<std::mutex> lock(mu_);
    ++free_;
    changed_.notify_one();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  uint32_t free_;  // guarded by mu_
};

void AddTo(const Summary& one, Summary* all) {
  all->parts += one.parts;
  all->chunks += one.chunks;
  all->chunks_built += one.chunks_built;
  all->chunks_delta += one.chunks_delta;
  all->chunks_resumed += one.chunks_resumed;
  all->chunks_cloned += one.chunks_cloned;
  all->files_cloned += one.files_cloned;
  all->files_reused += one.files_reused;
  all->bytes_reused += one.bytes_reused;
  all->entries += one.entries;
  all->key_value_bytes += one.key_value_bytes;
  all->sst_bytes += one.sst_bytes;
  all->sst_bytes_resumed += one.sst_bytes_resumed;
  all->wire_bytes += one.wire_bytes;
  all->entries_put += one.entries_put;
  all->entries_deleted += one.entries_deleted;
  all->bytes_skipped += one.bytes_skipped;
  all->bytes_read += one.bytes_read;
  all->bytes_written += one.bytes_written;
  all->needed_bytes += one.needed_bytes;
  all->files_compared += one.files_compared;
  all->bytes_compared += one.bytes_compared;
  all->entries_left += one.entries_left;
  all->entries_right += one.entries_right;
  all->differences += one.differences;
  all->retries += one.retries;
  all->outage_seconds = std::max(all->outage_seconds, one.outage_seconds);
  all->peak_rss_bytes = std::max(all->peak_rss_bytes, one.peak_rss_bytes);
}

class FleetOperation : public Fleet {
 public:
  explicit FleetOperation(const FleetOptions& options)
      : options_(options),
        jobs_(std::clamp<uint32_t>(options.jobs, 1, kMaxFleetJobs)),
        slots_(jobs_),
        max_rate_(options.pull.max_rate_bytes_per_sec) {}

  Status Run(Summary* summary) override {
    started_ = Clock::now();
    summary->started_at = NowRfc3339();
    summary->source = options_.pull.source.ToString();
    summary->target = options_.pull.target_dir;
    summary->mode = PullModeName(options_.pull.mode);
    FailurePlace place = {FailedPart::kList};
    Status status = Prepare();
    report_.list_status = status.ok() ? list_status_ : status;
    if (status.ok()) {
      place = {FailedPart::kTarget};
      PinAll();
      PullAll();
      MarkGone();
      status = MoveVanished();
      if (!list_status_.ok()) {
        place = {FailedPart::kList};
        status = status.ok() ? list_status_ : status;
      }
      const Status failed = WorstFailure();
      if (!failed.ok()) {
        place = {FailedPart::kTarget};
        status = failed;
      }
    }
    for (const FleetMember& member : report_.members) {
      AddTo(member.summary, summary);
    }
    summary->seconds =
        std::chrono::duration<double>(Clock::now() - started_).count();
    finished_ = status.ok();
    FinishSummary(status, place, summary);
    return status;
  }

  void Cancel() override {
    cancelled_ = true;
    list_session_.Cancel();
    pin_session_.Cancel();
    gone_session_.Cancel();
    const std::lock_guard<std::mutex> lock(mu_);
    if (archives_ != nullptr) {
      archives_->Cancel();
    }
    for (Operation* const one : running_) {
      one->Cancel();
    }
  }

  void SetMaxRate(uint64_t bytes_per_sec) override {
    max_rate_ = bytes_per_sec;
    const std::lock_guard<std::mutex> lock(mu_);
    for (Operation* const one : running_) {
      one->SetMaxRate(RateOfOne());
    }
  }

  Progress progress() const override {
    const std::lock_guard<std::mutex> lock(mu_);
    Progress all = ended_progress_;
    for (const Operation* const one : running_) {
      Add(one->progress(), &all);
    }
    all.phase = running_.empty() && all.done_bytes == 0 ? "connect"
                                                        : "transfer";
    all.seconds =
        std::chrono::duration<double>(Clock::now() - started_).count();
    all.finished = finished_;
    return all;
  }

  const FleetReport& report() const override { return report_; }

 private:
  static void Add(const Progress& one, Progress* all) {
    all->planned_bytes += one.planned_bytes;
    all->done_bytes += one.done_bytes;
    all->entries += one.entries;
    all->lanes = std::max(all->lanes, one.lanes);
    all->stages.source_work += one.stages.source_work;
    all->stages.source_blocked += one.stages.source_blocked;
    all->stages.target_blocked += one.stages.target_blocked;
    all->stages.target_paced += one.stages.target_paced;
    all->stages.target_cpu += one.stages.target_cpu;
    all->stages.target_disk += one.stages.target_disk;
    if (all->waiting_for.empty()) {
      all->waiting_for = one.waiting_for;
    }
  }

  void Log(LogLevel level, const std::string& text) const {
    if (options_.pull.log) {
      options_.pull.log(level, text);
    }
  }

  // Returns the directory of replicas. Null if no directory is open.
  ReplicaTree* opened_tree() const {
    return tree_ != nullptr ? tree_.get() : looked_tree_.get();
  }

  Status OpenTree(bool* has_record) {
    const std::string& directory = options_.pull.target_dir;
    if (!options_.has_own_operations) {
      RETURN_IF_ERROR(ReplicaTree::Open(directory, &tree_));
    } else if (!options_.replicas_dir.empty()) {
      known_status_ = ReplicaTree::Look(options_.replicas_dir, &looked_tree_);
    } else if (!directory.empty()) {
      RETURN_IF_ERROR(ReplicaTree::Look(directory, &looked_tree_));
    }
    if (opened_tree() == nullptr) {
      return Status::OK();
    }
    const Status read = opened_tree()->ReadRecord(has_record, &record_);
    if (!read.ok() && options_.delete_vanished) {
      return read;
    }
    if (!read.ok()) {
      Log(LogLevel::kWarning, MessageOf(read));
    }
    return Status::OK();
  }

  // Takes all steps that come before the first pull.
  Status Prepare() {
    bool has_record = false;
    RETURN_IF_ERROR(OpenTree(&has_record));
    const Status status = List(has_record);
    if (!status.ok() && tree_ != nullptr) {
      tree_->RemoveUnused();
    }
    return status;
  }

  Status List(bool has_record) {
    EndpointOptions endpoint = EndpointFor(options_.pull);
    endpoint.is_tree = true;
    RETURN_IF_ERROR(Endpoint::Open(endpoint, &endpoint_));
    dialer_ = endpoint_->dialer();
    const Status known = FindKnown(has_record);
    known_status_ = known_status_.ok() ? known : known_status_;
    ListReply list;
    BorrowedDialer dialer(dialer_);
    // If the source cannot be reached yet, waits for it, as a single pull does.
    SourceLinkOptions ask = AskOnce(options_.pull.timeouts,
                                    options_.pull.deadline);
    ask.timeouts = options_.pull.timeouts;
    ask.log = options_.pull.log;
    RETURN_IF_ERROR(list_session_.Run(
        &dialer, ask, {FailedPart::kList}, [&](SourceSession* session) {
          return AskList(known_, session, &list);
        }));
    file_system_ = list.file_system;
    return TakeList(has_record, list);
  }

  // Requests the list of the source's databases. The list must contain each
  // database in `known`, unless it is certainly gone. Sends several requests if
  // the names do not fit into one request. This may happen with an archive.
  static Status AskList(const std::vector<std::string>& known,
                        SourceSession* session, ListReply* list) {
    bool is_complete = true;
    size_t asked = 0;
    do {
      const size_t end =
          asked + std::min<size_t>(known.size() - asked, kMaxServedDatabases);
      ListRequest ask;
      ask.known.assign(known.begin() + static_cast<ptrdiff_t>(asked),
                       known.begin() + static_cast<ptrdiff_t>(end));
      RETURN_IF_ERROR(session->List(ask, list));
      is_complete = is_complete && list->is_complete;
      asked = end;
    } while (asked < known.size());
    list->is_complete = is_complete;
    return Status::OK();
  }

  // Finds the databases that already have a replica or an archive at this side.
  // For a mirror, or a plan of a mirror, these are the names in its record.
  Status FindKnown(bool has_record) {
    std::set<std::string> found;
    Status status;
    if (options_.archives.has_value()) {
      status = FindArchived(&found);
    } else if (!options_.replicas_dir.empty() && !has_record) {
      status = FindReplicas(options_.replicas_dir, &found);
    }
    for (const auto& [name, missed] : record_.missed) {
      bool has = false;
      const Status looked = opened_tree()->Has(name, &has);
      if (has || !looked.ok()) {
        found.insert(name);
      }
      status = status.ok() ? looked : status;
    }
    for (const std::string& name : found) {
      if (CheckReplicaName(name).ok()) {
        known_.push_back(name);
      }
    }
    return status;
  }

  Status FindArchived(std::set<std::string>* names) {
    StoreOptions where = *options_.archives;
    if (where.where.is_directory()) {
      return FindHolders(where.where.directory, {kArchiveHeadKey}, names);
    }
    if (options_.pull.deadline.count() > 0) {
      where.until = started_ + options_.pull.deadline;
    }
    where.on_retry = RetryLog(options_.pull.log);
    std::unique_ptr<ObjectStore> store;
    RETURN_IF_ERROR(OpenStore(where, &store));
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (cancelled_) {
        return CancelledBeforeStart();
      }
      archives_ = std::move(store);
    }
    return FindArchives(archives_.get(), names);
  }

  // Returns OK if the list contains every database of the source.
  Status CheckComplete(const std::set<std::string>& names,
                       const ListReply& list) const {
    if (list.is_complete) {
      return Status::OK();
    }
    std::string lacks;
    for (const std::string& known : known_) {
      if (!names.contains(known)) {
        lacks = " and lacks " + Printable(known);
      }
    }
    return MakeStatus(EndState::kSourceError,
                      options_.pull.source.ToString() +
                          ": expected a list of all databases, found one that "
                          "may not be complete" + lacks +
                          "; the log of the source says why");
  }

  Status TakeList(bool has_record, const ListReply& list) {
    const std::set<std::string> names(list.names.begin(), list.names.end());
    list_status_ = CheckComplete(names, list);
    list_status_ = list_status_.ok() ? known_status_ : list_status_;
    for (const std::string& name : names) {
      FleetMember member;
      member.name = name;
      bool exists = false;
      member.summary.status = PlaceOf(name, &member.target_dir, &exists);
      if (!member.summary.status.ok()) {
        member.summary.error_where =
            FailurePlace{FailedPart::kTarget}.ToString();
      }
      member.is_present = exists && options_.pull.mode == PullMode::kPull;
      if (member.summary.status.ok()) {
        record_.missed[name] = 0;
      }
      report_.members.push_back(std::move(member));
    }
    if (tree_ != nullptr) {
      RETURN_IF_ERROR(RecordNames(has_record, names, list));
    } else if (looked_tree_ != nullptr && options_.delete_vanished) {
      FindVanished(has_record, names, list, *looked_tree_);
    }
    if (!names.empty()) {
      return Status::OK();
    }
    return !list_status_.ok()
               ? list_status_
               : MakeStatus(EndState::kRefused,
                            options_.pull.source.ToString() +
                                ": expected at least one database, found none");
  }

  // Finds the directory of a replica, whose name the source chose. In a mirror,
  // creates the parent directories.
  Status PlaceOf(const std::string& name, std::string* target_dir,
                 bool* exists) {
    RETURN_IF_ERROR(CheckReplicaName(name));
    if (tree_ != nullptr) {
      *target_dir = tree_->PathOf(name);
      return tree_->Prepare(name, exists);
    }
    const std::string& all = options_.pull.target_dir;
    if (!all.empty()) {
      *target_dir = all + "/" + name;
      std::error_code error;
      *exists = std::filesystem::exists(*target_dir + "/CURRENT", error);
    }
    return Status::OK();
  }

  Status RecordNames(bool has_record, const std::set<std::string>& names,
                     const ListReply& list) {
    FindVanished(has_record, names, list, *tree_);
    if (may_move_.ok() && (list_status_.ok() || !has_record)) {
      record_.source = options_.pull.source.ToString();
      record_.file_system = list.file_system;
    }
    // Writes no record if the first run finds no database, because its source
    // may be a mistake.
    return has_record || !names.empty() ? tree_->WriteRecord(record_)
                                        : Status::OK();
  }

  void FindVanished(bool has_record, const std::set<std::string>& names,
                    const ListReply& list, const ReplicaTree& tree) {
    CountMissed(names, tree);
    may_move_ = CheckMoves(has_record, list);
    report_.delete_refused = may_move_.ok() ? "" : SentenceOf(may_move_);
  }

  // Counts, for each database, the runs in which the source did not list it.
  // Ignores this run if its list may be incomplete.
  void CountMissed(const std::set<std::string>& names,
                   const ReplicaTree& tree) {
    for (auto it = record_.missed.begin(); it != record_.missed.end();) {
      const auto next = std::next(it);
      bool has = false;
      if (!names.contains(it->first) && tree.Has(it->first, &has).ok() &&
          !has) {
        record_.missed.erase(it);
      } else if (!names.contains(it->first) && list_status_.ok()) {
        VanishedDatabase gone;
        gone.name = it->first;
        gone.runs = ++it->second;
        report_.vanished.push_back(std::move(gone));
      }
      it = next;
    }
  }

  // Refuses to move replicas away if the list of databases may be wrong. Only a
  // database that an earlier run has seen at this source can have vanished from
  // it.
  Status CheckMoves(bool has_record, const ListReply& list) const {
    const size_t known = record_.missed.size();
    const size_t gone = report_.vanished.size();
    if (options_.delete_vanished && !list_status_.ok()) {
      return list_status_;
    }
    if (!options_.delete_vanished || !has_record || gone == 0) {
      return Status::OK();
    }
    if (list.names.empty()) {
      return MakeStatus(EndState::kRefused, "the source lists no database");
    }
    const std::string source = options_.pull.source.ToString();
    // Suggests the same command without --delete: such a run records this
    // source and this list.
    const std::string accept = std::string("sstferry ") +
                               PullModeName(options_.pull.mode) + " " +
                               ShellWord(source) + " " +
                               ShellWord(options_.pull.target_dir) + " --all";
    if (record_.source != source) {
      return MakeStatus(EndState::kRefused,
                        "expected the source of the last run, " +
                            Printable(record_.source) + ", found another",
                        accept);
    }
    if (list.file_system == 0 || record_.file_system != list.file_system) {
      return MakeStatus(EndState::kRefused,
                        "expected the source's directory on the file system of "
                        "the last run, found it on another (is a disk not "
                        "mounted?)",
                        accept);
    }
    if (2 * gone > known) {
      return MakeStatus(EndState::kRefused,
                        std::to_string(gone) + " of " + std::to_string(known) +
                            " databases have vanished from the source, which "
                            "is more than half; if somebody removed them on "
                            "purpose, move their replicas away yourself");
    }
    return Status::OK();
  }

  // Pins all databases to pull. After a failure, the pulls still run, but each
  // takes its snapshot at another time.
  void PinAll() {
    PinRequest ask;
    std::vector<size_t> places;
    for (size_t i = 0; i < report_.members.size(); ++i) {
      const FleetMember& member = report_.members[i];
      if (member.summary.status.ok() && !member.is_present) {
        ask.names.push_back(member.name);
        places.push_back(i);
      }
    }
    pinned_.resize(report_.members.size());
    if (ask.names.size() < 2 || cancelled_ || options_.has_own_operations) {
      return;
    }
    PinReply reply;
    BorrowedDialer dialer(dialer_);
    const Status status = pin_session_.Run(
        &dialer, AskOnce(options_.pull.timeouts, options_.pull.deadline),
        {FailedPart::kSource}, [&](SourceSession* session) {
          return session->Pin(ask, &reply);
        });
    if (!status.ok()) {
      Log(LogLevel::kWarning,
          "the snapshots of these databases are not from one moment: " +
              MessageOf(status));
      return;
    }
    pin_id_ = reply.id;
    for (size_t i = 0; i < places.size(); ++i) {
      pinned_[places[i]] = reply.databases[i];
      if (!reply.databases[i].problem.empty()) {
        Log(LogLevel::kWarning,
            ask.names[i] + ": not part of the common snapshot: " +
                Printable(reply.databases[i].problem));
      }
    }
  }

  bool IsPinned(size_t i) const {
    return pin_id_.has_value() && pinned_[i].end_micros != 0 &&
           pinned_[i].problem.empty();
  }

  void PullAll() {
    std::vector<size_t> to_pull;
    for (size_t i = 0; i < report_.members.size(); ++i) {
      if (report_.members[i].summary.status.ok()) {
        to_pull.push_back(i);
      }
    }
    const PullOptions& pull = options_.pull;
    if (pull.mode == PullMode::kSwap &&
        (pull.before_swap || pull.after_swap) &&
        !options_.has_own_operations) {
      window_.emplace(pull.target_dir, to_pull.size(), pull.before_swap,
                      pull.after_swap, [this] { slots_.Give(); });
    }
    // With a window, each swap waits for all others, so each pull needs its own
    // thread.
    const size_t threads_wanted =
        window_.has_value() ? to_pull.size()
                            : std::min<size_t>(jobs_, to_pull.size());
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < to_pull.size(); i = next++) {
        PullOne(to_pull[i]);
      }
    };
    std::vector<std::thread> threads(threads_wanted);
    size_t started = 0;
    for (std::thread& thread : threads) {
      const Status status = StartThread(work, &thread);
      if (status.ok()) {
        ++started;
      } else {
        Log(LogLevel::kWarning, MessageOf(status));
      }
    }
    // With a window, a pull without a thread would block all others. So it
    // fails now.
    if (window_.has_value() && started < to_pull.size()) {
      for (size_t i = next++; i < to_pull.size(); i = next++) {
        report_.members[to_pull[i]].summary.status = MakeStatus(
            EndState::kInternal, "could not start a thread for this database");
        window_->EndedWithout();
      }
    }
    work();  // this thread also pulls; it may be the only one
    for (std::thread& thread : threads) {
      if (thread.joinable()) {
        thread.join();
      }
    }
    if (pin_id_.has_value()) {
      EndPins("");
    }
    FindSpread();
  }

  PullOptions OptionsOfOne(size_t i) {
    const FleetMember& member = report_.members[i];
    PullOptions one = options_.pull;
    one.source = AddressOfDatabase(options_.pull.source, member.name);
    one.target_dir = member.target_dir;
    one.max_rate_bytes_per_sec = RateOfOne();
    if (options_.pull.source.is_ssh()) {
      one.lanes = std::clamp<uint32_t>(kMostSshConnections / jobs_ - 1, 1,
                                       one.lanes);
    }
    if (one.deadline.count() > 0) {
      const auto passed =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                started_);
      one.deadline =
          std::max(std::chrono::milliseconds(1), one.deadline - passed);
    }
    if (member.is_present) {
      one.if_absent = true;
    }
    if (IsPinned(i)) {
      one.snapshot_of = pin_id_;
    }
    one.log = [log = options_.pull.log, name = member.name](
                  LogLevel level, const std::string& text) {
      if (log) log(level, name + ": " + text);
    };
    one.on_transfer = nullptr;
    return one;
  }

  // Returns the maximum rate of one pull. All pulls get the same share.
  uint64_t RateOfOne() const {
    const uint64_t rate = max_rate_;
    const uint64_t pulls =
        std::clamp<uint64_t>(report_.members.size(), 1, jobs_);
    return rate == 0 ? 0 : std::max<uint64_t>(1, rate / pulls);
  }

  void PullOne(size_t i) {
    FleetMember* const member = &report_.members[i];
    bool waited = false;
    bool holds_slot = true;
    slots_.Take();
    PullOptions one = OptionsOfOne(i);
    if (window_.has_value()) {
      one.before_swap = [&](const SwapEvent& event) {
        waited = true;
        holds_slot = false;  // the window has released the slot already
        return window_->Before(event);
      };
      one.after_swap = [&](const SwapEvent& event) {
        return waited ? window_->After(event) : window_->AfterEarlier(event);
      };
    }
    Status status = RunOne(one, &member->summary);
    if (EndStateOf(status) == EndState::kSnapshotGone &&
        one.snapshot_of.has_value() && !waited && !cancelled_) {
      Log(LogLevel::kWarning,
          member->name + ": its pinned snapshot is gone; pulling its current "
                         "state");
      one.snapshot_of.reset();
      member->summary = Summary();
      status = RunOne(one, &member->summary);
    }
    if (window_.has_value() && !waited) {
      window_->EndedWithout();
    }
    if (holds_slot) {
      slots_.Give();
    }
    if (IsPinned(i) && !cancelled_) {
      EndPins(member->name);
    }
    member->is_present = status.ok() && member->summary.state == "present";
  }

  Status RunOne(const PullOptions& options, Summary* summary) {
    std::unique_ptr<Operation> operation = MakePullThrough(options, dialer_);
    if (options_.wrap) {
      operation = options_.wrap(options, std::move(operation));
    }
    {
      const std::lock_guard<std::mutex> lock(mu_);
      running_.insert(operation.get());
      operation->SetMaxRate(RateOfOne());
    }
    if (cancelled_) {
      operation->Cancel();
    }
    const Status status = operation->Run(summary);
    const std::lock_guard<std::mutex> lock(mu_);
    running_.erase(operation.get());
    Add(operation->progress(), &ended_progress_);
    return status;
  }

  static bool HasFailed(const FleetMember& member) {
    return !member.summary.status.ok() && !member.is_gone;
  }

  // Returns true if the failure may mean that the source no longer has the
  // database. Returns false if the operation found a difference, or if an error
  // occurred at this side. Only a pull reports which side has failed.
  bool MayBeGone(const FleetMember& member) const {
    const EndState state = EndStateOf(member.summary.status);
    return HasFailed(member) &&
           (member.summary.failed_at_source ||
            state == EndState::kSourceError ||
            (state == EndState::kRefused && options_.has_own_operations));
  }

  // Marks failed databases that were removed from the source during their pull.
  // Marks none if the source now lists no database or is on another file
  // system, because a disk may have been unmounted.
  void MarkGone() {
    std::vector<std::string> failed;
    for (const FleetMember& member : report_.members) {
      if (MayBeGone(member)) {
        failed.push_back(member.name);
      }
    }
    if (cancelled_ || failed.empty()) {
      return;
    }
    ListReply list;
    BorrowedDialer dialer(dialer_);
    const Status status = gone_session_.Run(
        &dialer,
        AskOnce(options_.pull.timeouts, std::chrono::milliseconds(0)),
        {FailedPart::kList}, [&](SourceSession* session) {
          return AskList(failed, session, &list);
        });
    if (!status.ok()) {
      Log(LogLevel::kWarning, MessageOf(status));
      return;
    }
    if (!list.is_complete || list.names.empty() ||
        list.file_system != file_system_) {
      return;
    }
    const std::set<std::string> names(list.names.begin(), list.names.end());
    for (FleetMember& member : report_.members) {
      member.is_gone = MayBeGone(member) && !names.contains(member.name);
    }
  }

  // Releases the pins of a database. Ignores failures, because the source later
  // releases the pins by itself.
  void EndPins(const std::string& database) {
    BorrowedDialer dialer(dialer_);
    OneSession session;
    session
        .Run(&dialer,
             AskOnce(options_.pull.timeouts, std::chrono::milliseconds(0)),
             {FailedPart::kSource},
             [&](SourceSession* opened) {
               return opened->EndPin({*pin_id_, database});
             })
        .PermitUncheckedError();
  }

  // Finds the time between the first and the last snapshot. Ignores pulls that
  // were resumed, because their snapshots are older than this run.
  void FindSpread() {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    for (size_t i = 0; i < report_.members.size(); ++i) {
      if (IsOfMoment(i)) {
        begin = std::min(begin, pinned_[i].begin_micros);
        end = std::max(end, pinned_[i].end_micros);
      }
    }
    for (size_t i = 0; i < report_.members.size(); ++i) {
      if (IsOfMoment(i)) {
        report_.members[i].behind_micros =
            pinned_[i].end_micros - std::min(begin, pinned_[i].end_micros);
      }
    }
    if (end > 0) {
      report_.spread_micros = end - std::min(begin, end);
    }
  }

  bool IsOfMoment(size_t i) const {
    const Summary& summary = report_.members[i].summary;
    return IsPinned(i) && summary.status.ok() &&
           summary.snapshot_taken_seconds == pinned_[i].taken_seconds;
  }

  Status MoveVanished() {
    if (!options_.delete_vanished) {
      return Status::OK();
    }
    if (!may_move_.ok()) {
      return WithContext(may_move_, EndState::kRefused,
                         "--delete moved no replica away");
    }
    const std::string suffix =
        OldDirectorySuffix(static_cast<uint64_t>(std::time(nullptr)));
    Status result;
    bool changed = false;
    for (VanishedDatabase& gone : report_.vanished) {
      if (gone.runs < kRunsToMove || cancelled_) {
        continue;
      }
      if (tree_ == nullptr) {
        gone.would_move = true;
        continue;
      }
      bool moved = false;
      const Status status =
          tree_->MoveAway(gone.name, suffix, options_.pull.log, &moved);
      if (status.ok()) {
        record_.missed.erase(gone.name);
        changed = true;
        gone.moved_to = moved ? tree_->PathOf(gone.name) + suffix : "";
      } else {
        gone.problem = MessageOf(status);
        result = result.ok() ? status : result;
      }
    }
    if (changed) {
      const Status written = tree_->WriteRecord(record_);
      result = result.ok() ? written : result;
    }
    return result;
  }

  // Returns the rank of a failure; the worst failure has rank 0. The order is:
  // failures that remain after a rerun (exit code 1), differences (3), and
  // failures that may not occur again.
  static int RankOf(const FleetMember& member) {
    const int code = ExitCodeOf(EndStateOf(member.summary.status));
    return code == 1 ? 0 : code == 3 ? 1 : 2;
  }

  Status WorstFailure() const {
    const FleetMember* first = nullptr;
    size_t failed = 0;
    for (const FleetMember& member : report_.members) {
      if (!HasFailed(member)) {
        continue;
      }
      ++failed;
      if (first == nullptr || RankOf(member) < RankOf(*first)) {
        first = &member;
      }
    }
    return first == nullptr
               ? Status::OK()
               : MakeStatus(EndStateOf(first->summary.status),
                            FormatNumber(failed) + " of " +
                                FormatCount(report_.members.size(),
                                            "database") +
                                (failed == 1 ? " failed: "
                                             : " failed, such as ") +
                                first->name + ": " +
                                MessageOf(first->summary.status));
  }

  const FleetOptions options_;
  const uint32_t jobs_;
  Slots slots_;
  std::atomic<uint64_t> max_rate_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> finished_{false};
  Clock::time_point started_{};
  OneSession list_session_;
  OneSession pin_session_;
  OneSession gone_session_;
  std::unique_ptr<ReplicaTree> tree_;
  std::unique_ptr<ReplicaTree> looked_tree_;  // only for a plan or a verify
  FleetRecord record_;
  // Databases that the list must contain, unless they are gone.
  std::vector<std::string> known_;
  Status known_status_;  // error that left known_ incomplete
  std::unique_ptr<Endpoint> endpoint_;
  Dialer* dialer_ = nullptr;
  std::optional<TransferId> pin_id_;
  std::vector<PinnedDatabase> pinned_;  // one element per member
  std::optional<SwapWindow> window_;
  FleetReport report_;
  Status list_status_;  // why the list may be incomplete; or OK
  uint64_t file_system_ = 0;  // file system of the source's directory
  Status may_move_;  // why replicas must not be moved away; or OK
  mutable std::mutex mu_;
  std::unique_ptr<ObjectStore> archives_;  // set under mu_
  std::set<Operation*> running_;           // guarded by mu_
  Progress ended_progress_;       // guarded by mu_
};

}  // namespace

SourceAddress AddressOfDatabase(const SourceAddress& all,
                                const std::string& name) {
  SourceAddress one = all;
  if (one.is_directory() || one.is_ssh()) {
    one.directory += (one.directory.ends_with('/') ? "" : "/") + name;
  }
  one.name = name;
  return one;
}

std::unique_ptr<Fleet> MakeFleet(const FleetOptions& options) {
  return std::make_unique<FleetOperation>(options);
}

}  // namespace sstferry
