// The ingestor over a database that holds data, has writers and is read.
#include <atomic>
#include <filesystem>
#include <future>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/target/database/call_thread.h"
#include "pipeline/target/database/ingestor.h"
#include "pipeline/target/database/live_tables.h"
#include "pipeline/target/journal/journal_state.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/stackable_db.h"
#include "tests/support/catch.h"
#include "tests/support/journal_records.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
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

  void Make(bool holds) {
    IngestRules rules;
    rules.holds = holds;
    Make(db_.get(), rules);
  }
  void Make(rocksdb::DB* db, IngestRules rules) {
    rules.replaces = true;
    ingestor_ = std::make_unique<Ingestor>(
        db, std::vector<IngestFamily>{{db_->DefaultColumnFamily(), false}},
        journal_.get(), /*sync_journal=*/true, /*max_waiting=*/4, rules);
  }
  Ingestor* ingestor() { return ingestor_.get(); }
  StageClock* clock() { return &clock_; }
  StageTotals* totals() { return &totals_; }

  void Put(const std::string& key, const std::string& value) {
    REQUIRE_OK(db_->Put({}, key, value));
  }
  // All entries as "key=value ".
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

  // Replaces [first, last] by `last` alone, or by nothing.
  StagedChunk Tile(const std::string& first, const std::string& last,
                   bool keeps_last) {
    StagedChunk chunk;
    chunk.path = dir_ / ("staging/" + std::to_string(made_) + "-0.sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db_->GetOptions());
    REQUIRE_OK(writer.Open(chunk.path));
    const std::string end = keeps_last ? last + '\0' : last;
    REQUIRE_OK(writer.DeleteRange(first, end));
    REQUIRE_OK(keeps_last ? writer.Put(last, "new") : writer.Delete(last));
    REQUIRE_OK(writer.Finish());
    ChunkEnd& ended = chunk.record.chunk;
    ended.range_id = made_++;
    ended.smallest = first;
    ended.largest = end;
    ended.file_bytes = std::filesystem::file_size(chunk.path);
    ended.clears = true;
    ended.deletes_last = !keeps_last;
    return chunk;
  }

  std::string journal_path() const { return dir_ / "journal"; }
  rocksdb::DB* db() { return db_.get(); }

 private:
  ScratchDir dir_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<JournalFile> journal_;
  std::unique_ptr<Ingestor> ingestor_;
  StageTotals totals_;
  StageClock clock_{&totals_, Stage::kIdle};
  uint32_t made_ = 0;
};

TEST_CASE("A chunk replaces its interval over files and memtables at once",
          "[target][ingest]") {
  LiveBench bench;
  bench.Put("b", "in memory");
  bench.Put("b2", "in memory");
  const rocksdb::Snapshot* before = bench.db()->GetSnapshot();
  bench.Make(/*holds=*/false);
  REQUIRE_OK(bench.ingestor()->Add(bench.Tile("b", "c", true), bench.clock()));
  REQUIRE_OK(bench.ingestor()->Add(bench.Tile("d", "e", false), bench.clock()));
  REQUIRE_OK(bench.ingestor()->Flush(bench.clock()));
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
  bench.Make(/*holds=*/false);
  Ingestor* const ingestor = bench.ingestor();
  REQUIRE(ingestor->IngestedLevels().empty());
  for (const char* first : {"b", "d", "x"}) {  // the last one is over nothing
    REQUIRE_OK(ingestor->Add(
        bench.Tile(first, std::string(first) + "z", true), bench.clock()));
  }
  REQUIRE_OK(ingestor->Flush(bench.clock()));
  REQUIRE(ingestor->IngestedLevels() == Levels{{0, 2}, {6, 1}});
  // The same once more: not the older one below is counted.
  REQUIRE_OK(ingestor->Add(bench.Tile("x", "xz", true), bench.clock()));
  REQUIRE_OK(ingestor->Flush(bench.clock()));
  REQUIRE(ingestor->IngestedLevels() == Levels{{0, 2}, {5, 1}, {6, 1}});
}

// RocksDB 7.8 asserts, when it compacts one, that no range deletion has 0.
TEST_CASE("A chunk that replaces nothing gets a sequence of its own",
          "[target][ingest]") {
  LiveBench bench;
  bench.Make(/*holds=*/false);
  REQUIRE_OK(bench.ingestor()->Add(bench.Tile("x", "xz", true), bench.clock()));
  REQUIRE_OK(
      bench.ingestor()->Add(bench.Tile("y", "yz", false), bench.clock()));
  REQUIRE_OK(bench.ingestor()->Flush(bench.clock()));
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

TEST_CASE("Chunks whose intervals touch land in one level in one call",
          "[target][ingest]") {
  using Levels = std::map<int, uint64_t>;
  LiveBench bench;
  bench.Make(/*holds=*/true);
  std::string first = "x";
  for (int i = 0; i < 4; ++i) {  // the next begins where this one ends
    const std::string last = "x" + std::to_string(i);
    REQUIRE_OK(bench.ingestor()->Add(bench.Tile(first, last, true),
                                     bench.clock()));
    first = last + '\0';
  }
  REQUIRE_OK(bench.ingestor()->Flush(bench.clock()));
  REQUIRE_OK(bench.ingestor()->IngestHeld(bench.clock()));
  REQUIRE(bench.ingestor()->IngestedLevels() == Levels{{6, 4}});
  REQUIRE(bench.Entries() ==
          "a=old b=old c=old d=old e=old x0=new x1=new x2=new x3=new ");
}

TEST_CASE("What is held shows when all of it does", "[target][ingest]") {
  LiveBench bench;
  bench.Make(/*holds=*/true);
  for (const char* key : {"a", "b", "c", "d"}) {
    REQUIRE_OK(bench.ingestor()->Add(
        bench.Tile(key, std::string(key) + "x", true), bench.clock()));
  }
  REQUIRE_OK(bench.ingestor()->Flush(bench.clock()));
  REQUIRE(bench.Entries() == "a=old b=old c=old d=old e=old ");
  REQUIRE(bench.ingestor()->ingest_calls() == 0);
  REQUIRE_OK(bench.ingestor()->IngestHeld(bench.clock()));
  REQUIRE(bench.Entries() == "ax=new bx=new cx=new dx=new e=old ");
  REQUIRE(bench.ingestor()->ingest_calls() == 1);
  // Neighbours that share no key keep one level.
  rocksdb::ColumnFamilyMetaData metadata;
  bench.db()->GetColumnFamilyMetaData(&metadata);
  size_t levels = 0;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    levels += level.files.empty() || level.level == 0 ? 0 : 1;
  }
  REQUIRE(levels <= 1);
}

// A database that writers fill as fast as it is flushed: it refuses so many
// ingestions first, in RocksDB's words.
class BusyDb : public rocksdb::StackableDB {
 public:
  BusyDb(rocksdb::DB* base, int refusals)
      : StackableDB(std::shared_ptr<rocksdb::DB>(base, [](rocksdb::DB*) {})),
        refusals_(refusals) {}
  rocksdb::Status IngestExternalFiles(
      const std::vector<rocksdb::IngestExternalFileArg>& args) override {
    calls += args[0].options.allow_blocking_flush ? "ingest-blocking "
                                                  : "ingest ";
    return refusals_-- > 0 ? rocksdb::Status::InvalidArgument(
                                 "External file requires flush")
                           : StackableDB::IngestExternalFiles(args);
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
};

TEST_CASE("Writers wait for an ingestion when flushes that they do not notice "
          "were in vain, and not before",
          "[target][ingest]") {
  LiveBench bench;
  const int refusals = GENERATE(0, 1, 3);
  BusyDb busy(bench.db(), refusals);
  bench.Make(&busy, {});
  REQUIRE_OK(bench.ingestor()->Add(bench.Tile("b", "c", true), bench.clock()));
  REQUIRE_OK(bench.ingestor()->Flush(bench.clock()));
  std::string expected = kIngestsOverMemtables ? "" : "flush ";
  for (int i = 0; i < refusals; ++i) {
    expected += "ingest flush ";
  }
  expected += refusals == 3 ? "ingest-blocking " : "ingest ";
  REQUIRE(busy.calls == expected);
  REQUIRE(bench.Entries() == "a=old c=new d=old e=old ");
}

TEST_CASE("However many lanes hand over, one call ingests at a time",
          "[target][ingest]") {
  LiveBench bench;
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> calls{0};
  std::atomic<int> handed_over{0};
  IngestRules rules;
  rules.make_call = [&](const std::function<rocksdb::Status()>& call) {
    most = std::max(most.load(), ++running);
    // One that was handed over before, and as many as may wait.
    while (calls == 0 && handed_over < 1 + 4 && running == 1) {
      std::this_thread::yield();
    }
    calls++;
    const rocksdb::Status status = call();
    running--;
    return status;
  };
  bench.Make(bench.db(), rules);
  constexpr size_t kLanes = 4;
  std::vector<std::vector<StagedChunk>> chunks(kLanes);
  for (int i = 0; i < 40; ++i) {
    const std::string key = "f" + std::to_string(100 + i);
    chunks[i % kLanes].push_back(bench.Tile(key, key + "x", true));
  }
  std::vector<std::future<rocksdb::Status>> lanes;
  for (std::vector<StagedChunk>& of_lane : chunks) {
    lanes.push_back(std::async(std::launch::async, [&] {
      StageClock clock(bench.totals(), Stage::kIdle);
      rocksdb::Status status;
      for (StagedChunk& chunk : of_lane) {
        status = status.ok() ? bench.ingestor()->Add(chunk, &clock) : status;
        handed_over++;
      }
      return status.ok() ? bench.ingestor()->Flush(&clock) : status;
    }));
  }
  for (std::future<rocksdb::Status>& lane : lanes) {
    REQUIRE_OK(lane.get());
  }
  REQUIRE(most == 1);
  REQUIRE(calls > 1);
}

TEST_CASE("A call that is made for a lane is made elsewhere, and its status "
          "comes back",
          "[target][ingest]") {
  CallThread thread;
  std::vector<std::thread::id> where;
  for (const bool ok : {true, false}) {
    const rocksdb::Status status = thread.Run([&] {
      where.push_back(std::this_thread::get_id());
      return ok ? rocksdb::Status::OK() : rocksdb::Status::IOError("no");
    });
    REQUIRE(status.IsIOError() == !ok);
  }
  REQUIRE(where.size() == 2);
  REQUIRE(where[0] == where[1]);
  REQUIRE(where[0] != std::this_thread::get_id());
}

TEST_CASE("Tiles that overlap are never ingested together",
          "[target][ingest]") {
  LiveBench bench;
  bench.Make(/*holds=*/true);
  REQUIRE_OK(bench.ingestor()->Add(bench.Tile("a", "c", true), bench.clock()));
  REQUIRE(EndStateOf(bench.ingestor()->Add(bench.Tile("b", "d", true),
                                           bench.clock())) ==
          EndState::kInternal);
  REQUIRE(bench.Entries() == "a=old b=old c=old d=old e=old ");
}

}  // namespace
}  // namespace sstferry
