// std::thread throws when the system has no more threads; a Status does not
// cross anybody's path by surprise.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "format/end_state.h"

namespace sstferry {

// *thread runs work(), or is as it was and the status (kInternal) says why.
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
