// Runs an application that writes, and today's usual ways to keep a second copy
// of an open database, to compare them with sstferry follow.
//
//   bench_standbys app --db DIR --state FILE --rate 2000 --seconds 60
//       [--storm] [--updates 127.0.0.1:0]
//   bench_standbys secondary --db DIR --dir LOGS --state FILE --seconds 60
//   bench_standbys updates --dir COPY --connect HOST:PORT --state FILE
//       --seconds 60
//   bench_standbys look --dir COPY --state FILE
//
// If --storm is given, step N of the application ingests a file if N is a
// multiple of 20. Every step then puts its number under one of 512 keys. So a
// copy shows how many steps it contains, and if they are a prefix. --state is
// memory that the application shares: the number of completed steps, and when
// each was completed. The age of a copy is that of the first step that it does
// not contain.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/flags.h"
#include "benchmarks/support/net.h"
#include "benchmarks/support/report.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/transaction_log.h"
#include "rocksdb/write_batch.h"

namespace sstferry::bench {
namespace {

using Clock = std::chrono::steady_clock;
using rocksdb::Status;

constexpr uint64_t kSlots = 512;
constexpr uint64_t kIngestEvery = 20;
constexpr uint64_t kFlushEvery = 500;
constexpr uint64_t kMaxSteps = 10'000'000;
constexpr auto kLookEvery = std::chrono::milliseconds(20);

struct State {
  std::atomic<bool> storm;
  std::atomic<uint64_t> steps;
  uint64_t done_micros[kMaxSteps];
};

uint64_t NowMicros() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          Clock::now().time_since_epoch())
          .count());
}

Status MapState(const std::string& path, State** state) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(State)) != 0) {
    return ErrnoStatus("cannot make " + path);
  }
  void* memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return ErrnoStatus("cannot map " + path);
  *state = static_cast<State*>(memory);
  return Status::OK();
}

std::string Numbered(const char* what, uint64_t number) {
  char text[32];
  snprintf(text, sizeof(text), "%s%08llu", what,
           static_cast<unsigned long long>(number));
  return text;
}

rocksdb::Options AppOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 1 << 20;
  return options;
}

// The result of one look at a copy.
struct Look {
  uint64_t steps = 0;
  std::string wrong;
  double age_ms = 0;
};

void LookAt(rocksdb::DB* db, const State& state, Look* look) {
  std::map<std::string, uint64_t> entries;
  const std::unique_ptr<rocksdb::Iterator> it(
      db->NewIterator(rocksdb::ReadOptions()));
  uint64_t files = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const uint64_t step = strtoull(it->value().ToString().c_str(), nullptr, 10);
    entries[it->key().ToString()] = step;
    uint64_t* const newest = it->key().starts_with("m") ? &look->steps : &files;
    *newest = std::max(*newest, step + 1);
  }
  if (!it->status().ok()) look->wrong = it->status().ToString();
  for (uint64_t step = look->steps - std::min(look->steps, kSlots);
       step < look->steps && look->wrong.empty(); ++step) {
    const auto found = entries.find(Numbered("m", step % kSlots));
    if (found == entries.end() || found->second != step) {
      look->wrong = "step " + std::to_string(step) + " of " +
                    std::to_string(look->steps) + " is missing";
    }
  }
  if (state.storm && look->steps != 0 && look->wrong.empty()) {
    const uint64_t expected = (look->steps - 1) / kIngestEvery * kIngestEvery;
    if (files != expected + 1 && files != look->steps + 1) {
      look->wrong = "the ingested file of step " + std::to_string(expected) +
                    " is missing";
    }
  }
  const uint64_t done = state.steps;
  look->age_ms =
      look->steps >= done
          ? 0
          : static_cast<double>(NowMicros() - state.done_micros[look->steps]) /
                1e3;
}

// The results of all looks at one contender.
class Looks {
 public:
  void Add(const Look& look) {
    ages_.push_back(look.age_ms);
    wrong_ += look.wrong.empty() ? 0 : 1;
    if (first_wrong_.empty()) first_wrong_ = look.wrong;
  }
  void AddTo(Report* report) {
    std::sort(ages_.begin(), ages_.end());
    report->Add("looks", static_cast<uint64_t>(ages_.size()));
    report->Add("wrong", wrong_);
    report->Add("first_wrong", first_wrong_);
    for (const int percent : {50, 95, 99}) {
      report->Add("age_ms_p" + std::to_string(percent),
                  ages_.empty() ? 0
                                : ages_[std::min(
                                      ages_.size() - 1,
                                      ages_.size() * static_cast<size_t>(
                                                         percent) / 100)]);
    }
  }

 private:
  std::vector<double> ages_;
  uint64_t wrong_ = 0;
  std::string first_wrong_;
};

// Sends the batches of GetUpdatesSince, as a user of it would: always from the
// sequence number after the last one on, without end.
Status SendUpdates(rocksdb::DB* db, const Socket& listener,
                   const std::atomic<bool>& stop) {
  Socket peer;
  Status status = Accept(listener, &peer);
  uint64_t next = 1;
  while (status.ok() && !stop) {
    if (db->GetLatestSequenceNumber() < next) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    std::unique_ptr<rocksdb::TransactionLogIterator> updates;
    const Status found = db->GetUpdatesSince(next, &updates);
    if (!found.ok()) {
      // The update is not in the WAL's file yet, or the WAL was just removed.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    for (; status.ok() && updates->Valid(); updates->Next()) {
      const rocksdb::BatchResult batch = updates->GetBatch();
      const std::string& bytes = batch.writeBatchPtr->Data();
      next = batch.sequence + batch.writeBatchPtr->Count();
      const uint64_t size = bytes.size();
      status = peer.SendAll(&size, sizeof(size));
      if (status.ok()) status = peer.SendAll(bytes.data(), bytes.size());
    }
  }
  return status;
}

Status RunApp(Flags* flags, Report* report) {
  const std::string dir = flags->Required("db");
  const std::string state_path = flags->Required("state");
  const uint64_t rate = flags->Number("rate", 2000);
  const uint64_t seconds = flags->Number("seconds", 60);
  const bool storm = flags->Switch("storm", false);
  const std::string updates = flags->Text("updates");
  flags->Done();
  if (rate * seconds >= kMaxSteps) WrongUsage("too many steps");
  State* state = nullptr;
  Status status = MapState(state_path, &state);
  std::unique_ptr<rocksdb::DB> db;
  if (status.ok()) {
    status = rocksdb::DB::Open(AppOptions(), dir, IntoDb(&db));
  }
  if (!status.ok()) return status;
  state->storm = storm;
  Socket listener;
  if (!updates.empty()) status = Listen(updates, &listener);
  if (!status.ok()) return status;
  std::atomic<bool> stop{false};
  Status sent;
  std::thread sender;
  if (!updates.empty()) {
    sender = std::thread([&] { sent = SendUpdates(db.get(), listener, stop); });
  }
  printf("writing\n");
  fflush(stdout);
  const std::string padding(240, 'v');
  const std::string external = dir + ".external.sst";
  const Clock::time_point begin = Clock::now();
  std::vector<double> latencies;
  for (uint64_t step = 0; status.ok() && step < rate * seconds; ++step) {
    const Clock::time_point due =
        begin + std::chrono::microseconds(step * 1'000'000 / rate);
    std::this_thread::sleep_until(due);
    if (storm && step % kIngestEvery == 0) {
      rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), AppOptions());
      status = writer.Open(external);
      if (status.ok()) {
        status = writer.Put(Numbered("f", step % kSlots),
                            Numbered("", step) + padding);
      }
      if (status.ok()) status = writer.Finish();
      rocksdb::IngestExternalFileOptions move;
      move.move_files = true;
      if (status.ok()) status = db->IngestExternalFile({external}, move);
    }
    if (status.ok()) {
      status = db->Put(rocksdb::WriteOptions(), Numbered("m", step % kSlots),
                       Numbered("", step) + padding);
    }
    if (status.ok() && step % kFlushEvery == kFlushEvery - 1) {
      rocksdb::FlushOptions later;
      later.wait = false;
      status = db->Flush(later);
    }
    state->done_micros[step] = NowMicros();
    state->steps = step + 1;
    latencies.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - due).count());
  }
  stop = true;
  listener = Socket();
  if (sender.joinable()) sender.join();
  std::sort(latencies.begin(), latencies.end());
  report->Add("steps", state->steps.load());
  report->Add("cpu_seconds", static_cast<double>(clock()) / CLOCKS_PER_SEC);
  report->Add("write_ms_p99",
              latencies.empty() ? 0 : latencies[latencies.size() * 99 / 100]);
  return status;
}

// Looks at `db` every kLookEvery, each time after `before` has updated it.
template <typename Before>
Status LookOn(rocksdb::DB* db, const State& state, uint64_t seconds,
              Report* report, Before before) {
  Looks looks;
  uint64_t failed = 0;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  for (Clock::time_point next = Clock::now(); next < end; next += kLookEvery) {
    std::this_thread::sleep_until(next);
    Look look;
    const Status status = before();
    if (!status.ok()) {
      failed++;
      look.wrong = status.ToString();
    }
    LookAt(db, state, &look);
    if (state.steps != 0) looks.Add(look);
  }
  looks.AddTo(report);
  report->Add("failed", failed);
  return Status::OK();
}

Status RunSecondary(Flags* flags, Report* report) {
  const std::string dir = flags->Required("db");
  const std::string own = flags->Required("dir");
  const std::string state_path = flags->Required("state");
  const uint64_t seconds = flags->Number("seconds", 60);
  flags->Done();
  State* state = nullptr;
  Status status = MapState(state_path, &state);
  rocksdb::Options options = AppOptions();
  options.max_open_files = -1;  // a secondary requires this
  std::unique_ptr<rocksdb::DB> db;
  if (status.ok()) {
    status = rocksdb::DB::OpenAsSecondary(options, dir, own, IntoDb(&db));
  }
  return status.ok() ? LookOn(db.get(), *state, seconds, report,
                              [&] { return db->TryCatchUpWithPrimary(); })
                     : status;
}

Status RunUpdates(Flags* flags, Report* report) {
  const std::string dir = flags->Required("dir");
  const std::string connect = flags->Required("connect");
  const std::string state_path = flags->Required("state");
  const uint64_t seconds = flags->Number("seconds", 60);
  flags->Done();
  State* state = nullptr;
  Status status = MapState(state_path, &state);
  std::unique_ptr<rocksdb::DB> db;
  if (status.ok()) {
    status = rocksdb::DB::Open(AppOptions(), dir, IntoDb(&db));
  }
  Socket source;
  if (status.ok()) status = Connect(connect, &source);
  if (!status.ok()) return status;
  std::thread applier([&] {
    for (;;) {
      uint64_t size = 0;
      if (!source.ReceiveAll(&size, sizeof(size)).ok()) return;
      std::string bytes(size, '\0');
      if (!source.ReceiveAll(bytes.data(), size).ok()) return;
      rocksdb::WriteBatch batch(std::move(bytes));
      if (!db->Write(rocksdb::WriteOptions(), &batch).ok()) return;
    }
  });
  status = LookOn(db.get(), *state, seconds, report, [] { return Status(); });
  shutdown(source.fd(), SHUT_RDWR);
  applier.join();
  return status;
}

Status RunLook(Flags* flags, Report* report) {
  const std::string dir = flags->Required("dir");
  const std::string state_path = flags->Required("state");
  flags->Done();
  State* state = nullptr;
  Status status = MapState(state_path, &state);
  if (!status.ok()) return status;
  Look look;
  std::unique_ptr<rocksdb::DB> db;
  const Status opened =
      rocksdb::DB::OpenForReadOnly(AppOptions(), dir, IntoDb(&db));
  if (opened.ok()) {
    LookAt(db.get(), *state, &look);
  } else {
    look.wrong = opened.ToString();
  }
  report->Add("steps", look.steps);
  report->Add("age_ms", look.age_ms);
  report->Add("wrong", look.wrong);
  return Status::OK();
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  using namespace sstferry::bench;
  Flags flags(argc, argv);
  Report report;
  const std::string& role = flags.role();
  if (role == "app") return report.Finish(RunApp(&flags, &report));
  if (role == "secondary") return report.Finish(RunSecondary(&flags, &report));
  if (role == "updates") return report.Finish(RunUpdates(&flags, &report));
  if (role == "look") return report.Finish(RunLook(&flags, &report));
  WrongUsage("expected app, secondary, updates or look");
}
