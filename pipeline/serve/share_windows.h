// Keeps snapshots for a while, because more targets may ask for the same point
// in time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// The snapshots that one server keeps for more targets, and until when. Times
// are seconds of the steady clock.
//
// Ownership: shares each snapshot until its window ends.
// Threads:   any.
class ShareWindows {
 public:
  // Keeps `snapshot` at least until `until`.
  void Keep(const std::shared_ptr<SharedSnapshot>& snapshot, uint64_t until);
  // Releases snapshots whose window has ended at `now`, or that could not be
  // taken.
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
