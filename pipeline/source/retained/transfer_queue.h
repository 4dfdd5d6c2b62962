// The transfers of a server that wait for a place, in their order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "pipeline/source/transfer/transfer.h"

namespace sstferry {

// Ownership: shares the transfers.
// Threads:   one at a time.
class TransferQueue {
 public:
  bool empty() const { return waiting_.empty(); }
  // Adds a transfer behind all others, unless it waits already: a target that
  // connects again keeps its turn.
  void Join(const std::shared_ptr<Transfer>& transfer);
  // Returns false if it did not wait.
  bool Leave(const Transfer& transfer);
  bool Holds(const Transfer& transfer) const;
  // The number of transfers that are served before it. REQUIRES: it waits.
  uint32_t Ahead(const Transfer& transfer) const;
  // Returns null if no such transfer waits.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  std::vector<std::shared_ptr<Transfer>> All() const;

 private:
  std::deque<std::shared_ptr<Transfer>>::const_iterator At(
      const Transfer& transfer) const;

  std::deque<std::shared_ptr<Transfer>> waiting_;
};

}  // namespace sstferry
