// The rule by which the method of a pull is chosen. `auto` follows it, and
// `plan` says what it gives. docs/methods.md has it as a table, row by row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// The bytes that each method would move, as a source tells before data moves.
struct MethodSizes {
  uint64_t file_bytes = 0;   // tables and blob files of what is asked for
  uint64_t chunk_bytes = 0;  // estimate: the same without obsolete data
};

// The bytes of the two ways to swap a replica that is a clone.
struct SwapSizes {
  uint64_t lacking_bytes = 0;   // files of the source that are not here
  uint64_t changed_bytes = 0;   // estimate: entries that were written since
  uint64_t compared_bytes = 0;  // files that the source reads to find them
};

// An estimate of the cost of a method.
struct MethodCost {
  uint64_t bytes = 0;  // that come over the link
  double source_cpu_seconds = 0;

  // Returns the time that the link takes and the source's CPU time together.
  double Seconds(double link_bytes_per_second) const {
    return static_cast<double>(bytes) / link_bytes_per_second +
           source_cpu_seconds;
  }
};

MethodCost CostOfClone(uint64_t file_bytes);
MethodCost CostOfIngest(const MethodSizes& sizes);
// Returns that of a delta into links to the replica's files.
MethodCost CostOfDelta(const SwapSizes& sizes);

// A link of which nothing is known, and what stands for one between two
// processes of one machine: 1 and 10 Gbit/s.
inline constexpr double kAssumedLinkBytesPerSecond = 125e6;
inline constexpr double kNoLinkBytesPerSecond = 1250e6;
// A clone that would save less than that is not worth a database that is not
// compacted, and a delta that would is not worth a clone that is none any more.
inline constexpr double kLeastSavedSeconds = 0.25;

// All that the choice depends on.
struct MethodInput {
  PullMethod asked = PullMethod::kAuto;
  // TARGET_DIR is refreshed where it is.
  bool in_place = false;
  // The method of the unfinished pull that is resumed.
  std::optional<PullMethod> unfinished;
  // The method that made the replica which a swap is to replace.
  std::optional<PullMethod> replica;
  // The sizes of a swap that replaces a clone; nothing: not known.
  std::optional<SwapSizes> swap;
  // Why that swap takes no delta, whatever both cost; empty: it may.
  std::string no_delta;
  // Why neither this pull nor this database can be cloned; empty: it can.
  std::string no_clone;
  // The same of chunks; and what these would leave out.
  std::string no_chunks;
  std::string left_out;
  std::optional<MethodSizes> sizes;
  bool has_asked = false;  // the source: without sizes, it does not say
  double link_bytes_per_second = 0;  // 0: not known
};

struct MethodDecision {
  // kAuto: the source has to be asked for the sizes.
  PullMethod method = PullMethod::kAuto;
  std::string reason;  // a sentence, for Summary::method_reason
};

// Returns what the first row of the table that holds says.
MethodDecision DecideMethod(const MethodInput& input);

// Returns what the options and TARGET_DIR alone say.
MethodInput MethodInputOf(const PullOptions& options);

// Returns why a clone cannot be of the selection; empty: it can.
std::string WhyNoClone(const Selection& selection);

// Returns a cost as plans and summaries tell it.
MethodSummary DescribeMethod(PullMethod method, const MethodCost& cost);

}  // namespace sstferry
