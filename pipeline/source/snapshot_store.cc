#include "pipeline/source/snapshot_store.h"

#include <utility>
#include <vector>

#include "pipeline/start_thread.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status Gone(const TransferId& id) {
  return MakeStatus(EndState::kSnapshotGone,
                    "no snapshot of transfer " + ToHex(id) + " is held here");
}

}  // namespace

SnapshotStore::SnapshotStore(const ServeOptions* options) : options_(options) {
  if (options_->snapshot_ttl.count() > 0) {
    const Status started = StartThread([this] { TickLoop(); }, &ticker_);
    if (!started.ok()) {
      Log(LogLevel::kWarning,
          "snapshots are kept until the next start: " + MessageOf(started));
    }
  }
}

SnapshotStore::~SnapshotStore() {
  Stop();
  if (ticker_.joinable()) {
    ticker_.join();
  }
}

uint64_t SnapshotStore::SteadySeconds() const {
  return options_->leases.steady_seconds
             ? options_->leases.steady_seconds()
             : static_cast<uint64_t>(
                   std::chrono::duration_cast<std::chrono::seconds>(
                       Clock::now().time_since_epoch())
                       .count());
}

void SnapshotStore::Log(LogLevel level, const std::string& text) const {
  if (options_->log) {
    options_->log(level, text);
  }
}

SnapshotStore::Entries::iterator SnapshotStore::OldestIdle() {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!it->second.transfer->has_control() &&
        (oldest == entries_.end() ||
         it->second.idle_since < oldest->second.idle_since)) {
      oldest = it;
    }
  }
  return oldest;
}

Status SnapshotStore::Add(std::shared_ptr<Transfer> transfer) {
  std::shared_ptr<Transfer> evicted;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (stopping_) {
      return MakeStatus(EndState::kCancelled, "the source is shutting down");
    }
    if (entries_.size() >= options_->max_transfers) {
      const auto oldest = OldestIdle();
      if (oldest == entries_.end()) {
        return MakeStatus(EndState::kRefused,
                          "expected at most " +
                              std::to_string(options_->max_transfers) +
                              " transfers at once");
      }
      evicted = std::move(oldest->second.transfer);
      entries_.erase(oldest);
    }
    const TransferId id = transfer->id();
    entries_[id].transfer = std::move(transfer);
  }
  if (evicted != nullptr) {
    Release(std::move(evicted), "another transfer needs its place");
  }
  return Status::OK();
}

std::shared_ptr<Transfer> SnapshotStore::Find(const TransferId& id) const {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.transfer;
}

Status SnapshotStore::Resume(const OpenRequest& request, const Hello& target,
                             std::string peer, Channel* control,
                             std::shared_ptr<Transfer>* transfer) {
  // Under the lock, so that no lease ends in between.
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(request.held_transfer);
  if (found == entries_.end() || stopping_) {
    return Gone(request.held_transfer);
  }
  Transfer* const held = found->second.transfer.get();
  if (!held->IsOwner(control->identity())) {
    return MakeStatus(EndState::kDenied,
                      "transfer " + ToHex(request.held_transfer) +
                          " was opened with another certificate");
  }
  if (!held->planned()) {
    return Gone(request.held_transfer);
  }
  const Status status =
      held->Resume(request, target, std::move(peer), control);
  if (status.ok()) {
    *transfer = found->second.transfer;
  }
  return status;
}

bool SnapshotStore::StartLease(const std::shared_ptr<Transfer>& transfer,
                               const Channel* control) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(transfer->id());
  if (found != entries_.end()) {
    found->second.idle_since = SteadySeconds();
  }
  return transfer->Leave(control);
}

void SnapshotStore::Remove(const std::shared_ptr<Transfer>& transfer) {
  std::lock_guard<std::mutex> lock(mu_);
  entries_.erase(transfer->id());
}

void SnapshotStore::Release(std::shared_ptr<Transfer> transfer,
                            const std::string& why) {
  transfer->Fail(MakeStatus(EndState::kSnapshotGone, why), "source");
  const TransferReport report = transfer->Report();
  transfer.reset();
  Log(LogLevel::kInfo, "released the snapshot of transfer " +
                           report.transfer_id + " of " + report.name + ": " +
                           MessageOf(report.status));
  if (options_->on_transfer_end) {
    options_->on_transfer_end(report);
  }
}

void SnapshotStore::Tick() {
  std::vector<std::pair<std::shared_ptr<Transfer>, std::string>> released;
  {
    std::lock_guard<std::mutex> lock(mu_);
    const uint64_t now = SteadySeconds();
    const uint64_t ttl = static_cast<uint64_t>(options_->snapshot_ttl.count());
    for (auto it = entries_.begin(); it != entries_.end();) {
      Entry& entry = it->second;
      const bool idle = !entry.transfer->has_control();
      if (idle && entry.transfer->ended()) {
        released.emplace_back(std::move(entry.transfer), "");
        it = entries_.erase(it);
      } else if (idle && now >= entry.idle_since + ttl) {
        released.emplace_back(
            std::move(entry.transfer),
            "no target was connected for " + std::to_string(ttl) + " seconds");
        it = entries_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (auto& [transfer, why] : released) {
    Release(std::move(transfer), why);
  }
}

void SnapshotStore::TickLoop() {
  std::unique_lock<std::mutex> lock(mu_);
  while (!changed_.wait_for(lock, options_->leases.tick,
                            [this] { return stopping_; })) {
    lock.unlock();
    Tick();
    lock.lock();
  }
}

// All at once and without the lock: each may wait a second for a peer that
// does not read, and sessions that end need the lock.
void SnapshotStore::Stop() {
  Entries entries;
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
    entries.swap(entries_);
  }
  changed_.notify_all();
  std::vector<std::thread> threads;
  for (const auto& item : entries) {
    const auto fail = [transfer = item.second.transfer] {
      transfer->Fail(MakeStatus(EndState::kCancelled,
                                "the source is shutting down"),
                     "source");
    };
    std::thread thread;
    if (StartThread(fail, &thread).ok()) {
      threads.push_back(std::move(thread));
    } else {
      fail();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace sstferry
