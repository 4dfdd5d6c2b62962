#include "benchmarks/support/foreground.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "benchmarks/support/content.h"

namespace sstferry::bench {

namespace {

using rocksdb::Status;

constexpr double kLocalShare = 0.2;
constexpr uint64_t kLocalSeed = 77;

// Sets key `number` of the written family, far from the previous key.
void FillLocalKey(uint64_t number, std::string* key) {
  // Uses multiples of the golden ratio, which stay far apart.
  FillKey(kLocalSeed, (number * 0x9e3779b97f4a7c15ull) >> 8,
          uint64_t{1} << 56, key);
}

// Prevents the kernel from waking a sleeping thread up to 50 us late.
void SleepPrecisely() { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

}  // namespace

Status FillLocal(const LoadOptions& options, const LoadTargets& targets) {
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  std::string key;
  std::string value;
  for (uint64_t i = 0; i < options.local_keys; ++i) {
    FillLocalKey(i, &key);
    FillValue(options.seed, i, options.values.SizeOf(i), &value);
    const Status s = targets.db->Put(write, targets.local, key, value);
    if (!s.ok()) return s;
  }
  return targets.db->Flush(rocksdb::FlushOptions(), targets.local);
}

Foreground::Foreground(const LoadOptions& options, const LoadTargets& targets,
                       const PhaseTable* phases)
    : options_(options), targets_(targets), phases_(phases),
      read_ranks_(options.read_keys, options.zipfian),
      local_ranks_(options.local_keys, options.zipfian),
      local_end_(options.local_keys) {
  for (uint64_t i = 0; i <= options_.threads; ++i) {
    const bool beats = i == options_.threads;
    if (beats && options_.heartbeat_micros == 0) break;
    workers_.push_back(std::make_unique<Worker>());
    Worker* const worker = workers_.back().get();
    worker->random.seed(options_.seed * 1000 + i);
    worker->thread = std::thread([this, worker, beats] {
      worker->id = gettid();
      prctl(PR_SET_NAME, beats ? "heartbeat" : "load", 0, 0, 0);
      SleepPrecisely();
      beats ? Beat(worker) : Run(worker);
    });
  }
}

Foreground::~Foreground() { Stop().PermitUncheckedError(); }

Foreground::Usage Foreground::usage() const {
  Usage sum;
  for (const auto& worker : workers_) {
    std::ifstream file("/proc/self/task/" + std::to_string(worker->id) +
                       "/schedstat");
    double running = 0;
    double waiting = 0;
    if (file >> running >> waiting) {
      sum.cpu_seconds += running / 1e9;
      sum.wait_seconds += waiting / 1e9;
    }
  }
  return sum;
}

Status Foreground::Stop() {
  stop_ = true;
  for (const auto& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    worker->thread.join();
    sum_.Merge(worker->recorder);
    missing_ += worker->missing;
    if (status_.ok()) status_ = worker->status;
  }
  return status_;
}

void Foreground::Run(Worker* worker) {
  const double mean_nanos =
      1e9 * static_cast<double>(options_.threads) / options_.rate_per_sec;
  std::exponential_distribution<double> gap(1 / mean_nanos);
  // Even at a fixed spacing, the threads do not send at the same moments.
  double next = NextShare(&worker->random) * mean_nanos +
                static_cast<double>(phases_->Nanos(Clock::now()));
  while (!stop_ && worker->status.ok()) {
    int64_t intended = phases_->Nanos(Clock::now());
    if (!options_.closed_loop) {
      intended = static_cast<int64_t>(next);
      std::this_thread::sleep_until(phases_->start() +
                                    std::chrono::nanoseconds(intended));
      next += options_.fixed_spacing ? mean_nanos : gap(worker->random);
    }
    const OperationKind kind = Operate(worker);
    worker->recorder.Add(kind, *phases_, intended,
                         phases_->Nanos(Clock::now()) - intended);
  }
  worker->found.Reset();  // releases a block before the database closes
}

void Foreground::Beat(Worker* worker) {
  const auto gap = std::chrono::microseconds(options_.heartbeat_micros);
  Clock::time_point next = Clock::now();
  for (uint64_t beat = 0; !stop_ && worker->status.ok(); ++beat) {
    std::this_thread::sleep_until(next);
    worker->value = std::to_string(beat);
    const Clock::time_point begin = Clock::now();
    worker->status = targets_.db->Put(rocksdb::WriteOptions(),
                                      targets_.heartbeat, "beat",
                                      worker->value);
    const HeartbeatPut put{
        phases_->Nanos(begin),
        std::chrono::nanoseconds(Clock::now() - begin).count()};
    worker->recorder.Add(OperationKind::kHeartbeat, *phases_, put.begin,
                         put.nanos);
    if (put.nanos >= kLongPutNanos) long_puts_.push_back(put);
    next = std::max(next + gap, begin);
  }
}

OperationKind Foreground::Operate(Worker* worker) {
  const Action action = options_.mix.Next(&worker->random);
  if (action == Action::kRead) {
    Read(worker);
    return OperationKind::kGet;
  }
  if (action == Action::kScan) {
    Scan(worker);
    return OperationKind::kScan;
  }
  Write(action, worker);
  return OperationKind::kWrite;
}

bool Foreground::ChooseKey(Worker* worker) {
  if (NextShare(&worker->random) < kLocalShare) {
    ChooseLocal(worker);
    return false;
  }
  const uint64_t rank = read_ranks_.Next(&worker->random);
  FillKey(options_.read_seed, Scramble(rank, read_ranks_.count()),
          read_ranks_.count(), &worker->key);
  return true;
}

void Foreground::ChooseLocal(Worker* worker) {
  const uint64_t end = local_end_;
  const uint64_t begin = std::min<uint64_t>(local_begin_, end - 1);
  const uint64_t rank = local_ranks_.Next(&worker->random);
  FillLocalKey(end - 1 - rank % (end - begin), &worker->key);
}

void Foreground::Read(Worker* worker) {
  const bool must_exist = ChooseKey(worker);
  worker->found.Reset();
  worker->status = targets_.db->Get(
      rocksdb::ReadOptions(), must_exist ? targets_.read : targets_.local,
      worker->key, &worker->found);
  if (worker->status.IsNotFound()) {
    if (must_exist) ++worker->missing;
    worker->status = Status::OK();
  }
}

void Foreground::Scan(Worker* worker) {
  const bool read_family = ChooseKey(worker);
  const std::unique_ptr<rocksdb::Iterator> it(targets_.db->NewIterator(
      rocksdb::ReadOptions(), read_family ? targets_.read : targets_.local));
  uint64_t left = options_.scan_entries;
  for (it->Seek(worker->key); it->Valid() && left > 0; it->Next()) --left;
  worker->status = it->status();
}

void Foreground::Write(Action action, Worker* worker) {
  const rocksdb::WriteOptions write;
  if (action == Action::kRemove) {
    // Removes the oldest entry; if the family is empty, one that was removed
    // already.
    const uint64_t end = local_end_;
    const uint64_t number = local_begin_ + 1 < end ? local_begin_++ : 0;
    FillLocalKey(number, &worker->key);
    worker->status = targets_.db->Delete(write, targets_.local, worker->key);
    return;
  }
  const uint64_t bits = worker->random();
  FillValue(options_.seed, bits, options_.values.SizeOf(bits), &worker->value);
  if (action == Action::kInsert) {
    FillLocalKey(local_end_++, &worker->key);
  } else {
    ChooseLocal(worker);
  }
  worker->status =
      targets_.db->Put(write, targets_.local, worker->key, worker->value);
}

}  // namespace sstferry::bench
