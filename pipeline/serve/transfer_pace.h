// Rate limit and compression of a transfer, which its target may change.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "format/messages.h"
#include "pipeline/serve/hold_back.h"
#include "pipeline/serve/server_shares.h"
#include "pipeline/wire/token_bucket.h"

namespace sstferry {

// Settings of the transfer's sends. Threads: any.
class TransferPace {
 public:
  // Borrows `shares`. `database_dir` is empty for an application's own
  // database.
  TransferPace(ServerShares* shares, const std::string& database_dir)
      : shares_(shares),
        rate_bucket_(0),
        hold_back_(std::make_shared<HoldBack>(WatchUserOf(database_dir))) {}

  // Applies a request, as far as the target's Hello allows.
  void Set(const OpenRequest& request, const Hello& target);
  // Wakes all threads that wait for the rate limit or are throttled.
  void Close() {
    rate_bucket_.Close();
    hold_back_->Close();
  }

  ServerShares* shares() { return shares_; }
  TokenBucket* rate_bucket() { return &rate_bucket_; }
  // Throttles the transfer's threads for the source's application. Shared,
  // because the building of chunks for several transfers may outlive this one.
  const std::shared_ptr<HoldBack>& hold_back() { return hold_back_; }
  // Blocks until `bytes` may be sent under the limit for all transfers
  // together. The transfers take turns in small pieces, so that each one gets
  // the same share of the rate, regardless of its number of lanes.
  [[nodiscard]] rocksdb::Status TakeFromAll(uint64_t bytes);
  WireCompression compression() const { return compression_; }
  int compression_level() const { return compression_level_; }
  // Returns true if lanes compress now.
  bool compressing() const {
    return compressing_.load(std::memory_order_relaxed);
  }
  void set_compressing(bool on) { compressing_ = on; }

 private:
  ServerShares* const shares_;
  TokenBucket rate_bucket_;
  const std::shared_ptr<HoldBack> hold_back_;
  std::mutex turn_mu_;  // held by the lane that waits for the common rate
  std::atomic<WireCompression> compression_{WireCompression::kNone};
  std::atomic<int> compression_level_{0};
  std::atomic<bool> compressing_{false};
};

}  // namespace sstferry
