// Snapshots of databases under stress ("storm"): the owner changes everything
// all the time. Each snapshot must contain a prefix of the owner's steps, with
// all steps that were done before the snapshot was begun.
//
// SSTFERRY_SNAPSHOTS is the number of snapshots of each kind of storm.
// SSTFERRY_STORM selects a kind. SSTFERRY_STORM_SECONDS is the time for which a
// standby follows. SSTFERRY_STORM_CSV is the file to which its views are
// written.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"

namespace sstferry::snapshot_storm_test {
namespace {

constexpr char kDirectory[] = "SSTFERRY_TEST_STORM_DIR";
constexpr char kKind[] = "SSTFERRY_TEST_STORM_KIND";
constexpr char kShared[] = "SSTFERRY_TEST_STORM_SHARED";

constexpr uint64_t kSlots = 256;       // keys, written in turn
constexpr uint64_t kLiveFamilies = 8;
constexpr char kOwnDb[] = "own DB";

struct SharedState {
  std::atomic<uint64_t> stop;
  std::atomic<uint64_t> steps;  // completed steps
};

SharedState* MapState(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(ftruncate(fd, sizeof(SharedState)) == 0);
  void* memory = mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  close(fd);
  REQUIRE(memory != MAP_FAILED);
  return static_cast<SharedState*>(memory);
}

std::string Numbered(const char* what, uint64_t number) {
  char text[32];
  snprintf(text, sizeof(text), "%s%08llu", what,
           static_cast<unsigned long long>(number));
  return text;
}

bool Ingests(const std::string& kind) {
  return kind == "ingest" || kind == "manifest" || kind == "manual";
}

rocksdb::Options StormOptions(const std::string& kind) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 256 << 10;
  options.manifest_preallocation_size = 16 << 10;
  options.level0_file_num_compaction_trigger = 4;
  options.max_background_jobs = 4;
  if (kind == "manifest") {
    options.max_manifest_file_size = 3 << 10;
  } else if (kind == "manual") {
    options.manual_wal_flush = true;
  } else if (kind == "recycle") {
    options.recycle_log_file_num = 4;
    options.wal_recovery_mode =
        rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  }
  return options;
}

// Aborts on an error. The storm's thread uses this, because Catch's assertions
// may be used by only one thread.
void Must(const rocksdb::Status& status) {
  if (!status.ok()) {
    fprintf(stderr, "the storm: %s\n", status.ToString().c_str());
    abort();
  }
}

// The owner of a database. Changes it step by step.
class Storm {
 public:
  Storm(const std::string& kind, const std::string& directory)
      : kind_(kind),
        external_(directory + ".external"),
        db_(StormOptions(kind), directory) {
    std::filesystem::create_directory(external_);
    if (kind == "flush") {
      MakeOldFiles();
    }
  }
  ~Storm() {
    for (const auto& family : families_) {
      db_->DestroyColumnFamilyHandle(family.handle).PermitUncheckedError();
    }
    if (old_ != nullptr) {
      db_->DestroyColumnFamilyHandle(old_).PermitUncheckedError();
    }
    std::filesystem::remove_all(external_);
  }
  rocksdb::DB* db() const { return db_.get(); }

  void Run(SharedState* state) {
    for (uint64_t step = 0; state->stop == 0; step++) {
      Step(step);
      state->steps = step + 1;
    }
  }

 private:
  struct Family {
    uint64_t number;
    rocksdb::ColumnFamilyHandle* handle;
  };

  void Step(uint64_t step) {
    if (kind_ == "families") {
      MakeFamily(step);
      return;
    }
    if (Ingests(kind_)) {
      Ingest(step);
    }
    Must(db_->Put(rocksdb::WriteOptions(),
                  Numbered("m", step % kSlots), Numbered("", step)));
    if (kind_ == "manual" && step % 7 == 0) {
      Must(db_->FlushWAL(false));
    }
    if (kind_ == "flush" || step % 5 == 4) {
      Must(db_->Flush(rocksdb::FlushOptions()));
    }
  }

  void Ingest(uint64_t step) {
    const std::string path = external_ + "/file.sst";
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), StormOptions(kind_));
    Must(writer.Open(path));
    Must(writer.Put(Numbered("f", step % kSlots), Numbered("", step)));
    Must(writer.Finish());
    rocksdb::IngestExternalFileOptions move;
    move.move_files = true;
    Must(db_->IngestExternalFile({path}, move));
  }

  // Creates a family and writes a batch to it and the default family. Then
  // drops the oldest family, after it has deleted its key in the default
  // family.
  void MakeFamily(uint64_t step) {
    Family family{step, nullptr};
    Must(db_->CreateColumnFamily(StormOptions(kind_),
                                 Numbered("f", step), &family.handle));
    families_.push_back(family);
    rocksdb::WriteBatch batch;
    Must(batch.Put(Numbered("d", step), "1"));
    Must(batch.Put(family.handle, "k", "1"));
    Must(db_->Write(rocksdb::WriteOptions(), &batch));
    if (families_.size() <= kLiveFamilies) {
      return;
    }
    const Family oldest = families_.front();
    families_.pop_front();
    Must(db_->Delete(rocksdb::WriteOptions(),
                     Numbered("d", oldest.number)));
    Must(db_->DropColumnFamily(oldest.handle));
    Must(db_->DestroyColumnFamilyHandle(oldest.handle));
  }

  void MakeOldFiles() {
    rocksdb::Options options = StormOptions(kind_);
    options.disable_auto_compactions = true;
    options.level0_slowdown_writes_trigger = 1 << 20;
    options.level0_stop_writes_trigger = 1 << 20;
    Must(db_->CreateColumnFamily(options, "old", &old_));
    const char* asked = getenv("SSTFERRY_STORM_FILES");
    const int files = asked == nullptr ? 100 : atoi(asked);
    for (int i = 0; i < files; i++) {
      Must(db_->Put(rocksdb::WriteOptions(), old_, "k", "v"));
      Must(db_->Flush(rocksdb::FlushOptions(), old_));
    }
  }

  const std::string kind_;
  const std::string external_;
  test::OpenDb db_;
  std::deque<Family> families_;
  rocksdb::ColumnFamilyHandle* old_ = nullptr;
};

// Returns how many steps the keys with `prefix` prove. Adds missing ones to
// *wrong.
uint64_t StepsOf(const Entries& entries, const char* prefix,
                 std::string* wrong) {
  uint64_t steps = 0;
  for (const auto& [key, value] : entries) {
    if (key.rfind(prefix, 0) == 0) {
      steps = std::max<uint64_t>(steps,
                                 strtoull(value.c_str(), nullptr, 10) + 1);
    }
  }
  for (uint64_t step = steps - std::min(steps, kSlots); step < steps; step++) {
    const auto found = entries.find(Numbered(prefix, step % kSlots));
    if (found == entries.end() || found->second != Numbered("", step)) {
      *wrong += std::string(" ") + prefix + std::to_string(step) + " of " +
                std::to_string(steps) + " is missing;";
      break;
    }
  }
  return steps;
}

std::string CheckFamilies(const Snapshot& snapshot, uint64_t steps) {
  const Entries entries = ReadAll(snapshot, "default");
  std::string wrong;
  uint64_t newest = 0;
  for (const auto& [key, value] : entries) {
    newest = std::max<uint64_t>(newest,
                                strtoull(key.c_str() + 1, nullptr, 10) + 1);
    bool whole = false;
    for (const SnapshotFamily& family : snapshot.families()) {
      whole |= family.name == "f" + key.substr(1) &&
               ReadAll(snapshot.db(), family.handle).count("k") != 0;
    }
    if (!whole) wrong += " half of batch " + key + ";";
  }
  for (const SnapshotFamily& family : snapshot.families()) {
    if (family.name == "default" ||
        ReadAll(snapshot.db(), family.handle).empty()) {
      continue;
    }
    const uint64_t number = strtoull(family.name.c_str() + 1, nullptr, 10);
    if (entries.count(Numbered("d", number)) == 0 &&
        number + kLiveFamilies > newest) {
      wrong += " half of batch of " + family.name + ";";
    }
  }
  if (newest < steps) {
    wrong += " step " + std::to_string(steps) + " is missing;";
  }
  return wrong;
}

// Returns what is wrong with a snapshot, or "". `steps` were done before it was
// begun.
std::string Check(const std::string& kind, const Snapshot& snapshot,
                  uint64_t steps, bool own_db) {
  if (kind == "families") {
    return CheckFamilies(snapshot, steps);
  }
  std::string wrong;
  const Entries entries = ReadAll(snapshot, "default");
  const uint64_t markers = StepsOf(entries, "m", &wrong);
  // Records in the buffer of a WAL that is flushed manually are not on the
  // disk.
  const bool is_buffered = kind == "manual";
  if (markers < steps && (!is_buffered || own_db)) {
    wrong += " " + std::to_string(steps) + " markers were written, " +
             std::to_string(markers) + " found;";
  }
  if (Ingests(kind)) {
    const uint64_t files = StepsOf(entries, "f", &wrong);
    if (files < markers || (files > markers + 1 && !is_buffered)) {
      wrong += " " + std::to_string(files) + " files, " +
               std::to_string(markers) + " markers;";
    }
  }
  return wrong;
}

struct StormTotals {
  std::vector<uint64_t> rounds;
  uint64_t wrong = 0;
  uint64_t gave_up = 0;
};

void Print(const char* what, const std::string& kind, StormTotals* totals,
           uint64_t steps) {
  std::sort(totals->rounds.begin(), totals->rounds.end());
  const size_t n = totals->rounds.size();
  const auto at = [&](size_t percent) {
    return static_cast<unsigned long long>(
        n == 0 ? 0 : totals->rounds[std::min(n - 1, n * percent / 100)]);
  };
  printf("storm %-9s of %-8s %zu snapshots over %llu steps, wrong %llu, gave "
         "up %llu, rounds p50 %llu p99 %llu worst %llu\n",
         kind.c_str(), what, n, static_cast<unsigned long long>(steps),
         static_cast<unsigned long long>(totals->wrong),
         static_cast<unsigned long long>(totals->gave_up), at(50), at(99),
         at(100));
  fflush(stdout);
}

int SnapshotsAsked(int fallback) {
  const char* asked = getenv("SSTFERRY_SNAPSHOTS");
  return asked == nullptr ? fallback : atoi(asked);
}

bool IsAsked(const std::string& kind) {
  const char* asked = getenv("SSTFERRY_STORM");
  return asked == nullptr || kind == asked;
}

// Takes one snapshot, and reports how many rounds it took.
using TakeOne = std::function<rocksdb::Status(
    std::unique_ptr<Snapshot>* snapshot, uint64_t* rounds)>;

void TakeAll(const std::string& kind, const char* what,
             const SharedState& state, int count, const TakeOne& take_one) {
  const bool own_db = what == std::string(kOwnDb);
  StormTotals totals;
  for (int i = 0; i < count; i++) {
    const uint64_t steps = state.steps;
    std::unique_ptr<Snapshot> snapshot;
    uint64_t rounds = 0;
    const rocksdb::Status status = take_one(&snapshot, &rounds);
    INFO("snapshot " << i << " of " << kind << ": " << status.ToString());
    CHECK(status.ok());
    if (!status.ok()) {
      totals.gave_up++;
      continue;
    }
    totals.rounds.push_back(rounds);
    const std::string wrong = Check(kind, *snapshot, steps, own_db);
    totals.wrong += wrong.empty() ? 0 : 1;
    CHECK(wrong == "");
  }
  Print(what, kind, &totals, state.steps);
}

// Makes a clone's directory from the files of a snapshot.
void MakeClone(const Snapshot& files, const std::string& clone) {
  std::filesystem::remove_all(clone);
  std::filesystem::create_directory(clone);
  for (const CloneFile& file : files.files()->files) {
    const std::string name = CloneFileName(file);
    std::filesystem::copy_file(files.directory() + "/db/" + name,
                               clone + "/" + name);
    if (file.kind == CloneFileKind::kManifest) {
      std::ofstream(clone + "/CURRENT") << name << "\n";
    }
  }
}

// Returns the entries that RocksDB itself finds in the default family.
Entries OpenedReadOnly(const std::string& directory) {
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::OpenForReadOnly(rocksdb::Options(), directory,
                                          IntoDb(&db)));
  return ReadAll(db.get(), db->DefaultColumnFamily());
}

TEST_CASE("The storm writes until it is told to stop", "[.child][snapshot]") {
  const std::string directory = FromParent(kDirectory);
  if (directory.empty()) {
    return;  // only runs as the second process of the case below
  }
  SharedState* state = MapState(FromParent(kShared));
  Storm storm(FromParent(kKind), directory);
  TellParent("storming");
  storm.Run(state);
}

TEST_CASE("Snapshots and clones of another process's database in a storm have "
          "a prefix of what it did",
          "[snapshot][storm]") {
  const std::string kind = GENERATE("ingest", "manifest", "manual", "families",
                                    "flush", "recycle");
  if (!IsAsked(kind)) {
    return;
  }
  ScratchDir tree;
  SharedState* state = MapState(tree / "state");
  ChildCase storm("The storm writes until it is told to stop",
                  {{kDirectory, tree / "db"},
                   {kKind, kind},
                   {kShared, tree / "state"}});
  REQUIRE(storm.Listen() == "storming");
  SnapshotOptions options;
  options.database_dir = tree / "db";
  TakeAll(kind, "process", *state, SnapshotsAsked(12),
          [&](std::unique_ptr<Snapshot>* snapshot, uint64_t* rounds) {
            const rocksdb::Status status = Snapshot::Create(options, snapshot);
            if (status.ok()) *rounds = (*snapshot)->counters().rounds;
            return status;
          });
  options.as_files = true;
  SnapshotOptions of_clone;
  of_clone.database_dir = tree / "clone";
  TakeAll(kind, "clone", *state, SnapshotsAsked(12),
          [&](std::unique_ptr<Snapshot>* snapshot, uint64_t* rounds) {
            std::unique_ptr<Snapshot> files;
            rocksdb::Status status = Snapshot::Create(options, &files);
            if (status.ok()) {
              *rounds = files->counters().rounds;
              MakeClone(*files, of_clone.database_dir);
              status = Snapshot::Create(of_clone, snapshot);
            }
            if (status.ok()) {
              CHECK(ReadAll(**snapshot, "default") ==
                    OpenedReadOnly(of_clone.database_dir));
            }
            return status;
          });
  state->stop = 1;
  CHECK(storm.Wait() == 0);
  munmap(state, sizeof(SharedState));
}

TEST_CASE("Snapshots of the own database in a storm have a prefix of what was "
          "done, and all that was done before",
          "[snapshot][storm]") {
  const std::string kind = GENERATE("ingest", "manifest", "manual", "families",
                                    "flush", "recycle");
  if (!IsAsked(kind)) {
    return;
  }
  ScratchDir tree;
  SharedState state{};
  Storm storm(kind, tree / "db");
  std::thread writer([&] { storm.Run(&state); });
  TakeAll(kind, kOwnDb, state, SnapshotsAsked(8),
          [&](std::unique_ptr<Snapshot>* snapshot, uint64_t* rounds) {
            const rocksdb::Status status = Snapshot::FromOpenDatabase(
                storm.db(), {}, SnapshotOptions(), snapshot);
            if (status.ok()) *rounds = (*snapshot)->counters().rounds;
            return status;
          });
  state.stop = 1;
  writer.join();
}

// Returns how many steps the snapshot contains.
uint64_t StepsIn(const std::string& kind, const Snapshot& snapshot) {
  const Entries entries = ReadAll(snapshot, "default");
  std::string ignored;
  if (kind != "families") {
    return StepsOf(entries, "m", &ignored);
  }
  return entries.empty()
             ? 0
             : strtoull(entries.rbegin()->first.c_str() + 1, nullptr, 10) + 1;
}

TEST_CASE("Each view of a standby of another process's database in a storm "
          "has a prefix of its writes",
          "[snapshot][follow][storm]") {
  using Clock = std::chrono::steady_clock;
  const std::string kind = GENERATE("ingest", "manifest", "manual", "families",
                                    "flush", "recycle");
  if (!IsAsked(kind)) {
    return;
  }
  const char* asked = getenv("SSTFERRY_STORM_SECONDS");
  const auto seconds = std::chrono::seconds(asked == nullptr ? 2 : atoi(asked));
  const char* csv = getenv("SSTFERRY_STORM_CSV");
  ScratchDir tree;
  SharedState* state = MapState(tree / "state");
  ChildCase storm("The storm writes until it is told to stop",
                  {{kDirectory, tree / "db"},
                   {kKind, kind},
                   {kShared, tree / "state"}});
  REQUIRE(storm.Listen() == "storming");
  const std::string dir = tree / "standby";
  Process follower(Sstferry({"follow", tree / "db", dir}));
  const Clock::time_point begin = Clock::now();
  while (!std::filesystem::exists(dir + "/sstferry.follow")) {
    REQUIRE(Clock::now() < begin + std::chrono::minutes(2));
    std::this_thread::yield();
  }
  SnapshotOptions options;
  options.database_dir = tree / "view";
  uint64_t views = 0;
  uint64_t wrong = 0;
  uint64_t newest = 0;
  std::vector<uint64_t> behind;
  for (; views < 2 || Clock::now() < begin + seconds; ++views) {
    const uint64_t done = state->steps;
    OutputOf({"view", dir, options.database_dir});
    std::unique_ptr<Snapshot> snapshot;
    REQUIRE_OK(Snapshot::Create(options, &snapshot));
    const uint64_t steps = StepsIn(kind, *snapshot);
    std::string fault = Check(kind, *snapshot, newest, false);
    if (steps < newest) {
      fault += " an older moment than the view before, " +
               std::to_string(newest) + " steps;";
    }
    INFO("view " << views << " of " << kind);
    CHECK(fault == "");
    wrong += fault.empty() ? 0 : 1;
    newest = steps;
    behind.push_back(done - std::min(done, steps));
    if (csv != nullptr) {
      std::ofstream(csv, std::ios::app)
          << kind << ','
          << std::chrono::duration<double>(Clock::now() - begin).count() << ','
          << done << ',' << steps << '\n';
    }
    snapshot.reset();
    std::filesystem::remove_all(options.database_dir);
  }
  state->stop = 1;
  CHECK(storm.Wait() == 0);
  // --before stops the follower once it has received everything.
  Process promote(Sstferry({"promote", dir, "--after-source-closed", "--before",
                            "kill -TERM " + std::to_string(follower.pid())}));
  const int promoted = promote.Wait();
  INFO(promote.err() << follower.err());
  REQUIRE(promoted == 0);
  options.database_dir = dir;
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(Check(kind, *snapshot, kind == "manual" ? newest : state->steps.load(),
              false) == "");
  std::sort(behind.begin(), behind.end());
  printf("storm %-9s of standby  %llu views over %llu steps, wrong %llu, steps "
         "behind p50 %llu worst %llu\n",
         kind.c_str(), static_cast<unsigned long long>(views),
         static_cast<unsigned long long>(state->steps.load()),
         static_cast<unsigned long long>(wrong),
         static_cast<unsigned long long>(behind[behind.size() / 2]),
         static_cast<unsigned long long>(behind.back()));
  munmap(state, sizeof(SharedState));
}

}  // namespace
}  // namespace sstferry::snapshot_storm_test
