// Records the order in which a server took its snapshots. A pull of the latest
// snapshot must never get a snapshot that is older than the target's data.
// Sequence numbers and clocks cannot prove this, because databases are restored
// and clocks are set.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// The order of the snapshots of one server.
//
// Threads: one at a time.
class SnapshotOrder {
 public:
  // Called before a snapshot is taken for a pull. Further calls for the same
  // snapshot do nothing.
  void Begin(const std::shared_ptr<SharedSnapshot>& snapshot);
  // Called after the snapshot of the transfer has been taken.
  void Taken(const TransferId& transfer, const SharedSnapshot& snapshot);
  // Returns the snapshot that was started last, if a pull of `database` with
  // `request` can share it. Returns null if it failed or was released.
  // request.newer_than may name the transfer that made the target's data. Then
  // also returns null unless it is certain that the snapshot is not older than
  // this data. For example, it is not certain if an earlier process served that
  // transfer.
  std::shared_ptr<SharedSnapshot> Newest(const std::string& database,
                                         const OpenRequest& request) const;

 private:
  // Numbers of two events: the start of a transfer's snapshot, and the call of
  // Taken(). All events are numbered together.
  struct Known {
    uint64_t begun = 0;  // 0: the snapshot has no position
    uint64_t taken = 0;
  };
  uint64_t events_ = 0;
  std::map<std::string, std::weak_ptr<SharedSnapshot>> newest_;  // by kind
  std::map<TransferId, Known> known_;
  std::deque<TransferId> ids_;  // the keys of known_, the oldest first
};

}  // namespace sstferry
