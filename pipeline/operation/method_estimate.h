// The estimates that a plan prints of both methods: bytes, CPU time at the
// source, seconds at some links, and which one is advised.
#pragma once

#include <cstdint>

#include "pipeline/target/session/plan_receiver.h"
#include "sstferry/options.h"

namespace sstferry {

// CPU seconds of the source for 1e9 bytes of its files, without TLS and without
// compression on the wire. Measured; docs/methods.md says on what.
inline constexpr double kRebuiltCpuSeconds = 3.0;  // merged and built anew
inline constexpr double kCarriedCpuSeconds = 0.4;
inline constexpr double kClonedCpuSeconds = 0.7;

// Returns what moving the planned ranges, or files, takes. A transfer lasts as
// long as the link needs for its bytes, or its lanes for the source's work.
MethodSummary EstimateChunks(const SourcePlan& plan);
MethodSummary EstimateClone(const SourcePlan& plan);

// Sets the advice by summary->methods: ingest, then clone.
void Advise(Summary* summary);

}  // namespace sstferry
