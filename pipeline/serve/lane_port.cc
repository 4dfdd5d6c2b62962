#include "pipeline/serve/lane_port.h"

namespace sstferry {

bool LanePort::Enter(Channel* channel) {
  std::unique_lock<std::mutex> lock(mu_);
  if (stopped_) {
    return false;
  }
  CloseBoth();
  newest_ = channel;
  changed_.notify_all();
  changed_.wait(lock, [this, channel] {
    return stopped_ || newest_ != channel || served_ == nullptr;
  });
  if (newest_ != channel) {
    return false;
  }
  if (stopped_) {
    newest_ = nullptr;  // the caller's channel is not used
    return false;
  }
  served_ = channel;
  return true;
}

void LanePort::Leave(const Channel* channel) {
  std::lock_guard<std::mutex> lock(mu_);
  if (newest_ == channel) {
    newest_ = nullptr;
  }
  served_ = nullptr;
  changed_.notify_all();
}

bool LanePort::replaced() const {
  std::lock_guard<std::mutex> lock(mu_);
  return newest_ != served_;
}

void LanePort::CloseBoth() {
  for (Channel* channel : {newest_, served_}) {
    if (channel != nullptr) {
      channel->Close();
    }
  }
}

void LanePort::Close() {
  std::lock_guard<std::mutex> lock(mu_);
  CloseBoth();
}

void LanePort::Stop() {
  std::lock_guard<std::mutex> lock(mu_);
  stopped_ = true;
  CloseBoth();
  changed_.notify_all();
}

}  // namespace sstferry
