#include "pipeline/source/retained/transfer_queue.h"

#include <algorithm>

#include "format/limits.h"
#include "pipeline/source/retained/leased_snapshots.h"

namespace sstferry {

std::deque<TransferQueue::Waiting>::const_iterator TransferQueue::At(
    const Transfer& transfer) const {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [&transfer](const Waiting& one) {
                        return one.transfer.get() == &transfer;
                      });
}

void TransferQueue::Join(const std::shared_ptr<Transfer>& transfer,
                         uint64_t now) {
  if (!Holds(*transfer)) {
    waiting_.push_back({transfer, now});
  }
}

bool TransferQueue::Leave(const Transfer& transfer) {
  const auto at = At(transfer);
  if (at == waiting_.end()) {
    return false;
  }
  waiting_.erase(at);
  return true;
}

bool TransferQueue::Holds(const Transfer& transfer) const {
  return At(transfer) != waiting_.end();
}

uint32_t TransferQueue::Ahead(const Transfer& transfer) const {
  return static_cast<uint32_t>(At(transfer) - waiting_.begin());
}

std::shared_ptr<Transfer> TransferQueue::Find(const TransferId& id) const {
  for (const Waiting& one : waiting_) {
    if (one.transfer->id() == id) {
      return one.transfer;
    }
  }
  return nullptr;
}

std::vector<std::shared_ptr<Transfer>> TransferQueue::All() const {
  std::vector<std::shared_ptr<Transfer>> all;
  for (const Waiting& one : waiting_) {
    all.push_back(one.transfer);
  }
  return all;
}

std::vector<WaitingRequest> TransferQueue::List(
    const std::set<std::string>& names, const PeerIdentity* peer,
    uint64_t now) const {
  std::vector<WaitingRequest> list;
  uint32_t ahead = 0;
  for (const Waiting& one : waiting_) {
    const Transfer& transfer = *one.transfer;
    if (names.count(transfer.name()) > 0 && list.size() < kMaxWaitingRequests) {
      list.push_back({transfer.id(), transfer.name(),
                      transfer.peer().substr(0, kMaxIdentifierBytes),
                      now - std::min(now, one.since), ahead});
      if (peer == nullptr || !transfer.IsOwner(peer)) {
        CutId(&list.back().transfer_id);
      }
    }
    ++ahead;
  }
  return list;
}

}  // namespace sstferry
