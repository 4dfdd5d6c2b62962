// Where each range goes on, and their order: hands what is left to lanes, the
// heaviest first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/base/tile.h"

namespace sstferry {

// What is held of one range when its lane begins. Of a new pull: nothing.
struct RangeStart {
  Totals held;
  TileEnd end;           // of what is held, when held.chunks is not 0
  bool whole = false;    // nothing is left to ask for
};

// Threads: any.
class RangeScheduler {
 public:
  // starts: by range id. The ranges that `first` names come before the others.
  RangeScheduler(const std::vector<Range>& ranges,
                 const std::vector<RangeStart>& starts, uint32_t lanes,
                 const std::function<bool(uint32_t)>& first = nullptr)
      : lanes_(lanes) {
    for (const Range& range : ranges) {
      const RangeStart& start = starts[range.id];
      if (!start.whole) {
        order_.push_back({first != nullptr && first(range.id),
                          range.estimated_bytes -
                              std::min(range.estimated_bytes,
                                       start.held.sst_bytes),
                          range.id});
      }
    }
    std::sort(order_.begin(), order_.end(), [](const Item& a, const Item& b) {
      return std::tuple(b.first, b.bytes, a.id) <
             std::tuple(a.first, a.bytes, b.id);
    });
  }

  // The next range for a lane that has `outstanding` unfinished ones. A lane
  // asks ahead by one, so that no round trip shows, but not where the last
  // ranges would queue behind a busy lane while another is free.
  std::optional<uint32_t> Next(size_t outstanding) {
    std::lock_guard<std::mutex> lock(mu_);
    const size_t left = order_.size() - next_;
    if (left == 0 || outstanding >= 2 || (outstanding == 1 && left < lanes_)) {
      return std::nullopt;
    }
    return order_[next_++].id;
  }

 private:
  struct Item {
    bool first;
    uint64_t bytes;
    uint32_t id;
  };
  const uint32_t lanes_;
  std::vector<Item> order_;
  std::mutex mu_;
  size_t next_ = 0;  // under mu_
};

}  // namespace sstferry
