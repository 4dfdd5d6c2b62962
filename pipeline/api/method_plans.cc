#include "pipeline/api/method_plans.h"

#include <algorithm>
#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kGigabitBytes = 1e9 / 8;
constexpr uint32_t kLinkGigabits[] = {1, 10, 25};

// A clone also brings what chunks leave behind.
constexpr char kCloneBrings[] =
    "a clone also brings obsolete versions and compaction debt";

void FillSeconds(uint32_t lanes, MethodSummary* method) {
  const double work = method->source_cpu_seconds / std::max(1u, lanes);
  for (const uint32_t gigabits : kLinkGigabits) {
    method->seconds[gigabits] = std::max(
        work, static_cast<double>(method->bytes) / (gigabits * kGigabitBytes));
  }
}

// Returns what moving the planned parts takes. A transfer lasts as long as the
// link needs for its bytes, or its lanes for the source's work.
MethodSummary EstimateChunks(const Plan& plan, uint64_t bytes) {
  MethodSummary method;
  method.method = "ingest";
  for (const PlanItem& item : plan.items) {
    method.files += item.file.empty() ? 0 : 1;
  }
  method.bytes = bytes;
  method.source_cpu_seconds =
      static_cast<double>(method.bytes) * kRebuiltCpuSeconds / kGigabyte;
  FillSeconds(plan.opened.lanes, &method);
  return method;
}

MethodSummary EstimateClone(const Plan& plan, uint64_t bytes) {
  MethodSummary method;
  method.method = "clone";
  if (plan.clone.has_value()) {
    method.files = plan.clone->files.size();
  }
  method.bytes = bytes;
  method.source_cpu_seconds =
      static_cast<double>(method.bytes) * kClonedCpuSeconds / kGigabyte;
  FillSeconds(plan.opened.lanes, &method);
  return method;
}

// `why_clone`: why a clone is cheaper; empty: it is not. REQUIRES:
// summary->methods are ingest and clone.
void Advise(const std::string& why_clone, Summary* summary) {
  const MethodSummary& ingest = summary->methods.front();
  const MethodSummary& clone = summary->methods.back();
  std::string* const reason = &summary->advised_reason;
  if (!clone.why_not.empty()) {
    summary->advised_method = ingest.why_not.empty() ? "ingest" : "";
    *reason = ingest.why_not.empty()
                  ? "no clone: " + clone.why_not
                  : "chunks: " + ingest.why_not + "; clone: " + clone.why_not;
    return;
  }
  if (!ingest.why_not.empty() || !ingest.leaves_out.empty()) {
    summary->advised_method = "clone";
    *reason = "chunks cannot hold all that the database holds; " +
              std::string(kCloneBrings);
    return;
  }
  summary->advised_method = why_clone.empty() ? "ingest" : "clone";
  *reason = !why_clone.empty()
                ? why_clone
                : "the new database is compacted; " + std::string(kCloneBrings);
}

const char* NameOf(PullMethod method) {
  return method == PullMethod::kClone ? "clone" : "ingest";
}

}  // namespace

void MethodPlans::Take(PullMethod method, const rocksdb::Status& status,
                       bool left_out, const Plan& plan,
                       uint64_t bytes_to_come) {
  const EndState state = EndStateOf(status);
  const bool refused = !left_out && (state == EndState::kRefused ||
                                     state == EndState::kIncompatible);
  if (refused) {
    TakeWhyNot(method, MessageOf(status));
    return;
  }
  if (plan.families.empty()) {
    return;  // it did not come so far
  }
  if (method == PullMethod::kClone) {
    clone_ = EstimateClone(plan, bytes_to_come);
    return;
  }
  chunks_ = EstimateChunks(plan, bytes_to_come);
  if (plan.leaves_out && !plan.opened.notes.empty()) {
    chunks_->leaves_out = plan.opened.notes.front();
  }
  plan_ = plan;
}

void MethodPlans::TakeWhyNot(PullMethod method, const std::string& why) {
  MethodSummary none;
  none.method = NameOf(method);
  none.why_not = why;
  (method == PullMethod::kClone ? clone_ : chunks_) = std::move(none);
}

void MethodPlans::FillItems(Summary* summary) const {
  for (const Family& family : plan_.families) {
    summary->entries += family.estimated_entries;
    summary->sst_bytes += family.estimated_bytes;
  }
  static constexpr const char* kActions[] = {
      "rebuild", "skip", "lookup", "delta", "replace"};
  for (const PlanItem& item : plan_.items) {
    PlanItemSummary line;
    line.column_family = plan_.families[item.family].description.name;
    line.begin = item.interval.begin;
    line.end = item.interval.end;
    line.file = item.file;
    line.bytes = item.bytes;
    line.action = kActions[static_cast<uint8_t>(item.action)];
    line.reason = item.reason;
    summary->items.push_back(std::move(line));
  }
}

void MethodPlans::FillSummary(Summary* summary) const {
  FillItems(summary);
  for (const std::optional<MethodSummary>& method : {chunks_, clone_}) {
    if (method.has_value()) {
      summary->methods.push_back(*method);
    }
  }
  if (summary->methods.size() == 2) {
    Advise(why_clone_, summary);
  }
}

}  // namespace sstferry
