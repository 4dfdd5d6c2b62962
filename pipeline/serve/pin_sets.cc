#include "pipeline/serve/pin_sets.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/random_id.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/serve/served_databases.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Number of threads that pin databases. They mostly wait for the disk.
constexpr size_t kPinThreads = 8;
constexpr std::chrono::seconds kLeastPinTime{60};

// Calls work(i) for each i from 0 to `count` - 1, with several calls at a time.
class ManyAtOnce {
 public:
  ManyAtOnce(size_t count, std::function<void(size_t)> work)
      : count_(count), work_(std::move(work)) {}

  // Calls `alive` about once a second while the threads work. If `alive`
  // returns false, does not start the remaining calls.
  void Run(const std::function<bool()>& alive) {
    std::vector<std::thread> threads(std::min(kPinThreads, count_));
    size_t started = 0;
    for (std::thread& thread : threads) {
      started += StartThread([this] { Work(); }, &thread).ok() ? 1 : 0;
    }
    if (started == 0 && count_ > 0) {
      Work();
    }
    std::unique_lock<std::mutex> lock(mu_);
    while (!changed_.wait_for(lock, std::chrono::seconds(1),
                              [&] { return ended_ >= started; })) {
      lock.unlock();
      if (!alive()) {
        next_ = count_;
      }
      lock.lock();
    }
    lock.unlock();
    for (std::thread& thread : threads) {
      if (thread.joinable()) {
        thread.join();
      }
    }
  }

 private:
  void Work() {
    for (size_t i = next_++; i < count_; i = next_++) {
      work_(i);
    }
    const std::lock_guard<std::mutex> lock(mu_);
    ++ended_;
    changed_.notify_all();
  }

  const size_t count_;
  const std::function<void(size_t)> work_;
  std::atomic<size_t> next_{0};
  std::mutex mu_;
  std::condition_variable changed_;
  size_t ended_ = 0;  // under mu_
};

uint64_t Micros(std::chrono::steady_clock::time_point time) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          time.time_since_epoch())
          .count());
}

std::optional<PeerIdentity> OwnerOfPins(const PeerIdentity* peer) {
  return peer == nullptr ? std::nullopt : std::optional(*peer);
}

}  // namespace

void PinSets::Pin(const std::vector<PinWish>& wishes, const PeerIdentity* peer,
                  const std::function<bool(uint64_t done)>& alive,
                  PinReply* reply) {
  const size_t count = wishes.size();
  reply->id = RandomId();
  reply->databases.assign(count, PinnedDatabase());
  std::vector<std::unique_ptr<PinnedFiles>> pins(count);
  std::vector<Status> results(count);
  bool is_room = false;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    uint64_t held = promised_;
    for (const auto& [id, set] : sets_) {
      held += set.databases.size();
    }
    is_room = held + count <= kMaxServedDatabases;
    promised_ += is_room ? count : 0;
  }
  std::atomic<uint64_t> done{0};
  std::atomic<bool> stopped{false};
  const auto step = [&](const std::function<void(size_t)>& work) {
    ManyAtOnce(count, [&](size_t i) {
      work(i);
      ++done;
    }).Run([&] {
      stopped = stopped || !alive(done);
      return !stopped;
    });
  };
  for (size_t i = 0; i < count; ++i) {
    if (!wishes[i].problem.empty() || !is_room) {
      results[i] = MakeStatus(
          EndState::kBusy,
          !is_room ? "the source would hold more than " +
                         std::to_string(kMaxServedDatabases) +
                         " pinned databases; try again when other pulls have "
                         "ended"
                   : wishes[i].problem);
    } else if (wishes[i].database.db != nullptr) {
      results[i] = MakeStatus(EndState::kRefused,
                              "the application has the database open in the "
                              "process that serves it");
    }
  }
  step([&](size_t i) {
    if (!results[i].ok()) {
      return;
    }
    const ServedDatabase& database = wishes[i].database;
    SnapshotOptions options;
    options.database_dir = database.directory;
    options.snapshot_dir = SnapshotDirOf(database, options_->snapshot_dir);
    options.wal_dir = database.wal_dir;
    options.cancelled = [&stopped] { return stopped.load(); };
    options.log = options_->log;
    results[i] = PinnedFiles::Link(options, &pins[i]);
  });
  step([&](size_t i) {
    if (pins[i] != nullptr) results[i] = pins[i]->Confirm();
  });
  step([&](size_t i) {
    if (pins[i] != nullptr && results[i].ok()) results[i] = pins[i]->Copy();
  });
  Set set;
  set.owner = OwnerOfPins(peer);
  set.used = Clock::now();
  for (size_t i = 0; i < count; ++i) {
    PinnedDatabase* const pinned = &reply->databases[i];
    if (pins[i] == nullptr || !results[i].ok()) {
      pinned->problem = results[i].ok() ? "stopped" : MessageOf(results[i]);
      continue;
    }
    pins[i]->Forget();
    pinned->begin_micros = Micros(pins[i]->moment_begin());
    pinned->taken_seconds = pins[i]->taken_seconds();
    pinned->end_micros = Micros(pins[i]->moment_end());
    set.databases[wishes[i].database.name] = std::move(pins[i]);
  }
  const std::lock_guard<std::mutex> lock(mu_);
  promised_ -= is_room ? count : 0;
  if (!set.databases.empty() && !stopped) {
    sets_[reply->id] = std::move(set);
  }
}

PinSets::Set* PinSets::FindSet(const TransferId& id, const PeerIdentity* peer) {
  const auto found = sets_.find(id);
  return found != sets_.end() && found->second.owner == OwnerOfPins(peer)
             ? &found->second
             : nullptr;
}

std::shared_ptr<const PinnedFiles> PinSets::Find(const TransferId& id,
                                                 const std::string& database,
                                                 const PeerIdentity* peer) {
  const std::lock_guard<std::mutex> lock(mu_);
  Set* const set = FindSet(id, peer);
  if (set == nullptr) {
    return nullptr;
  }
  set->used = Clock::now();
  const auto found = set->databases.find(database);
  return found == set->databases.end() ? nullptr : found->second;
}

// Declares `ended` before `lock`, so that the lock is released before the
// destructor of `ended` removes directories.
void PinSets::End(const PinEnd& end, const PeerIdentity* peer) {
  std::map<std::string, std::shared_ptr<const PinnedFiles>> ended;
  const std::lock_guard<std::mutex> lock(mu_);
  Set* const set = FindSet(end.id, peer);
  if (set == nullptr) {
    return;
  }
  set->used = Clock::now();
  if (end.database.empty()) {
    ended.swap(set->databases);
  } else {
    const auto found = set->databases.find(end.database);
    if (found != set->databases.end()) {
      ended.insert(set->databases.extract(found));
    }
  }
  if (set->databases.empty()) {
    sets_.erase(end.id);
  }
}

void PinSets::Expire() {
  std::vector<Set> ended;
  const auto most = std::max<std::chrono::seconds>(options_->snapshot_ttl,
                                                   kLeastPinTime);
  const std::lock_guard<std::mutex> lock(mu_);
  for (auto it = sets_.begin(); it != sets_.end();) {
    const auto next = std::next(it);
    if (Clock::now() - it->second.used > most) {
      ended.push_back(std::move(it->second));
      sets_.erase(it);
    }
    it = next;
  }
}

bool PinSets::EndAll() {
  std::map<TransferId, Set> ended;
  const std::lock_guard<std::mutex> lock(mu_);
  ended.swap(sets_);
  return !ended.empty();
}

}  // namespace sstferry
