#include "pipeline/source/retained/transfer_places.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

namespace sstferry {

void TransferPlaces::LookWhatMoved(uint64_t now) {
  for (auto& [id, entry] : *this) {
    const Stats stats = entry.transfer->CurrentStats();
    const uint64_t moved = stats.entries + stats.wire_bytes + stats.read_bytes;
    if (moved != entry.moved) {
      entry.moved = moved;
      entry.moved_at = now;
    }
  }
}

TransferPlaces::iterator TransferPlaces::Replaceable(
    const PeerIdentity& owner, uint64_t now) {
  using Key = std::pair<std::string, std::vector<std::string>>;
  const auto key_of = [](const PeerIdentity& peer) {
    return Key(peer.subject, peer.names);
  };
  std::map<Key, uint64_t> counts;
  const uint64_t own = 1 + std::count_if(
      begin(), end(), [&owner](const auto& item) {
        return item.second.transfer->owner() == owner;
      });
  for (const auto& [id, entry] : *this) {
    ++counts[key_of(entry.transfer->owner())];
  }
  counts[key_of(owner)] = own;
  LookWhatMoved(now);
  const uint64_t patience = static_cast<uint64_t>(
      std::chrono::ceil<std::chrono::seconds>(options_->stall_timeout)
          .count());
  // Most transfers of its peer, idle rather than connected, longest so.
  std::tuple<uint64_t, bool, uint64_t> best{own, false, 0};
  auto chosen = end();
  for (auto it = begin(); it != end(); ++it) {
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

std::shared_ptr<SharedSnapshot> TransferPlaces::NewestSnapshot(
    const std::string& database, const OpenRequest& request) const {
  std::shared_ptr<SharedSnapshot> newest;
  for (const auto& [id, entry] : *this) {
    const std::shared_ptr<SharedSnapshot>& one = entry.transfer->shared();
    if (one->Serves(database, request) && one->adopted() == nullptr &&
        (newest == nullptr ||
         one->begun_seconds() > newest->begun_seconds())) {
      newest = one;
    }
  }
  return newest;
}

bool TransferPlaces::Insert(const std::shared_ptr<Transfer>& transfer,
                            uint64_t now, std::shared_ptr<Transfer>* evicted) {
  if (size() >= options_->max_transfers) {
    const auto one = Replaceable(transfer->owner(), now);
    if (one == end()) {
      return false;
    }
    *evicted = std::move(one->second.transfer);
    erase(one);
  }
  PlacedTransfer& entry = (*this)[transfer->id()];
  entry.transfer = transfer;
  entry.idle_since = now;
  entry.moved_at = entry.idle_since;
  return true;
}

}  // namespace sstferry
