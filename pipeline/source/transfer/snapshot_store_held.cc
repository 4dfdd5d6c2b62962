// The parts of SnapshotStore that list snapshots and release them on request.
#include <algorithm>
#include <utility>

#include "pipeline/source/directory/held_snapshots.h"
#include "pipeline/source/transfer/snapshot_store.h"

namespace sstferry {

std::vector<HeldSnapshot> SnapshotStore::List(
    const std::set<std::string>& names, const PeerIdentity* peer) {
  struct Shown {
    std::shared_ptr<Transfer> transfer;
    uint64_t left = 0;
  };
  std::vector<Shown> here;
  std::map<const Transfer*, uint32_t> shared;
  {
    std::lock_guard<std::mutex> lock(mu_);
    const uint64_t now = SteadySeconds();
    const uint64_t ttl = static_cast<uint64_t>(options_->snapshot_ttl.count());
    for (const auto& [id, entry] : entries_) {
      const Transfer& transfer = *entry.transfer;
      if (transfer.shares() != nullptr) {
        ++shared[transfer.shares()];
      } else if (transfer.planned() && names.count(transfer.name()) > 0) {
        const uint64_t end = entry.idle_since + ttl;
        here.push_back({entry.transfer,
                        !transfer.may_keep()     ? 0
                        : transfer.has_control() ? ttl
                                                 : end - std::min(end, now)});
      }
    }
  }
  std::vector<HeldSnapshot> all;
  std::set<TransferId> listed;
  for (const Shown& one : here) {
    HeldSnapshot held = one.transfer->Describe(leased_.rules().Now());
    held.readers = (one.transfer->has_control() ? 1 : 0) +
                   shared[one.transfer.get()];
    held.ttl_left_seconds = one.left;
    listed.insert(held.transfer_id);
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
  std::vector<std::shared_ptr<Transfer>> released;
  {
    std::lock_guard<std::mutex> lock(mu_);
    std::set<std::string> in_use;
    for (const auto& item : entries_) {
      const Transfer& transfer = *item.second.transfer;
      const Transfer& holder =
          transfer.shares() != nullptr ? *transfer.shares() : transfer;
      if (transfer.has_control() && holder.planned()) {
        in_use.insert(holder.directory());
      }
    }
    for (auto it = entries_.begin(); it != entries_.end();) {
      const Transfer& transfer = *it->second.transfer;
      const bool is_asked = transfer.shares() == nullptr &&
                            transfer.planned() && transfer.has_lease() &&
                            IsReleaseAsked(transfer.directory());
      if (is_asked && in_use.count(transfer.directory()) == 0) {
        released.push_back(std::move(it->second.transfer));
        it = entries_.erase(it);
        continue;
      }
      if (is_asked) {
        ForgetRelease(transfer.directory());
      }
      ++it;
    }
  }
  for (std::shared_ptr<Transfer>& transfer : released) {
    Release(std::move(transfer), "it was released by hand");
  }
}

}  // namespace sstferry
