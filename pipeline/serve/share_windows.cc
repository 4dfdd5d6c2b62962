#include "pipeline/serve/share_windows.h"

#include <algorithm>
#include <utility>

namespace sstferry {

void ShareWindows::Keep(const std::shared_ptr<SharedSnapshot>& snapshot,
                        uint64_t until) {
  std::lock_guard<std::mutex> lock(mu_);
  for (Window& window : windows_) {
    if (window.snapshot == snapshot) {
      window.until = std::max(window.until, until);
      return;
    }
  }
  windows_.push_back({snapshot, until});
}

// Declares `ended` before `lock`, so that the lock is released before the
// destructor of `ended` removes directories.
void ShareWindows::End(uint64_t now) {
  std::vector<Window> ended;
  std::lock_guard<std::mutex> lock(mu_);
  const auto rest = std::stable_partition(
      windows_.begin(), windows_.end(), [now](const Window& window) {
        return now < window.until && !window.snapshot->failed();
      });
  std::move(rest, windows_.end(), std::back_inserter(ended));
  windows_.erase(rest, windows_.end());
}

void ShareWindows::EndAll() {
  std::vector<Window> ended;
  std::lock_guard<std::mutex> lock(mu_);
  ended.swap(windows_);
}

}  // namespace sstferry
