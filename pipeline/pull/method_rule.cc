#include "pipeline/pull/method_rule.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "pipeline/base/last_transfer.h"
#include "pipeline/pull/target_state.h"
#include "rocksdb/db.h"

namespace sstferry {
namespace {

constexpr double kGigabyte = 1e9;

// CPU seconds of the source per 1e9 bytes, without TLS and without compression
// on the wire, from benchmarks/RESULTS.md. For a clone it reads its files:
// "live" 0.41 and "live, 10 GB" 0.28. For chunks it reads and merges its files
// and builds chunks of the live data: "live, 10 GB" took 33.0 CPU seconds for
// 9.59 GB of files and 8.09 GB of chunks, and "What obsolete data costs the
// source" shows how to divide them.
constexpr double kClonedCpuSeconds = 0.4;
constexpr double kMergedCpuSeconds = 2.0;
constexpr double kBuiltCpuSeconds = 1.7;
// The same if both sides compare all their data: "1 % at random, 0.5 % deleted,
// 0.5 % new, compacted" in "Small changes against a full refresh", where half
// of the CPU time is the source's. For unchanged data, 0.35 % of the bytes are
// sent as digests; for each changed entry, marks of its neighbours are sent,
// too: 10.5 MB were sent for 582 MB, of which 5.8 MB had changed ("What a clone
// sends each night").
constexpr double kComparedCpuSeconds = 1.0;
constexpr double kComparedShare = 0.0035;
constexpr double kChangedTimes = 1.5;

std::string Text(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string Bytes(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  return value >= kGigabyte ? Text("%.2f GB", value / kGigabyte)
                            : Text("%.1f MB", value / 1e6);
}

double LinkOf(const MethodInput& input) {
  return input.link_bytes_per_second > 0 ? input.link_bytes_per_second
                                         : kAssumedLinkBytesPerSecond;
}

std::string Seconds(double seconds) {
  return Text(seconds < 10 ? "%.2f s" : "%.1f s", seconds);
}

// Returns for example "10.1 s with 1.20 GB and 0.48 s of the source's CPU".
std::string CostText(const MethodCost& cost, double link) {
  return Seconds(cost.Seconds(link)) + " with " + Bytes(cost.bytes) + " and " +
         Seconds(cost.source_cpu_seconds) + " of the source's CPU";
}

// Returns for example "at 1 Gbit/s (assumed)".
std::string LinkText(const MethodInput& input) {
  return input.link_bytes_per_second == kNoLinkBytesPerSecond
             ? "on one machine"
             : "at " + Text("%.3g Gbit/s", LinkOf(input) * 8 / 1e9) +
                   (input.link_bytes_per_second > 0 ? "" : " (assumed)");
}

// Returns the costs of both methods, and the link.
std::string CostsText(const MethodInput& input) {
  const double link = LinkOf(input);
  return ": clone " + CostText(CostOfClone(input.sizes->file_bytes), link) +
         ", chunks " + CostText(CostOfIngest(*input.sizes), link) + ", " +
         LinkText(input);
}

// Returns the costs of the two ways to swap a clone.
std::string SwapCostsText(const MethodInput& input) {
  const double link = LinkOf(input);
  return ": files " +
         CostText(CostOfClone(input.swap->lacking_bytes), link) + ", delta " +
         CostText(CostOfDelta(*input.swap), link) + ", " + LinkText(input);
}

// Returns for example "about 60 % of the files is obsolete".
std::string ObsoleteText(const MethodSizes& sizes) {
  const double live = static_cast<double>(sizes.chunk_bytes) /
                      std::max(1.0, static_cast<double>(sizes.file_bytes));
  return Text("about %.0f %% of the files is obsolete", 100 * (1 - live));
}

// Chooses the cheaper method. REQUIRES: the sizes are known.
MethodDecision DecideByCost(const MethodInput& input) {
  const MethodSizes& sizes = *input.sizes;
  const double link = LinkOf(input);
  const double saved = CostOfIngest(sizes).Seconds(link) -
                       CostOfClone(sizes.file_bytes).Seconds(link);
  if (saved < 0) {
    return {PullMethod::kIngest,
            "auto: chunks cost less, since " + ObsoleteText(sizes) +
                CostsText(input)};
  }
  if (saved < kLeastSavedSeconds) {
    return {PullMethod::kIngest,
            "auto: chunks give a compacted database, and a clone would save " +
                Text("less than %.2f s", kLeastSavedSeconds) +
                CostsText(input)};
  }
  return {PullMethod::kClone, "auto: a clone costs less" + CostsText(input)};
}

// Returns true if the swap of a clone should send a delta. REQUIRES: the sizes
// are known.
bool DeltaCostsLess(const MethodInput& input) {
  const double link = LinkOf(input);
  return CostOfClone(input.swap->lacking_bytes).Seconds(link) -
             CostOfDelta(*input.swap).Seconds(link) >=
         kLeastSavedSeconds;
}

bool HasDefault(const Selection& selection) {
  return selection.families.empty() ||
         std::find(selection.families.begin(), selection.families.end(),
                   rocksdb::kDefaultColumnFamilyName) !=
             selection.families.end();
}

std::optional<PullMethod> MethodOfReplica(const PullOptions& options) {
  LastTransfer last;
  if (!IsSwap(options) || !ReadLastTransfer(options.target_dir, &last)) {
    return std::nullopt;
  }
  return last.method == "clone"    ? std::optional(PullMethod::kClone)
         : last.method == "ingest" ? std::optional(PullMethod::kIngest)
                                   : std::nullopt;
}

double LinkOf(const PullOptions& options) {
  const SourceAddress& source = options.source;
  const bool same_machine =
      source.is_directory() || source.host.starts_with('/');
  const double limit = static_cast<double>(options.max_rate_bytes_per_sec);
  if (!same_machine) {
    return limit;
  }
  return limit > 0 ? std::min(limit, kNoLinkBytesPerSecond)
                   : kNoLinkBytesPerSecond;
}

}  // namespace

MethodCost CostOfClone(uint64_t file_bytes) {
  return {file_bytes,
          static_cast<double>(file_bytes) * kClonedCpuSeconds / kGigabyte};
}

MethodCost CostOfIngest(const MethodSizes& sizes) {
  return {sizes.chunk_bytes,
          (static_cast<double>(sizes.file_bytes) * kMergedCpuSeconds +
           static_cast<double>(sizes.chunk_bytes) * kBuiltCpuSeconds) /
              kGigabyte};
}

MethodCost CostOfDelta(const SwapSizes& sizes) {
  const auto compared = static_cast<double>(sizes.compared_bytes);
  const auto changed = static_cast<double>(sizes.changed_bytes);
  return {static_cast<uint64_t>(compared * kComparedShare +
                                changed * kChangedTimes),
          (compared * kComparedCpuSeconds + changed * kBuiltCpuSeconds) /
              kGigabyte};
}

// Each condition is a row of the table in docs/methods.md, in the same order.
MethodDecision DecideMethod(const MethodInput& input) {
  if (input.in_place) {
    return {PullMethod::kIngest, "a refresh in place"};
  }
  if (input.asked != PullMethod::kAuto) {
    return {input.asked, "asked for"};
  }
  if (!input.no_clone.empty()) {
    return {PullMethod::kIngest, "auto: " + input.no_clone};
  }
  if (!input.no_chunks.empty()) {
    return {PullMethod::kClone, "auto: " + input.no_chunks};
  }
  if (!input.left_out.empty()) {
    return {PullMethod::kClone, "auto: " + input.left_out};
  }
  if (input.unfinished.has_value()) {
    return {*input.unfinished, "auto: the unfinished pull uses this method"};
  }
  if (input.replica == PullMethod::kClone && input.swap.has_value() &&
      DeltaCostsLess(input)) {
    return {PullMethod::kIngest,
            "auto: the replica is a clone, but sending what changed costs less "
            "than sending the files that it does not have" +
                SwapCostsText(input)};
  }
  if (input.replica == PullMethod::kClone) {
    return {PullMethod::kClone,
            "auto: the replica is a clone and remains one: a swap sends only "
            "the files that it does not have"};
  }
  if (input.replica == PullMethod::kIngest) {
    return {PullMethod::kIngest,
            "auto: the replica was built from chunks and remains so"};
  }
  if (input.sizes.has_value()) {
    return DecideByCost(input);
  }
  return input.has_asked
             ? MethodDecision{PullMethod::kIngest,
                              "auto: the source does not say what a clone "
                              "would cost"}
             : MethodDecision();
}

std::string WhyNoClone(const Selection& selection) {
  if (!(selection.interval == KeyInterval())) {
    return "a clone contains all keys of its column families (no --begin, "
           "--end)";
  }
  if (!HasDefault(selection)) {
    return "a clone must contain the column family 'default', which RocksDB "
           "cannot drop (add --cf default)";
  }
  return "";
}

MethodInput MethodInputOf(const PullOptions& options) {
  MethodInput input;
  std::error_code error;
  input.asked = options.method;
  input.in_place = options.mode == PullMode::kRefresh &&
                   std::filesystem::is_directory(options.target_dir, error) &&
                   !std::filesystem::is_empty(options.target_dir, error);
  input.no_clone = WhyNoClone(options.selection);
  if (input.no_clone.empty() && options.mode == PullMode::kRefresh) {
    input.no_clone =
        "a refresh in place never clones: sstferry swap does, and needs "
        "neither comparator nor operator of the application";
  }
  if (options.source.is_archive() && input.no_clone.empty()) {
    input.no_chunks = "an archive holds files";
  }
  if (!options.restart) {
    input.unfinished = UnfinishedMethod(options.target_dir);
  }
  input.replica = MethodOfReplica(options);
  input.link_bytes_per_second = LinkOf(options);
  return input;
}

MethodSummary DescribeMethod(PullMethod method, const MethodCost& cost) {
  MethodSummary summary;
  summary.method = method == PullMethod::kClone ? "clone" : "ingest";
  summary.bytes = cost.bytes;
  summary.source_cpu_seconds = cost.source_cpu_seconds;
  for (const uint32_t gigabits : {1u, 10u}) {
    summary.seconds[gigabits] = cost.Seconds(gigabits * 1e9 / 8);
  }
  return summary;
}

}  // namespace sstferry
