// Tests the choice of chunks for one ingest call, and a failed call.
#include "pipeline/pull/ingestor.h"

#include <filesystem>
#include <future>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "rocksdb/comparator.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/journal_records.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::ingestor_test {
namespace {

using rocksdb::Status;
using std::chrono::milliseconds;

// A new database with two families, a journal, and chunks for them.
class Bench {
 public:
  explicit Bench(const rocksdb::Comparator* order =
                     rocksdb::BytewiseComparator()) {
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.comparator = order;
    REQUIRE_OK(rocksdb::DB::Open(
        options_, dir_ / "db",
        {{"default", options_}, {"b", options_}}, &handles_, IntoDb(&db_)));
    std::filesystem::create_directory(dir_ / "staging");
    REQUIRE_OK(JournalFile::Create(rocksdb::FileSystem::Default().get(),
                                   dir_ / "journal", &journal_));
  }
  ~Bench() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
  }

  std::unique_ptr<Ingestor> Make(size_t max_waiting,
                                 bool keeps_level0 = false) {
    IngestRules rules;
    rules.now = [this] { return now_; };
    return std::make_unique<Ingestor>(
        db_.get(),
        std::vector<IngestFamily>{{handles_[0], keeps_level0},
                                  {handles_[1], keeps_level0}},
        journal_.get(), /*sync_journal=*/true, max_waiting, rules);
  }
  void Advance(std::chrono::milliseconds time) { now_ += time; }

  // Makes a chunk with two keys, which are in the family's order.
  StagedChunk Chunk(const std::string& first, const std::string& last,
                    uint32_t family = 0) {
    StagedChunk chunk;
    chunk.family = family;
    chunk.path = dir_ / ("staging/" + std::to_string(made_++) + "-0.sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    REQUIRE_OK(writer.Open(chunk.path));
    REQUIRE_OK(writer.Put(first, "value"));
    if (last != first) {
      REQUIRE_OK(writer.Put(last, "value"));
    }
    REQUIRE_OK(writer.Finish());
    chunk.record.chunk.smallest = first;
    chunk.record.chunk.largest = last;
    return chunk;
  }

  Status Add(Ingestor* ingestor, StagedChunk chunk) {
    StageClock clock(&totals_, Stage::kIdle);
    return ingestor->Add(std::move(chunk), &clock);
  }
  // Adds a chunk from another thread, like another lane.
  std::future<Status> AddAside(Ingestor* ingestor, StagedChunk chunk) {
    return std::async(std::launch::async,
                      [this, ingestor, chunk = std::move(chunk)]() mutable {
                        return Add(ingestor, std::move(chunk));
                      });
  }
  Status AddRecorded(Ingestor* ingestor,
                        const std::vector<StagedChunk>& chunks) {
    StageClock clock(&totals_, Stage::kIdle);
    return ingestor->AddRecorded(chunks, &clock);
  }
  Status Flush(Ingestor* ingestor) {
    StageClock clock(&totals_, Stage::kIdle);
    return ingestor->Flush(&clock);
  }

  // Returns the number of a family's files in each level.
  std::vector<size_t> Levels(size_t family = 0) {
    rocksdb::ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(handles_[family], &meta);
    std::vector<size_t> files;
    for (const rocksdb::LevelMetaData& level : meta.levels) {
      files.push_back(level.files.size());
    }
    return files;
  }

  rocksdb::DB* db() { return db_.get(); }
  const ScratchDir& dir() const { return dir_; }

 private:
  ScratchDir dir_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<JournalFile> journal_;
  StageTotals totals_;
  std::chrono::steady_clock::time_point now_{std::chrono::seconds(1)};
  int made_ = 0;
};

// Stops the first ingestion between its journal record and the call.
class Gate {
 public:
  Gate() {
    TEST_SetFaultHook([this](const std::string& point) {
      if (point == "Ingestor:JournalSynced" && !reached_once_.exchange(true)) {
        reached_.set_value();
        opened_.get_future().wait();
      }
    });
  }
  ~Gate() { TEST_SetFaultHook(nullptr); }
  void Await() { reached_.get_future().wait(); }
  void Open() { opened_.set_value(); }

 private:
  std::atomic<bool> reached_once_{false};
  std::promise<void> reached_;
  std::promise<void> opened_;
};

TEST_CASE("Ingestor ingests all waiting chunks in one call",
          "[target][ingest]") {
  Bench bench;
  const auto ingestor = bench.Make(8);
  Gate gate;
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "b")));
  // a single chunk waits for a second one
  REQUIRE(ingestor->ingest_calls() == 0);
  std::future<Status> first_call =
      bench.AddAside(ingestor.get(), bench.Chunk("c", "d"));
  gate.Await();
  // During that call, these return at once, and share the next call.
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("g", "h")));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("e", "f")));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "z", 1)));
  REQUIRE(ingestor->ingest_calls() == 1);
  gate.Open();
  REQUIRE_OK(first_call.get());
  REQUIRE_OK(bench.Flush(ingestor.get()));
  REQUIRE(ingestor->ingest_calls() == 2);
  REQUIRE(bench.Levels(0) == std::vector<size_t>{0, 0, 0, 0, 0, 0, 4});
  REQUIRE(bench.Levels(1) == std::vector<size_t>{0, 0, 0, 0, 0, 0, 1});
  REQUIRE(bench.db()->GetLatestSequenceNumber() == 0);
  REQUIRE(NamesOf(bench.dir() / "staging").empty());  // moved, not copied
}

TEST_CASE("Ingestor ingests a single chunk if calls are rare",
          "[target][ingest]") {
  Bench bench;
  const auto ingestor = bench.Make(8);
  bench.Advance(std::chrono::milliseconds(399));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "b")));
  REQUIRE(ingestor->ingest_calls() == 0);
  bench.Advance(std::chrono::milliseconds(1));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("c", "d")));
  REQUIRE(ingestor->ingest_calls() == 1);
  // The next call takes a second by this clock. So the call after it has to
  // wait for eight seconds.
  bench.Advance(std::chrono::milliseconds(8));
  TEST_SetFaultHook([&](const std::string& point) {
    if (point == "Ingestor:JournalSynced") {
      bench.Advance(std::chrono::seconds(1));
    }
  });
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("e", "f")));
  REQUIRE(ingestor->ingest_calls() == 2);
  TEST_SetFaultHook(nullptr);
  bench.Advance(std::chrono::milliseconds(7'999));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("g", "h")));
  REQUIRE(ingestor->ingest_calls() == 2);
  bench.Advance(std::chrono::milliseconds(1));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("i", "j")));
  REQUIRE(ingestor->ingest_calls() == 3);
}

TEST_CASE("Ingestor records a chunk before it waits for another",
          "[target][ingest][crash]") {
  Bench bench;
  const auto ingestor = bench.Make(8);
  const uint64_t before = BytesOf(bench.dir() / "journal").size();
  StagedChunk chunk = bench.Chunk("a", "b");
  chunk.record.chunk.entries = 77;
  const JournalChunk expected = chunk.record;
  REQUIRE_OK(bench.Add(ingestor.get(), std::move(chunk)));
  REQUIRE(ingestor->ingest_calls() == 0);
  const std::string journal = BytesOf(bench.dir() / "journal");
  JournalRecord record;
  REQUIRE_OK(ReadJournalRecord(journal, before, &record));
  JournalChunk found;
  REQUIRE_OK(Decode(record.payload, &found));
  REQUIRE(found == expected);
  REQUIRE_OK(bench.Flush(ingestor.get()));
  REQUIRE(BytesOf(bench.dir() / "journal").size() == journal.size());
}

TEST_CASE(
    "Ingestor ingests chunks that were recorded before without a new record",
    "[target][ingest][crash]") {
  Bench bench;
  const auto ingestor = bench.Make(8);
  const std::string before = BytesOf(bench.dir() / "journal");
  REQUIRE_OK(bench.AddRecorded(
      ingestor.get(), {bench.Chunk("a", "b"), bench.Chunk("c", "d"),
                       bench.Chunk("a", "z", 1)}));
  REQUIRE(ingestor->ingest_calls() == 1);
  REQUIRE(bench.Levels(0).back() == 2);
  REQUIRE(bench.Levels(1).back() == 1);
  REQUIRE(BytesOf(bench.dir() / "journal") == before);
  REQUIRE_OK(bench.AddRecorded(ingestor.get(), {}));
  const Status overlapping = bench.AddRecorded(
      ingestor.get(), {bench.Chunk("e", "g"), bench.Chunk("f", "h")});
  REQUIRE(EndStateOf(overlapping) == EndState::kInternal);
}

TEST_CASE("Ingestor ingests the last chunk alone on Flush",
          "[target][ingest]") {
  Bench bench;
  const auto ingestor = bench.Make(8);
  REQUIRE_OK(bench.Flush(ingestor.get()));
  REQUIRE(ingestor->ingest_calls() == 0);
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "b")));
  REQUIRE_OK(bench.Flush(ingestor.get()));
  REQUIRE(ingestor->ingest_calls() == 1);
  REQUIRE(bench.Levels() == std::vector<size_t>{0, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("Ingestor makes a lane wait while its queue is full",
          "[target][ingest]") {
  Bench bench;
  const auto ingestor = bench.Make(2);
  Gate gate;
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "a")));
  std::future<Status> first_call =
      bench.AddAside(ingestor.get(), bench.Chunk("b", "b"));
  gate.Await();
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("c", "c")));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("d", "d")));
  std::future<Status> waits =
      bench.AddAside(ingestor.get(), bench.Chunk("e", "e"));
  std::future<Status> flush = std::async(
      std::launch::async, [&] { return bench.Flush(ingestor.get()); });
  // If this wait is too short, the test may miss an error, but not report a
  // false one.
  const auto add_after = waits.wait_for(milliseconds(200));
  const auto flush_after = flush.wait_for(milliseconds(0));
  gate.Open();
  REQUIRE(add_after == std::future_status::timeout);
  REQUIRE(flush_after == std::future_status::timeout);
  for (std::future<Status>* done : {&first_call, &waits, &flush}) {
    REQUIRE_OK(done->get());
  }
  REQUIRE_OK(bench.Flush(ingestor.get()));
  REQUIRE(bench.Levels() == std::vector<size_t>{0, 0, 0, 0, 0, 0, 5});
}

TEST_CASE("Ingestor keeps the first failure and ingests nothing after it",
          "[target][ingest]") {
  Bench bench;
  const auto ingestor = bench.Make(2);
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "a")));
  StagedChunk lost = bench.Chunk("b", "b");
  std::filesystem::remove(lost.path);
  const Status first = bench.Add(ingestor.get(), lost);
  INFO(first.ToString());
  REQUIRE_FALSE(first.ok());
  REQUIRE(first.ToString().find("ingest of 2 chunks") != std::string::npos);
  for (const char* key : {"c", "d", "e", "f"}) {
    REQUIRE(bench.Add(ingestor.get(), bench.Chunk(key, key)).ToString() ==
            first.ToString());
  }
  REQUIRE(bench.Flush(ingestor.get()).ToString() == first.ToString());
  REQUIRE(ingestor->ingest_calls() == 1);
  REQUIRE(bench.Levels() == std::vector<size_t>(7, 0));
}

TEST_CASE("A stopped Ingestor records waiting chunks and ingests no more",
          "[target][ingest]") {
  Bench bench;
  const auto ingestor = bench.Make(2);
  Gate gate;
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "a")));
  StagedChunk second = bench.Chunk("b", "b");
  std::future<Status> first_call = std::async(
      std::launch::async,
      [&] { return bench.Add(ingestor.get(), std::move(second)); });
  gate.Await();
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("c", "c")));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("d", "d")));
  StagedChunk fifth = bench.Chunk("e", "e");
  std::future<Status> waits = std::async(
      std::launch::async,
      [&] { return bench.Add(ingestor.get(), std::move(fifth)); });
  ingestor->Stop();
  REQUIRE(EndStateOf(waits.get()) == EndState::kCancelled);
  gate.Open();
  REQUIRE(EndStateOf(first_call.get()) == EndState::kCancelled);
  REQUIRE(EndStateOf(bench.Add(ingestor.get(), bench.Chunk("f", "f"))) ==
          EndState::kCancelled);
  REQUIRE(EndStateOf(bench.Flush(ingestor.get())) == EndState::kCancelled);
  REQUIRE(ingestor->ingest_calls() == 1);
  REQUIRE(bench.Levels() == std::vector<size_t>{0, 0, 0, 0, 0, 0, 2});
  REQUIRE(RecordedChunks(bench.dir() / "journal") == 6);
}

TEST_CASE("Ingestor wakes a waiting lane if a call fails", "[target][ingest]") {
  Bench bench;
  const auto ingestor = bench.Make(2);
  Gate gate;
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "a")));
  StagedChunk lost = bench.Chunk("b", "b");
  std::filesystem::remove(lost.path);
  std::future<Status> first_call = bench.AddAside(ingestor.get(), lost);
  gate.Await();
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("c", "c")));
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("d", "d")));
  std::future<Status> waits =
      bench.AddAside(ingestor.get(), bench.Chunk("e", "e"));
  gate.Open();
  const Status first = first_call.get();
  REQUIRE_FALSE(first.ok());
  REQUIRE(waits.get().ToString() == first.ToString());
}

TEST_CASE(
    "Ingestor never ingests files that overlap or share a key in one call",
    "[target][ingest]") {
  const bool reverse = GENERATE(false, true);
  Bench bench(reverse ? rocksdb::ReverseBytewiseComparator()
                      : rocksdb::BytewiseComparator());
  const auto ingestor = bench.Make(8);
  // Maps characters to keys so that "1" sorts before "2" in the family's order.
  const auto chunk = [&](char first, char last, uint32_t family) {
    const auto key = [reverse](char c) {
      return std::string(1, reverse ? static_cast<char>('0' + '9' - c) : c);
    };
    return bench.Chunk(key(first), key(last), family);
  };
  const bool shared = GENERATE(true, false);
  REQUIRE_OK(bench.Add(ingestor.get(), chunk('3', '5', 0)));
  const Status status = bench.Add(
      ingestor.get(), shared ? chunk('1', '3', 0) : chunk('2', '7', 0));
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kInternal);
  REQUIRE(status.ToString().find("do not overlap") != std::string::npos);
  REQUIRE(bench.Levels() == std::vector<size_t>(7, 0));
  // The same keys in two families do not overlap.
  const auto other = bench.Make(8);
  REQUIRE_OK(bench.Add(other.get(), chunk('3', '5', 0)));
  REQUIRE_OK(bench.Add(other.get(), chunk('3', '5', 1)));
  REQUIRE(bench.Levels(1) == std::vector<size_t>{0, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("Ingestor accepts an upper level only if files stay in level 0",
          "[target][ingest]") {
  const bool keeps_level0 = GENERATE(true, false);
  Bench bench;
  const auto ingestor = bench.Make(8, keeps_level0);
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("a", "c")));
  REQUIRE_OK(bench.Flush(ingestor.get()));
  // This chunk overlaps the first one, so it cannot go into the last level.
  REQUIRE_OK(bench.Add(ingestor.get(), bench.Chunk("b", "d")));
  const Status status = bench.Flush(ingestor.get());
  INFO(status.ToString());
  REQUIRE(status.ok() == keeps_level0);
  REQUIRE(bench.Levels()[6] == 1);
}

}  // namespace
}  // namespace sstferry::ingestor_test
