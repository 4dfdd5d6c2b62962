// The snapshots that a server keeps for a while, because more targets may ask
// for the same point in time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// Times are steady seconds.
//
// Ownership: shares the snapshots until their window ends.
// Threads:   any.
class ShareWindows {
 public:
  // Keeps `snapshot` until `until` at least.
  void Keep(const std::shared_ptr<SharedSnapshot>& snapshot, uint64_t until);
  // Lets those go whose time is over at `now`, or that could not be taken.
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
