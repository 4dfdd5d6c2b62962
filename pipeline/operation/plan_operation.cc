// A plan: asks a source what both methods would move.
#include <atomic>
#include <optional>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/operation/endpoint.h"
#include "pipeline/operation/method_choice.h"
#include "pipeline/operation/method_estimate.h"
#include "pipeline/operation/one_session.h"
#include "pipeline/operation/operation_parts.h"
#include "pipeline/operation/target_checks.h"
#include "pipeline/options/directories.h"
#include "pipeline/target/disk/target_directories.h"
#include "pipeline/target/memory/refresh_plan.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

void FillSource(const SourceSession& session, const SourcePlan& plan,
                Summary* summary) {
  summary->source_versions.software = session.source().software;
  summary->source_versions.rocksdb = session.source().rocksdb_version;
  summary->transfer_id = ToHex(plan.opened.transfer_id);
  summary->source_database_id = plan.opened.source_database_id;
  summary->snapshot_sequence = plan.opened.snapshot_sequence;
  summary->snapshot_taken_seconds = plan.opened.taken_seconds;
  summary->lanes = plan.opened.lanes;
  for (const Family& family : plan.families) {
    summary->column_families.push_back(family.description.name);
  }
}

void FillItems(const SourcePlan& plan, Summary* summary) {
  for (const Family& family : plan.families) {
    summary->entries += family.estimated_entries;
    summary->sst_bytes += family.estimated_bytes;
  }
  static constexpr const char* kActions[] = {
      "rebuild", "carry", "skip", "lookup", "delta", "replace"};
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
}

class PlanOperation : public Operation {
 public:
  explicit PlanOperation(const PullOptions& options) : options_(options) {}

  Status Run(Summary* summary) override {
    summary->started_at = NowRfc3339();
    summary->source = options_.source.ToString();
    Status status =
        options_.target_dir.empty()
            ? Status::OK()
            : CheckApartFromSource(options_,
                                   TargetDirectories(options_, nullptr));
    if (status.ok()) {
      status = AskForChunks(summary);
    }
    const bool may_clone = options_.method != PullMethod::kIngest;
    if (status.ok() ? !summary->methods.empty()
                    : may_clone && IsRefusedAsChunks(status)) {
      status = AddClone(status, summary);
    }
    if (status.ok() && !options_.target_dir.empty() &&
        !summary->methods.empty()) {
      summary->checks = CheckTarget(options_, *summary,
                                    plan_ ? &*plan_ : nullptr);
    }
    finished_ = status.ok();
    FinishSummary(status, "plan", summary);
    return status;
  }

  void Cancel() override {
    chunks_.Cancel();
    clone_.Cancel();
  }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}

  Progress progress() const override {
    Progress progress;
    progress.phase = "plan";
    progress.finished = finished_;
    return progress;
  }

 private:
  // Asks on a connection of its own: a failure ends the connection.
  Status Ask(OneSession* asked,
             const std::function<Status(SourceSession*, const std::string&)>&
                 ask) {
    std::unique_ptr<Endpoint> endpoint;
    const Status status = Endpoint::Open(
        EndpointFor(options_.source, options_.lanes, options_), &endpoint);
    return status.ok()
               ? asked->Run(endpoint->dialer(),
                            {options_.connect_timeout, options_.peer_timeout,
                             options_.stall_timeout, options_.deadline},
                            "plan",
                            [&](SourceSession* session) {
                              return ask(session, endpoint->name());
                            })
               : status;
  }

  Status AskForChunks(Summary* summary) {
    return Ask(&chunks_,
               [&](SourceSession* session, const std::string& name) {
                 return name.empty() ? ListNames(session, summary)
                                     : PlanChunks(session, name, summary);
               });
  }

  static Status ListNames(SourceSession* session, Summary* summary) {
    ListReply reply;
    const Status status = session->List(&reply);
    summary->served_names = std::move(reply.names);
    return status;
  }

  Status PlanChunks(SourceSession* session, const std::string& name,
                    Summary* summary) {
    OpenRequest request = MakeOpenRequest(options_, name, Purpose::kPlan);
    std::vector<std::string> notes;
    const bool refreshes = RefreshesInPlace(options_);
    summary->mode = refreshes ? "refresh" : "seed";
    summary->target = options_.target_dir;
    summary->selection = options_.selection;
    summary->target_versions.software = SoftwareVersion();
    summary->target_versions.rocksdb = RocksDbVersion();
    Status status;
    if (refreshes) {
      request.mode = TransferMode::kRefresh;
      request.compare = options_.compare;
      TargetMemory memory;
      status = ReadTargetMemory(options_, &memory, &notes);
      session->SetMemory(std::move(memory));
    }
    SourcePlan plan;
    if (status.ok()) {
      status = session->Open(request, &plan);
    }
    if (!status.ok()) {
      return status;
    }
    FillSource(*session, plan, summary);
    FillItems(plan, summary);
    summary->ranges = plan.ranges.size();
    summary->notes = plan.opened.notes;
    summary->notes.insert(summary->notes.end(), notes.begin(), notes.end());
    summary->methods.push_back(EstimateChunks(plan));
    if (plan.leaves_out && !summary->notes.empty()) {
      summary->methods.back().leaves_out = summary->notes.front();
    }
    plan_ = std::move(plan);
    return status;
  }

  // `chunks` is OK or a refusal, after which a clone is what is planned.
  Status AddClone(const Status& chunks, Summary* summary) {
    if (!chunks.ok()) {
      MethodSummary refused;
      refused.method = "ingest";
      refused.why_not = MessageOf(chunks);
      summary->methods.push_back(refused);
    }
    MethodSummary clone;
    clone.method = "clone";
    clone.why_not = WhyNoClone(options_);
    if (clone.why_not.empty()) {
      const Status status = AskForClone(chunks.ok(), &clone, summary);
      clone.why_not = status.ok() ? "" : MessageOf(status);
      if (EndStateOf(status) == EndState::kCancelled) {
        return status;
      }
    }
    const bool none = !chunks.ok() && !clone.why_not.empty();
    const std::string why = clone.why_not;
    summary->methods.push_back(std::move(clone));
    Advise(summary);
    return none ? WithoutClone(chunks, why) : Status::OK();
  }

  Status AskForClone(bool has_plan, MethodSummary* clone, Summary* summary) {
    return Ask(&clone_, [&](SourceSession* session, const std::string& name) {
      if ((session->source().features & kFeatureClone) == 0) {
        return MakeStatus(EndState::kIncompatible,
                          session->source().software +
                              " at the source cannot be cloned");
      }
      OpenRequest request = MakeOpenRequest(options_, name, Purpose::kPlan);
      request.mode = TransferMode::kClone;
      SourcePlan plan;
      const Status status = session->Open(request, &plan);
      if (status.ok()) {
        *clone = EstimateClone(plan);
      }
      if (status.ok() && !has_plan) {
        FillSource(*session, plan, summary);
        summary->notes = plan.opened.notes;
      }
      return status;
    });
  }

  const PullOptions options_;
  std::optional<SourcePlan> plan_;  // of chunks
  std::atomic<bool> finished_{false};
  OneSession chunks_;
  OneSession clone_;
};

}  // namespace

std::unique_ptr<Operation> MakePlan(const PullOptions& options) {
  return std::make_unique<PlanOperation>(options);
}

}  // namespace sstferry
