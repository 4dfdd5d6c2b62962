// Keeps the transfers of a server by id. Chooses which transfer loses its slot
// to another one.
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

// A transfer that has a slot, and the times of its progress.
struct PlacedTransfer {
  std::shared_ptr<Transfer> transfer;
  uint64_t idle_since = 0;  // steady seconds at which the target left
  uint64_t moved = 0;       // work in CurrentStats() at LookWhatMoved()
  uint64_t moved_at = 0;    // steady seconds at which `moved` last changed
  Clock::time_point placed_at = Clock::now();
  uint64_t planned_bytes = 0;  // to be sent, estimated; 0: unknown
};

// The readers of one snapshot in this process.
struct ShownSnapshot {
  std::shared_ptr<Transfer> transfer;  // its id names the snapshot
  uint32_t readers = 0;                // number of connected targets
  uint64_t left = 0;                   // seconds until it expires
};

// The transfers that have a slot at one server. Times are seconds of the steady
// clock.
//
// Ownership: shares the transfers; borrows the options.
// Threads:   one at a time.
class TransferPlaces : public std::map<TransferId, PlacedTransfer> {
 public:
  explicit TransferPlaces(const ServeOptions* options) : options_(options) {}

  // Returns the progress of each transfer at `now`.
  std::vector<PlaceUse> Uses(Clock::time_point now);
  // Adds a transfer. If all slots are in use, the transfer that Replaceable()
  // chooses (*evicted) loses its slot. Returns false if it chooses none.
  bool Insert(const std::shared_ptr<Transfer>& transfer, uint64_t now,
              std::shared_ptr<Transfer>* evicted);
  // Called when the target is connected again: the time in which it received
  // nothing starts now.
  void Returned(const TransferId& id, uint64_t now);
  std::vector<std::shared_ptr<Transfer>> Pulls() const;
  // Notes which transfers made progress since the last call.
  void LookWhatMoved(uint64_t now);

  // Returns the transfers whose snapshot is in that directory and has no
  // connected reader, each with the time at which it became idle.
  std::vector<std::pair<TransferId, uint64_t>> IdleIn(
      const std::string& parent) const;
  // Removes and returns all readers of that transfer's snapshot; its disk space
  // becomes free when the last reader is destroyed. Removes no reader if a
  // target is connected to one of them.
  std::vector<std::shared_ptr<Transfer>> TakeIdle(const TransferId& id);
  // Returns all readers of the snapshot in that directory that pins most bytes.
  std::vector<std::shared_ptr<Transfer>> ReadersOfLargest(
      const std::string& parent) const;
  // Returns one entry for each snapshot of databases with these names. Adds the
  // ids of all its transfers to *listed.
  std::vector<ShownSnapshot> Show(const std::set<std::string>& names,
                                  const PeerIdentity* peer, uint64_t now,
                                  std::set<TransferId>* listed) const;
  // Removes transfers without a connected target that have ended or expired.
  std::vector<std::shared_ptr<Transfer>> TakeExpired(uint64_t now);
  // Removes transfers whose private directory has a release request, if no
  // target reads the snapshot; otherwise removes the request.
  std::vector<std::shared_ptr<Transfer>> TakeAskedFor();

 private:
  // Returns the entry that loses its slot to a transfer of `owner`, or end().
  // Chooses a transfer of the peer with the most transfers, if that peer has at
  // least as many as `owner` would then have. Prefers the transfer that has
  // been idle for longest. If none is idle, chooses the one whose connected
  // target has received nothing for longest, if that time exceeds the stall
  // timeout.
  iterator Replaceable(const PeerIdentity& owner, uint64_t now);
  // Returns the snapshots that connected targets read.
  std::set<const SharedSnapshot*> InUse() const;

  const ServeOptions* const options_;
};

}  // namespace sstferry
