#include "pipeline/serve/snapshot_store.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "format/quantity.h"
#include "pipeline/base/duration.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/snapshot/retained_snapshots.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// While a target is connected, its lease is written again after this time, or
// after a quarter of its length if that is shorter. If the process is killed,
// the lease ends early by at most this time.
constexpr uint64_t kRenewSeconds = 30;
constexpr uint64_t kSweepTicks = 10;
constexpr std::chrono::milliseconds kOtherProcessRetry{2000};

double FreePercent(const std::string& directory) {
  struct statvfs info;
  if (statvfs(directory.c_str(), &info) != 0 || info.f_blocks == 0) {
    return 100;  // unknown: do not release snapshots
  }
  return 100.0 * static_cast<double>(info.f_bavail) /
         static_cast<double>(info.f_blocks);
}

Status OtherOwner(const TransferId& id) {
  return MakeStatus(EndState::kDenied,
                    "transfer " + ToHex(id) +
                        " was opened with another certificate or by another "
                        "account; a pull with --restart begins another one");
}

Status Gone(const TransferId& id) {
  return MakeStatus(EndState::kSnapshotGone,
                    "no snapshot of transfer " + ToHex(id) +
                        " is retained here");
}

// Calls `end` for all transfers at the same time. Each call may wait a second
// for a peer that does not read.
void ForEachAtOnce(const std::vector<std::shared_ptr<Transfer>>& transfers,
                   const std::function<void(Transfer*)>& end) {
  std::vector<std::thread> threads;
  for (const std::shared_ptr<Transfer>& transfer : transfers) {
    const auto work = [&end, one = transfer.get()] { end(one); };
    std::thread thread;
    if (StartThread(work, &thread).ok()) {
      threads.push_back(std::move(thread));
    } else {
      work();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace

SnapshotStore::SnapshotStore(const ServeOptions* options,
                             ServedDatabases* databases, ServerShares* shares)
    : options_(options),
      shares_(shares),
      leased_(options, databases),
      pins_(options),
      entries_(options) {}

void SnapshotStore::Start() {
  if (options_->snapshot_ttl.count() > 0 || options_->min_free_percent > 0 ||
      options_->share_snapshots.count() > 0) {
    const Status started = StartThread([this] { TickLoop(); }, &ticker_);
    if (!started.ok()) {
      Log(LogLevel::kWarning,
          "before the next start, no snapshot is removed when its time ends "
          "(--snapshot-ttl, --share-snapshots) or when space is short "
          "(--min-free): " + MessageOf(started));
    }
  }
}

SnapshotStore::~SnapshotStore() {
  Stop();
  Join();
}

void SnapshotStore::Join() {
  if (ticker_.joinable()) {
    ticker_.join();
  }
}

void SnapshotStore::Log(LogLevel level, const std::string& text) {
  if (!options_->log) {
    return;
  }
  if (const std::optional<std::string> line = log_.Admit(text)) {
    options_->log(level, *line);
  }
}

std::shared_ptr<Transfer> SnapshotStore::Find(const TransferId& id) const {
  std::lock_guard<std::mutex> lock(mu_);
  return FindLocked(id);
}

std::shared_ptr<Transfer> SnapshotStore::FindLocked(
    const TransferId& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.transfer;
}

std::shared_ptr<SharedSnapshot> SnapshotStore::Latest(
    const ServedDatabase& database, const OpenRequest& request) {
  std::lock_guard<std::mutex> lock(mu_);
  const uint64_t now = SteadySeconds();
  const uint64_t share =
      static_cast<uint64_t>(options_->share_snapshots.count());
  const auto is_new = [&](const std::shared_ptr<SharedSnapshot>& one) {
    const uint64_t age = now - std::min(now, one->begun_seconds());
    return age < share || (share > 0 && request.waited_seconds > 0 &&
                           age - share <= request.waited_seconds);
  };
  std::shared_ptr<SharedSnapshot> newest =
      order_.Newest(database.name, request);
  if (newest == nullptr || !is_new(newest)) {
    newest = std::make_shared<SharedSnapshot>(database, *options_, request);
    order_.Begin(newest);
  }
  if (share > 0 && !stopping_) {
    windows_.Keep(newest, newest->begun_seconds() + share);
  }
  return newest;
}

Status SnapshotStore::Adopt(const ServedDatabase& database,
                            const OpenRequest& request, const Hello& target,
                            const PeerIdentity* peer,
                            std::chrono::milliseconds* retry_after) {
  const TransferId& id = request.named_transfer;
  if (database.origin != nullptr) {
    // An archive keeps its data without leases. Adds a new transfer instead;
    // the target checks that its plan is equal to the earlier plan.
    return Add(std::make_shared<Transfer>(database, *options_, request, target,
                                          /*peer=*/"", shares_),
               retry_after);
  }
  std::string path;
  Lease lease;
  if (!leased_.Find(database.name, id, &path, &lease)) {
    return Gone(id);
  }
  std::unique_ptr<PrivateDir> dir;
  Status status = PrivateDir::Adopt(path, &dir);
  if (EndStateOf(status) == EndState::kSnapshotGone) {
    return Gone(id);  // does not tell the peer the path
  }
  if (status.ok() && dir == nullptr) {
    status = MakeStatus(EndState::kBusy,
                        "the snapshot of transfer " + ToHex(id) +
                            " is in use by another process");
    const uint64_t most =
        static_cast<uint64_t>(options_->other_process_limit.count());
    if (SteadySeconds() - started_seconds_ < most) {
      *retry_after = kOtherProcessRetry;
    }
  }
  RETURN_IF_ERROR(status);
  auto transfer = std::make_shared<Transfer>(database, *options_, lease,
                                             std::move(dir), shares_);
  status = transfer->IsOwner(peer) ? transfer->CheckSame(request, target)
                                   : OtherOwner(id);
  if (status.ok()) {
    status = Add(transfer, retry_after);
    if (EndStateOf(status) == EndState::kBusy) WriteLease(transfer);
  }
  return status;
}

void SnapshotStore::AwaitLease(const TransferId& id,
                               std::unique_lock<std::mutex>* lock) {
  changed_.wait(*lock, [this, &id] {
    return stopping_ || leaving_.count(id) == 0;
  });
}

Status SnapshotStore::Resume(const ServedDatabase& database,
                             const OpenRequest& request, const Hello& target,
                             std::string peer, Channel* control,
                             std::shared_ptr<Transfer>* transfer,
                             std::chrono::milliseconds* retry_after) {
  std::unique_lock<std::mutex> lock(mu_);
  AwaitLease(request.named_transfer, &lock);
  if (FindLocked(request.named_transfer) == nullptr) {
    lock.unlock();
    const Status adopted =
        Adopt(database, request, target, control->identity(), retry_after);
    lock.lock();
    // Another connection may have adopted the snapshot at the same time.
    if (!adopted.ok() && FindLocked(request.named_transfer) == nullptr) {
      return adopted;
    }
  }
  // The lock is held until the transfer is resumed, so that its lease cannot
  // expire in the meantime.
  const std::shared_ptr<Transfer> retained = FindLocked(request.named_transfer);
  if (retained == nullptr || stopping_) {
    return Gone(request.named_transfer);
  }
  if (!retained->IsOwner(control->identity())) {
    return OtherOwner(request.named_transfer);
  }
  RETURN_IF_ERROR(retained->Resume(request, target, std::move(peer), control));
  *transfer = retained;
  entries_.Returned(retained->id(), SteadySeconds());
  return Status::OK();
}

bool SnapshotStore::StartLease(const std::shared_ptr<Transfer>& transfer,
                               const Channel* control) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(transfer->id());
  if (found != entries_.end() && found->second.transfer == transfer) {
    found->second.idle_since = SteadySeconds();
  }
  if (!transfer->Leave(control)) {
    return false;
  }
  WriteLease(transfer);
  return true;
}

void SnapshotStore::Took(const Transfer& transfer) {
  const std::string note =
      UnknownOptionsNote(transfer.plan().unknown_options);
  if (!note.empty()) {
    Log(LogLevel::kWarning, transfer.name() + ": " + note);
  }
  std::lock_guard<std::mutex> lock(mu_);
  order_.Taken(transfer.id(), *transfer.shared());
}

void SnapshotStore::WriteLease(const std::shared_ptr<Transfer>& transfer) {
  const Status status = transfer->WriteLease(leased_.rules().Now());
  if (!status.ok()) {
    Log(LogLevel::kWarning,
        "the snapshot of transfer " + ToHex(transfer->id()) +
            " will be lost when this process ends: " + MessageOf(status));
  }
}

void SnapshotStore::Remove(const std::shared_ptr<Transfer>& transfer) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(transfer->id());
  // If the transfer was parked, its target may have resumed it, and then
  // another object has the id.
  if (found != entries_.end() && found->second.transfer == transfer) {
    entries_.erase(found);
  }
}

void SnapshotStore::EndAndLog(std::shared_ptr<Transfer> transfer,
                              const std::string& why, TransferReport* report) {
  transfer->Fail(MakeStatus(EndState::kSnapshotGone, why), "source");
  *report = transfer->Report();
  transfer.reset();
  Log(LogLevel::kInfo, "released the snapshot of transfer " +
                           report->transfer_id + " of " + report->name + ": " +
                           MessageOf(report->status));
}

void SnapshotStore::Release(std::shared_ptr<Transfer> transfer,
                            const std::string& why) {
  TransferReport report;
  EndAndLog(std::move(transfer), why, &report);
  if (options_->on_transfer_end) {
    options_->on_transfer_end(report);
  }
}

void SnapshotStore::Tick() {
  HonourReleases();
  windows_.End(SteadySeconds());
  pins_.Expire();
  EndLeases();
  {
    std::lock_guard<std::mutex> lock(mu_);
    entries_.LookWhatMoved(SteadySeconds());
  }
  RenewLeases();
  KeepFree();
  if (++ticks_ % kSweepTicks == 0) {
    RemoveLeftovers();
  }
}

void SnapshotStore::RemoveLeftovers() {
  for (const std::string& parent : leased_.parents()) {
    const Status status = RemoveLeftoverSnapshots(
        parent,
        [this](const std::string& line) { Log(LogLevel::kInfo, line); },
        leased_.rules());
    const std::string failure = status.ok() ? "" : MessageOf(status);
    if (!status.ok() && failure != failed_sweeps_[parent]) {
      Log(LogLevel::kWarning, "cannot remove all leftover snapshots in " +
                                  parent + ": " + failure);
    }
    failed_sweeps_[parent] = failure;
  }
}

void SnapshotStore::RenewLeases() {
  const uint64_t ttl = static_cast<uint64_t>(options_->snapshot_ttl.count());
  const uint64_t now = SteadySeconds();
  if (now < renewed_ + std::clamp<uint64_t>(ttl / 4, 1, kRenewSeconds)) {
    return;
  }
  renewed_ = now;
  std::vector<std::shared_ptr<Transfer>> connected;
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (const auto& item : entries_) {
      if (item.second.transfer->has_control() &&
          item.second.transfer->has_lease()) {
        connected.push_back(item.second.transfer);
      }
    }
  }
  for (const auto& transfer : connected) {
    WriteLease(transfer);
  }
}

// In each directory that has too little free space, releases one snapshot. The
// next call releases another one if the space is still too little.
void SnapshotStore::KeepFree() {
  for (const std::string& parent : leased_.parents()) {
    const double free = options_->leases.free_percent
                            ? options_->leases.free_percent(parent)
                            : FreePercent(parent);
    if (free >= options_->min_free_percent) {
      continue;
    }
    windows_.EndAll();
    if (pins_.EndAll()) {
      Log(LogLevel::kWarning,
          "released the databases pinned for pulls that had not started: the "
          "file system of " + parent + " has too little space");
      continue;
    }
    std::array<char, 32> percent{};
    std::snprintf(percent.data(), percent.size(), "%g",
                  options_->min_free_percent);
    const std::string why = std::string("less than ") + percent.data() +
                            " % of the file system of " + parent + " is free";
    if (!ReleaseOldestIdle(parent, why)) {
      ReleaseLargest(parent, why);
    }
  }
}

bool SnapshotStore::ReleaseOldestIdle(const std::string& parent,
                                      const std::string& why) {
  std::vector<Idle> idle;
  {
    std::lock_guard<std::mutex> lock(mu_);
    const uint64_t now = SteadySeconds();
    for (const auto& [id, since] : entries_.IdleIn(parent)) {
      idle.push_back({now - std::min(now, since), id, ""});
    }
  }
  std::vector<std::string> paths;
  ListPrivateDirs(parent, &paths).PermitUncheckedError();
  const uint64_t wall = leased_.rules().Now();
  for (const std::string& path : paths) {
    Lease lease;
    if (ReadLease(path, &lease) == LeaseState::kGood &&
        leased_.IsOurs(lease) &&
        Find(lease.transfer_id) == nullptr) {
      idle.push_back({wall - std::min(wall, lease.renewed_seconds),
                      lease.transfer_id, path});
    }
  }
  std::sort(idle.begin(), idle.end(), [](const Idle& a, const Idle& b) {
    return a.seconds > b.seconds;
  });
  for (const Idle& one : idle) {
    if (!one.path.empty()) {
      std::unique_ptr<PrivateDir> dir;
      const Status status = PrivateDir::Adopt(one.path, &dir);
      if (status.ok() && dir != nullptr) {
        dir->Keep(false);
        Log(LogLevel::kWarning, "removed " + one.path + ": " + why);
        return true;
      }
      continue;
    }
    std::unique_lock<std::mutex> lock(mu_);
    std::vector<std::shared_ptr<Transfer>> readers =
        entries_.TakeIdle(one.id);
    lock.unlock();
    for (std::shared_ptr<Transfer>& reader : readers) {
      Release(std::move(reader), why);
    }
    if (!readers.empty()) {
      return true;
    }
  }
  return false;
}

void SnapshotStore::ReleaseLargest(const std::string& parent,
                                   const std::string& why) {
  std::unique_lock<std::mutex> lock(mu_);
  const std::vector<std::shared_ptr<Transfer>> readers =
      entries_.ReadersOfLargest(parent);
  lock.unlock();
  // Only fails the transfers. Their sessions report the end to the application.
  ForEachAtOnce(readers, [&why](Transfer* reader) {
    reader->Fail(MakeStatus(EndState::kSnapshotGone, why), "source");
  });
}

void SnapshotStore::EndLeases() {
  std::unique_lock<std::mutex> lock(mu_);
  std::vector<std::shared_ptr<Transfer>> expired =
      entries_.TakeExpired(SteadySeconds());
  lock.unlock();
  for (std::shared_ptr<Transfer>& transfer : expired) {
    // If the transfer has already ended, it keeps its first reason.
    Release(std::move(transfer),
            "no target was connected for " +
                FormatDuration(options_->snapshot_ttl));
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

// Unlocks mu_ before it ends the transfers, because their sessions need mu_ to
// end.
void SnapshotStore::Stop() {
  TransferPlaces entries(options_);
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
    entries.swap(entries_);
  }
  windows_.EndAll();
  pins_.EndAll();
  changed_.notify_all();
  std::vector<std::shared_ptr<Transfer>> transfers;
  for (const auto& item : entries) {
    transfers.push_back(item.second.transfer);
    if (item.second.transfer->has_control() &&
        item.second.transfer->has_lease()) {
      WriteLease(item.second.transfer);  // restarts the time of the lease
    }
  }
  ForEachAtOnce(transfers, [](Transfer* transfer) {
    transfer->Suspend(MakeStatus(EndState::kCancelled,
                                 "the source is shutting down"),
                      "source");
  });
  for (const std::shared_ptr<Transfer>& transfer : transfers) {
    LogRetained(*transfer);
  }
}

void SnapshotStore::LogRetained(const Transfer& transfer) const {
  if (options_->log && transfer.has_lease()) {
    options_->log(
        LogLevel::kWarning,
        "the snapshot of transfer " + ToHex(transfer.id()) + " of " +
            transfer.name() + " is retained in " + transfer.lease_directory() +
            " for " + FormatDuration(options_->snapshot_ttl) + ", with " +
            FormatBytes(transfer.pinned_bytes()) +
            " pinned; sstferry release removes it");
  }
}

}  // namespace sstferry
