// The transfers of a server: those whose target is connected, and those whose
// target is gone and may come back while their lease runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "pipeline/source.h"
#include "pipeline/source/transfer.h"

namespace sstferry {

// Ownership: shares every transfer with its sessions; borrows the options.
// Threads:   all members from any thread; a ticker of its own lets leases run
//   out.
class SnapshotStore {
 public:
  explicit SnapshotStore(const ServeOptions* options);
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;
  ~SnapshotStore();

  // Makes a transfer known to lanes. When there are too many, the one that
  // nobody has been connected to for longest makes room; kRefused when all are
  // in use, kCancelled after Stop().
  [[nodiscard]] rocksdb::Status Add(std::shared_ptr<Transfer> transfer);
  // Null: not here.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  // `control` becomes the connection of the target of request.held_transfer.
  //   kSnapshotGone  there is no such transfer (any more).
  //   kDenied        `control` has another identity than who opened it.
  //   kRefused       the request is another one; names the field.
  [[nodiscard]] rocksdb::Status Resume(const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control,
                                       std::shared_ptr<Transfer>* transfer);
  // The target's connection is gone: its lease begins to run. False when
  // another connection has taken over from it.
  bool StartLease(const std::shared_ptr<Transfer>& transfer,
                  const Channel* control);
  // The transfer has ended.
  void Remove(const std::shared_ptr<Transfer>& transfer);

  // What the ticker does once per ServeOptions::leases.tick.
  void Tick();
  // Ends every transfer; each target is told within a second.
  void Stop();

 private:
  struct Entry {
    std::shared_ptr<Transfer> transfer;
    uint64_t idle_since = 0;  // steady seconds; while no target is connected
  };
  using Entries = std::map<TransferId, Entry>;

  uint64_t SteadySeconds() const;
  void Log(LogLevel level, const std::string& text) const;
  // Under mu_: the idle one whose lease began first; end() when there is none.
  Entries::iterator OldestIdle();
  // Not under mu_: ends it, removes its snapshot unless somebody else still
  // has it, tells the application.
  void Release(std::shared_ptr<Transfer> transfer, const std::string& why);
  void TickLoop();

  const ServeOptions* const options_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  Entries entries_;        // under mu_
  bool stopping_ = false;  // under mu_
  std::thread ticker_;
};

}  // namespace sstferry
