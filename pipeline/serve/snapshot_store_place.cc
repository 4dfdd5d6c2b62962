// The functions of SnapshotStore that give slots to transfers.
#include <algorithm>
#include <chrono>
#include <utility>

#include "pipeline/base/duration.h"
#include "pipeline/serve/snapshot_store.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// A target may ask again this much later than it was told.
constexpr uint64_t kLateSeconds = 10;
// If two targets ask for a database within this time, they could share a
// snapshot.
constexpr uint64_t kTogetherSeconds = 60;
constexpr size_t kMostTakers = 1000;

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
    evicted->Park(
        MakeStatus(EndState::kTooSlow,
                   "the target accepted no data for " +
                       FormatDuration(options_->timeouts.stall) +
                       ", and another transfer needed its slot"),
        "source");
    Log(LogLevel::kInfo, "gave the slot of transfer " + ToHex(id) + " of " +
                             evicted->name() +
                             " to another transfer; its snapshot is retained "
                             "for " + FormatDuration(options_->snapshot_ttl));
    evicted.reset();
    for (const std::string& path :
         leased_.RemoveAbove(options_->max_transfers)) {
      Log(LogLevel::kWarning,
          "removed " + path + ": more than " +
              std::to_string(options_->max_transfers) +
              " snapshots of targets without a slot are retained");
    }
  } else {
    Release(std::move(evicted), "another transfer needed its slot");
  }
  std::lock_guard<std::mutex> lock(mu_);
  leaving_.erase(id);
  changed_.notify_all();
}

std::string SnapshotStore::CountTaker(const Transfer& transfer) {
  const OpenRequest& request = transfer.request();
  if (request.purpose != Purpose::kPull ||
      request.snapshot_use != SnapshotUse::kNew ||
      options_->share_snapshots.count() == 0) {
    return "";
  }
  const uint64_t now = SteadySeconds();
  const auto is_past = [now](uint64_t time) {
    return now - std::min(now, time) >= kTogetherSeconds;
  };
  for (auto& [database, takers] : own_takers_) {
    std::erase_if(takers, [&](const auto& one) { return is_past(one.second); });
  }
  std::erase_if(own_takers_,
                [](const auto& one) { return one.second.empty(); });
  std::erase_if(told_to_share_,
                [&](const auto& one) { return is_past(one.second); });
  std::map<std::string, uint64_t>& takers = own_takers_[transfer.name()];
  if (takers.size() < kMostTakers) {
    takers[request.target.empty() ? transfer.peer() : request.target] = now;
  }
  if (takers.size() < 2 || told_to_share_.contains(transfer.name())) {
    return "";
  }
  told_to_share_[transfer.name()] = now;
  return std::to_string(takers.size()) + " targets pull " + transfer.name() +
         " within " + std::to_string(kTogetherSeconds) +
         " s, each from its own snapshot; with --snapshot latest they share "
         "one snapshot and the chunks built from it";
}

// If there is no free slot for a pull that shares a snapshot, keeps the
// snapshot. The pull then finds it when it asks again, even if all other
// transfers have ended.
Status SnapshotStore::Add(const std::shared_ptr<Transfer>& transfer,
                          std::chrono::milliseconds* retry_after) {
  std::shared_ptr<Transfer> evicted;
  std::string could_share;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (stopping_) {
      return MakeStatus(EndState::kCancelled, "the source is shutting down");
    }
    if (!Place(transfer, &evicted)) {
      const Clock::time_point now = Clock::now();
      *retry_after = returns_.Next(entries_.Uses(now), now);
      // Does not keep an adopted snapshot. It has a lease, and the next attempt
      // can adopt it only if nobody uses it.
      if (transfer->request().snapshot_use == SnapshotUse::kLatest &&
          transfer->shared()->adopted() == nullptr &&
          options_->share_snapshots.count() > 0) {
        windows_.Keep(transfer->shared(),
                      SteadySeconds() + kLateSeconds +
                          static_cast<uint64_t>(retry_after->count()) / 1000);
      }
      return MakeStatus(EndState::kBusy,
                        "all " + std::to_string(options_->max_transfers) +
                            " transfer slots are in use; ask again in " +
                            FormatDuration(*retry_after));
    }
    // A snapshot of files that were pinned earlier gets no position in the
    // order.
    if (transfer->request().purpose == Purpose::kPull &&
        !transfer->shared()->is_pinned()) {
      order_.Begin(transfer->shared());
    }
    could_share = CountTaker(*transfer);
  }
  if (!could_share.empty()) {
    Log(LogLevel::kInfo, could_share);
  }
  if (evicted != nullptr) {
    Evict(std::move(evicted));
  }
  return Status::OK();
}

}  // namespace sstferry
