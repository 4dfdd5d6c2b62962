// What a target remembers, and when it doubts it.
#include "pipeline/pull/refresh_records.h"
#include "pipeline/refresh/interval_records.h"

#include <algorithm>
#include <fstream>

#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::interval_records_test {
namespace {

struct IntervalWorld {
  ScratchDir dir;
  std::unique_ptr<OpenDb> db;
  PullOptions options;
  Plan plan;
  IntervalFile record;

  IntervalWorld() {
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
      IntervalRecord interval_record;
      interval_record.interval = {begin, end};
      interval_record.sequence = 70;
      plan.intervals.push_back(interval_record);
    }
    Record();
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
  JudgedTarget Judge() {
    JudgedTarget judged;
    REQUIRE_OK(JudgeIntervals(record, db->get(), families(), &judged));
    return judged;
  }
  ReplicaRecord Memory() {
    ReplicaRecord memory;
    DescribeTarget(options, Judge(), &memory);
    return memory;
  }
  // Without a journal: nobody else could write.
  void Record(const JudgedTarget& judged = {},
              const JournalState* journal = nullptr) {
    REQUIRE_OK(RecordIntervals(options, plan, db->get(), families(), judged,
                            journal, &record));
  }
  // By cover, "-" or "d" for doubted.
  static std::string Doubts(const std::vector<IntervalRecord>& intervals) {
    std::string text;
    for (const IntervalRecord& interval_record : intervals) {
      text += interval_record.doubted ? "d" : "-";
    }
    return text;
  }
  std::string Doubts() { return Doubts(Memory().intervals); }
  // Of one entry, ingested; its identity as a journal has it.
  JournalChunk Ingest(const std::string& key) {
    const std::string path = dir / "ingested.sst";
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), (*db)->GetOptions());
    REQUIRE_OK(writer.Open(path));
    REQUIRE_OK(writer.Put(key, "ingested"));
    REQUIRE_OK(writer.Finish());
    REQUIRE_OK((*db)->IngestExternalFile({path}, {}));
    rocksdb::TablePropertiesCollection tables;
    REQUIRE_OK((*db)->GetPropertiesOfAllTables(&tables));
    JournalChunk chunk;
    for (const auto& [name, properties] : tables) {
      if (properties->db_id == "SST Writer") {
        chunk.creating_database_id = properties->db_id;
        chunk.creating_session_id = properties->db_session_id;
        chunk.original_file_number = properties->orig_file_number;
      }
    }
    chunk.chunk.smallest = chunk.chunk.largest = key;
    return chunk;
  }
};

// That of an open database which got these chunks.
JournalState JournalOf(const std::vector<JournalChunk>& chunks) {
  JournalState journal;
  journal.plan.parts.resize(1);
  journal.chunks = {chunks};
  return journal;
}

TEST_CASE("A target that nobody touched doubts nothing", "[target][covers]") {
  IntervalWorld world;
  REQUIRE(world.record.families[0].files.size() == 2);
  REQUIRE(world.Doubts() == "--");
  REQUIRE_FALSE(world.Memory().families[0].is_empty);
}

TEST_CASE("A family without files is told as empty", "[target][covers]") {
  ScratchDir dir;
  OpenDb db(dir / "db", OneFamily(Quiet()));
  JudgedTarget judged;
  REQUIRE_OK(JudgeIntervals(IntervalFile(), db.get(),
                         {{"default", db.cf("default")}}, &judged));
  ReplicaRecord memory;
  DescribeTarget(PullOptions(), judged, &memory);
  REQUIRE(memory.families[0].is_empty);
}

TEST_CASE("Tables with deletions are searched for SingleDeletes once",
          "[target][covers]") {
  IntervalWorld world;
  world.db->Delete("b");
  world.db->Flush();
  const auto unsearched = [](const JudgedTarget& judged) {
    return std::count_if(judged.families[0].tables.begin(),
                         judged.families[0].tables.end(),
                         [](const LiveTable& table) {
                           return table.may_single_delete;
                         });
  };
  JudgedTarget judged = world.Judge();
  REQUIRE(unsearched(judged) == 1);
  const JournalState journal = JournalOf({});
  SECTION("as long as nobody did") {
    world.Record(judged, &journal);
    REQUIRE(unsearched(world.Judge()) == 1);
  }
  SECTION("with what was judged") {
    for (LiveTable& table : judged.families[0].tables) {
      table.may_single_delete = false;
    }
    world.Record(judged, &journal);
    REQUIRE(unsearched(world.Judge()) == 0);
    world.db->Delete("n");  // another file
    world.db->Flush();
    REQUIRE(unsearched(world.Judge()) == 1);
  }
  SECTION("where nobody else could write") {
    world.Record(judged);
    REQUIRE(unsearched(world.Judge()) == 0);
  }
}

TEST_CASE("A foreign write is doubted where it is, however it got there",
          "[target][covers]") {
  IntervalWorld world;
  world.db->Put("b", "foreign");
  world.db->Flush();
  REQUIRE(world.Doubts() == "d-");
  world.db->Compact();  // sequences are zero now
  REQUIRE(world.Doubts() != "--");
}

TEST_CASE("A compaction is doubted although nothing was written",
          "[target][covers]") {
  IntervalWorld world;
  rocksdb::CompactRangeOptions force;
  force.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK((*world.db)->CompactRange(force, nullptr, nullptr));
  REQUIRE(world.Doubts() == "dd");
}

TEST_CASE("A write to another interval is no reason to doubt",
          "[target][covers]") {
  IntervalWorld world;
  world.db->Put("b", "foreign");
  world.db->Flush();
  REQUIRE(world.Doubts() == "d-");
}

TEST_CASE("An ingested file is doubted although it leaves no sequence",
          "[target][covers]") {
  IntervalWorld world;
  (void)world.Ingest("s");
  REQUIRE(world.Doubts() == "-d");
}

TEST_CASE("What was doubted when it was recorded stays so",
          "[target][covers]") {
  IntervalWorld world;
  world.record.intervals[1].doubted = true;
  REQUIRE(world.Doubts() == "-d");
}

TEST_CASE("A record of another database, or of none, is not believed",
          "[target][covers]") {
  IntervalWorld world;
  world.record.target_database_id = GENERATE("", "another");
  REQUIRE(world.Doubts() == "dd");
}

TEST_CASE("A record is compared file by file, sizes and sequences too",
          "[target][covers]") {
  IntervalWorld world;
  RecordedTable& file = world.record.families[0].files[0];
  const bool is_first = file.smallest == "a";
  SECTION("size") { file.bytes++; }
  SECTION("smallest sequence") { file.smallest_sequence++; }
  SECTION("largest sequence") { file.largest_sequence++; }
  SECTION("twice") {
    const RecordedTable twice = file;
    world.record.families[0].files.push_back(twice);
  }
  REQUIRE(world.Doubts() == (is_first ? "d-" : "-d"));
}

TEST_CASE("An operator who adopts a target believes nothing of it",
          "[target][covers]") {
  IntervalWorld world;
  world.options.adopt = true;
  REQUIRE(world.Memory().intervals.empty());
  world.options.source_id = "source";
  REQUIRE(world.Doubts() == "--");
  world.options.source_id = "another";
  REQUIRE(world.Memory().intervals.empty());
}

TEST_CASE("An open database is believed where its files are those judged and "
          "the chunks", "[target][covers]") {
  IntervalWorld world;
  const JudgedTarget judged = world.Judge();
  JournalState journal = JournalOf({world.Ingest("s")});
  SECTION("as they should be") {
    world.Record(judged, &journal);
    REQUIRE(world.Doubts() == "--");
  }
  SECTION("a write that was flushed meanwhile") {
    world.db->Put("b", "foreign");
    world.db->Flush();
    world.Record(judged, &journal);
    REQUIRE(world.Doubts(world.record.intervals) == "d-");
    // It lies in a file that is recorded, and is doubted all the same.
    REQUIRE(world.Doubts() == "d-");
  }
  SECTION("a write that is flushed behind the record") {
    world.db->Put("b", "foreign");
    world.Record(judged, &journal);
    world.db->Flush();
    REQUIRE(world.Doubts() == "d-");
  }
  SECTION("a compaction") {
    const rocksdb::Slice begin("m");
    rocksdb::CompactRangeOptions force;
    force.bottommost_level_compaction =
        rocksdb::BottommostLevelCompaction::kForce;
    REQUIRE_OK((*world.db)->CompactRange(force, &begin, nullptr));
    world.Record(judged, &journal);
    REQUIRE(world.Doubts() == "-d");
  }
  SECTION("a chunk that is not there") {
    journal.chunks[0][0].original_file_number++;
    world.Record(judged, &journal);
    REQUIRE(world.Doubts() == "-d");
  }
  SECTION("a chunk that an earlier run had ingested") {
    world.Record(world.Judge(), &journal);
    REQUIRE(world.Doubts() == "--");
  }
}

TEST_CASE("A compaction where nobody else could write is believed",
          "[target][covers]") {
  IntervalWorld world;
  world.Fill("n", "q");
  REQUIRE_OK(
      RecordTables(world.db->get(), world.families(), &world.record));
  REQUIRE(world.Doubts() == "--");
}

TEST_CASE("Where a file lay that went is doubted, whatever came after it",
          "[target][covers]") {
  IntervalWorld world;
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
  IntervalWorld world;
  const rocksdb::Slice begin("m");
  const rocksdb::Slice end("o");
  REQUIRE_OK(rocksdb::DeleteFilesInRange(
      world.db->get(), world.db->cf("default"), &begin, &end));
  REQUIRE(world.Doubts() == "-d");
}

TEST_CASE("What lies outside of a selection is remembered as it was judged",
          "[target][covers]") {
  const bool is_doubted = GENERATE(false, true);
  IntervalWorld world;
  const IntervalFile before = world.record;
  if (is_doubted) {
    world.Fill("p", "q");  // a foreign file outside
  }
  world.options.selection.interval = {"a", "h"};
  world.plan.opened.snapshot_sequence = 90;
  world.plan.intervals.resize(1);
  world.plan.intervals[0].sequence = 90;
  world.Record(world.Judge());
  REQUIRE(world.record.intervals.size() == 2);
  REQUIRE(world.record.intervals[0].sequence == 90);
  REQUIRE(world.record.intervals[1].sequence == 70);
  // The foreign file is one of the record now, and no proof.
  REQUIRE(world.Doubts() == (is_doubted ? "-d" : "--"));
  world.plan.opened.source_database_id = "another";
  world.Record(world.Judge());
  REQUIRE(world.record.intervals.size() == 1);
}

TEST_CASE("What is recorded of a family that is not asked for stays as it is",
          "[target][covers]") {
  IntervalWorld world;
  IntervalFile before = world.record;
  before.families.push_back({"other", {{{1, 2}, "a", "b", 3, 4, 5}}});
  before.intervals.push_back(before.intervals[0]);
  before.intervals.back().family = 1;
  before.intervals.push_back(before.intervals.back());
  before.intervals.back().doubted = true;
  world.record = before;
  world.Record(world.Judge());
  REQUIRE(world.record.families[1] == before.families[1]);
  REQUIRE(world.Doubts(world.record.intervals) == "---d");
  // But for one of another database.
  world.record.target_database_id = "another";
  world.Record(world.Judge());
  REQUIRE(world.Doubts(world.record.intervals) == "--dd");
}

TEST_CASE("A record survives its file, and a damaged one is Corruption",
          "[target][covers]") {
  IntervalWorld world;
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  bool found = true;
  IntervalFile read;
  REQUIRE_OK(ReadIntervals(disk, world.dir.path(), &found, &read));
  REQUIRE_FALSE(found);
  REQUIRE_OK(WriteIntervals(disk, world.dir.path(), world.record));
  REQUIRE_OK(ReadIntervals(disk, world.dir.path(), &found, &read));
  REQUIRE(found);
  REQUIRE(read == world.record);
  std::ofstream(world.dir / kIntervalFileName) << "SFCOVER3 and no more";
  REQUIRE(ReadIntervals(disk, world.dir.path(), &found, &read).IsCorruption());
}

}  // namespace
}  // namespace sstferry::test::interval_records_test
