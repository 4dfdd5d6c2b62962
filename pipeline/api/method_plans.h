// Collects what a plan tells of both methods: bytes, CPU time at the source,
// seconds at some links, and which one is advised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/pull/plan_receiver.h"
#include "sstferry/options.h"

namespace sstferry {

// CPU seconds of the source for 1e9 bytes of its files, without TLS and without
// compression on the wire. Measured; docs/methods.md says on what.
inline constexpr double kRebuiltCpuSeconds = 3.0;  // merged and built anew
inline constexpr double kClonedCpuSeconds = 0.7;

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
  // After an attempt by PullMethod::kAuto that was refused only because a clone
  // is cheaper, for that reason.
  void set_why_clone(const std::string& why) { why_clone_ = why; }
  bool has(PullMethod method) const { return of(method).has_value(); }

  // Sets items, methods, the advice, and the estimates of entries and bytes.
  void FillSummary(Summary* summary) const;

 private:
  const std::optional<MethodSummary>& of(PullMethod method) const {
    return method == PullMethod::kClone ? clone_ : chunks_;
  }
  void FillItems(Summary* summary) const;

  std::optional<MethodSummary> chunks_;
  std::optional<MethodSummary> clone_;
  std::string why_clone_;  // auto clones, because it is cheaper; empty: no
  Plan plan_;  // of chunks; empty: none came
};

}  // namespace sstferry
