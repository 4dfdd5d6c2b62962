// One window for the exchanges of several swaps: the application is stopped
// once, when each of them has its new database or has ended without one, and
// started once.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Threads: any.
class SwapWindow {
 public:
  // The hooks get `target_dir` instead of a swap's own, and may be null.
  // `waits` is called when a swap begins to wait for the others.
  SwapWindow(std::string target_dir, size_t swaps, SwapHook before,
             SwapHook after, std::function<void()> waits)
      : target_dir_(std::move(target_dir)),
        before_(std::move(before)),
        after_(std::move(after)),
        waits_(std::move(waits)),
        to_come_(swaps) {}

  // Blocks until all others are here or have ended, and the hook has run.
  //   kCancelled  event.stopped() said so first; After() follows nevertheless
  [[nodiscard]] rocksdb::Status Before(const SwapEvent& event);
  // Blocks until all that were in Before() are here, and the hook has run.
  [[nodiscard]] rocksdb::Status After(const SwapEvent& event);
  // Runs the hook now, for an exchange of an earlier run.
  [[nodiscard]] rocksdb::Status AfterEarlier(const SwapEvent& event);
  // A swap has ended for which Before() was not called.
  void EndedWithout();

 private:
  [[nodiscard]] rocksdb::Status Run(const SwapHook& hook, SwapEvent event);

  const std::string target_dir_;
  const SwapHook before_;
  const SwapHook after_;
  const std::function<void()> waits_;
  std::mutex hook_mu_;  // held while a hook runs
  std::mutex mu_;
  std::condition_variable changed_;
  size_t to_come_;        // under mu_, and all below
  size_t inside_ = 0;     // Before() was called, and After() was not
  bool has_begun_ = false;   // before_ runs or has run
  bool is_open_ = false;     // it has run
  bool is_closed_ = false;   // after_ has run
  bool exchanged_ = false;   // of any swap
  rocksdb::Status before_status_;
  rocksdb::Status after_status_;
};

}  // namespace sstferry
