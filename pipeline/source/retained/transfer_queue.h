// The transfers of a server that wait for a place, in their order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pipeline/source/transfer/transfer.h"

namespace sstferry {

// Ownership: shares the transfers.
// Threads:   one at a time.
class TransferQueue {
 public:
  bool empty() const { return waiting_.empty(); }
  // Adds a transfer behind all others, unless it waits already: a target that
  // connects again keeps its turn. `now`: steady seconds.
  void Join(const std::shared_ptr<Transfer>& transfer, uint64_t now);
  // Returns false if it did not wait.
  bool Leave(const Transfer& transfer);
  bool Holds(const Transfer& transfer) const;
  // The number of transfers that are served before it. REQUIRES: it waits.
  uint32_t Ahead(const Transfer& transfer) const;
  // Returns null if no such transfer waits.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  std::vector<std::shared_ptr<Transfer>> All() const;
  // Describes those of databases with these names, in their order. Only the
  // owner of a transfer sees more than the first bytes of its id.
  std::vector<WaitingRequest> List(const std::set<std::string>& names,
                                   const PeerIdentity* peer,
                                   uint64_t now) const;

 private:
  struct Waiting {
    std::shared_ptr<Transfer> transfer;
    uint64_t since = 0;
  };
  std::deque<Waiting>::const_iterator At(const Transfer& transfer) const;

  std::deque<Waiting> waiting_;
};

}  // namespace sstferry
