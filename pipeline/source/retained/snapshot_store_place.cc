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

bool SnapshotStore::Place(const std::shared_ptr<Transfer>& transfer,
                          std::shared_ptr<Transfer>* evicted) {
  const bool placed = entries_.Insert(transfer, SteadySeconds(), evicted);
  if (*evicted != nullptr) {
    leaving_.insert((*evicted)->id());
  }
  return placed;
}

void SnapshotStore::Evict(std::shared_ptr<Transfer> evicted) {
  const TransferId id = evicted->id();
  if (evicted->has_lease()) {
    const std::string seconds = std::to_string(options_->snapshot_ttl.count());
    evicted->Park(
        MakeStatus(EndState::kTooSlow,
                   "the target took no byte for " +
                       std::to_string(options_->stall_timeout.count()) +
                       " ms, and another transfer needed its place"),
        "source");
    Log(LogLevel::kInfo, "gave the place of transfer " + ToHex(id) + " of " +
                             evicted->name() +
                             " to another; its snapshot is retained for " +
                             seconds + " seconds");
    evicted.reset();
    for (const std::string& path :
         leased_.RemoveAbove(options_->max_transfers)) {
      Log(LogLevel::kWarning,
          "removed " + path + ": more than " +
              std::to_string(options_->max_transfers) +
              " snapshots are retained whose targets have no place");
    }
  } else {
    Release(std::move(evicted), "another transfer needed its place");
  }
  std::lock_guard<std::mutex> lock(mu_);
  leaving_.erase(id);
  changed_.notify_all();
}

Status SnapshotStore::Add(const std::shared_ptr<Transfer>& transfer) {
  std::shared_ptr<Transfer> evicted;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (stopping_) {
      return MakeStatus(EndState::kCancelled, "the source is shutting down");
    }
    if (!queue_.empty() ||
        !Place(transfer, &evicted)) {
      return MakeStatus(EndState::kBusy,
                        "expected at most " +
                            std::to_string(options_->max_transfers) +
                            " transfers at once, which are all in use; run "
                            "the same command again later");
    }
  }
  if (evicted != nullptr) {
    Evict(std::move(evicted));
  }
  return Status::OK();
}

// A connection that another one has replaced leaves the transfer's turn to that
// one.
Status SnapshotStore::AwaitPlace(
    const std::shared_ptr<Transfer>& transfer, const Channel* control,
    const std::function<void(uint32_t ahead)>& on_ahead, bool* served) {
  uint32_t told = 0;
  std::shared_ptr<Transfer> evicted;
  *served = false;
  std::unique_lock<std::mutex> lock(mu_);
  queue_.Join(transfer, SteadySeconds());
  while (!*served && !stopping_ && !transfer->ended() &&
         queue_.Holds(*transfer) && transfer->IsControl(control)) {
    const uint32_t ahead = queue_.Ahead(*transfer);
    *served = ahead == 0 &&
              Place(transfer, &evicted);
    if (!*served && told != ahead + 1) {
      told = ahead + 1;
      lock.unlock();
      on_ahead(told);
      lock.lock();
    } else if (!*served) {
      changed_.wait_for(lock, kQueueLook);
    }
  }
  const bool replaced = !*served && !stopping_ && !transfer->ended() &&
                        !transfer->IsControl(control);
  if (!replaced) {
    queue_.Leave(*transfer);
  }
  lock.unlock();
  changed_.notify_all();
  if (evicted != nullptr) {
    Evict(std::move(evicted));
  }
  return *served || replaced
             ? Status::OK()
             : MakeStatus(EndState::kCancelled,
                          "the source is shutting down, or the target has left "
                          "the queue");
}

bool SnapshotStore::LeaveQueue(const Transfer& transfer) {
  std::lock_guard<std::mutex> lock(mu_);
  const bool waited = queue_.Leave(transfer);
  changed_.notify_all();
  return waited;
}

}  // namespace sstferry
