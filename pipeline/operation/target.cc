// Operations: a source's endpoint joined to the work of the target.
#include "sstferry/target.h"

#include <atomic>
#include <filesystem>
#include <mutex>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/operation/endpoint.h"
#include "pipeline/operation/one_session.h"
#include "pipeline/operation/verifier.h"
#include "pipeline/options/directories.h"
#include "pipeline/target/disk/target_directories.h"
#include "pipeline/target/fill/clone_target.h"
#include "pipeline/target/fill/refresh_target.h"
#include "pipeline/target/fill/seed_target.h"
#include "pipeline/target/memory/refresh_plan.h"
#include "pipeline/target/pull/puller.h"
#include "rocksdb/db.h"

namespace sstferry {
namespace {

using rocksdb::Status;

EndpointOptions EndpointFor(const SourceAddress& address, uint32_t lanes,
                            const PullOptions& options) {
  EndpointOptions endpoint;
  endpoint.address = address;
  endpoint.lanes = lanes;
  endpoint.snapshot_dir = options.snapshot_dir;
  endpoint.wal_dir = options.wal_dir;
  endpoint.tls = options.tls;
  endpoint.peer_timeout = options.peer_timeout;
  endpoint.stall_timeout = options.stall_timeout;
  endpoint.snapshot_ttl = options.snapshot_ttl;
  endpoint.registry = options.registry;
  endpoint.log = options.log;
  return endpoint;
}

void FinishSummary(const Status& status, const std::string& where,
                   Summary* summary) {
  summary->status = status;
  summary->error_where = status.ok() ? "" : where;
  if (summary->started_at.empty()) {
    summary->started_at = NowRfc3339();
  }
  summary->finished_at = NowRfc3339();
}

// Guards the worker while progress() and Cancel() may use it.
template <typename Worker>
class WorkerSlot {
 public:
  // Returns false if it was cancelled before.
  bool Set(Worker* worker) {
    std::lock_guard<std::mutex> lock(mu_);
    worker_ = worker;
    return !cancelled_;
  }
  void Clear(const Progress& last) {
    std::lock_guard<std::mutex> lock(mu_);
    worker_ = nullptr;
    last_ = last;
  }
  void Cancel() {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
    if (worker_ != nullptr) {
      worker_->Cancel();
    }
  }
  Progress progress() const {
    std::lock_guard<std::mutex> lock(mu_);
    return worker_ != nullptr ? worker_->progress() : last_;
  }
  // Takes the value under the lock, so that the last one wins.
  void ApplyMaxRate(const std::atomic<uint64_t>& bytes_per_sec) {
    std::lock_guard<std::mutex> lock(mu_);
    if (worker_ != nullptr) {
      worker_->SetMaxRate(bytes_per_sec);
    }
  }

 private:
  mutable std::mutex mu_;
  Worker* worker_ = nullptr;  // under mu_, and all below
  Progress last_;
  bool cancelled_ = false;
};

Status CancelledBeforeStart() {
  return MakeStatus(EndState::kCancelled, "stopped on request");
}

// Returns true if there is a database to refresh. Otherwise a seed fills the
// directory.
bool HoldsSomething(const std::string& dir) {
  std::error_code error;
  return std::filesystem::is_directory(dir, error) &&
         !std::filesystem::is_empty(dir, error);
}

class PullOperation : public Operation {
 public:
  PullOperation(const PullOptions& options, const OpenReplica& replica)
      : options_(options),
        replica_(replica),
        max_rate_bytes_per_sec_(options.max_rate_bytes_per_sec) {}

  Status Run(Summary* summary) override {
    std::unique_ptr<Endpoint> endpoint;
    Status status = CheckApartFromSource(
        options_, TargetDirectories(options_, replica_.db));
    if (status.ok()) {
      status = Endpoint::Open(
          EndpointFor(options_.source, options_.lanes, options_), &endpoint);
    }
    std::string where = "source";
    if (status.ok()) {
      PullOptions named = options_;
      named.source.name = endpoint->name();
      Puller puller(named, endpoint->dialer(),
                    [this](const PullContext* context) {
                      return MakeTarget(context);
                    });
      const bool starts = slot_.Set(&puller);
      slot_.ApplyMaxRate(max_rate_bytes_per_sec_);
      status = starts ? puller.Run(summary) : CancelledBeforeStart();
      where = puller.error_where();
      slot_.Clear(puller.progress());
    }
    FinishSummary(status, where, summary);
    return status;
  }
  void Cancel() override { slot_.Cancel(); }
  void SetMaxRate(uint64_t bytes_per_sec) override {
    max_rate_bytes_per_sec_ = bytes_per_sec;
    slot_.ApplyMaxRate(max_rate_bytes_per_sec_);
  }
  Progress progress() const override { return slot_.progress(); }

 private:
  std::unique_ptr<PullTarget> MakeTarget(const PullContext* context) const {
    const bool refreshes =
        replica_.db != nullptr ||
        (options_.mode == PullMode::kRefresh && !IsSwap(options_) &&
         HoldsSomething(options_.target_dir));
    if (refreshes) {
      return std::make_unique<RefreshTarget>(context, replica_);
    }
    if (options_.method == PullMethod::kClone) {
      return std::make_unique<CloneTarget>(context);
    }
    return std::make_unique<SeedTarget>(context);
  }

  const PullOptions options_;
  const OpenReplica replica_;
  std::atomic<uint64_t> max_rate_bytes_per_sec_;
  WorkerSlot<Puller> slot_;
};

class VerifyOperation : public Operation {
 public:
  explicit VerifyOperation(const VerifyOptions& options) : options_(options) {}

  Status Run(Summary* summary) override {
    PullOptions common;
    common.snapshot_dir = options_.snapshot_dir;
    common.wal_dir = options_.wal_dir;
    common.tls = options_.tls;
    common.peer_timeout = options_.peer_timeout;
    common.stall_timeout = options_.stall_timeout;
    common.registry = options_.registry;
    common.log = options_.log;
    std::unique_ptr<Endpoint> left;
    std::unique_ptr<Endpoint> right;
    Status status = Endpoint::Open(
        EndpointFor(options_.left, options_.lanes, common), &left);
    common.wal_dir.clear();
    if (status.ok()) {
      status = Endpoint::Open(
          EndpointFor(options_.right, options_.lanes, common), &right);
    }
    std::string where = "verify";
    if (status.ok()) {
      Verifier verifier(options_, left->dialer(), left->name(),
                        right->dialer(), right->name());
      status = slot_.Set(&verifier) ? verifier.Run(summary)
                                    : CancelledBeforeStart();
      if (!verifier.error_where().empty()) {
        where = verifier.error_where();
      }
      slot_.Clear(verifier.progress());
    }
    FinishSummary(status, where, summary);
    return status;
  }
  void Cancel() override { slot_.Cancel(); }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override { return slot_.progress(); }

 private:
  const VerifyOptions options_;
  WorkerSlot<Verifier> slot_;
};

class PlanOperation : public Operation {
 public:
  explicit PlanOperation(const PullOptions& options) : options_(options) {}

  Status Run(Summary* summary) override {
    summary->started_at = NowRfc3339();
    summary->source = options_.source.ToString();
    std::unique_ptr<Endpoint> endpoint;
    Status status =
        options_.target_dir.empty()
            ? Status::OK()
            : CheckApartFromSource(options_,
                                   TargetDirectories(options_, nullptr));
    if (status.ok()) {
      status = Endpoint::Open(
          EndpointFor(options_.source, options_.lanes, options_), &endpoint);
    }
    if (status.ok()) {
      status = Ask(endpoint.get(), summary);
    }
    FinishSummary(status, "plan", summary);
    return status;
  }

  void Cancel() override { session_.Cancel(); }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}

  Progress progress() const override {
    Progress progress;
    progress.phase = "plan";
    progress.finished = finished_;
    return progress;
  }

 private:
  Status Ask(Endpoint* endpoint, Summary* summary) {
    const Status status = session_.Run(
        endpoint->dialer(),
        {options_.connect_timeout, options_.peer_timeout,
         options_.stall_timeout, options_.deadline},
        "plan", [&](SourceSession* session) {
          return endpoint->name().empty()
                     ? session->List(&summary->served_names)
                     : AskForPlan(session, endpoint->name(), summary);
        });
    finished_ = status.ok();
    return status;
  }

  Status AskForPlan(SourceSession* session, const std::string& name,
                    Summary* summary) {
    SourcePlan plan;
    OpenRequest request = MakeOpenRequest(options_, name, Purpose::kPlan);
    std::vector<std::string> notes;
    const bool refreshes = options_.mode == PullMode::kRefresh &&
                           !IsSwap(options_) &&
                           HoldsSomething(options_.target_dir);
    Status status;
    if (refreshes) {
      request.mode = TransferMode::kRefresh;
      request.compare = options_.compare;
      TargetMemory memory;
      status = ReadTargetMemory(options_, &memory, &notes);
      session->SetMemory(std::move(memory));
    }
    if (status.ok()) {
      status = session->Open(request, &plan);
    }
    if (!status.ok()) {
      return status;
    }
    summary->mode = refreshes ? "refresh" : "seed";
    summary->target = options_.target_dir;
    summary->selection = options_.selection;
    summary->source_versions.software = session->source().software;
    summary->source_versions.rocksdb = session->source().rocksdb_version;
    summary->target_versions.software = SoftwareVersion();
    summary->target_versions.rocksdb = RocksDbVersion();
    summary->transfer_id = ToHex(plan.opened.transfer_id);
    summary->source_database_id = plan.opened.source_database_id;
    summary->snapshot_sequence = plan.opened.snapshot_sequence;
    summary->snapshot_taken_seconds = plan.opened.taken_seconds;
    summary->ranges = plan.ranges.size();
    summary->lanes = plan.opened.lanes;
    summary->notes = plan.opened.notes;
    summary->notes.insert(summary->notes.end(), notes.begin(), notes.end());
    for (const Family& family : plan.families) {
      summary->column_families.push_back(family.description.name);
      summary->entries += family.estimated_entries;
      summary->sst_bytes += family.estimated_bytes;
    }
    static constexpr const char* kActions[] = {"rebuild", "carry", "skip"};
    for (const PlanItem& item : plan.items) {
      PlanItemSummary line;
      line.column_family = plan.families[item.family].description.name;
      line.begin = item.interval.begin;
      line.end = item.interval.end;
      line.file = item.file;
      line.bytes = item.bytes;
      line.action = kActions[static_cast<uint8_t>(item.action)];
      line.reason = item.reason;
      summary->items.push_back(std::move(line));
    }
    return Status::OK();
  }

  const PullOptions options_;
  std::atomic<bool> finished_{false};
  OneSession session_;
};

}  // namespace

std::unique_ptr<Operation> MakePull(const PullOptions& options) {
  return std::make_unique<PullOperation>(options, OpenReplica());
}

std::unique_ptr<Operation> MakeRefresh(const PullOptions& options,
                                       const OpenReplica& replica) {
  PullOptions refresh = options;
  refresh.mode = PullMode::kRefresh;
  refresh.target_dir = replica.db->GetName();
  refresh.replace = false;
  return std::make_unique<PullOperation>(refresh, replica);
}

std::unique_ptr<Operation> MakePlan(const PullOptions& options) {
  return std::make_unique<PlanOperation>(options);
}

std::unique_ptr<Operation> MakeVerify(const VerifyOptions& options) {
  return std::make_unique<VerifyOperation>(options);
}

}  // namespace sstferry
