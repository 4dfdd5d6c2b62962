#include "pipeline/source/retained/share_windows.h"

#include <algorithm>
#include <utility>

namespace sstferry {

std::shared_ptr<SharedSnapshot> ShareWindows::Find(const std::string& database,
                                                   const OpenRequest& request,
                                                   uint64_t now) const {
  std::lock_guard<std::mutex> lock(mu_);
  for (auto it = windows_.rbegin(); it != windows_.rend(); ++it) {
    if (now < it->until && it->snapshot->Serves(database, request)) {
      return it->snapshot;
    }
  }
  return nullptr;
}

void ShareWindows::Open(std::shared_ptr<SharedSnapshot> snapshot,
                        uint64_t until) {
  std::lock_guard<std::mutex> lock(mu_);
  windows_.push_back({std::move(snapshot), until});
}

// Snapshots are destroyed without the lock: that removes a directory.
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
