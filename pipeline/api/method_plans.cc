#include "pipeline/api/method_plans.h"

#include <algorithm>
#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

// Returns the live share of the source's files, or 1 if the source did not
// report it.
double LiveShare(const std::optional<MethodSizes>& sizes) {
  return sizes.has_value() && sizes->file_bytes > 0
             ? std::min(1.0, static_cast<double>(sizes->chunk_bytes) /
                                 static_cast<double>(sizes->file_bytes))
             : 1;
}

}  // namespace

void MethodPlans::Take(PullMethod method, const rocksdb::Status& status,
                       bool by_choice, const Plan& plan,
                       uint64_t bytes_to_come) {
  const EndState state = EndStateOf(status);
  const bool refused = !by_choice && (state == EndState::kRefused ||
                                     state == EndState::kIncompatible);
  if (refused) {
    TakeWhyNot(method, MessageOf(status));
    return;
  }
  if (plan.families.empty()) {
    return;  // it did not get that far
  }
  if (method == PullMethod::kClone) {
    clone_ = DescribeMethod(method, CostOfClone(bytes_to_come));
    clone_->files = plan.clone.has_value() ? plan.clone->files.size() : 0;
    return;
  }
  chunks_ = MethodSummary();
  chunks_->bytes = bytes_to_come;
  for (const PlanItem& item : plan.items) {
    chunks_->files += item.file.empty() ? 0 : 1;
  }
  if (plan.leaves_out && !plan.opened.notes.empty()) {
    chunks_->leaves_out = plan.opened.notes.front();
  }
  plan_ = plan;
}

void MethodPlans::TakeWhyNot(PullMethod method, const std::string& why) {
  MethodSummary none = DescribeMethod(method, MethodCost());
  none.seconds.clear();
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

void MethodPlans::FillSummary(const MethodInput& known,
                              Summary* summary) const {
  FillItems(summary);
  summary->methods.clear();
  if (chunks_.has_value()) {
    const uint64_t bytes = chunks_->bytes;
    const auto live = static_cast<uint64_t>(static_cast<double>(bytes) *
                                            LiveShare(known.sizes));
    const MethodCost cost = known.swap.has_value()
                                ? CostOfDelta(*known.swap)
                                : CostOfIngest({bytes, live});
    MethodSummary chunks = DescribeMethod(PullMethod::kIngest, cost);
    chunks.files = chunks_->files;
    chunks.why_not = chunks_->why_not;
    chunks.leaves_out = chunks_->leaves_out;
    summary->methods.push_back(std::move(chunks));
  }
  if (clone_.has_value()) {
    summary->methods.push_back(*clone_);
  }
}

}  // namespace sstferry
