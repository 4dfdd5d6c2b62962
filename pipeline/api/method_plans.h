// Collects what a plan reports about both methods: bytes, CPU time at the
// source, and the cost for some link speeds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/pull/method_rule.h"
#include "pipeline/pull/plan_receiver.h"
#include "sstferry/options.h"

namespace sstferry {

// Collects the findings of the attempts of a planned pull.
//
// Threads: one at a time.
class MethodPlans {
 public:
  // Adds an attempt that ended with `status`. `bytes_to_come`: bytes of the
  // plan that the target does not have. `by_choice`: the attempt was refused
  // only because the other method is better. A later attempt by the same method
  // replaces an earlier one.
  void Take(PullMethod method, const rocksdb::Status& status, bool by_choice,
            const Plan& plan, uint64_t bytes_to_come);
  // Records why there was no attempt by `method`.
  void TakeWhyNot(PullMethod method, const std::string& why);
  bool has(PullMethod method) const { return of(method).has_value(); }

  // Sets items, methods, and the estimates of entries and bytes. `known`: what
  // the source reported.
  void FillSummary(const MethodInput& known, Summary* summary) const;

 private:
  const std::optional<MethodSummary>& of(PullMethod method) const {
    return method == PullMethod::kClone ? clone_ : chunks_;
  }
  void FillItems(Summary* summary) const;

  std::optional<MethodSummary> chunks_;
  std::optional<MethodSummary> clone_;
  Plan plan_;  // for chunks; empty: no plan was received
};

}  // namespace sstferry
