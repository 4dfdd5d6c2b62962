// The rate and the lane memory that all transfers of a server share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "pipeline/wire/token_bucket.h"

namespace sstferry {

// Ownership: outlives the transfers. Threads: any.
class ServerShares {
 public:
  // A lane that waits for less than this could not send what its target has to
  // acknowledge.
  static constexpr uint64_t kLeastLaneBytes = 2u << 20;

  // `rate` in wire bytes a second; 0: no limit. `memory_bytes` are for what
  // lanes keep until their targets acknowledge it.
  ServerShares(uint64_t rate, uint64_t memory_bytes)
      : wire_bucket_(rate), memory_bytes_(memory_bytes) {}

  TokenBucket* wire_bucket() { return &wire_bucket_; }

  void JoinLane() { ++lanes_; }
  void LeaveLane() { --lanes_; }
  // How much one of the present lanes may keep.
  uint64_t lane_bytes() const {
    return std::max(kLeastLaneBytes,
                    memory_bytes_ / std::max<uint64_t>(1, lanes_));
  }

 private:
  TokenBucket wire_bucket_;
  const uint64_t memory_bytes_;
  std::atomic<uint64_t> lanes_{0};
};

}  // namespace sstferry
