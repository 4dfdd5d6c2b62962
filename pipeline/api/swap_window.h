// Lets several swaps exchange their directories while the application is
// stopped only once. The `before` hook, which stops the application, runs when
// each swap has either completed its new database or failed. The `after` hook,
// which starts the application, runs after the last exchange.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Runs each of two hooks once for several swaps.
class SwapWindow {
 public:
  // Both hooks may be null. They receive `target_dir` instead of the directory
  // of a single swap. The window calls `waits` when a swap begins to wait for
  // the other swaps.
  SwapWindow(std::string target_dir, size_t swaps, SwapHook before,
             SwapHook after, std::function<void()> waits)
      : target_dir_(std::move(target_dir)),
        before_(std::move(before)),
        after_(std::move(after)),
        waits_(std::move(waits)),
        to_come_(swaps) {}

  // Blocks until all other swaps have called Before() or EndedWithout(), and
  // the `before` hook has run. Returns the result of the hook.
  //   kCancelled  event.stopped() returned true before that; the swap must call
  //               After() nevertheless
  [[nodiscard]] rocksdb::Status Before(const SwapEvent& event);
  // Blocks until all swaps that called Before() have called After(), and the
  // `after` hook has run. Returns the result of the hook.
  [[nodiscard]] rocksdb::Status After(const SwapEvent& event);
  // Runs the `after` hook immediately, because an earlier run was killed after
  // its exchange.
  [[nodiscard]] rocksdb::Status AfterEarlier(const SwapEvent& event);
  // Reports that a swap has ended before it called Before().
  void EndedWithout();

 private:
  [[nodiscard]] rocksdb::Status Run(const SwapHook& hook, SwapEvent event);

  const std::string target_dir_;
  const SwapHook before_;
  const SwapHook after_;
  const std::function<void()> waits_;
  std::mutex hook_mu_;  // locked while a hook runs
  std::mutex mu_;
  std::condition_variable changed_;
  size_t to_come_;        // guarded by mu_, like all below
  size_t inside_ = 0;     // swaps that have called Before() and not yet After()
  bool has_begun_ = false;   // the `before` hook runs or has run
  bool is_open_ = false;     // the `before` hook has run
  bool is_closed_ = false;   // the `after` hook has run
  bool exchanged_ = false;   // at least one swap exchanged its directories
  rocksdb::Status before_status_;
  rocksdb::Status after_status_;
};

}  // namespace sstferry
