// The rule by which the method of a pull is chosen. `auto` follows it, and
// `plan` reports the result. docs/methods.md has it as a table, row by row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Bytes that each method would move, as estimated by a source before the
// transfer.
struct MethodSizes {
  uint64_t file_bytes = 0;   // tables and blob files of the selection
  uint64_t chunk_bytes = 0;  // estimate: the same, without obsolete data
};

// Bytes of the two ways to swap a replica that is a clone.
struct SwapSizes {
  uint64_t lacking_bytes = 0;   // files of the source that are missing here
  uint64_t changed_bytes = 0;   // estimate: entries written since
  // Files that the source reads to find these entries.
  uint64_t compared_bytes = 0;
};

// An estimate of the cost of a method.
struct MethodCost {
  uint64_t bytes = 0;  // sent over the link
  double source_cpu_seconds = 0;

  // Returns the sum of the time on the link and the source's CPU time.
  double Seconds(double link_bytes_per_second) const {
    return static_cast<double>(bytes) / link_bytes_per_second +
           source_cpu_seconds;
  }
};

MethodCost CostOfClone(uint64_t file_bytes);
MethodCost CostOfIngest(const MethodSizes& sizes);
// Returns the cost of sending a delta to a copy that links the replica's files.
MethodCost CostOfDelta(const SwapSizes& sizes);

// Assumed bandwidth of an unknown link, and of a connection between two
// processes of one machine: 1 and 10 Gbit/s.
inline constexpr double kAssumedLinkBytesPerSecond = 125e6;
inline constexpr double kNoLinkBytesPerSecond = 1250e6;
// Minimum saving that is worth a change. A clone that saves less is not worth a
// database that is not compacted; a delta that saves less is not worth a
// replica that is no longer a clone.
inline constexpr double kLeastSavedSeconds = 0.25;

// Everything on which the choice depends.
struct MethodInput {
  PullMethod asked = PullMethod::kAuto;
  // TARGET_DIR is refreshed in place.
  bool in_place = false;
  // Method of the unfinished pull that is resumed.
  std::optional<PullMethod> unfinished;
  // Method that made the replica that a swap will replace.
  std::optional<PullMethod> replica;
  // Sizes of a swap that replaces a clone; not set: unknown.
  std::optional<SwapSizes> swap;
  // Reason against a delta in that swap, regardless of the costs; empty: none.
  std::string no_delta;
  // Reason why this pull or this database cannot be cloned; empty: none.
  std::string no_clone;
  // Reason against chunks; empty: none. And what they would leave out.
  std::string no_chunks;
  std::string left_out;
  std::optional<MethodSizes> sizes;
  bool has_asked = false;  // without sizes, the source does not report them
  double link_bytes_per_second = 0;  // 0: unknown
};

// The chosen method, and why.
struct MethodDecision {
  // kAuto: the source must be asked for the sizes.
  PullMethod method = PullMethod::kAuto;
  std::string reason;  // a sentence, for Summary::method_reason
};

// Returns the result of the first row of the table whose condition is true.
MethodDecision DecideMethod(const MethodInput& input);

// Returns the input that follows from the options and TARGET_DIR alone.
MethodInput MethodInputOf(const PullOptions& options);

// Returns why the selection cannot be cloned; empty if it can.
std::string WhyNoClone(const Selection& selection);

// Returns a cost in the form that plans and summaries use.
MethodSummary DescribeMethod(PullMethod method, const MethodCost& cost);

}  // namespace sstferry
