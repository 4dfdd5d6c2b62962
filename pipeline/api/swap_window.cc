#include "pipeline/api/swap_window.h"

#include <chrono>
#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// How often a waiting swap checks whether it was stopped.
constexpr std::chrono::milliseconds kStopPoll{100};

}  // namespace

Status SwapWindow::Run(const SwapHook& hook, SwapEvent event) {
  event.target_dir = target_dir_;
  const std::lock_guard<std::mutex> lock(hook_mu_);
  return hook ? hook(event) : Status::OK();
}

Status SwapWindow::Before(const SwapEvent& event) {
  std::unique_lock<std::mutex> lock(mu_);
  --to_come_;
  ++inside_;
  changed_.notify_all();
  lock.unlock();
  waits_();
  lock.lock();
  while (!has_begun_ && to_come_ > 0) {
    changed_.wait_for(lock, kStopPoll);
    if (!has_begun_ && event.stopped && event.stopped()) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
  }
  if (!has_begun_) {
    has_begun_ = true;
    lock.unlock();
    const Status status = Run(before_, event);
    lock.lock();
    before_status_ = status;
    is_open_ = true;
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return is_open_; });
  return before_status_;
}

Status SwapWindow::After(const SwapEvent& event) {
  std::unique_lock<std::mutex> lock(mu_);
  --inside_;
  exchanged_ = exchanged_ || event.exchanged;
  changed_.notify_all();
  if (!has_begun_) {
    return Status::OK();  // this swap was stopped before the `before` hook
  }
  if (inside_ > 0) {
    changed_.wait(lock, [this] { return is_closed_; });
    return after_status_;
  }
  SwapEvent of_all = event;
  of_all.exchanged = exchanged_;
  lock.unlock();
  const Status status = Run(after_, of_all);
  lock.lock();
  after_status_ = status;
  is_closed_ = true;
  changed_.notify_all();
  return status;
}

Status SwapWindow::AfterEarlier(const SwapEvent& event) {
  return Run(after_, event);
}

void SwapWindow::EndedWithout() {
  const std::lock_guard<std::mutex> lock(mu_);
  --to_come_;
  changed_.notify_all();
}

}  // namespace sstferry
