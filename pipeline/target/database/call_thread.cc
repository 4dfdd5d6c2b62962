#include "pipeline/target/database/call_thread.h"

#include "pipeline/base/start_thread.h"

namespace sstferry {

using rocksdb::Status;

CallThread::CallThread() {
  StartThread([this] { Loop(); }, &thread_).PermitUncheckedError();
}

CallThread::~CallThread() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Status CallThread::Run(const std::function<Status()>& call) {
  if (!thread_.joinable()) {
    return call();
  }
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return call_ == nullptr; });
  call_ = &call;
  made_ = false;
  changed_.notify_all();
  changed_.wait(lock, [this] { return made_; });
  const Status status = status_;
  call_ = nullptr;
  made_ = false;
  changed_.notify_all();
  return status;
}

void CallThread::Loop() {
  std::unique_lock<std::mutex> lock(mu_);
  while (true) {
    changed_.wait(lock,
                  [this] { return ends_ || (call_ != nullptr && !made_); });
    if (ends_) {
      return;
    }
    const std::function<Status()>* const call = call_;
    lock.unlock();
    const Status status = (*call)();
    lock.lock();
    status_ = status;
    made_ = true;
    changed_.notify_all();
  }
}

}  // namespace sstferry
