// Hands out the remaining parts to the lanes, the largest part first.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"

namespace sstferry {

// The state of a part before a lane requests it. In a new pull, no chunk has
// been received.
struct PartStart {
  Totals received;
  std::string last_key;  // last received key, if the chunks have entries
  bool whole = false;    // nothing is left to request
};

// Assigns parts to lanes. Threads: any.
class PartScheduler {
 public:
  // `starts` is indexed by part id. Parts for which `first` returns true are
  // handed out before the others.
  PartScheduler(const std::vector<Part>& parts,
                 const std::vector<PartStart>& starts, uint32_t lanes,
                 const std::function<bool(uint32_t)>& first = nullptr);

  // Returns the next part for a lane that has `outstanding` unfinished parts. A
  // lane requests one part ahead, which hides the round trip. It requests none
  // of the last parts ahead, because such a part would wait for a busy lane
  // while another lane is free. Returns nullopt if no part is left for the
  // lane, or if the lane must not request ahead.
  std::optional<uint32_t> Next(size_t outstanding);

 private:
  const uint32_t lanes_;
  std::vector<uint32_t> order_;  // part ids
  std::mutex mu_;
  size_t next_ = 0;  // index in order_; under mu_
};

}  // namespace sstferry
