#include "pipeline/serve/lane_port.h"

namespace sstferry {

LanePort::Role LanePort::Enter(Channel* channel) {
  std::unique_lock<std::mutex> lock(mu_);
  if (stopped_) {
    return Role::kLeave;
  }
  if (newest_ != nullptr) {
    newest_->Close();
  }
  newest_ = channel;
  changed_.notify_all();
  changed_.wait(lock, [this, channel] {
    return used_ != channel &&
           (stopped_ || newest_ != channel || !serving_);
  });
  if (stopped_ || newest_ != channel) {
    return Role::kLeave;
  }
  serving_ = true;
  interrupted_ = false;
  used_ = channel;
  return Role::kServe;
}

void LanePort::Leave() {
  std::lock_guard<std::mutex> lock(mu_);
  if (newest_ == used_) {
    newest_ = nullptr;
  }
  used_ = nullptr;
  serving_ = false;
  changed_.notify_all();
}

Channel* LanePort::AwaitNext(const Channel* lost) {
  std::unique_lock<std::mutex> lock(mu_);
  if (newest_ == lost) {
    newest_ = nullptr;
  }
  used_ = nullptr;
  parked_since_ = Clock::now();
  changed_.notify_all();
  changed_.wait(lock, [this] {
    return stopped_ || interrupted_ || newest_ != nullptr;
  });
  parked_since_.reset();
  used_ = stopped_ || interrupted_ ? nullptr : newest_;
  return used_;
}

bool LanePort::replaced() const {
  std::lock_guard<std::mutex> lock(mu_);
  return newest_ != used_;
}

void LanePort::CloseBoth() {
  for (Channel* channel : {newest_, used_}) {
    if (channel != nullptr) {
      channel->Close();
    }
  }
  changed_.notify_all();
}

void LanePort::EndIdle(std::chrono::milliseconds grace) {
  std::lock_guard<std::mutex> lock(mu_);
  const Clock::time_point before = Clock::now() - grace;
  if (parked_since_.has_value() && *parked_since_ <= before) {
    interrupted_ = true;
    changed_.notify_all();
  }
  if (used_ != nullptr &&
      used_->last_received_micros() <=
          std::chrono::duration_cast<std::chrono::microseconds>(
              before.time_since_epoch())
              .count()) {
    used_->Close();
  }
}

void LanePort::Interrupt() {
  std::lock_guard<std::mutex> lock(mu_);
  interrupted_ = true;
  CloseBoth();
}

void LanePort::Stop() {
  std::lock_guard<std::mutex> lock(mu_);
  stopped_ = true;
  interrupted_ = true;
  CloseBoth();
}

}  // namespace sstferry
