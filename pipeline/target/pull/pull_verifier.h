// Compares what a pull has with its source, range by range, before the target
// gets its name.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/target/pull/pull_context.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the context.
// Threads:   Run() from one, once.
class PullVerifier {
 public:
  explicit PullVerifier(const PullContext* context) : context_(context) {}

  // Over all lanes, of all ranges that Compare() did not find equal. kCorrupt:
  // ranges differ; the result of the report lists them. A clone's first
  // difference ends it.
  [[nodiscard]] rocksdb::Status Run();
  // Over all lanes: which of these ranges differ.
  [[nodiscard]] rocksdb::Status Compare(const std::vector<uint32_t>& ranges,
                                        std::vector<uint32_t>* different);

 private:
  [[nodiscard]] rocksdb::Status RunLanes();
  void RunLane(uint32_t lane, std::atomic<size_t>* next);
  // *difference: OK, or kCorrupt with both digests.
  [[nodiscard]] rocksdb::Status CompareRange(Channel* channel,
                                             const Range& range,
                                             std::optional<DigestReply>* ours,
                                             rocksdb::Status* difference);
  [[nodiscard]] rocksdb::Status AskFor(Channel* channel, const Range& range);
  rocksdb::Status Different(const Range& range, const DigestReply& ours,
                            const DigestReply& theirs) const;
  // Records a difference. Returns what the lane ends with, if it does.
  [[nodiscard]] rocksdb::Status TakeDifference(
      const Range& range, const rocksdb::Status& difference);
  void ListDifferent();
  [[nodiscard]] rocksdb::Status Distrust();

  enum class Found : char { kNothing, kEqual, kDifferent };

  const PullContext* const context_;
  std::vector<uint32_t> todo_;  // range ids
  bool collects_ = false;       // a difference does not fail it
  std::vector<Found> found_;    // by range id
  std::mutex mu_;
  std::optional<uint32_t> first_;    // under mu_: the first range that differs
  rocksdb::Status first_difference_;  // the same
};

}  // namespace sstferry
