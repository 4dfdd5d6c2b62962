// Compares what a pull has with its source, range by range, before the target
// gets its name.
#pragma once

#include <atomic>
#include <cstdint>
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
  // a range differs.
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
  [[nodiscard]] rocksdb::Status Distrust();

  const PullContext* const context_;
  std::vector<uint32_t> todo_;        // range ids
  bool collects_ = false;             // a difference does not end it
  std::vector<char> equal_;           // by range id
  std::atomic<bool> differs_{false};  // a range was found to be another
};

}  // namespace sstferry
