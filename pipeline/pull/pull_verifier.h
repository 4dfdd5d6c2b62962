// Compares the data that a pull received with its source, part by part, before
// the target gets its name.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "pipeline/pull/digest_comparison.h"
#include "format/plan.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compares the data of one pull.
//
// Ownership: borrows its arguments.
// Threads:   Run() and Compare() from one thread.
class PullVerifier {
 public:
  PullVerifier(const Plan* plan, LaneShared* lanes, SourceLink* link,
               FirstFailure* failure, PullReporter* report, PullTarget* target)
      : plan_(plan),
        lanes_(lanes),
        link_(link),
        failure_(failure),
        report_(report),
        target_(target) {}

  // Compares all parts with the source's over all lanes, except the parts of
  // linked files that Compare() found equal. Sets *difference to a description
  // of the first difference, or to OK if all parts are equal. For a clone, the
  // comparison ends at the first difference.
  //   kCorrupt  parts differ, or the bytes of a side are wrong; no later run
  //             may resume this pull
  [[nodiscard]] rocksdb::Status Run(rocksdb::Status* difference);
  // Compares `parts` with the source's over all lanes. Adds the parts that
  // differ to *different.
  [[nodiscard]] rocksdb::Status Compare(const std::vector<uint32_t>& parts,
                                        std::vector<uint32_t>* different);

 private:
  enum class Found : char { kNothing, kEqual, kDifferent };
  using OnDifference = std::function<rocksdb::Status(const ComparedPart&)>;

  [[nodiscard]] rocksdb::Status CompareParts(
      const std::vector<uint32_t>& parts, const OnDifference& on_difference);
  // Returns true if Compare() found the part equal, and the target still has
  // the bytes that were compared. If one unit of a linked file differs, the
  // target receives all units of the file again, so earlier results for this
  // file do not count.
  bool IsProven(uint32_t part_id) const {
    return found_[part_id] == Found::kEqual && lanes_->clone != nullptr &&
           lanes_->clone->IsReused(part_id);
  }
  DigestPart PartOf(uint32_t part_id) const;
  // Returns kCorrupt with both digests of the part.
  rocksdb::Status Different(const ComparedPart& compared) const;

  const Plan* const plan_;
  LaneShared* const lanes_;
  SourceLink* const link_;
  FirstFailure* const failure_;
  PullReporter* const report_;
  PullTarget* const target_;
  std::vector<Found> found_;  // by part id
};

}  // namespace sstferry
