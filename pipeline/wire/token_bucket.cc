#include "pipeline/wire/token_bucket.h"

#include <algorithm>
#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr double kBucketSeconds = 0.1;
constexpr std::chrono::microseconds kLongestRateSleep{1'000'000};
// While a test's clock is used, it is read at this interval.
constexpr std::chrono::microseconds kForeignClockSleep{500};

}  // namespace

TokenBucket::TokenBucket(uint64_t bytes_per_sec,
                         std::function<TimePoint()> now)
    : now_(std::move(now)), bytes_per_sec_(bytes_per_sec) {
  last_refill_ = Now();
}

TokenBucket::TimePoint TokenBucket::Now() const {
  return now_ ? now_() : std::chrono::steady_clock::now();
}

void TokenBucket::Refill() {
  const TimePoint now = Now();
  const double seconds =
      std::chrono::duration<double>(now - last_refill_).count();
  last_refill_ = now;
  const double rate = static_cast<double>(bytes_per_sec_);
  tokens_ = std::min(tokens_ + seconds * rate, rate * kBucketSeconds);
}

std::chrono::microseconds TokenBucket::WaitFor(double bytes) const {
  if (bytes_per_sec_ == 0) {
    return std::chrono::microseconds::zero();
  }
  const double rate = static_cast<double>(bytes_per_sec_);
  const double missing = std::min(bytes, rate * kBucketSeconds) - tokens_;
  // Rounds up. A missing amount that takes less than 0.001 microseconds is a
  // rounding error and becomes 0.
  const double micros = std::max(0.0, missing) / rate * 1e6;
  return std::chrono::microseconds(static_cast<int64_t>(micros + 0.999));
}

Status TokenBucket::Take(uint64_t bytes) {
  std::unique_lock<std::mutex> lock(mu_);
  const uint64_t ticket = next_ticket_++;
  queued_bytes_ += bytes;
  changed_.wait(lock, [&] { return ticket == serving_; });
  while (!closed_) {
    Refill();
    const std::chrono::microseconds wait =
        WaitFor(static_cast<double>(bytes));
    if (wait <= std::chrono::microseconds::zero()) {
      break;
    }
    changed_.wait_for(
        lock, std::min(wait, now_ ? kForeignClockSleep : kLongestRateSleep));
  }
  if (!closed_ && bytes_per_sec_ != 0) {
    tokens_ -= static_cast<double>(bytes);
  }
  queued_bytes_ -= bytes;
  ++serving_;
  const bool closed = closed_;
  lock.unlock();
  changed_.notify_all();
  return closed ? MakeStatus(EndState::kCancelled, "rate limit: closed")
                : Status::OK();
}

std::chrono::microseconds TokenBucket::DelayFor(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mu_);
  if (closed_ || bytes_per_sec_ == 0) {
    return std::chrono::microseconds::zero();
  }
  Refill();
  const double rate = static_cast<double>(bytes_per_sec_);
  const double before = static_cast<double>(queued_bytes_);
  return WaitFor(static_cast<double>(bytes)) +
         std::chrono::microseconds(static_cast<int64_t>(before / rate * 1e6));
}

void TokenBucket::SetRate(uint64_t bytes_per_sec) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    Refill();
    bytes_per_sec_ = bytes_per_sec;
    if (bytes_per_sec == 0) {
      tokens_ = 0;
    }
  }
  changed_.notify_all();
}

uint64_t TokenBucket::bytes_per_sec() const {
  std::lock_guard<std::mutex> lock(mu_);
  return bytes_per_sec_;
}

void TokenBucket::Close() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace sstferry
