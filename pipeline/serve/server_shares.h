// All transfers of a server share its rate, its memory, and the budget of
// its chunk caches.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "pipeline/parts/chunk_cache.h"
#include "pipeline/wire/token_bucket.h"

namespace sstferry {

// Ownership: outlives the transfers. Threads: any.
class ServerShares {
 public:
  // A lane that waits for less than this could not send what its target has to
  // acknowledge.
  static constexpr uint64_t kLeastLaneBytes = 2u << 20;
  // Of what targets remember and the server has not planned by yet.
  static constexpr uint64_t kMaxTargetBytes = 256u << 20;

  // `rate` in wire bytes a second; 0: no limit. `memory_bytes` are for what
  // lanes keep until their targets acknowledge it; `chunk_cache_bytes` and a
  // quarter of the descriptors for chunks of several targets.
  ServerShares(uint64_t rate, uint64_t memory_bytes,
               uint64_t chunk_cache_bytes = 0)
      : wire_bucket_(rate),
        memory_bytes_(memory_bytes),
        chunk_budget_(std::make_shared<ChunkBudget>(chunk_cache_bytes,
                                                    QuarterOfDescriptors())) {}

  TokenBucket* wire_bucket() { return &wire_bucket_; }
  const std::shared_ptr<ChunkBudget>& chunk_budget() { return chunk_budget_; }

  // Counts a part of what a target remembers, until GiveBackTargetBytes().
  // False: the targets together have told as much as the server keeps.
  bool TakeTargetBytes(uint64_t bytes) {
    if ((target_bytes_ += bytes) <= kMaxTargetBytes) {
      return true;
    }
    target_bytes_ -= bytes;
    return false;
  }
  void GiveBackTargetBytes(uint64_t bytes) { target_bytes_ -= bytes; }

  void JoinLane() { ++lanes_; }
  void LeaveLane() { --lanes_; }
  // How much one of the present lanes may keep.
  uint64_t lane_bytes() const {
    return std::max(kLeastLaneBytes,
                    memory_bytes_ / std::max<uint64_t>(1, lanes_));
  }

 private:
  static uint64_t QuarterOfDescriptors() {
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
  }

  TokenBucket wire_bucket_;
  const uint64_t memory_bytes_;
  const std::shared_ptr<ChunkBudget> chunk_budget_;
  std::atomic<uint64_t> target_bytes_{0};
  std::atomic<uint64_t> lanes_{0};
};

}  // namespace sstferry
