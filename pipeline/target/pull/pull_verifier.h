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

  // Over all lanes. kCorrupt: a range differs.
  [[nodiscard]] rocksdb::Status Run();

 private:
  void RunLane(uint32_t lane, std::atomic<size_t>* next);
  [[nodiscard]] rocksdb::Status CompareRange(Channel* channel,
                                             const Range& range,
                                             std::optional<DigestReply>* ours);
  [[nodiscard]] rocksdb::Status Distrust();

  const PullContext* const context_;
  std::vector<char> equal_;           // by range id
  std::atomic<bool> differs_{false};  // a range was found to be another
};

}  // namespace sstferry
