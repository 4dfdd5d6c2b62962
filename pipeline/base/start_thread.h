// Starts a thread and returns a Status, because std::thread throws when the
// system has no more threads.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "format/end_state.h"

namespace sstferry {

// Runs work() in *thread. On failure *thread is unchanged and the status is
// kInternal.
template <typename Work>
[[nodiscard]] rocksdb::Status StartThread(Work work, std::thread* thread) {
  try {
    *thread = std::thread(std::move(work));
  } catch (const std::system_error& error) {
    return MakeStatus(EndState::kInternal,
                      std::string("cannot start a thread: ") + error.what());
  }
  return rocksdb::Status::OK();
}

}  // namespace sstferry
