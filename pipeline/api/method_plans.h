// Collects what a plan tells of both methods: bytes, CPU time at the source, and
// the cost at some links.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/pull/method_rule.h"
#include "pipeline/pull/plan_receiver.h"
#include "sstferry/options.h"

namespace sstferry {

// Collects what the attempts of a pull that is only planned found out.
// Threads: one at a time.
class MethodPlans {
 public:
  // After an attempt that ended with `status`. `bytes_to_come`: of the plan,
  // without what the target has. `left_out`: it was refused only for what
  // chunks would leave out. A later attempt by the same method counts.
  void Take(PullMethod method, const rocksdb::Status& status, bool left_out,
            const Plan& plan, uint64_t bytes_to_come);
  // Records that there was no attempt by `method`, and why.
  void TakeWhyNot(PullMethod method, const std::string& why);
  bool has(PullMethod method) const { return of(method).has_value(); }

  // Sets items, methods, and the estimates of entries and bytes. `sizes`: what
  // the source said, if it was asked.
  void FillSummary(const std::optional<MethodSizes>& sizes,
                   Summary* summary) const;

 private:
  const std::optional<MethodSummary>& of(PullMethod method) const {
    return method == PullMethod::kClone ? clone_ : chunks_;
  }
  void FillItems(Summary* summary) const;

  std::optional<MethodSummary> chunks_;
  std::optional<MethodSummary> clone_;
  Plan plan_;  // of chunks; empty: none came
};

}  // namespace sstferry
