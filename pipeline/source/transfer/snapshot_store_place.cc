// The part of SnapshotStore that decides whose transfer makes room for another.
#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "pipeline/source/transfer/snapshot_store.h"

namespace sstferry {

using rocksdb::Status;

void SnapshotStore::LookWhatMoved() {
  const uint64_t now = SteadySeconds();
  for (auto& [id, entry] : entries_) {
    const Stats stats = entry.transfer->CurrentStats();
    const uint64_t moved = stats.entries + stats.wire_bytes + stats.read_bytes;
    if (moved != entry.moved) {
      entry.moved = moved;
      entry.moved_at = now;
    }
  }
}

SnapshotStore::Entries::iterator SnapshotStore::Replaceable(
    const PeerIdentity& owner) {
  using Key = std::pair<std::string, std::vector<std::string>>;
  const auto key_of = [](const PeerIdentity& peer) {
    return Key(peer.subject, peer.names);
  };
  std::map<Key, uint64_t> counts;
  const uint64_t own = 1 + std::count_if(
      entries_.begin(), entries_.end(), [&owner](const auto& item) {
        return item.second.transfer->owner() == owner;
      });
  for (const auto& [id, entry] : entries_) {
    ++counts[key_of(entry.transfer->owner())];
  }
  counts[key_of(owner)] = own;
  LookWhatMoved();
  const uint64_t now = SteadySeconds();
  const uint64_t patience = static_cast<uint64_t>(
      std::chrono::ceil<std::chrono::seconds>(options_->stall_timeout)
          .count());
  // Most transfers of its peer, idle rather than connected, longest so.
  std::tuple<uint64_t, bool, uint64_t> best{own, false, 0};
  auto chosen = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Transfer& transfer = *it->second.transfer;
    const bool is_idle = !transfer.has_control();
    const uint64_t since = is_idle ? it->second.idle_since
                                   : it->second.moved_at;
    const uint64_t seconds = now - std::min(now, since);
    const bool may_go =
        is_idle || (transfer.planned() && seconds > patience);
    const std::tuple<uint64_t, bool, uint64_t> rank{
        counts[key_of(transfer.owner())], is_idle, seconds};
    if (may_go && rank >= best) {
      best = rank;
      chosen = it;
    }
  }
  return chosen;
}

Status SnapshotStore::Add(std::shared_ptr<Transfer> transfer) {
  std::shared_ptr<Transfer> evicted;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (stopping_) {
      return MakeStatus(EndState::kCancelled, "the source is shutting down");
    }
    if (entries_.size() >= options_->max_transfers) {
      const auto one = Replaceable(transfer->owner());
      if (one == entries_.end()) {
        return MakeStatus(EndState::kBusy,
                          "expected at most " +
                              std::to_string(options_->max_transfers) +
                              " transfers at once, which are all in use; run "
                              "the same command again later");
      }
      evicted = std::move(one->second.transfer);
      entries_.erase(one);
    }
    const TransferId id = transfer->id();
    Entry& entry = entries_[id];
    entry.transfer = std::move(transfer);
    entry.idle_since = SteadySeconds();
    entry.moved_at = entry.idle_since;
  }
  if (evicted != nullptr) {
    Release(std::move(evicted), "another transfer needed its place");
  }
  return Status::OK();
}

}  // namespace sstferry
