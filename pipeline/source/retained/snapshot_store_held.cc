// The parts of SnapshotStore that list snapshots and release them on request.
#include <algorithm>
#include <utility>

#include "pipeline/source/directory/held_snapshots.h"
#include "pipeline/source/retained/snapshot_store.h"

namespace sstferry {

// The readers of one snapshot in this process.
struct SnapshotStore::Shown {
  std::shared_ptr<Transfer> transfer;  // whose id names it
  uint32_t readers = 0;                // connected
  uint64_t left = 0;                   // seconds
};

std::vector<SnapshotStore::Shown> SnapshotStore::ShowSnapshots(
    const std::set<std::string>& names, const PeerIdentity* peer,
    std::set<TransferId>* listed) const {
  std::map<const SharedSnapshot*, Shown> here;
  std::lock_guard<std::mutex> lock(mu_);
  const uint64_t now = SteadySeconds();
  const uint64_t ttl = static_cast<uint64_t>(options_->snapshot_ttl.count());
  // A name that the peer may be told, and that of a pull rather than a verify.
  const auto rank = [peer](const Transfer& transfer) {
    return std::pair(peer != nullptr && transfer.IsOwner(peer),
                     transfer.request().purpose == Purpose::kPull);
  };
  for (const auto& [id, entry] : entries_) {
    const Transfer& transfer = *entry.transfer;
    if (!transfer.planned() || names.count(transfer.name()) == 0) {
      continue;
    }
    listed->insert(id);
    Shown& shown = here[transfer.shared().get()];
    if (shown.transfer == nullptr || rank(*shown.transfer) < rank(transfer)) {
      shown.transfer = entry.transfer;
    }
    const uint64_t end = entry.idle_since + ttl;
    shown.readers += transfer.has_control() ? 1 : 0;
    shown.left = std::max(shown.left, !transfer.may_keep()     ? 0
                                      : transfer.has_control() ? ttl
                                      : end - std::min(end, now));
  }
  std::vector<Shown> all;
  for (auto& item : here) {
    all.push_back(std::move(item.second));
  }
  return all;
}

std::vector<HeldSnapshot> SnapshotStore::List(
    const std::set<std::string>& names, const PeerIdentity* peer) {
  std::vector<HeldSnapshot> all;
  std::set<TransferId> listed;
  for (const Shown& one : ShowSnapshots(names, peer, &listed)) {
    HeldSnapshot held = one.transfer->Describe(leased_.rules().Now());
    held.readers = one.readers;
    held.ttl_left_seconds = one.left;
    // Without a verified peer identity, ownership is not known either.
    if (peer == nullptr || !one.transfer->IsOwner(peer)) {
      CutId(&held.transfer_id);
    }
    all.push_back(std::move(held));
  }
  leased_.List(names, listed, peer, &all);
  std::stable_sort(all.begin(), all.end(),
                   [](const HeldSnapshot& a, const HeldSnapshot& b) {
                     return a.age_seconds > b.age_seconds;
                   });
  all.resize(std::min<size_t>(all.size(), kMaxHeldSnapshots));
  return all;
}

std::vector<TransferReport> SnapshotStore::Reports() const {
  std::vector<std::shared_ptr<Transfer>> transfers;
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (const auto& item : entries_) {
      if (item.second.transfer->request().purpose == Purpose::kPull) {
        transfers.push_back(item.second.transfer);
      }
    }
  }
  std::vector<TransferReport> reports;
  for (const std::shared_ptr<Transfer>& transfer : transfers) {
    if (transfer->planned() && !transfer->ended()) {
      reports.push_back(transfer->Report());
    }
  }
  return reports;
}

std::string SnapshotStore::Drop(const ServedDatabase& database,
                                const TransferId& id,
                                const PeerIdentity* peer) {
  const std::string what = "the snapshot of the dropped transfer " + ToHex(id);
  std::shared_ptr<Transfer> dropped;
  {
    std::lock_guard<std::mutex> lock(mu_);
    const auto found = entries_.find(id);
    if (found != entries_.end()) {
      const Transfer& held = *found->second.transfer;
      if (held.name() != database.name || !held.IsOwner(peer)) {
        return what + " was not released: it is another target's";
      }
      if (held.has_control()) {
        return what + " was not released: a target is connected to it";
      }
      dropped = std::move(found->second.transfer);
      entries_.erase(found);
    }
  }
  if (dropped != nullptr) {
    // The target itself dropped it, so no report goes to the application.
    TransferReport report;
    EndAndLog(std::move(dropped), "its target starts over", &report);
    return what + " was released";
  }
  std::string note;
  std::string removed;
  const bool found = leased_.Drop(database.name, id, peer, &note, &removed);
  if (!removed.empty()) {
    Log(LogLevel::kInfo, "removed " + removed + ": its target starts over");
  }
  return found ? what + note : what + " is no longer retained here";
}

void SnapshotStore::HonourReleases() {
  std::unique_lock<std::mutex> lock(mu_);
  std::vector<std::shared_ptr<Transfer>> released = entries_.TakeAskedFor();
  lock.unlock();
  for (std::shared_ptr<Transfer>& transfer : released) {
    Release(std::move(transfer), "it was released by hand");
  }
}

}  // namespace sstferry
