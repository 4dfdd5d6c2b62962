// A thread that makes calls for others, which are not to make them themselves:
// at a low priority they would let whoever waits for the call wait longer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "rocksdb/status.h"

namespace sstferry {

// Threads: Run() from any, one call at a time; the thread has the priority of
//   the one that makes this object.
class CallThread {
 public:
  CallThread();
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // Waits for what call() returns there; here, where the system had no thread.
  [[nodiscard]] rocksdb::Status Run(
      const std::function<rocksdb::Status()>& call);

 private:
  void Loop();

  std::mutex mu_;
  std::condition_variable changed_;
  const std::function<rocksdb::Status()>* call_ = nullptr;  // under mu_
  bool made_ = false;                                       // under mu_
  rocksdb::Status status_;                                  // under mu_
  bool ends_ = false;                                       // under mu_
  std::thread thread_;
};

}  // namespace sstferry
