// Compares units of a clone that another source sent with what the first source
// has, on a lane of its own.
#pragma once

#include <cstdint>
#include <mutex>

#include "format/digest.h"
#include "format/message/messages.h"
#include "pipeline/target/pull/pull_context.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the context.
// Threads:   any; one unit at a time.
class UnitWitness {
 public:
  // `lane`: one that no LaneClient has.
  UnitWitness(const PullContext* context, uint32_t lane)
      : context_(context), lane_(lane) {}

  // *equal: the first source has a unit with that digest there. While that
  // source is away it waits, as its lanes do, and the error is the pull's.
  [[nodiscard]] rocksdb::Status Compare(uint32_t range_id,
                                        const Digest128& content, bool* equal);

 private:
  [[nodiscard]] rocksdb::Status Ask(uint32_t range_id, DigestReply* reply);

  const PullContext* const context_;
  const uint32_t lane_;
  std::mutex mu_;
  Channel* channel_ = nullptr;  // under mu_; null: to be opened
};

}  // namespace sstferry
