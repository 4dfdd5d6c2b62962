// Starts threads and returns a Status; std::thread throws if the system cannot
// start more threads.
#pragma once

#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "rocksdb/env.h"

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

// Checks that `count` more threads can be started now. Callers use this
// function before they call a library that starts threads but cannot report a
// failure.
//   kInternal  the threads cannot be started
[[nodiscard]] inline rocksdb::Status CheckThreads(int count) {
  std::promise<void> checked;
  const std::shared_future<void> until = checked.get_future().share();
  std::vector<std::thread> threads(static_cast<size_t>(count));
  rocksdb::Status status;
  for (std::thread& thread : threads) {
    if (status.ok()) {
      status = StartThread([until] { until.wait(); }, &thread);
    }
  }
  checked.set_value();
  for (std::thread& thread : threads) {
    if (thread.joinable()) {
      thread.join();
    }
  }
  return status;
}

// Starts the threads that RocksDB's default Env shares between databases. If
// RocksDB cannot start a thread later, it aborts the process.
[[nodiscard]] inline rocksdb::Status StartRocksDbThreads() {
  try {
    for (const auto pool : {rocksdb::Env::LOW, rocksdb::Env::HIGH}) {
      rocksdb::Env::Default()->IncBackgroundThreadsIfNeeded(2, pool);
    }
  } catch (const std::system_error& error) {
    return MakeStatus(EndState::kInternal,
                      std::string("cannot start RocksDB's threads: ") +
                          error.what());
  }
  return rocksdb::Status::OK();
}

}  // namespace sstferry
