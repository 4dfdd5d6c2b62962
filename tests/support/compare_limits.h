// Changes the limits of refreshes' comparisons, or injects faults, for one
// test.
#pragma once

#include <atomic>
#include <utility>

#include "pipeline/refresh/compare_tuning.h"

namespace sstferry::test {

// Applies to all comparisons of this process during the object's lifetime.
class ComparedWith {
 public:
  explicit ComparedWith(CompareTuning tuning) {
    SetTuningOfComparisons(std::move(tuning));
  }
  ~ComparedWith() { SetTuningOfComparisons(CompareTuning()); }
  ComparedWith(const ComparedWith&) = delete;
  ComparedWith& operator=(const ComparedWith&) = delete;
};

// Injects `times` faults of one kind, at consecutive chances. The comparison
// calls the object at each chance to inject a fault; `first` is the number of
// the first chance that is used, from 0.
class Planting {
 public:
  Planting(CompareFault fault, int first, int times)
      : fault_(fault), first_(first), times_(times) {}
  bool operator()(CompareFault fault) {
    if (fault != fault_) {
      return false;
    }
    const int chance = chances_++;
    const bool plants = chance >= first_ && chance - first_ < times_;
    planted_ += plants ? 1 : 0;
    return plants;
  }
  int chances() const { return chances_; }
  int planted() const { return planted_; }

 private:
  const CompareFault fault_;
  const int first_;
  const int times_;
  std::atomic<int> chances_{0};
  std::atomic<int> planted_{0};
};

}  // namespace sstferry::test
