// Records the order in which a server took its snapshots, so that a pull of the
// latest snapshot never gets one that is older than the target's data. Sequence
// numbers and clocks cannot prove that, because databases are restored and
// clocks are set.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// The order of the snapshots of one server. Threads: one at a time.
class SnapshotOrder {
 public:
  // Called before the snapshot is taken for a pull. Does nothing the second
  // time.
  void Begin(const std::shared_ptr<SharedSnapshot>& snapshot);
  // Called when the transfer's snapshot has been taken.
  void Taken(const TransferId& transfer, const SharedSnapshot& snapshot);
  // Returns the newest snapshot (by start) that a pull of `database` with
  // `request` can share. Returns null if no such snapshot exists, or if the
  // newest one was released. Also returns null if nothing proves that it is not
  // older than the snapshot of request.newer_than: another server or an earlier
  // process may have taken that one.
  std::shared_ptr<SharedSnapshot> Newest(const std::string& database,
                                         const OpenRequest& request) const;

 private:
  // Positions in the order of all events.
  struct Known {
    uint64_t begun = 0;  // start of the transfer's snapshot
    uint64_t taken = 0;
  };
  uint64_t events_ = 0;
  std::map<std::string, std::weak_ptr<SharedSnapshot>> newest_;  // by kind
  std::map<TransferId, Known> known_;
  std::deque<TransferId> ids_;  // keys of known_, oldest first
};

}  // namespace sstferry
