// The ingestor of a database that has data, writers and readers.
#include <atomic>
#include <filesystem>
#include <future>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/pull/ingestor.h"
#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/stackable_db.h"
#include "tests/support/catch.h"
#include "tests/support/journal_records.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::ingest_over_test {
namespace {

class LiveBench {
 public:
  LiveBench() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    options.level_compaction_dynamic_level_bytes = false;
    REQUIRE_OK(rocksdb::DB::Open(options, dir_ / "db", IntoDb(&db_)));
    std::filesystem::create_directory(dir_ / "staging");
    REQUIRE_OK(JournalFile::Create(rocksdb::FileSystem::Default().get(),
                                   journal_path(), &journal_));
    for (const char* key : {"a", "b", "c", "d", "e"}) {
      Put(key, "old");
    }
    REQUIRE_OK(db_->Flush({}));
  }

  void Make(rocksdb::DB* db = nullptr, bool over_data = true) {
    rocksdb::DB* const into = db != nullptr ? db : db_.get();
    IngestRules rules;
    rules.over_data = over_data;
    ingestor_ = std::make_unique<Ingestor>(
        into, std::vector<IngestFamily>{{db_->DefaultColumnFamily(), false}},
        journal_.get(), /*sync_journal=*/true, /*max_waiting=*/4, rules);
  }
  void IngestAll() {
    REQUIRE_OK(ingestor_->Flush(&clock_));
    REQUIRE_OK(ingestor_->IngestDeferred(&clock_));
  }
  Ingestor* ingestor() { return ingestor_.get(); }
  StageClock* clock() { return &clock_; }
  StageTotals* totals() { return &totals_; }

  void Put(const std::string& key, const std::string& value) {
    REQUIRE_OK(db_->Put({}, key, value));
  }
  // Returns all entries as "key=value ".
  std::string Entries(const rocksdb::Snapshot* snapshot = nullptr) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
    std::string text;
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      text += it->key().ToString() + "=" + it->value().ToString() + " ";
    }
    REQUIRE_OK(it->status());
    return text;
  }

  // Makes a delta that deletes [first, last], and may put `last` again.
  StagedChunk Delta(const std::string& first, const std::string& last,
                    bool keeps_last) {
    return Stage(first, last, [&](rocksdb::SstFileWriter* writer) {
      REQUIRE_OK(writer->Delete(first));
      REQUIRE_OK(writer->DeleteRange(first, last));
      REQUIRE_OK(keeps_last ? writer->Put(last, "new") : writer->Delete(last));
    });
  }
  StagedChunk OnePut(const std::string& key) {
    return Stage(key, key, [&](rocksdb::SstFileWriter* writer) {
      REQUIRE_OK(writer->Put(key, "new"));
    });
  }

  std::string journal_path() const { return dir_ / "journal"; }
  rocksdb::DB* db() { return db_.get(); }

 private:
  StagedChunk Stage(
      const std::string& first, const std::string& last,
      const std::function<void(rocksdb::SstFileWriter*)>& write) {
    StagedChunk chunk;
    chunk.path = dir_ / ("staging/" + std::to_string(made_) + "-0.sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db_->GetOptions());
    REQUIRE_OK(writer.Open(chunk.path));
    write(&writer);
    REQUIRE_OK(writer.Finish());
    ChunkEnd& ended = chunk.record.chunk;
    ended.part_id = made_++;
    ended.smallest = first;
    ended.largest = last;
    ended.file_bytes = std::filesystem::file_size(chunk.path);
    return chunk;
  }

  ScratchDir dir_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<JournalFile> journal_;
  std::unique_ptr<Ingestor> ingestor_;
  StageTotals totals_;
  StageClock clock_{&totals_, Stage::kIdle};
  uint32_t made_ = 0;
};

TEST_CASE("A delta's range deletion covers files and memtables at once",
          "[target][ingest]") {
  LiveBench bench;
  bench.Put("b", "in memory");
  bench.Put("b2", "in memory");
  const rocksdb::Snapshot* before = bench.db()->GetSnapshot();
  bench.Make();
  REQUIRE_OK(bench.ingestor()->Add(bench.Delta("b", "c", true), bench.clock()));
  REQUIRE_OK(
      bench.ingestor()->Add(bench.Delta("d", "e", false), bench.clock()));
  bench.IngestAll();
  REQUIRE(bench.Entries() == "a=old c=new ");
  REQUIRE(bench.Entries(before) ==
          "a=old b=in memory b2=in memory c=old d=old e=old ");
  bench.db()->ReleaseSnapshot(before);
  REQUIRE(bench.ingestor()->ingest_calls() == 1);
  const auto micros = bench.ingestor()->CallMicros();
  REQUIRE(micros.at("p50") <= micros.at("max"));
  REQUIRE(RecordsOf(bench.journal_path(), JournalRecordType::kChunk) == 2);
  REQUIRE(RecordsOf(bench.journal_path(), JournalRecordType::kIngested) == 2);
}

TEST_CASE("Chunks are counted in the levels where they landed",
          "[target][ingest]") {
  using Levels = std::map<int, uint64_t>;
  LiveBench bench;
  bench.Make();
  Ingestor* const ingestor = bench.ingestor();
  REQUIRE(ingestor->IngestedLevels().empty());
  for (const char* first : {"b", "d", "x"}) {  // the last one overlaps nothing
    REQUIRE_OK(ingestor->Add(
        bench.Delta(first, std::string(first) + "z", true), bench.clock()));
  }
  bench.IngestAll();
  REQUIRE(ingestor->IngestedLevels() == Levels{{0, 2}, {6, 1}});
  // Ingest the last one again: only the new file is counted.
  REQUIRE_OK(ingestor->Add(bench.Delta("x", "xz", true), bench.clock()));
  bench.IngestAll();
  REQUIRE(ingestor->IngestedLevels() == Levels{{0, 2}, {5, 1}, {6, 1}});
}

// RocksDB 7.8 asserts in compactions that no range deletion has sequence 0.
TEST_CASE("A range deletion over nothing gets its own sequence",
          "[target][ingest]") {
  LiveBench bench;
  bench.Make();
  REQUIRE_OK(
      bench.ingestor()->Add(bench.Delta("x", "xz", true), bench.clock()));
  REQUIRE_OK(
      bench.ingestor()->Add(bench.Delta("y", "yz", false), bench.clock()));
  bench.IngestAll();
  std::vector<LiveTable> tables;
  REQUIRE_OK(ListLiveTables(bench.db(), bench.db()->DefaultColumnFamily(),
                            &tables));
  int replacing = 0;
  for (const LiveTable& table : tables) {
    if (table.range_deletions != 0) {
      CHECK(table.smallest_sequence != 0);
      ++replacing;
    }
  }
  CHECK(replacing == 2);
}

TEST_CASE("Deltas of neighbouring keys land in one level in one call",
          "[target][ingest]") {
  using Levels = std::map<int, uint64_t>;
  LiveBench bench;
  bench.Make();
  std::string first = "x";
  for (int i = 0; i < 4; ++i) {  // each begins just after the previous one
    const std::string last = "x" + std::to_string(i);
    REQUIRE_OK(bench.ingestor()->Add(bench.Delta(first, last, true),
                                     bench.clock()));
    first = last + '\0';
  }
  bench.IngestAll();
  REQUIRE(bench.ingestor()->IngestedLevels() == Levels{{6, 4}});
  REQUIRE(bench.Entries() ==
          "a=old b=old c=old d=old e=old x0=new x1=new x2=new x3=new ");
}

TEST_CASE("Deferred deltas become visible all at once", "[target][ingest]") {
  LiveBench bench;
  bench.Make();
  for (const char* key : {"a", "b", "c", "d"}) {
    REQUIRE_OK(bench.ingestor()->Add(
        bench.Delta(key, std::string(key) + "x", true), bench.clock()));
  }
  REQUIRE_OK(bench.ingestor()->Flush(bench.clock()));
  REQUIRE(bench.Entries() == "a=old b=old c=old d=old e=old ");
  REQUIRE(bench.ingestor()->ingest_calls() == 0);
  REQUIRE_OK(bench.ingestor()->IngestDeferred(bench.clock()));
  REQUIRE(bench.Entries() == "ax=new bx=new cx=new dx=new e=old ");
  REQUIRE(bench.ingestor()->ingest_calls() == 1);
  // Neighbours without a common key stay in one level.
  rocksdb::ColumnFamilyMetaData metadata;
  bench.db()->GetColumnFamilyMetaData(&metadata);
  size_t levels = 0;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    levels += level.files.empty() || level.level == 0 ? 0 : 1;
  }
  REQUIRE(levels <= 1);
}

// A database that writers fill as fast as it is flushed. It refuses the first
// ingestions. The text of its error must not matter.
class BusyDb : public rocksdb::StackableDB {
 public:
  BusyDb(rocksdb::DB* base, int refusals, bool asks_again = false)
      : StackableDB(std::shared_ptr<rocksdb::DB>(base, [](rocksdb::DB*) {})),
        refusals_(refusals),
        refusal_(asks_again ? rocksdb::Status::TryAgain()
                            : rocksdb::Status::InvalidArgument(
                                  "not in words of today")) {}
  rocksdb::Status IngestExternalFiles(
      const std::vector<rocksdb::IngestExternalFileArg>& args) override {
    calls += args[0].options.allow_blocking_flush ? "ingest-blocking "
                                                  : "ingest ";
    return refusals_-- > 0 ? refusal_ : StackableDB::IngestExternalFiles(args);
  }
  using StackableDB::Flush;
  rocksdb::Status Flush(
      const rocksdb::FlushOptions& options,
      const std::vector<rocksdb::ColumnFamilyHandle*>& families) override {
    REQUIRE_FALSE(options.allow_write_stall);
    REQUIRE(options.wait);
    calls += "flush ";
    return StackableDB::Flush(options, families);
  }

  std::string calls;

 private:
  int refusals_;
  const rocksdb::Status refusal_;
};

TEST_CASE("An ingestion blocks writers only if a non-blocking flush was not "
          "enough",
          "[target][ingest]") {
  LiveBench bench;
  const int refusals = GENERATE(0, 1);
  BusyDb busy(bench.db(), refusals, /*asks_again=*/GENERATE(false, true));
  bench.Make(&busy);
  REQUIRE_OK(bench.ingestor()->Add(bench.Delta("b", "c", true), bench.clock()));
  bench.IngestAll();
  std::string expected = kIngestsOverMemtables ? "" : "flush ";
  expected += refusals == 1 ? "ingest flush ingest-blocking " : "ingest ";
  REQUIRE(busy.calls == expected);
  REQUIRE(bench.Entries() == "a=old c=new d=old e=old ");
}

TEST_CASE("The second InvalidArgument of RocksDB ends an ingestion",
          "[target][ingest]") {
  LiveBench bench;
  BusyDb busy(bench.db(), /*refusals=*/2);
  bench.Make(&busy);
  REQUIRE_OK(bench.ingestor()->Add(bench.Delta("b", "c", true), bench.clock()));
  StageClock* const clock = bench.clock();
  rocksdb::Status status = bench.ingestor()->Flush(clock);
  if (status.ok()) status = bench.ingestor()->IngestDeferred(clock);
  REQUIRE_FALSE(status.ok());
  const std::string first = kIngestsOverMemtables ? "" : "flush ";
  REQUIRE(busy.calls == first + "ingest flush ingest-blocking ");
  REQUIRE(bench.Entries() == "a=old b=old c=old d=old e=old ");
}

// Counts how many calls ingest at a time. The first call waits until more
// chunks are handed over.
class WatchedDb : public rocksdb::StackableDB {
 public:
  explicit WatchedDb(rocksdb::DB* base)
      : StackableDB(std::shared_ptr<rocksdb::DB>(base, [](rocksdb::DB*) {})) {}
  rocksdb::Status IngestExternalFiles(
      const std::vector<rocksdb::IngestExternalFileArg>& args) override {
    most = std::max(most.load(), ++running_);
    // One chunk that was handed over before, and as many as may wait.
    while (calls == 0 && handed_over < 1 + 4 && running_ == 1) {
      std::this_thread::yield();
    }
    calls++;
    const rocksdb::Status status = StackableDB::IngestExternalFiles(args);
    running_--;
    return status;
  }

  std::atomic<int> most{0};
  std::atomic<int> calls{0};
  std::atomic<int> handed_over{0};

 private:
  std::atomic<int> running_{0};
};

TEST_CASE("Only one call ingests at a time, however many lanes add chunks",
          "[target][ingest]") {
  LiveBench bench;
  WatchedDb watched(bench.db());
  bench.Make(&watched, /*over_data=*/false);
  constexpr size_t kLanes = 4;
  std::vector<std::vector<StagedChunk>> chunks(kLanes);
  for (int i = 0; i < 40; ++i) {
    chunks[i % kLanes].push_back(bench.OnePut("f" + std::to_string(100 + i)));
  }
  std::vector<std::future<rocksdb::Status>> lanes;
  for (std::vector<StagedChunk>& of_lane : chunks) {
    lanes.push_back(std::async(std::launch::async, [&] {
      StageClock clock(bench.totals(), Stage::kIdle);
      rocksdb::Status status;
      for (StagedChunk& chunk : of_lane) {
        status = status.ok() ? bench.ingestor()->Add(chunk, &clock) : status;
        watched.handed_over++;
      }
      return status.ok() ? bench.ingestor()->Flush(&clock) : status;
    }));
  }
  for (std::future<rocksdb::Status>& lane : lanes) {
    REQUIRE_OK(lane.get());
  }
  REQUIRE(watched.most == 1);
  REQUIRE(watched.calls > 1);
}

TEST_CASE("Deltas that overlap are never ingested together",
          "[target][ingest]") {
  LiveBench bench;
  bench.Make();
  REQUIRE_OK(bench.ingestor()->Add(bench.Delta("a", "c", true), bench.clock()));
  REQUIRE(EndStateOf(bench.ingestor()->Add(bench.Delta("b", "d", true),
                                           bench.clock())) ==
          EndState::kInternal);
  REQUIRE(bench.Entries() == "a=old b=old c=old d=old e=old ");
}

}  // namespace
}  // namespace sstferry::ingest_over_test
