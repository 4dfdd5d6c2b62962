// The transfers that have a slot at a server, by id. If no slot is free,
// chooses which transfer loses its slot.
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

// A transfer that has a slot, and when it last made progress.
struct PlacedTransfer {
  std::shared_ptr<Transfer> transfer;
  uint64_t idle_since = 0;  // when the target left; steady seconds
  uint64_t moved = 0;       // work done at the last LookWhatMoved()
  uint64_t moved_at = 0;    // when `moved` last changed; steady seconds
  Clock::time_point placed_at = Clock::now();
  uint64_t planned_bytes = 0;  // estimate for the transfer; 0: unknown
};

// A snapshot in a list, with its readers in this process.
struct ShownSnapshot {
  std::shared_ptr<Transfer> transfer;  // the list shows its id
  uint32_t readers = 0;                // number of connected targets
  uint64_t left = 0;                   // seconds until the lease expires
};

// The transfers that have a slot at one server. Times are seconds of the steady
// clock.
//
// Ownership: shares the transfers; borrows the options.
// Threads:   one at a time.
class TransferPlaces : public std::map<TransferId, PlacedTransfer> {
 public:
  explicit TransferPlaces(const ServeOptions* options) : options_(options) {}

  // Returns how long each transfer has had its slot, and the share of its bytes
  // that was sent.
  std::vector<PlaceUse> Uses(Clock::time_point now);
  // Gives a slot to a transfer. If all slots are in use, another transfer must
  // lose its slot. Replaceable() chooses it, and *evicted is set to it. Returns
  // false if Replaceable() finds none.
  bool Insert(const std::shared_ptr<Transfer>& transfer, uint64_t now,
              std::shared_ptr<Transfer>* evicted);
  // Called when the target has connected again. The time in which the target
  // has received nothing starts now.
  void Returned(const TransferId& id, uint64_t now);
  std::vector<std::shared_ptr<Transfer>> Pulls() const;
  // Records which transfers have made progress since the last call.
  void LookWhatMoved(uint64_t now);

  // Returns the transfers whose snapshots are in the directory `parent` and
  // have no connected reader. Each has the time at which its target left.
  std::vector<std::pair<TransferId, uint64_t>> IdleIn(
      const std::string& parent) const;
  // Removes all transfers that read the same snapshot as the transfer `id`, and
  // returns them. The snapshot's disk space becomes free when the last of them
  // is destroyed. If any of them has a connected target, removes none.
  std::vector<std::shared_ptr<Transfer>> TakeIdle(const TransferId& id);
  // Finds the snapshot in the directory `parent` that pins the most bytes.
  // Returns all its readers that are running.
  std::vector<std::shared_ptr<Transfer>> ReadersOfLargest(
      const std::string& parent) const;
  // Returns one entry for each snapshot of the databases with these names. Adds
  // the ids of all transfers that read them to *listed.
  std::vector<ShownSnapshot> Show(const std::set<std::string>& names,
                                  const PeerIdentity* peer, uint64_t now,
                                  std::set<TransferId>* listed) const;
  // Removes and returns the transfers without a connected target that have
  // ended or whose lease has expired.
  std::vector<std::shared_ptr<Transfer>> TakeExpired(uint64_t now);
  // Removes and returns the transfers whose directory contains a release
  // request. If a target reads the snapshot, keeps the transfer and removes the
  // request.
  std::vector<std::shared_ptr<Transfer>> TakeAskedFor();

 private:
  // Returns the transfer that loses its slot to a new transfer of `owner`, or
  // end(). It belongs to the peer with the most transfers; that peer must have
  // at least as many as `owner` would then have. A transfer without a connected
  // target is chosen first, and among these the one whose target left first.
  // Otherwise the one is chosen whose target has received nothing for the
  // longest time; this time must exceed the stall timeout.
  iterator Replaceable(const PeerIdentity& owner, uint64_t now);
  // Returns the snapshots that connected targets read.
  std::set<const SharedSnapshot*> InUse() const;

  const ServeOptions* const options_;
};

}  // namespace sstferry
