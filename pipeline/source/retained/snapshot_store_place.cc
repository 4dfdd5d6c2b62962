// The parts of SnapshotStore that give a transfer its place.
#include <algorithm>
#include <chrono>
#include <utility>

#include "pipeline/source/retained/snapshot_store.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Nobody tells when a transfer may give its place up because it is idle.
constexpr std::chrono::milliseconds kQueueLook{500};

}  // namespace

Status SnapshotStore::Add(const std::shared_ptr<Transfer>& transfer) {
  std::shared_ptr<Transfer> evicted;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (stopping_) {
      return MakeStatus(EndState::kCancelled, "the source is shutting down");
    }
    if (!queue_.empty() ||
        !entries_.Insert(transfer, SteadySeconds(), &evicted)) {
      return MakeStatus(EndState::kBusy,
                        "expected at most " +
                            std::to_string(options_->max_transfers) +
                            " transfers at once, which are all in use; run "
                            "the same command again later");
    }
  }
  if (evicted != nullptr) {
    Release(std::move(evicted), "another transfer needed its place");
  }
  return Status::OK();
}

Status SnapshotStore::AwaitPlace(
    const std::shared_ptr<Transfer>& transfer,
    const std::function<void(uint32_t ahead)>& on_ahead) {
  uint64_t told = 0;
  bool inserted = false;
  std::shared_ptr<Transfer> evicted;
  std::unique_lock<std::mutex> lock(mu_);
  queue_.push_back(transfer.get());
  while (!inserted && !stopping_ && !transfer->ended()) {
    const uint64_t ahead = static_cast<uint64_t>(
        std::find(queue_.begin(), queue_.end(), transfer.get()) -
        queue_.begin());
    inserted = ahead == 0 &&
               entries_.Insert(transfer, SteadySeconds(), &evicted);
    if (!inserted && told != ahead + 1) {
      told = ahead + 1;
      lock.unlock();
      on_ahead(static_cast<uint32_t>(told));
      lock.lock();
    } else if (!inserted) {
      changed_.wait_for(lock, kQueueLook);
    }
  }
  queue_.erase(std::find(queue_.begin(), queue_.end(), transfer.get()));
  lock.unlock();
  changed_.notify_all();
  if (evicted != nullptr) {
    Release(std::move(evicted), "another transfer needed its place");
  }
  return inserted ? Status::OK()
                  : MakeStatus(EndState::kCancelled,
                               "the source is shutting down, or the target "
                               "has left the queue");
}

}  // namespace sstferry
