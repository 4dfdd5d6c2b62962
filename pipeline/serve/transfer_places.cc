#include "pipeline/serve/transfer_places.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "pipeline/snapshot/private_dir.h"

namespace sstferry {

void TransferPlaces::LookWhatMoved(uint64_t now) {
  for (auto& [id, entry] : *this) {
    const Stats stats = entry.transfer->CurrentStats();
    // Adds three counters, because some work changes only one of them. A
    // comparison reads entries but sends no files. A clone sends files but
    // reads no entries.
    const uint64_t moved = stats.entries + stats.sst_bytes + stats.read_bytes;
    if (moved != entry.moved) {
      entry.moved = moved;
      entry.moved_at = now;
    }
  }
}

void TransferPlaces::Returned(const TransferId& id, uint64_t now) {
  const auto found = find(id);
  if (found != end()) {
    found->second.moved_at = now;
  }
}

std::vector<std::shared_ptr<Transfer>> TransferPlaces::Pulls() const {
  std::vector<std::shared_ptr<Transfer>> pulls;
  for (const auto& [id, entry] : *this) {
    if (entry.transfer->request().purpose == Purpose::kPull) {
      pulls.push_back(entry.transfer);
    }
  }
  return pulls;
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
  const uint64_t deadline = static_cast<uint64_t>(
      std::chrono::ceil<std::chrono::seconds>(options_->timeouts.stall)
          .count());
  // Chooses by rank. The rank is the number of transfers of the peer; if equal,
  // whether no target is connected; if equal, the time without progress.
  std::tuple<uint64_t, bool, uint64_t> best{own, false, 0};
  auto chosen = end();
  for (auto it = begin(); it != end(); ++it) {
    const Transfer& transfer = *it->second.transfer;
    const bool is_idle = !transfer.has_control();
    const uint64_t since = is_idle ? it->second.idle_since
                                   : it->second.moved_at;
    const uint64_t seconds = now - std::min(now, since);
    const bool may_go =
        is_idle || (transfer.planned() && seconds > deadline);
    const std::tuple<uint64_t, bool, uint64_t> rank{
        counts[key_of(transfer.owner())], is_idle, seconds};
    if (may_go && rank >= best) {
      best = rank;
      chosen = it;
    }
  }
  return chosen;
}

std::vector<PlaceUse> TransferPlaces::Uses(Clock::time_point now) {
  std::vector<PlaceUse> uses;
  for (auto& [id, entry] : *this) {
    if (entry.planned_bytes == 0 && entry.transfer->planned()) {
      for (const Part& part : entry.transfer->parts()) {
        entry.planned_bytes += part.bytes;
      }
    }
    const double sent = static_cast<double>(
        entry.transfer->counters()->sst_bytes);
    uses.push_back({std::chrono::duration_cast<std::chrono::milliseconds>(
                        now - entry.placed_at),
                    entry.planned_bytes == 0
                        ? 0
                        : sent / static_cast<double>(entry.planned_bytes)});
  }
  return uses;
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

std::set<const SharedSnapshot*> TransferPlaces::InUse() const {
  std::set<const SharedSnapshot*> in_use;
  for (const auto& [id, entry] : *this) {
    if (entry.transfer->has_control()) {
      in_use.insert(entry.transfer->shared().get());
    }
  }
  return in_use;
}

std::vector<std::pair<TransferId, uint64_t>> TransferPlaces::IdleIn(
    const std::string& parent) const {
  const std::set<const SharedSnapshot*> in_use = InUse();
  std::vector<std::pair<TransferId, uint64_t>> idle;
  for (const auto& [id, entry] : *this) {
    if (in_use.count(entry.transfer->shared().get()) == 0 &&
        entry.transfer->IsIn(parent)) {
      idle.emplace_back(id, entry.idle_since);
    }
  }
  return idle;
}

std::vector<std::shared_ptr<Transfer>> TransferPlaces::TakeIdle(
    const TransferId& id) {
  std::vector<std::shared_ptr<Transfer>> readers;
  const auto found = find(id);
  if (found == end()) {
    return readers;
  }
  const SharedSnapshot* const snapshot = found->second.transfer->shared().get();
  if (InUse().count(snapshot) > 0) {
    return readers;
  }
  for (auto it = begin(); it != end();) {
    if (it->second.transfer->shared().get() == snapshot) {
      readers.push_back(std::move(it->second.transfer));
      it = erase(it);
    } else {
      ++it;
    }
  }
  return readers;
}

std::vector<std::shared_ptr<Transfer>> TransferPlaces::ReadersOfLargest(
    const std::string& parent) const {
  std::vector<std::shared_ptr<Transfer>> readers;
  for (const auto& [id, entry] : *this) {
    const std::shared_ptr<Transfer>& transfer = entry.transfer;
    if (!transfer->planned() || transfer->ended() || !transfer->IsIn(parent)) {
      continue;
    }
    if (!readers.empty() &&
        transfer->pinned_bytes() > readers[0]->pinned_bytes()) {
      readers.clear();
    }
    if (readers.empty() || transfer->shared() == readers[0]->shared()) {
      readers.push_back(transfer);
    }
  }
  return readers;
}

std::vector<std::shared_ptr<Transfer>> TransferPlaces::TakeAskedFor() {
  const std::set<const SharedSnapshot*> in_use = InUse();
  std::vector<std::shared_ptr<Transfer>> released;
  for (auto it = begin(); it != end();) {
    const Transfer& transfer = *it->second.transfer;
    const std::string directory = transfer.lease_directory();
    const bool is_asked = transfer.planned() && !directory.empty() &&
                          IsReleaseAsked(directory);
    if (is_asked && in_use.count(transfer.shared().get()) == 0) {
      released.push_back(std::move(it->second.transfer));
      it = erase(it);
      continue;
    }
    if (is_asked) {
      ForgetRelease(directory);
    }
    ++it;
  }
  return released;
}

std::vector<ShownSnapshot> TransferPlaces::Show(
    const std::set<std::string>& names, const PeerIdentity* peer, uint64_t now,
    std::set<TransferId>* listed) const {
  std::map<const SharedSnapshot*, ShownSnapshot> here;
  const uint64_t ttl = static_cast<uint64_t>(options_->snapshot_ttl.count());
  // If several transfers read a snapshot, shows one whose id the peer may see.
  // If there is none, shows a pull rather than a verify.
  const auto rank = [peer](const Transfer& transfer) {
    return std::pair(peer != nullptr && transfer.IsOwner(peer),
                     transfer.request().purpose == Purpose::kPull);
  };
  for (const auto& [id, entry] : *this) {
    const Transfer& transfer = *entry.transfer;
    if (!transfer.planned() || names.count(transfer.name()) == 0) {
      continue;
    }
    listed->insert(id);
    ShownSnapshot& shown = here[transfer.shared().get()];
    if (shown.transfer == nullptr || rank(*shown.transfer) < rank(transfer)) {
      shown.transfer = entry.transfer;
    }
    const uint64_t end = entry.idle_since + ttl;
    shown.readers += transfer.has_control() ? 1 : 0;
    shown.left = std::max(shown.left, !transfer.may_keep()     ? 0
                                      : transfer.has_control() ? ttl
                                      : end - std::min(end, now));
  }
  std::vector<ShownSnapshot> all;
  for (auto& item : here) {
    all.push_back(std::move(item.second));
  }
  return all;
}

std::vector<std::shared_ptr<Transfer>> TransferPlaces::TakeExpired(
    uint64_t now) {
  const uint64_t ttl = static_cast<uint64_t>(options_->snapshot_ttl.count());
  std::vector<std::shared_ptr<Transfer>> expired;
  for (auto it = begin(); it != end();) {
    PlacedTransfer& entry = it->second;
    if (!entry.transfer->has_control() &&
        (entry.transfer->ended() || now >= entry.idle_since + ttl)) {
      expired.push_back(std::move(entry.transfer));
      it = erase(it);
    } else {
      ++it;
    }
  }
  return expired;
}

}  // namespace sstferry
