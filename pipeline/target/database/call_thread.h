// A thread that runs calls for threads of a low priority. If they ran a call
// themselves, writers that wait for it would wait longer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "rocksdb/status.h"

namespace sstferry {

// Runs one call after another on a thread of its own, which has the priority of
// the thread that makes this object.
// Threads: any.
class CallThread {
 public:
  CallThread();
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // Runs call() on the thread, waits for it and returns its status. Runs it on
  // the caller's thread if the system could not start one.
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
