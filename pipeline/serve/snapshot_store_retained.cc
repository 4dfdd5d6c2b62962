// The functions of SnapshotStore that list snapshots, and those that release
// snapshots on request.
#include <algorithm>
#include <utility>

#include "pipeline/serve/snapshot_store.h"
#include "pipeline/snapshot/retained_snapshots.h"

namespace sstferry {

std::vector<RetainedSnapshot> SnapshotStore::List(
    const std::set<std::string>& names, const PeerIdentity* peer) {
  std::vector<RetainedSnapshot> all;
  std::set<TransferId> listed;
  std::unique_lock<std::mutex> lock(mu_);
  const std::vector<ShownSnapshot> here =
      entries_.Show(names, peer, SteadySeconds(), &listed);
  lock.unlock();
  for (const ShownSnapshot& one : here) {
    RetainedSnapshot retained = one.transfer->Describe(leased_.rules().Now());
    retained.readers = one.readers;
    if (one.readers > 1) {
      retained.target +=
          " and " + std::to_string(one.readers - 1) + " more";
    }
    retained.ttl_left_seconds = one.left;
    // Hides the id from peers that are not the owner. A peer without a verified
    // identity may not be the owner.
    if (peer == nullptr || !one.transfer->IsOwner(peer)) {
      CutId(&retained.transfer_id);
    }
    all.push_back(std::move(retained));
  }
  leased_.List(names, listed, peer, &all);
  std::stable_sort(all.begin(), all.end(),
                   [](const RetainedSnapshot& a, const RetainedSnapshot& b) {
                     return a.age_seconds > b.age_seconds;
                   });
  all.resize(std::min<size_t>(all.size(), kMaxRetainedSnapshots));
  return all;
}

std::vector<TransferReport> SnapshotStore::Reports() const {
  std::unique_lock<std::mutex> lock(mu_);
  const std::vector<std::shared_ptr<Transfer>> transfers = entries_.Pulls();
  lock.unlock();
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
    std::unique_lock<std::mutex> lock(mu_);
    AwaitLease(id, &lock);
    const auto found = entries_.find(id);
    if (found != entries_.end()) {
      const Transfer& retained = *found->second.transfer;
      if (retained.name() != database.name || !retained.IsOwner(peer)) {
        return what + " was not released: it belongs to another target";
      }
      dropped = std::move(found->second.transfer);
      // A previous connection of the target may still look open here. The
      // connection that requests the drop replaces it, as a resuming connection
      // would.
      dropped->Dismiss();
      entries_.erase(found);
    }
  }
  if (dropped != nullptr) {
    // Does not report the end to the application, because the target itself
    // wanted it.
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
  // The transfer may have had another source, which still retains it.
  return found ? what + note
               : what + " was not found here; it may stay retained at the "
                        "source of that transfer (sstferry release "
                        "SOURCE_DIR " + ToHex(id) + ")";
}

void SnapshotStore::HonourReleases() {
  std::unique_lock<std::mutex> lock(mu_);
  std::vector<std::shared_ptr<Transfer>> released = entries_.TakeAskedFor();
  lock.unlock();
  for (std::shared_ptr<Transfer>& transfer : released) {
    Release(std::move(transfer), "its release was requested");
  }
}

}  // namespace sstferry
