// Knows where each part resumes, and hands what is left to lanes, the heaviest
// part first.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"

namespace sstferry {

// Tells what is held of one part when its lane begins. A new pull holds
// nothing.
struct PartStart {
  Totals received;
  std::string last_key;  // of what is held, if it is chunks of entries
  bool whole = false;    // nothing is left to ask for
};

// Threads: any.
class PartScheduler {
 public:
  // starts: by part id. The parts that `first` names come before the others.
  PartScheduler(const std::vector<Part>& parts,
                 const std::vector<PartStart>& starts, uint32_t lanes,
                 const std::function<bool(uint32_t)>& first = nullptr);

  // Returns the next part for a lane that has `outstanding` unfinished ones. A
  // lane asks ahead by one, so that no round trip shows, but not where the last
  // parts would queue behind a busy lane while another is free. Absent:
  // nothing is left for the lane, or it shall not ask ahead.
  std::optional<uint32_t> Next(size_t outstanding);

 private:
  const uint32_t lanes_;
  std::vector<uint32_t> order_;  // part ids
  std::mutex mu_;
  size_t next_ = 0;  // under mu_: place in order_
};

}  // namespace sstferry
