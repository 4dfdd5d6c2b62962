#include "pipeline/source/retained/transfer_queue.h"

#include <algorithm>

namespace sstferry {

std::deque<std::shared_ptr<Transfer>>::const_iterator TransferQueue::At(
    const Transfer& transfer) const {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [&transfer](const std::shared_ptr<Transfer>& one) {
                        return one.get() == &transfer;
                      });
}

void TransferQueue::Join(const std::shared_ptr<Transfer>& transfer) {
  if (!Holds(*transfer)) {
    waiting_.push_back(transfer);
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
  for (const std::shared_ptr<Transfer>& one : waiting_) {
    if (one->id() == id) {
      return one;
    }
  }
  return nullptr;
}

std::vector<std::shared_ptr<Transfer>> TransferQueue::All() const {
  return {waiting_.begin(), waiting_.end()};
}

}  // namespace sstferry
