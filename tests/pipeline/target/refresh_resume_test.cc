// Refreshes that are interrupted and started again.
#include <filesystem>
#include <map>
#include <memory>

#include "format/end_state.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/health.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::refresh_resume_test {
namespace {

namespace fs = std::filesystem;

// A source, and a target with its earlier contents.
struct RefreshWorld {
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
  PullOptions options;

  RefreshWorld() {
    MakeSampleDatabase(dir / "source");
    server = std::make_unique<TestServer>(ServeAndHold(dir / "source"));
    options = PullFrom(server->address(), dir / "target");
    options.mode = PullMode::kRefresh;
    REQUIRE_OK(RunPull(options).status);
    fs::copy(dir / "target", dir / "before", fs::copy_options::recursive);
    Change("one");
  }
  void Change(const std::string& night) {
    test::OpenDb source(dir / "source", test::OneFamily(test::Quiet()));
    size_t number = 0;
    for (const auto& [key, value] : EntriesOf(dir / "target")) {
      if (++number % 3 == 0) {
        source.Delete(key);
      } else {
        source.Put(key, night + test::RandomBytes(900, number));
      }
    }
    source.Flush();
  }
  Summary ToTheEnd() {
    const Summary summary = RunPull(options);
    INFO(summary.status.ToString());
    REQUIRE_OK(summary.status);
    REQUIRE(summary.state == "complete");
    REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
    REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
    return summary;
  }
  LastTransfer Record() const {
    LastTransfer record;
    REQUIRE(ReadLastTransfer(dir / "target", &record));
    return record;
  }
};

TEST_CASE("A refresh killed at any step is resumed",
          "[target][refresh][crash]") {
  struct Death {
    const char* point;
    int nth;
    uint64_t at_least;  // chunks that the next run need not fetch
  };
  const Death death = GENERATE(
      Death{"Puller:HeadWritten", 1, 0}, Death{"LaneClient:ChunkSynced", 4, 2},
      // Each group has one chunk or more.
      Death{"Ingestor:JournalSynced", 2, 2},
      Death{"Puller:TotalsAgreed", 1, 5}, Death{"Ingestor:Ingested", 1, 5},
      Death{"Refresh:AllIngested", 1, 5});
  INFO(death.point);
  RefreshWorld world;
  world.options.lanes = 1;  // no other chunk is in transit
  const auto before = EntriesOf(world.dir / "target");
  PullAndDie(world.server->address(), world.options, death.point, death.nth);
  const std::string point = death.point;
  if (point != "Ingestor:Ingested" && point != "Refresh:AllIngested") {
    REQUIRE(EntriesOf(world.dir / "target") == before);
  }
  const Summary second = world.ToTheEnd();
  REQUIRE(second.chunks_resumed >= death.at_least);
}

TEST_CASE("A refresh is not resumed after another process compacted the target",
          "[target][refresh][crash]") {
  RefreshWorld world;
  PullAndDie(world.server->address(), world.options,
             GENERATE("Refresh:AllIngested", "Puller:TotalsAgreed"));
  {
    // The compaction also replaces files of ingested chunks. So it is unknown
    // which of their entries it dropped.
    test::OpenDb target(world.dir / "target", test::OneFamily(test::Quiet()));
    target.Compact();
  }
  const Summary second = world.ToTheEnd();
  REQUIRE(second.chunks_resumed == 0);
}

TEST_CASE("A refresh is not resumed after another process ingested a file",
          "[target][refresh][crash]") {
  RefreshWorld world;
  PullAndDie(world.server->address(), world.options, "LaneClient:ChunkSynced",
             4);
  {
    test::OpenDb target(world.dir / "target", test::OneFamily(test::Quiet()));
    const uint64_t before = target->GetLatestSequenceNumber();
    rocksdb::SstFileWriter writer{rocksdb::EnvOptions(), target->GetOptions()};
    REQUIRE_OK(writer.Open(world.dir / "foreign.sst"));
    REQUIRE_OK(writer.Put("zzz", "foreign"));
    REQUIRE_OK(writer.Finish());
    REQUIRE_OK(target->IngestExternalFile({world.dir / "foreign.sst"}, {}));
    REQUIRE(target->GetLatestSequenceNumber() == before);
  }
  const Summary second = world.ToTheEnd();
  REQUIRE(second.chunks_resumed == 0);
}

TEST_CASE("A refresh is not resumed after a write while the source is asked",
          "[target][refresh][crash]") {
  RefreshWorld world;
  PullAndDie(world.server->address(), world.options,
             GENERATE("Puller:TotalsAgreed", "Ingestor:JournalSynced"));
  bool wrote = false;
  world.options.on_transfer = [&](const std::string&) {
    if (!wrote) {
      test::OpenDb target(world.dir / "target",
                          test::OneFamily(test::Quiet()));
      target.Put("foreign", "x");
      wrote = true;
    }
  };
  const Summary second = world.ToTheEnd();
  REQUIRE(wrote);
  REQUIRE(second.chunks_resumed == 0);
  REQUIRE(NotesMention(second, "another process wrote to the target"));
}

TEST_CASE("A refresh does not open a database that this process has open by "
          "another path",
          "[target][refresh]") {
  RefreshWorld world;
  std::unique_ptr<test::OpenDb> application;
  world.options.on_transfer = [&](const std::string&) {
    application = std::make_unique<test::OpenDb>(
        world.dir / "target/", test::OneFamily(test::Quiet()));
    application->Put("foreign", "x");
  };
  const Summary ended = RunPull(world.options);
  INFO(ended.status.ToString());
  REQUIRE(EndStateOf(ended.status) == EndState::kBusy);
  REQUIRE(MessageOf(ended.status).find("this process holds its LOCK") !=
          std::string::npos);
  application->Put("later", "y");
  application.reset();
  const std::map<std::string, std::string> entries =
      EntriesOf(world.dir / "target");
  REQUIRE(entries.contains("foreign"));
  REQUIRE(entries.contains("later"));
}

TEST_CASE("This process cannot open a database during a refresh, by any path",
          "[target][refresh]") {
  RefreshWorld world;
  const std::string path = world.dir / GENERATE("target", "target/");
  rocksdb::Status first;
  rocksdb::Status second;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name != "Refresh:TargetOpened") return;
    std::unique_ptr<rocksdb::DB> db;
    first = rocksdb::DB::Open(rocksdb::Options(), path, IntoDb(&db));
    if (first.ok()) return;
    // The failed open has closed its descriptor of LOCK. This must not release
    // the refresh's lock.
    second = rocksdb::DB::Open(rocksdb::Options(), path, IntoDb(&db));
  });
  const Summary ended = RunPull(world.options);
  TEST_SetFaultHook(nullptr);
  INFO(ended.status.ToString());
  REQUIRE(first.IsIOError());
  REQUIRE(second.IsIOError());
  REQUIRE_OK(ended.status);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(world.dir / "source"));
  const test::OpenDb application(path, test::OneFamily(test::Quiet()));
}

TEST_CASE("A refresh does not change a database that was exchanged while the "
          "source was asked",
          "[target][refresh]") {
  RefreshWorld world;
  const std::string target = world.dir / "target";
  if (GENERATE(false, true)) {
    PullAndDie(world.server->address(), world.options,
               "LaneClient:ChunkSynced", 4);
  }
  const std::string record =
      GENERATE(std::string(), std::string("another"), std::string("the same"));
  bool exchanged = false;
  world.options.on_transfer = [&](const std::string&) {
    REQUIRE_FALSE(exchanged);
    exchanged = true;
    fs::rename(target, world.dir / "moved");
    {
      test::OpenDb foreign(target, test::OneFamily(test::Quiet()));
      foreign.Put("foreign", "x");
      foreign.Flush();
    }
    const std::string name = std::string("/") + kLastTransferName;
    if (record == "the same") {
      fs::copy_file(world.dir / "moved" + name, target + name);
    } else if (!record.empty()) {
      WriteBytes(target + name,
                 "{\"transfer_id\": \"00ff\", \"snapshot_sequence\": 1, "
                 "\"source_database_id\": \"another\"}");
    }
  };
  const Summary ended = RunPull(world.options);
  INFO(ended.status.ToString());
  REQUIRE(exchanged);
  REQUIRE(EndStateOf(ended.status) == EndState::kBusy);
  REQUIRE(ended.status.ToString().find("run the same command again") !=
          std::string::npos);
  REQUIRE(EntriesOf(target) ==
          std::map<std::string, std::string>{{"foreign", "x"}});
  REQUIRE(fs::exists(target + "/" + kLastTransferName) == !record.empty());
}

TEST_CASE("A refresh ends if a fault is found while the source is asked",
          "[target][refresh]") {
  RefreshWorld world;
  const auto before = EntriesOf(world.dir / "target");
  HealthFile fault = MakeFault(ReplicaFault::kDamaged, "found meanwhile",
                               Selection());
  world.options.on_transfer = [&](const std::string&) {
    REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(),
                           world.dir / "target", &fault));
  };
  const Summary ended = RunPull(world.options);
  INFO(ended.status.ToString());
  REQUIRE(EndStateOf(ended.status) == EndState::kBusy);
  REQUIRE(EntriesOf(world.dir / "target") == before);
  world.options.on_transfer = nullptr;
  REQUIRE(EndStateOf(RunPull(world.options).status) == EndState::kCorrupt);
}

TEST_CASE("A refresh compares comparators when it opens the target for writing",
          "[target][refresh]") {
  const ScratchDir dir;
  const test::Families bytewise = {{"default", test::Quiet()},
                                   {"other", test::Quiet()}};
  test::Families reversed = bytewise;
  reversed[1].options.comparator = rocksdb::ReverseBytewiseComparator();
  const auto put = [&dir](const std::string& name,
                          const test::Families& families,
                          const std::string& key) {
    test::OpenDb db(dir / name, families);
    db.Put(key, "value", "other");
    db.Flush();
  };
  put("source", bytewise, "a");
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.mode = PullMode::kRefresh;
  REQUIRE_OK(RunPull(options).status);
  put("source", bytewise, "b");
  options.on_transfer = [&](const std::string&) {
    test::OpenDb(dir / "target", bytewise).Drop("other");
    // A new MANIFEST: RocksDB compares comparators also with dropped families.
    test::OpenDb(dir / "target", {bytewise[0]}).Create(reversed[1]);
    put("target", reversed, "c");
  };
  const Summary ended = RunPull(options);
  INFO(ended.status.ToString());
  REQUIRE(EndStateOf(ended.status) == EndState::kIncompatible);
  REQUIRE(ended.status.ToString().find("comparator") != std::string::npos);
  REQUIRE(test::EntriesOf(dir / "target", reversed, "other").size() == 1);
}

TEST_CASE(
    "A refresh that is cancelled before the data is visible changes nothing",
    "[target][refresh]") {
  RefreshWorld world;
  const auto before = EntriesOf(world.dir / "target");
  const LastTransfer record = world.Record();
  const Summary first =
      PullAndCancel(world.options, "LaneClient:ChunkSynced", 3);
  REQUIRE(first.state.empty());
  REQUIRE(EntriesOf(world.dir / "target") == before);
  REQUIRE(world.Record() == record);
  world.ToTheEnd();
}

TEST_CASE("A cancelled refresh in place says whether the next one resumes it",
          "[target][refresh]") {
  RefreshWorld world;
  const bool serves = GENERATE(true, false);
  if (!serves) {
    world.server.reset();
    REQUIRE_OK(ParseSourceAddress(world.dir / "source",
                                  &world.options.source));
  }
  const Summary first =
      PullAndCancel(world.options, "LaneClient:ChunkSynced", 3);
  REQUIRE(NotesMention(first, "run the same command to resume") == serves);
  REQUIRE(NotesMention(first, "run the same command to start over") ==
          !serves);
  const Summary second = world.ToTheEnd();
  REQUIRE((second.chunks_resumed > 0) == serves);
}

}  // namespace
}  // namespace sstferry::refresh_resume_test
