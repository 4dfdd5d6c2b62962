// How fast a transfer sends, and whether it compresses. Its target may change
// both while the transfer runs.
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

// Rate limits and compression of one transfer. Threads: any.
class TransferPace {
 public:
  // Borrows `shares`. `database_dir` is empty if the database is open in this
  // process.
  TransferPace(ServerShares* shares, const std::string& database_dir)
      : shares_(shares),
        rate_bucket_(0),
        hold_back_(std::make_shared<HoldBack>(WatchUserOf(database_dir))) {}

  // Sets rate limit, throttling and compression as the request wants. Does not
  // compress if the target's Hello does not allow it.
  void Set(const OpenRequest& request, const Hello& target);
  // Wakes all threads that wait for the rate limit or sleep because the
  // transfer is slowed down.
  void Close() {
    rate_bucket_.Close();
    hold_back_->Close();
  }

  ServerShares* shares() { return shares_; }
  TokenBucket* rate_bucket() { return &rate_bucket_; }
  // Slows down the transfer's threads while the source's application waits. It
  // is shared, because threads that build chunks for several transfers may
  // outlive this transfer.
  const std::shared_ptr<HoldBack>& hold_back() { return hold_back_; }
  // Blocks until the server's rate limit allows to send `bytes` bytes. All
  // transfers share this limit and take turns in small pieces. Each transfer
  // gets the same share, however many lanes it has.
  [[nodiscard]] rocksdb::Status TakeFromAll(uint64_t bytes);
  WireCompression compression() const { return compression_; }
  int compression_level() const { return compression_level_; }
  // Returns true if lanes compress at present.
  bool compressing() const {
    return compressing_.load(std::memory_order_relaxed);
  }
  void set_compressing(bool on) { compressing_ = on; }

 private:
  ServerShares* const shares_;
  TokenBucket rate_bucket_;
  const std::shared_ptr<HoldBack> hold_back_;
  std::mutex turn_mu_;  // locked by the lane that waits in TakeFromAll()
  std::atomic<WireCompression> compression_{WireCompression::kNone};
  std::atomic<int> compression_level_{0};
  std::atomic<bool> compressing_{false};
};

}  // namespace sstferry
