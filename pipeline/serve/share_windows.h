// Keeps snapshots for a while, so that further targets can pull the same point
// in time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// The snapshots that one server keeps for further targets. Each snapshot has a
// window: the time during which it is kept. All times are in seconds of the
// steady clock.
//
// Ownership: shares each snapshot until its window ends. Threads:   any.
class ShareWindows {
 public:
  // Keeps `snapshot` until the time `until`, or longer if it is kept longer
  // already.
  void Keep(const std::shared_ptr<SharedSnapshot>& snapshot, uint64_t until);
  // Releases the snapshots whose windows end at `now` or earlier. Also releases
  // snapshots that could not be taken.
  void End(uint64_t now);
  void EndAll();

 private:
  struct Window {
    std::shared_ptr<SharedSnapshot> snapshot;
    uint64_t until = 0;
  };
  mutable std::mutex mu_;
  std::vector<Window> windows_;  // under mu_, one for each snapshot
};

}  // namespace sstferry
