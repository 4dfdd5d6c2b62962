// How fast a transfer sends, and how small: what its target may ask for anew.
#pragma once

#include <atomic>

#include "format/message/messages.h"
#include "pipeline/wire/token_bucket.h"

namespace sstferry {

// Threads: any.
class TransferPace {
 public:
  // `wire_bucket`: of all transfers of a server; borrowed, null: no limit.
  explicit TransferPace(TokenBucket* wire_bucket)
      : wire_bucket_(wire_bucket), rate_bucket_(0) {}

  // As far as the Hello of the target allows it.
  void Set(const OpenRequest& request, const Hello& target);
  // Ends all waiting for the rate.
  void Close() { rate_bucket_.Close(); }

  TokenBucket* rate_bucket() { return &rate_bucket_; }
  TokenBucket* wire_bucket() { return wire_bucket_; }
  WireCompression compression() const { return compression_; }
  int compression_level() const { return compression_level_; }
  // Whether lanes compress now.
  bool compressing() const {
    return compressing_.load(std::memory_order_relaxed);
  }
  void set_compressing(bool on) { compressing_ = on; }

 private:
  TokenBucket* const wire_bucket_;
  TokenBucket rate_bucket_;
  std::atomic<WireCompression> compression_{WireCompression::kNone};
  std::atomic<int> compression_level_{0};
  std::atomic<bool> compressing_{false};
};

}  // namespace sstferry
