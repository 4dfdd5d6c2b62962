// Compares what a pull has with its source, part by part, before the target
// gets its name.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "pipeline/pull/digest_comparison.h"
#include "pipeline/pull/pull_context.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the context.
// Threads:   Run() and Compare() from one.
class PullVerifier {
 public:
  explicit PullVerifier(const PullContext* context) : context_(context) {}

  // Compares, over all lanes, all parts that Compare() did not find equal.
  // kCorrupt: parts differ, or a side's bytes are wrong; then no later run
  // resumes this one. A clone's first difference ends it.
  [[nodiscard]] rocksdb::Status Run();
  // Compares these parts over all lanes. *different: those that differ.
  [[nodiscard]] rocksdb::Status Compare(const std::vector<uint32_t>& parts,
                                        std::vector<uint32_t>* different);

 private:
  enum class Found : char { kNothing, kEqual, kDifferent };
  using OnDifference = std::function<rocksdb::Status(const ComparedPart&)>;

  [[nodiscard]] rocksdb::Status CompareParts(
      const std::vector<uint32_t>& parts, const OnDifference& on_difference);
  DigestPart PartOf(uint32_t part_id) const;
  // Returns kCorrupt with both digests.
  rocksdb::Status Different(const ComparedPart& compared) const;
  [[nodiscard]] rocksdb::Status Distrust(const rocksdb::Status& difference);

  const PullContext* const context_;
  std::vector<Found> found_;  // by part id
};

}  // namespace sstferry
