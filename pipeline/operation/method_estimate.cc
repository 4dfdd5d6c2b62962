#include "pipeline/operation/method_estimate.h"

#include <algorithm>

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

}  // namespace

MethodSummary EstimateChunks(const SourcePlan& plan) {
  MethodSummary method;
  method.method = "ingest";
  uint64_t carried = 0;
  for (const PlanItem& item : plan.items) {
    method.files += item.file.empty() ? 0 : 1;
    carried += item.action == PlanAction::kCarry ? item.bytes : 0;
  }
  for (const Range& range : plan.ranges) {
    method.bytes +=
        range.need == RangeNeed::kUnchanged ? 0 : range.estimated_bytes;
  }
  carried = std::min(carried, method.bytes);
  method.source_cpu_seconds =
      (static_cast<double>(carried) * kCarriedCpuSeconds +
       static_cast<double>(method.bytes - carried) * kRebuiltCpuSeconds) /
      kGigabyte;
  FillSeconds(plan.opened.lanes, &method);
  return method;
}

MethodSummary EstimateClone(const SourcePlan& plan) {
  MethodSummary method;
  method.method = "clone";
  if (plan.clone.has_value()) {
    method.files = plan.clone->files.size();
    for (const CloneFile& file : plan.clone->files) {
      method.bytes += file.bytes;
    }
  }
  method.source_cpu_seconds =
      static_cast<double>(method.bytes) * kClonedCpuSeconds / kGigabyte;
  FillSeconds(plan.opened.lanes, &method);
  return method;
}

void Advise(Summary* summary) {
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
  const bool is_cheaper =
      2 * clone.source_cpu_seconds < ingest.source_cpu_seconds;
  // On the slowest link the bytes count, and those of a clone stay on disk.
  const bool is_quick = clone.seconds.begin()->second <=
                        1.5 * ingest.seconds.begin()->second;
  summary->advised_method = is_cheaper && is_quick ? "clone" : "ingest";
  *reason = is_cheaper && is_quick
                ? "it takes less than half of the source's CPU, which would "
                  "rebuild files; " + std::string(kCloneBrings)
            : is_cheaper
                ? "a clone takes less of the source's CPU, but sends much "
                  "more; " + std::string(kCloneBrings)
                : "most files are sent as they are, and the new database is "
                  "compacted; " + std::string(kCloneBrings);
}

}  // namespace sstferry
