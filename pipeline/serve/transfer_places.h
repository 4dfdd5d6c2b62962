// The transfers of a server by id, and whose makes room for another.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/serve/return_times.h"
#include "pipeline/serve/transfer.h"
#include "sstferry/source.h"

namespace sstferry {

struct PlacedTransfer {
  std::shared_ptr<Transfer> transfer;
  uint64_t idle_since = 0;  // steady seconds; valid without a target
  uint64_t moved = 0;       // CurrentStats() when last looked at
  uint64_t moved_at = 0;    // steady seconds at which that had changed
  Clock::time_point placed_at = Clock::now();
  uint64_t planned_bytes = 0;  // to be sent, estimated; 0: not looked at yet
};

// The readers of one snapshot in this process.
struct ShownSnapshot {
  std::shared_ptr<Transfer> transfer;  // whose id names it
  uint32_t readers = 0;                // connected
  uint64_t left = 0;                   // seconds
};

// Times are steady seconds.
//
// Ownership: shares the transfers; borrows the options.
// Threads:   one at a time.
class TransferPlaces : public std::map<TransferId, PlacedTransfer> {
 public:
  explicit TransferPlaces(const ServeOptions* options) : options_(options) {}

  // Tells how far each has come by `now`.
  std::vector<PlaceUse> Uses(Clock::time_point now);
  // Adds a transfer. If there are too many, another one gives its place up for
  // it (*evicted), if that may be. Returns false if there is no place.
  bool Insert(const std::shared_ptr<Transfer>& transfer, uint64_t now,
              std::shared_ptr<Transfer>* evicted);
  // Its target is connected again: it has taken nothing only from now on.
  void Returned(const TransferId& id, uint64_t now);
  std::vector<std::shared_ptr<Transfer>> Pulls() const;
  // Notes which transfers moved since the last call.
  void LookWhatMoved(uint64_t now);

  // Transfers whose snapshot is in that directory and has no connected reader,
  // with the time since which they are idle.
  std::vector<std::pair<TransferId, uint64_t>> IdleIn(
      const std::string& parent) const;
  // Removes all readers of that transfer's snapshot, which frees its space with
  // the last of them; none if a target is connected to one.
  std::vector<std::shared_ptr<Transfer>> TakeIdle(const TransferId& id);
  // All readers of the snapshot there that pins most.
  std::vector<std::shared_ptr<Transfer>> ReadersOfLargest(
      const std::string& parent) const;
  // One for each snapshot of databases with these names. Adds the ids of all
  // its transfers to *listed.
  std::vector<ShownSnapshot> Show(const std::set<std::string>& names,
                                  const PeerIdentity* peer, uint64_t now,
                                  std::set<TransferId>* listed) const;
  // Removes transfers without a target that have ended, or whose time is over.
  std::vector<std::shared_ptr<Transfer>> TakeExpired(uint64_t now);
  // Removes transfers whose private directory has a request to release it, if
  // no target reads the snapshot; takes the request back otherwise.
  std::vector<std::shared_ptr<Transfer>> TakeAskedFor();

 private:
  // Returns the entry that gives its place to a transfer of `owner`, or end().
  // The peer with the most transfers gives one up, if it has no fewer than
  // `owner` then would: the one that is idle for longest, else the one whose
  // connected target has taken nothing for longest, and for longer than the
  // stall timeout.
  iterator Replaceable(const PeerIdentity& owner, uint64_t now);
  // Snapshots that connected targets read.
  std::set<const SharedSnapshot*> InUse() const;

  const ServeOptions* const options_;
};

}  // namespace sstferry
