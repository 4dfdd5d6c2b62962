// The commands on an archive. A command runs a push, list, check, prune,
// removal or repair on one object store.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/log_reader.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/remote_source.h"
#include "pipeline/archive/repair.h"
#include "pipeline/archive/seal.h"
#include "pipeline/archive/snapshot_source.h"
#include "pipeline/base/duration.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/parts/read_failure.h"
#include "pipeline/refresh/live_db.h"
#include "sstferry/archive.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

ArchivedSet Told(const SetFacts& facts, const SetName& name,
                 const char* state) {
  ArchivedSet set;
  static_cast<SetFacts&>(set) = facts;
  set.name = SetNameText(name);
  set.pushed_at = Rfc3339(name.seconds);
  set.state = state;
  return set;
}

ArchivedSet Told(const ListedSet& listed) {
  ArchivedSet set = Told(listed, listed.name, SetStateName(listed.state));
  set.host_time = Rfc3339(listed.host_seconds);
  set.until = Rfc3339(listed.expires_seconds);
  if (listed.repairs != SetId()) {
    set.repairs = SetNameText({listed.name.seconds, listed.repairs});
  }
  return set;
}

ArchivedSet Told(const PrunedSet& pruned) {
  ArchivedSet set = Told(pruned, pruned.name, SetFateName(pruned.fate));
  set.why = pruned.why;
  set.until = Rfc3339(pruned.until_seconds);
  return set;
}

ArchivedSet Told(const RepairedSet& repaired) {
  if (!repaired.is_repaired()) {
    return Told(repaired, repaired.name, SetStateName(SetState::kDamaged));
  }
  ArchivedSet set =
      Told(repaired, repaired.by, SetStateName(SetState::kWhole));
  set.repairs = SetNameText(repaired.name);
  return set;
}

// For each column family, a digest of the entries that a drill has read. A
// family that cannot be compared has no digest.
using FamilyDigests = std::map<std::string, DigestReply>;

class Job : public ArchiveJob {
 public:
  explicit Job(const ArchiveOptions& options) : options_(options) {}

  Progress progress() const override {
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (drill_ != nullptr && !is_finished_) {
        Progress progress = drill_->progress();
        progress.phase = "drill " + progress.phase;
        progress.finished = false;
        return progress;
      }
    }
    Progress progress;
    progress.phase = work_.phase.load();
    progress.planned_bytes = work_.planned_bytes;
    progress.done_bytes = work_.done_bytes;
    progress.lanes = options_.lanes;
    progress.seconds = Seconds();
    progress.finished = is_finished_;
    return progress;
  }

  Status Run(ArchiveReport* report) override {
    *report = ArchiveReport();
    if (options_.deadline.count() > 0) {
      until_ = Clock::now() + options_.deadline;
    }
    report->status = Do(report);
    report->seconds = Seconds();
    is_finished_ = report->status.ok();
    if (EndStateOf(report->status) == EndState::kCancelled && is_late() &&
        !cancelled_) {
      report->status = MakeStatus(EndState::kDeadline,
                                  "not done within " +
                                      FormatDuration(options_.deadline));
    }
    if (!report->drill.has_value()) {
      report->check_status = report->status;
    }
    return report->status;
  }

  void Cancel() override {
    const std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
    if (store_ != nullptr) {
      store_->Cancel();
    }
    if (remote_ != nullptr) {
      remote_->Cancel();
    }
    if (drill_ != nullptr) {
      drill_->Cancel();
    }
  }

 private:
  Status Do(ArchiveReport* report) {
    StoreOptions where = options_.store;
    where.until = until_;
    std::unique_ptr<ObjectStore> store;
    where.on_retry = RetryLog(options_.log);
    RETURN_IF_ERROR(OpenStore(where, &store));
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (cancelled_) {
        return MakeStatus(EndState::kCancelled, "stopped on request");
      }
      store_ = std::move(store);
    }
    if (!options_.store.key_file.empty()) {
      RETURN_IF_ERROR(SealKey::Read(options_.store.key_file, &key_));
    }
    const Archive archive(store_.get(), key_.get(),
                          options_.action == ArchiveAction::kPush
                              ? InitCommand(options_.store)
                              : "");
    switch (options_.action) {
      case ArchiveAction::kInit:
        return Init(report);
      case ArchiveAction::kPush:
        return Push(archive, report);
      case ArchiveAction::kList:
        return List(archive, report);
      case ArchiveAction::kCheck:
        return Check(archive, report);
      case ArchiveAction::kPrune:
        return Prune(archive, report);
      case ArchiveAction::kRemove:
        return Remove(archive);
      case ArchiveAction::kRepair:
        return Repair(archive, report);
    }
    return MakeStatus(EndState::kInternal, "archive: no such action");
  }

  static void Tell(const ArchiveHead& head, ArchiveReport* report) {
    report->archive_id = ToHex(head.archive_id);
    report->grace_seconds = head.grace_seconds;
    report->has_if_absent = head.has_if_absent;
    report->refuses_old_signatures = head.refuses_old_signatures;
  }

  Status Init(ArchiveReport* report) {
    InitOptions init;
    if (options_.grace.has_value()) {
      init.grace_seconds = static_cast<uint64_t>(options_.grace->count());
    }
    ArchiveHead head;
    RETURN_IF_ERROR(InitArchive(store_.get(), init, &head, &report->notes));
    Tell(head, report);
    return Status::OK();
  }

  Status InitIfAbsent(ArchiveReport* report) {
    ObjectInfo head;
    const StoreResult found = store_->Head(kArchiveHeadKey, &head);
    return found.code == StoreCode::kAbsent ? Init(report) : found.status;
  }

  double Seconds() const {
    return std::chrono::duration<double>(Clock::now() - started_).count();
  }
  bool is_late() const { return Clock::now() >= until_; }
  // Returns a function that steps must poll. These steps cannot be stopped in
  // another way.
  std::function<bool()> Stopped() const {
    return [this] { return cancelled_.load() || is_late(); };
  }

  Status TakeSnapshot(std::unique_ptr<SnapshotSource>* source) const {
    SnapshotOptions snapshot;
    snapshot.database_dir = options_.source.directory;
    snapshot.snapshot_dir = options_.snapshot_dir;
    snapshot.wal_dir = options_.wal_dir;
    snapshot.cancelled = Stopped();
    snapshot.log = options_.log;
    return SnapshotSource::Take(snapshot, source);
  }

  Status Connect() {
    RETURN_IF_ERROR(Endpoint::Open(
        EndpointFor(options_.source, EndpointOptions().lanes, options_),
        &endpoint_));
    RemoteSourceOptions remote;
    remote.database = endpoint_->name();
    remote.place = store_->place();
    remote.lanes = options_.lanes;
    remote.timeouts = options_.timeouts;
    remote.deadline = options_.deadline;
    if (options_.source.is_ssh() &&
        !remote.timeouts.first_answer.has_value()) {
      remote.timeouts.first_answer =
          std::chrono::milliseconds(0);  // no retries: ssh reports why it
                                         // failed
    }
    remote.log = options_.log;
    auto connected =
        std::make_unique<RemoteSource>(endpoint_->dialer(), remote);
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (cancelled_) {
        return MakeStatus(EndState::kCancelled, "stopped on request");
      }
      remote_ = std::move(connected);
    }
    return remote_->Connect();
  }

  Status Push(const Archive& archive, ArchiveReport* report) {
    if (options_.init_if_absent) {
      RETURN_IF_ERROR(InitIfAbsent(report));
    }
    // Reads the head before the snapshot is taken, so that a wrong archive
    // address is reported at once.
    ArchiveHead head;
    RETURN_IF_ERROR(archive.ReadHead(&head));
    work_.phase = "snapshot";
    std::unique_ptr<SnapshotSource> snapshot;
    RETURN_IF_ERROR(options_.source.is_directory() ? TakeSnapshot(&snapshot)
                                                   : Connect());
    SetSource* const source =
        snapshot != nullptr ? static_cast<SetSource*>(snapshot.get())
                            : remote_.get();
    PushOptions push;
    push.label = options_.label;
    push.adopt = options_.adopt;
    push.host = HostName();
    push.software = "sstferry " SSTFERRY_VERSION;
    push.lanes = static_cast<int>(options_.lanes);
    push.cancelled = Stopped();
    push.progress = &work_;
    PushSummary summary;
    const Status status = PushSet(archive, source, push, &summary);
    report->notes.insert(report->notes.end(), summary.notes.begin(),
                         summary.notes.end());
    report->warnings = summary.warnings;
    static_cast<ArchiveUploads&>(*report) = summary;
    if (status.ok()) {
      SetFacts facts = SetFactsOf(source->set());
      facts.label = push.label;
      facts.host = push.host;
      facts.own_bytes = summary.uploaded_bytes;
      facts.is_sealed = key_ != nullptr;
      report->sets.push_back(
          Told(facts, summary.name, SetStateName(SetState::kWhole)));
    }
    return status;
  }

  Status List(const Archive& archive, ArchiveReport* report) {
    ArchiveHead head;
    RETURN_IF_ERROR(archive.ReadHead(&head));
    Tell(head, report);
    std::vector<ListedSet> sets;
    RETURN_IF_ERROR(
        ListArchive(archive, &sets, &report->checked_age_seconds));
    for (const ListedSet& set : sets) {
      report->sets.push_back(Told(set));
    }
    return ListWindows(archive, report);
  }

  static Status ListWindows(const Archive& archive, ArchiveReport* report) {
    ArchiveLog log;
    RETURN_IF_ERROR(ReadLog(archive, &log));
    Tell(log.Windows(), report);
    return Status::OK();
  }

  static void Tell(const std::vector<LogWindow>& windows,
                   ArchiveReport* report) {
    for (const LogWindow& window : windows) {
      report->windows.push_back({LogTimeText(window.begin_micros),
                                 LogTimeText(window.end_micros), window.why});
    }
  }

  Status Check(const Archive& archive, ArchiveReport* report) {
    ArchiveHead head;
    RETURN_IF_ERROR(archive.ReadHead(&head));
    Tell(head, report);
    CheckOptions check;
    check.read_percent = options_.read_percent;
    check.lanes = static_cast<int>(options_.lanes);
    check.cancelled = Stopped();
    check.progress = &work_;
    check.keeps_findings = true;
    work_.phase = "look";
    CheckSummary summary;
    const Status status = CheckArchive(archive, check, &summary);
    for (const ListedSet& set : summary.sets) {
      report->sets.push_back(Told(set));
    }
    static_cast<ArchiveCheckCounts&>(*report) = summary;
    report->problems.insert(report->problems.end(),
                            summary.log.problems.begin(),
                            summary.log.problems.end());
    Tell(summary.log.windows, report);
    report->segments = summary.log.segments;
    report->segment_bytes = summary.log.bytes;
    report->orphan_segments = summary.log.orphans;
    const uint64_t log_seconds = summary.log.newest_micros / 1'000'000;
    if (log_seconds != 0) {
      report->log_age_seconds = KnownAge(summary.now_seconds, log_seconds);
    }
    if (summary.newest_seconds != 0) {
      report->newest_age_seconds =
          KnownAge(summary.now_seconds, summary.newest_seconds);
    }
    report->warnings = summary.warnings;
    report->is_checked = summary.is_complete;
    if (!summary.not_kept.empty()) {
      report->notes.push_back("the result of this check was not stored in the "
                              "archive, so list, push, prune and remove do not "
                              "know it: " +
                              summary.not_kept);
    }
    report->check_status = status;
    if (options_.drill_dir.empty() || !summary.is_complete) {
      return status;
    }
    return DrillAll(archive, summary.log.windows, status, report);
  }

  // Runs three drills: the newest set, the log up to a random time, and the
  // second newest set with its log. If `checked` is an error, returns it.
  // Otherwise returns the first failure of a drill.
  Status DrillAll(const Archive& archive, const std::vector<LogWindow>& windows,
                  const Status& checked, ArchiveReport* report) {
    FamilyDigests newest;
    Status status = checked;
    const bool has_log = !windows.empty();
    DrillAndTell(archive, "", &report->drill, has_log ? &newest : nullptr,
                 &status, report);
    const std::vector<LogWindow> clear = ClearPeriods(windows);
    if (!clear.empty()) {
      DrillAndTell(archive, LogTimeText(RandomTimeOf(clear)),
                   &report->log_drill, nullptr, &status, report);
    } else if (has_log) {
      report->notes.push_back("the drill restored no time of the log, because "
                              "each of its times is in two logs: a clock was "
                              "wrong, or two followers ran at once");
    }
    if (!has_log || !report->drill->is_opened) {
      return status;
    }
    std::string before;
    const Status found =
        FindSetBefore(archive, report->drill->set, &before, report);
    if (found.ok() && before.empty()) {
      return status;
    }
    FamilyDigests continued;
    const uint64_t sequence = report->drill->sequence;
    ArchiveDrill* const drill = &report->continued_drill.emplace();
    drill->status =
        found.ok()
            ? Drill(archive, before + "+sequence:" + std::to_string(sequence),
                    drill, &continued, report)
            : found;
    if (found.ok() && EndStateOf(drill->status) == EndState::kRefused) {
      // The source wrote nothing between the older and the newest set. So the
      // log has no segment between them, and the older set with its log cannot
      // be drilled.
      AddNotCompared(report->drill->set, MessageOf(drill->status), report);
      report->continued_drill.reset();
      return status;
    }
    if (drill->status.ok() && drill->is_opened) {
      drill->status =
          Compare(*report->drill, newest, *drill, continued);
      if (drill->status.ok()) drill->same_as = report->drill->set;
    }
    AddFailure(drill->status, &status, report);
    return status;
  }

  // Drills a set. If *status is OK, sets it to the result.
  void DrillAndTell(const Archive& archive, const std::string& which,
                    std::optional<ArchiveDrill>* drill,
                    FamilyDigests* digests, Status* status,
                    ArchiveReport* report) {
    drill->emplace();
    (*drill)->status = Drill(archive, which, &drill->value(), digests, report);
    AddFailure((*drill)->status, status, report);
  }

  // If *status is OK, sets it to `drilled`. If both are errors, adds a note
  // about `drilled` to the report.
  static void AddFailure(const Status& drilled, Status* status,
                         ArchiveReport* report) {
    if (!status->ok() && !drilled.ok()) {
      report->notes.push_back("the drill also failed: " + MessageOf(drilled));
    }
    if (status->ok()) *status = drilled;
  }

  static void AddNotCompared(const std::string& set, const std::string& why,
                             ArchiveReport* report) {
    report->notes.push_back("the drill did not compare the set " + set +
                            " with an older set and its log: " + why);
  }

  // Finds the set that was pushed to the same log last before the set `newest`.
  static Status FindSetBefore(const Archive& archive, const std::string& newest,
                              std::string* before, ArchiveReport* report) {
    before->clear();
    ArchiveLog log;
    RETURN_IF_ERROR(ReadLog(archive, &log));
    const auto set = std::find_if(
        log.sets.begin(), log.sets.end(), [&newest](const LoggedSet& logged) {
          return SetNameText(logged.name) == newest;
        });
    if (set == log.sets.end() || set == log.sets.begin()) {
      return Status::OK();
    }
    for (auto older = std::make_reverse_iterator(set);
         older != log.sets.rend(); ++older) {
      bool is_continued = false;
      log.PathsOf(older->log, [&](const LogPath& path) {
        is_continued = std::any_of(
            path.segments.begin(), path.segments.end(), [&](const LogKey& key) {
              return key.lineage == set->log.lineage &&
                     key.number + 1 >= set->log.segment;
            });
        return !is_continued;
      });
      if (is_continued) {
        *before = SetNameText(older->name);
        return Status::OK();
      }
    }
    AddNotCompared(newest, "no older set has a log that continues up to this "
                           "set", report);
    return Status::OK();
  }

  static Status Compare(const ArchiveDrill& newest_drill,
                        const FamilyDigests& newest, const ArchiveDrill& drill,
                        const FamilyDigests& continued) {
    const auto differs = [&](const std::string& what, uint64_t here,
                             uint64_t there) {
      return MakeStatus(
          EndState::kCorrupt,
          "two restores up to sequence " +
              std::to_string(newest_drill.sequence) +
              " differ, one of the set " + drill.set +
              " with its log, one of the set " + newest_drill.set + ": " +
              what + ": " + std::to_string(here) + " in the first, " +
              std::to_string(there) +
              " in the second; push a new set, and keep both until you know "
              "which is right");
    };
    if (drill.sequence != newest_drill.sequence) {
      return differs("sequence", drill.sequence, newest_drill.sequence);
    }
    for (const FamilyDigests* one : {&newest, &continued}) {
      for (const auto& [family, unused] : *one) {
        const auto here = continued.find(family);
        const auto there = newest.find(family);
        const bool are_both =
            here != continued.end() && there != newest.end();
        if (!are_both || !(here->second == there->second)) {
          return differs("entries of column family '" + Printable(family) + "'",
                         here == continued.end()
                             ? 0
                             : here->second.entries,
                         there == newest.end()
                             ? 0
                             : there->second.entries);
        }
      }
    }
    return Status::OK();
  }

  // Returns a random time in the windows. Every microsecond in them is equally
  // likely.
  static uint64_t RandomTimeOf(const std::vector<LogWindow>& windows) {
    uint64_t times = 0;
    for (const LogWindow& window : windows) {
      times += window.end_micros - window.begin_micros + 1;
    }
    const SetId random = RandomSetId();
    uint64_t left = 0;
    std::memcpy(&left, random.data(), sizeof(left));
    left %= times;
    for (const LogWindow& window : windows) {
      const uint64_t width = window.end_micros - window.begin_micros + 1;
      if (left < width) {
        return window.begin_micros + left;
      }
      left -= width;
    }
    return windows.back().end_micros;
  }

  // Drills what `which` names: a set, or a point of the log. Empty: the newest
  // set.
  Status Drill(const Archive& archive, const std::string& which,
               ArchiveDrill* drill, FamilyDigests* digests,
               ArchiveReport* report) {
    std::optional<LogChoice> logged;
    LogPoint point;
    if (ParseLogPoint(which, &point)) {
      RETURN_IF_ERROR(ChooseLog(archive, point, &logged));
    }
    if (point.micros.has_value()) drill->time = which;
    ArchiveSet set;
    RETURN_IF_ERROR(ChooseSet(
        archive, logged.has_value() ? SetNameText(logged->set) : "", &set));
    drill->set = SetNameText(set.name);
    for (const ArchivedFile& file : set.files) {
      drill->bytes += file.file.bytes;
    }
    PullOptions pull;
    pull.source.archive = options_.store.where;
    pull.source.set = which.empty() ? drill->set : which;
    pull.store = options_.store;
    pull.target_dir = options_.drill_dir;
    pull.verify = true;
    pull.lanes = options_.lanes;
    pull.timeouts = options_.timeouts;
    pull.log = options_.log;
    if (options_.deadline.count() > 0) {
      pull.deadline = std::max(
          std::chrono::milliseconds(1),
          std::chrono::duration_cast<std::chrono::milliseconds>(until_ -
                                                                Clock::now()));
    }
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (cancelled_) {
        return MakeStatus(EndState::kCancelled, "stopped on request");
      }
      drill_ = MakeDrill(pull, [=, this](const std::string& directory) {
        return OpenDrilled(directory, drill, digests, &report->notes);
      });
    }
    Summary summary;
    const Status status = drill_->Run(&summary);
    drill->seconds = summary.seconds -
                     summary.target_stage_seconds["verify"] -
                     read_seconds_;
    return status;
  }

  // Opens the database for writing, as its application would. So RocksDB
  // replays the WALs, and flushes the records that do not fit into memory. Then
  // reads all entries.
  Status OpenDrilled(const std::string& directory, ArchiveDrill* drill,
                     FamilyDigests* digests,
                     std::vector<std::string>* notes) {
    std::unique_ptr<LiveDb> opened;
    const Status status =
        LiveDb::Open(directory, OperatorRegistry(),
                     rocksdb::FileSystem::Default(), &opened, notes);
    const EndState state = EndStateOf(status);
    if (state == EndState::kIncompatible || state == EndState::kRefused) {
      // This is no failure. The application may have its own comparator, which
      // this process does not have. All bytes were already checked.
      notes->push_back("the drill did not open the database: " +
                       MessageOf(status));
      return Status::OK();
    }
    RETURN_IF_ERROR(status);
    drill->sequence = opened->db()->GetLatestSequenceNumber();
    const Clock::time_point begin = Clock::now();
    for (const FamilyHandle& family : opened->families()) {
      RETURN_IF_ERROR(ReadDrilled(*opened, family, drill, digests, notes));
    }
    read_seconds_ =
        std::chrono::duration<double>(Clock::now() - begin).count();
    drill->is_opened = true;
    return Status::OK();
  }

  // Reads a column family. Reads all entries if `digests` is set, otherwise
  // only the first and the last entry.
  Status ReadDrilled(const LiveDb& opened, const FamilyHandle& family,
                     ArchiveDrill* drill, FamilyDigests* digests,
                     std::vector<std::string>* notes) const {
    const std::string where = "column family '" + Printable(family.name) + "'";
    if (family.handle->GetComparator()->timestamp_size() > 0) {
      notes->push_back("the drill did not read " + where +
                       ": its keys carry user-defined timestamps");
      return Status::OK();
    }
    if (digests == nullptr) {
      IntervalReader reader(opened.db(), family.handle, KeyInterval(), 0,
                            Stopped());
      reader.SeekToBegin();
      RETURN_IF_ERROR(ReadFailure(reader.status(), where));
      reader.SeekToLast();
      return ReadFailure(reader.status(), where);
    }
    DigestReply reply;
    const Status read =
        DigestInterval(opened.db(), family.handle, KeyInterval(), 0, Stopped(),
                       &reply);
    if (EndStateOf(read) == EndState::kCancelled) {
      return read;
    }
    RETURN_IF_ERROR(ReadFailure(read, where));
    // Computes no digest for a family with a compaction filter, because the
    // filter may have removed entries from only one copy.
    if (opened.compaction_filters().count(family.name) == 0) {
      (*digests)[family.name] = reply;
      drill->entries = drill->entries.value_or(0) + reply.entries;
    }
    return Status::OK();
  }

  Status Prune(const Archive& archive, ArchiveReport* report) {
    PruneOptions prune;
    prune.retention = {options_.keep_last, options_.keep_daily,
                       options_.keep_weekly, options_.keep_monthly};
    if (options_.grace.has_value()) {
      prune.grace_seconds = static_cast<uint64_t>(options_.grace->count());
    }
    if (options_.keep_log.has_value()) {
      prune.keep_log_seconds =
          static_cast<uint64_t>(options_.keep_log->count());
    }
    prune.dry_run = options_.dry_run;
    work_.phase = "prune";
    PruneSummary summary;
    const Status status = PruneArchive(archive, prune, &summary);
    for (const PrunedSet& set : summary.sets) {
      report->sets.push_back(Told(set));
    }
    report->warnings = summary.warnings;
    static_cast<ArchivePruneCounts&>(*report) = summary;
    return status;
  }

  Status Repair(const Archive& archive, ArchiveReport* report) {
    SourceAddress from = options_.source;
    FindArchive(&from);
    std::unique_ptr<FileDonor> donor;
    std::unique_ptr<ObjectStore> other_store;
    std::optional<Archive> other;
    if (from.is_archive()) {
      StoreOptions where = options_.store;
      where.where = *from.archive;
      where.until = until_;
      RETURN_IF_ERROR(OpenStore(where, &other_store));
      other.emplace(other_store.get(), key_.get());
      donor = MakeArchiveDonor(*other);
    } else if (!from.is_directory()) {
      RETURN_IF_ERROR(Connect());
      donor = MakeSourceDonor(remote_.get());
    } else if (!from.directory.empty()) {
      donor = MakeDirectoryDonor(from.directory);
    }
    RepairOptions repair;
    repair.set = options_.set;
    repair.from = donor.get();
    repair.software = "sstferry " SSTFERRY_VERSION;
    repair.lanes = static_cast<int>(options_.lanes);
    repair.cancelled = Stopped();
    repair.progress = &work_;
    RepairSummary summary;
    const Status status = RepairArchive(archive, repair, &summary);
    report->read_bytes = summary.read_bytes;
    static_cast<ArchiveUploads&>(*report) = summary;
    for (const RepairedSet& set : summary.sets) {
      if (set.problem.empty()) {
        ++report->whole_sets;
        continue;
      }
      report->sets.push_back(Told(set));
    }
    return status;
  }

  Status Remove(const Archive& archive) const {
    RemoveOptions remove;
    remove.what = options_.set;
    remove.force = options_.force;
    return RemoveFromArchive(archive, remove);
  }

  const ArchiveOptions options_;
  Clock::time_point until_ = Clock::time_point::max();
  const Clock::time_point started_ = Clock::now();
  WorkProgress work_;
  std::atomic<bool> is_finished_{false};
  mutable std::mutex mu_;
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<ObjectStore> store_;  // set by Run()
  std::shared_ptr<SealKey> key_;        // null: no key
  std::unique_ptr<Endpoint> endpoint_;  // null unless the source is remote
  std::unique_ptr<RemoteSource> remote_;  // null unless the source is remote
  std::unique_ptr<Operation> drill_;
  double read_seconds_ = 0;  // time in which the last drill read entries
};

}  // namespace

const char* ArchiveActionName(ArchiveAction action) {
  switch (action) {
    case ArchiveAction::kInit:
      return "init";
    case ArchiveAction::kPush:
      return "push";
    case ArchiveAction::kList:
      return "list";
    case ArchiveAction::kCheck:
      return "check";
    case ArchiveAction::kPrune:
      return "prune";
    case ArchiveAction::kRemove:
      return "remove";
    case ArchiveAction::kRepair:
      return "repair";
  }
  return "?";
}

bool IsArchiveDirectory(const std::string& directory) {
  SourceAddress address;
  address.directory = directory;
  FindArchive(&address);
  return address.is_archive() && address.set.empty();
}

std::unique_ptr<ArchiveJob> MakeArchiveJob(const ArchiveOptions& options) {
  return std::make_unique<Job>(options);
}

}  // namespace sstferry
