// The order in which a server took its snapshots. By it, a pull of the latest
// snapshot never gets one that is older than what its target holds: sequence
// numbers and clocks prove nothing, because databases are put back and clocks
// are set.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// Threads: one at a time.
class SnapshotOrder {
 public:
  // The snapshot is about to be taken for a pull. Does nothing the second time.
  void Begin(const std::shared_ptr<SharedSnapshot>& snapshot);
  // The transfer's snapshot is taken.
  void Taken(const TransferId& transfer, const SharedSnapshot& snapshot);
  // Returns the snapshot begun last that a pull of `database` like `request`
  // can share. Null: there is none; a newer one has gone since; or nothing
  // proves that it is not older than request.newer_than's, which another server
  // or an earlier process may have taken.
  std::shared_ptr<SharedSnapshot> Newest(const std::string& database,
                                         const OpenRequest& request) const;

 private:
  // Places in the order of all events.
  struct Known {
    uint64_t begun = 0;  // of the transfer's snapshot
    uint64_t taken = 0;
  };
  uint64_t events_ = 0;
  std::map<std::string, std::weak_ptr<SharedSnapshot>> newest_;  // by kind
  std::map<TransferId, Known> known_;
  std::deque<TransferId> ids_;  // of known_, the oldest first
};

}  // namespace sstferry
