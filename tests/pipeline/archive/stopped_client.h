// A client of a store in memory that runs in its own thread, up to a call that
// the test names.
#pragma once

#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>

#include "rocksdb/status.h"
#include "tests/support/memory_store.h"

namespace sstferry {

class StoppedClient {
 public:
  using Work = std::function<rocksdb::Status(ObjectStore* store)>;

  StoppedClient(MemoryStore* server, Work work)
      : store_(server->NewClient(
            [this](StoreCall* call) { return Arrive(call); })) {
    thread_ = std::thread([this, work = std::move(work)] {
      go_.acquire();
      status_ = work(store_.get());
      ended_ = true;
      stopped_.release();
    });
  }
  ~StoppedClient() {
    if (!ended_) {
      Finish().PermitUncheckedError();
    }
    thread_.join();
  }
  StoppedClient(const StoppedClient&) = delete;
  StoppedClient& operator=(const StoppedClient&) = delete;

  // Runs the client until just before a call of this kind, for a key that
  // begins with `key`. Returns false if the client ended before.
  bool RunUntil(StoreCallKind kind, const std::string& key) {
    kind_ = kind;
    key_ = key;
    return Go();
  }
  // Runs the client to its end.
  rocksdb::Status Finish() {
    key_ = "no such key";
    while (!ended_) {
      Go();
    }
    return status_;
  }
  // Sets the result of the call before which the client is stopped.
  void Fail(CallFate fate) { fate_ = fate; }

 private:
  bool Go() {
    go_.release();
    stopped_.acquire();
    return !ended_;
  }
  CallFate Arrive(StoreCall* call) {
    if (call->kind == kind_ && call->key.starts_with(key_)) {
      stopped_.release();
      go_.acquire();
    }
    call->slept_before_signing = true;
    return std::exchange(fate_, CallFate::kArrives);
  }

  const std::unique_ptr<ObjectStore> store_;
  StoreCallKind kind_ = StoreCallKind::kNow;
  std::string key_ = "no such key";
  CallFate fate_ = CallFate::kArrives;
  rocksdb::Status status_;
  bool ended_ = false;
  std::binary_semaphore go_{0};
  std::binary_semaphore stopped_{0};
  std::thread thread_;
};

}  // namespace sstferry
