#include "pipeline/pull/part_scheduler.h"

#include <algorithm>
#include <tuple>

namespace sstferry {

PartScheduler::PartScheduler(const std::vector<Part>& parts,
                               const std::vector<PartStart>& starts,
                               uint32_t lanes,
                               const std::function<bool(uint32_t)>& first)
    : lanes_(lanes) {
  struct Item {
    bool first;
    uint64_t bytes;
    uint32_t id;
  };
  std::vector<Item> items;
  for (const Part& part : parts) {
    const PartStart& start = starts[part.id];
    if (!start.whole) {
      items.push_back({first != nullptr && first(part.id),
                       part.bytes -
                           std::min(part.bytes,
                                    start.received.sst_bytes),
                       part.id});
    }
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tuple(b.first, b.bytes, a.id) <
           std::tuple(a.first, a.bytes, b.id);
  });
  for (const Item& item : items) {
    order_.push_back(item.id);
  }
}

std::optional<uint32_t> PartScheduler::Next(size_t outstanding) {
  std::lock_guard<std::mutex> lock(mu_);
  const size_t left = order_.size() - next_;
  if (left == 0 || outstanding >= 2 || (outstanding == 1 && left < lanes_)) {
    return std::nullopt;
  }
  return order_[next_++];
}

}  // namespace sstferry
