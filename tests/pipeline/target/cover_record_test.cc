// What a target remembers, and when it doubts it.
#include "pipeline/target/cover_record.h"

#include <fstream>

#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test {
namespace {

struct CoverWorld {
  TempDir dir;
  std::unique_ptr<OpenDb> db;
  PullOptions options;
  SourcePlan plan;
  CoverFile record;

  CoverWorld() {
    db = std::make_unique<OpenDb>(dir / "db", OneFamily(Quiet()));
    Fill("a", "c");
    Fill("m", "o");
    plan.opened.source_database_id = "source";
    plan.opened.snapshot_sequence = 70;
    plan.families.resize(1);
    plan.families[0].description.name = "default";
    for (const auto& [begin, end] :
         std::vector<std::pair<std::string, std::string>>{{"a", "h"},
                                                          {"h", "z"}}) {
      Cover cover;
      cover.interval = {begin, end};
      cover.sequence = 70;
      plan.covers.push_back(cover);
    }
    Record(CoverFile());
  }
  void Fill(const std::string& first, const std::string& last) {
    db->Put(first, "value");
    db->Put(last, "value");
    db->Flush();
    const rocksdb::Slice begin(first);
    const rocksdb::Slice end(last);
    REQUIRE_OK((*db)->CompactRange({}, &begin, &end));
  }
  std::vector<FamilyHandle> families() {
    return {{"default", db->cf("default")}};
  }
  void Record(const CoverFile& before) {
    REQUIRE_OK(
        RecordCovers(options, plan, db->get(), families(), before, &record));
  }
  // By cover, "-" or "d" for doubted.
  std::string Doubts() {
    TargetMemory memory;
    REQUIRE_OK(JudgeCovers(record, db->get(), families(), &memory));
    std::string text;
    for (const Cover& cover : memory.covers) {
      text += cover.doubted ? "d" : "-";
    }
    return text;
  }
};

TEST_CASE("A target that nobody touched doubts nothing", "[target][covers]") {
  CoverWorld world;
  REQUIRE(world.record.families[0].files.size() == 2);
  REQUIRE(world.Doubts() == "--");
  TargetMemory memory;
  REQUIRE_OK(JudgeCovers(world.record, world.db->get(), world.families(),
                         &memory));
  REQUIRE(memory.families[0].first == "a");
  REQUIRE(memory.families[0].last == "o");
}

TEST_CASE("A target tells where its last-level files end",
          "[target][covers]") {
  CoverWorld world;
  world.db->Put("b", "in level 0");
  world.db->Flush();
  TargetMemory memory;
  REQUIRE_OK(JudgeCovers(world.record, world.db->get(), world.families(),
                         &memory));
  REQUIRE(memory.bounds == std::vector<TargetBound>{{0, "c"}, {0, "o"}});
}

TEST_CASE("Bounds of very many files, or very long ones, are thinned",
          "[target][covers]") {
  const uint32_t count = 3 * kMaxTargetBounds;
  std::vector<TargetBound> bounds;
  for (uint32_t i = 0; i < count; ++i) {
    bounds.push_back({0, NumberedKey(i)});
  }
  ThinBounds(&bounds);
  REQUIRE(bounds.size() == count / 4);
  for (size_t i = 0; i < bounds.size(); ++i) {
    REQUIRE(bounds[i].key == NumberedKey(4 * i + 3));
  }
  bounds.assign(100, {0, std::string(kMaxKeyBytes, 'k')});
  ThinBounds(&bounds);
  REQUIRE(bounds.size() == 12);  // 3 MiB
}

TEST_CASE("A foreign write is doubted where it is, however it got there",
          "[target][covers]") {
  CoverWorld world;
  world.db->Put("b", "foreign");
  world.db->Flush();
  REQUIRE(world.Doubts() == "d-");
  world.db->Compact();  // sequences are zero now
  REQUIRE(world.Doubts() != "--");
}

TEST_CASE("Compaction alone is not doubted while nothing was written",
          "[target][covers]") {
  CoverWorld world;
  rocksdb::CompactRangeOptions force;
  force.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK((*world.db)->CompactRange(force, nullptr, nullptr));
  REQUIRE(world.Doubts() == "--");
  // A write anywhere takes that proof away.
  world.db->Put("x", "foreign");
  world.db->Delete("x");
  REQUIRE(world.Doubts() == "dd");
}

TEST_CASE("An ingested file is doubted although it leaves no sequence",
          "[target][covers]") {
  CoverWorld world;
  const std::string path = world.dir / "foreign.sst";
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(),
                                (*world.db)->GetOptions());
  REQUIRE_OK(writer.Open(path));
  REQUIRE_OK(writer.Put("s", "foreign"));
  REQUIRE_OK(writer.Finish());
  REQUIRE_OK((*world.db)->IngestExternalFile({path}, {}));
  REQUIRE(world.Doubts() == "-d");
}

TEST_CASE("Where a file lay that went is doubted, whatever came after it",
          "[target][covers]") {
  CoverWorld world;
  // What is left of it ends before the interval in which its last key was.
  world.db->Delete("o");
  world.db->Delete("m");
  world.db->Flush();
  REQUIRE(world.Doubts() == "-d");
  const rocksdb::Slice begin("m");
  REQUIRE_OK((*world.db)->CompactRange({}, &begin, nullptr));
  REQUIRE(world.Doubts() == "-d");
}

TEST_CASE("Where recorded files went without successors is doubted",
          "[target][covers]") {
  CoverWorld world;
  const rocksdb::Slice begin("m");
  const rocksdb::Slice end("o");
  REQUIRE_OK(rocksdb::DeleteFilesInRange(
      world.db->get(), world.db->cf("default"), &begin, &end));
  REQUIRE(world.Doubts() == "-d");
}

TEST_CASE("A mixed record trusts files alone", "[target][covers]") {
  CoverWorld world;
  world.record.mixed = true;
  REQUIRE(world.Doubts() == "--");
  world.record.families[0].files.clear();
  REQUIRE(world.Doubts() == "dd");
}

TEST_CASE("What lies outside of a selection is remembered as it was",
          "[target][covers]") {
  CoverWorld world;
  const CoverFile before = world.record;
  world.options.selection.interval = {"a", "h"};
  world.plan.opened.snapshot_sequence = 90;
  world.plan.covers.resize(1);
  world.plan.covers[0].sequence = 90;
  world.Fill("p", "q");  // a foreign file outside
  world.Record(before);
  REQUIRE(world.record.covers.size() == 2);
  REQUIRE(world.record.covers[0].sequence == 90);
  REQUIRE(world.record.covers[1] == before.covers[1]);
  REQUIRE(world.record.sequence_old == 70);
  world.db->Put("zz", "a later sequence");
  REQUIRE(world.Doubts() == "-d");
}

TEST_CASE("A record survives its file, and a damaged one is Corruption",
          "[target][covers]") {
  CoverWorld world;
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  bool found = true;
  CoverFile read;
  REQUIRE_OK(ReadCovers(disk, world.dir.path(), &found, &read));
  REQUIRE_FALSE(found);
  REQUIRE_OK(WriteCovers(disk, world.dir.path(), world.record));
  REQUIRE_OK(ReadCovers(disk, world.dir.path(), &found, &read));
  REQUIRE(found);
  REQUIRE(read == world.record);
  std::ofstream(world.dir / kCoverFileName) << "SFCOVER1 and no more";
  REQUIRE(ReadCovers(disk, world.dir.path(), &found, &read).IsCorruption());
}

}  // namespace
}  // namespace sstferry::test
