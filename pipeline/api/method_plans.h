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
  // without what the target has. `by_choice`: it was refused only because the
  // other method is better. A later attempt by the same method counts.
  void Take(PullMethod method, const rocksdb::Status& status, bool by_choice,
            const Plan& plan, uint64_t bytes_to_come);
  // Records that there was no attempt by `method`, and why.
  void TakeWhyNot(PullMethod method, const std::string& why);
  bool has(PullMethod method) const { return of(method).has_value(); }

  // Sets items, methods, and the estimates of entries and bytes. `known`: what
  // the source said.
  void FillSummary(const MethodInput& known, Summary* summary) const;

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
