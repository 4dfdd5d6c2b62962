// The commands on an archive: a store joined to a push, a list, a check or a
// prune.
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/snapshot_source.h"
#include "sstferry/archive.h"

namespace sstferry {
namespace {

using rocksdb::Status;

std::string HostName() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) {
    return "";
  }
  return name;
}

ArchivedSet Told(const ListedSet& listed) {
  ArchivedSet set;
  set.name = SetNameText(listed.name);
  set.pushed_at = Rfc3339(listed.name.seconds);
  set.state = SetStateName(listed.state);
  set.problem = listed.problem;
  set.label = listed.label;
  set.host = listed.host;
  set.database_id = listed.database_id;
  set.sequence = listed.sequence;
  set.families = listed.families;
  set.files = listed.files;
  set.bytes = listed.bytes;
  set.own_bytes = listed.own_bytes;
  return set;
}

class Job : public ArchiveJob {
 public:
  explicit Job(const ArchiveOptions& options) : options_(options) {}

  Status Run(ArchiveReport* report) override {
    *report = ArchiveReport();
    report->status = Do(report);
    return report->status;
  }

  void Cancel() override {
    const std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
    if (store_ != nullptr) {
      store_->Cancel();
    }
  }

 private:
  Status Do(ArchiveReport* report) {
    std::unique_ptr<ObjectStore> store;
    RETURN_IF_ERROR(OpenStore(options_.store, &store));
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (cancelled_) {
        return MakeStatus(EndState::kCancelled, "stopped on request");
      }
      store_ = std::move(store);
    }
    const Archive archive(store_.get());
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

  Status Push(const Archive& archive, ArchiveReport* report) {
    if (!options_.source.is_directory()) {
      return MakeStatus(EndState::kRefused,
                        options_.source.ToString() +
                            ": a push reads a directory of this machine; run "
                            "it where the database is");
    }
    // Before the snapshot: a mistake is told at once.
    ArchiveHead head;
    RETURN_IF_ERROR(archive.ReadHead(&head));
    const auto cancelled = [this] { return cancelled_.load(); };
    SnapshotOptions snapshot;
    snapshot.database_dir = options_.source.directory;
    snapshot.snapshot_dir = options_.snapshot_dir;
    snapshot.wal_dir = options_.wal_dir;
    snapshot.cancelled = cancelled;
    snapshot.log = options_.log;
    std::unique_ptr<SnapshotSource> source;
    RETURN_IF_ERROR(SnapshotSource::Take(snapshot, &source));
    PushOptions push;
    push.label = options_.label;
    push.adopt = options_.adopt;
    push.host = HostName();
    push.software = "sstferry " SSTFERRY_VERSION;
    push.lanes = static_cast<int>(options_.lanes);
    push.cancelled = cancelled;
    PushSummary summary;
    const Status status = PushSet(archive, source.get(), push, &summary);
    report->notes = summary.notes;
    report->uploaded_files = summary.uploaded_files;
    report->uploaded_bytes = summary.uploaded_bytes;
    report->reused_files = summary.reused_files;
    report->reused_bytes = summary.reused_bytes;
    if (status.ok()) {
      ListedSet set;
      set.name = summary.name;
      set.label = push.label;
      set.host = push.host;
      set.database_id = source->set().database_id;
      set.sequence = source->set().sequence;
      set.families = source->set().families.size();
      set.files = summary.files;
      set.bytes = summary.bytes;
      set.own_bytes = summary.uploaded_bytes;
      report->sets.push_back(Told(set));
    }
    return status;
  }

  Status List(const Archive& archive, ArchiveReport* report) {
    ArchiveHead head;
    RETURN_IF_ERROR(archive.ReadHead(&head));
    Tell(head, report);
    std::vector<ListedSet> sets;
    RETURN_IF_ERROR(ListArchive(archive, &sets));
    for (const ListedSet& set : sets) {
      report->sets.push_back(Told(set));
    }
    return Status::OK();
  }

  Status Check(const Archive& archive, ArchiveReport* report) {
    ArchiveHead head;
    RETURN_IF_ERROR(archive.ReadHead(&head));
    Tell(head, report);
    CheckOptions check;
    check.read_percent = options_.read_percent;
    check.lanes = static_cast<int>(options_.lanes);
    check.cancelled = [this] { return cancelled_.load(); };
    CheckSummary summary;
    const Status status = CheckArchive(archive, check, &summary);
    for (const ListedSet& set : summary.sets) {
      report->sets.push_back(Told(set));
    }
    report->objects = summary.objects;
    report->bytes = summary.bytes;
    report->orphans = summary.orphans;
    report->orphan_bytes = summary.orphan_bytes;
    report->foreign = summary.foreign;
    report->read_files = summary.read_files;
    report->read_bytes = summary.read_bytes;
    report->problems = summary.problems;
    if (summary.newest_seconds != 0 &&
        summary.newest_seconds <= summary.now_seconds) {
      report->newest_age_seconds =
          summary.now_seconds - summary.newest_seconds;
    }
    return status;
  }

  Status Prune(const Archive& archive, ArchiveReport* report) {
    PruneOptions prune;
    prune.retention = {options_.keep_last, options_.keep_daily,
                       options_.keep_weekly, options_.keep_monthly};
    if (options_.grace.has_value()) {
      prune.grace_seconds = static_cast<uint64_t>(options_.grace->count());
    }
    PruneSummary summary;
    const Status status = PruneArchive(archive, prune, &summary);
    report->kept_sets = summary.kept_sets;
    report->dropped_sets = summary.dropped_sets;
    report->deleted_files = summary.deleted_files;
    report->marked_sets = summary.marked_sets;
    report->marked_files = summary.marked_files;
    report->marked_bytes = summary.marked_bytes;
    report->waiting_marks = summary.waiting_marks;
    report->held_marks = summary.held_marks;
    report->aborted_uploads = summary.aborted_uploads;
    return status;
  }

  const ArchiveOptions options_;
  std::mutex mu_;
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<ObjectStore> store_;  // from Run() on
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
  }
  return "?";
}

std::unique_ptr<ArchiveJob> MakeArchiveJob(const ArchiveOptions& options) {
  return std::make_unique<Job>(options);
}

}  // namespace sstferry
