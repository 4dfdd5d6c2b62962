// Lets several swaps exchange their directories during one pause of the
// application. The application is stopped once, when each swap either has its
// new database or has failed, and is started once.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Runs the hooks once for several swaps.
class SwapWindow {
 public:
  // The hooks receive `target_dir` instead of a swap's own directory, and may
  // be null. `waits` is called when a swap starts to wait for the others.
  SwapWindow(std::string target_dir, size_t swaps, SwapHook before,
             SwapHook after, std::function<void()> waits)
      : target_dir_(std::move(target_dir)),
        before_(std::move(before)),
        after_(std::move(after)),
        waits_(std::move(waits)),
        to_come_(swaps) {}

  // Blocks until all other swaps have called Before() or ended, and the hook
  // has run.
  //   kCancelled  event.stopped() returned true first; After() is still called
  [[nodiscard]] rocksdb::Status Before(const SwapEvent& event);
  // Blocks until all swaps that were in Before() have called After(), and the
  // hook has run.
  [[nodiscard]] rocksdb::Status After(const SwapEvent& event);
  // Runs the `after` hook now, for an exchange that an earlier run made.
  [[nodiscard]] rocksdb::Status AfterEarlier(const SwapEvent& event);
  // Reports that a swap has ended without calling Before().
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
  size_t inside_ = 0;     // swaps between Before() and After()
  bool has_begun_ = false;   // before_ runs or has run
  bool is_open_ = false;     // before_ has run
  bool is_closed_ = false;   // after_ has run
  bool exchanged_ = false;   // any swap exchanged its directories
  rocksdb::Status before_status_;
  rocksdb::Status after_status_;
};

}  // namespace sstferry
