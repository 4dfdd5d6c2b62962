// Fails an operation that exceeds its time limit.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "format/end_state.h"
#include "pipeline/base/duration.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/first_failure.h"
#include "rocksdb/status.h"

namespace sstferry {

// Watches one time limit on a thread of its own. Threads: one thread makes,
// starts and destroys this object.
class DeadlineWatch {
 public:
  DeadlineWatch() = default;
  // Borrows `failure`, and sets it to kDeadline after `limit` unless this
  // object is destroyed first. 0: no limit. May be called once.
  //   kInternal  the thread cannot be started
  [[nodiscard]] rocksdb::Status Start(std::chrono::milliseconds limit,
                                      FirstFailure* failure) {
    if (limit.count() <= 0) {
      return rocksdb::Status::OK();
    }
    return StartThread(
        [this, limit, failure] {
          if (!done_.WaitFor(limit)) {
            failure->Set(MakeStatus(EndState::kDeadline,
                                    "not done within " +
                                        FormatDuration(limit)),
                         {FailedPart::kTarget});
          }
        },
        &thread_);
  }
  ~DeadlineWatch() {
    done_.Stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  DeadlineWatch(const DeadlineWatch&) = delete;
  DeadlineWatch& operator=(const DeadlineWatch&) = delete;

 private:
  StopSignal done_;
  std::thread thread_;
};

}  // namespace sstferry
