// What the MANIFEST proves of the tables that a target recorded.
#include "pipeline/refresh/table_trace.h"

#include <filesystem>
#include <fstream>

#include "pipeline/pull/refresh_records.h"
#include "pipeline/refresh/interval_records.h"
#include "pipeline/refresh/live_db.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::table_trace_test {
namespace {

namespace fs = std::filesystem;

class DropsSome : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "DropsSome"; }
  bool Filter(int /*level*/, const rocksdb::Slice& key,
              const rocksdb::Slice& /*value*/, std::string* /*new_value*/,
              bool* /*changed*/) const override {
    return key == "b" || key == "n";
  }
};

rocksdb::CompactRangeOptions Forced() {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  return options;
}

// A database with two records, of keys "a" to "h" and "h" to "z", whose tables
// were recorded; then an application opens it.
struct Replica {
  ScratchDir dir;
  std::string path = dir / "db";
  rocksdb::ColumnFamilyOptions options = Quiet();
  std::unique_ptr<OpenDb> db;
  IntervalFile record;

  Replica() {
    Open();
    for (const char* keys : {"ac", "be", "mo", "np"}) {
      Fill(keys);
    }
    Record();
    Open();
  }
  void Open() {
    db.reset();
    db = std::make_unique<OpenDb>(path, OneFamily(options));
  }
  void Fill(const std::string& keys) {
    db->Put(keys.substr(0, 1), "old");
    db->Put(keys.substr(1), "old");
    db->Flush();
  }
  void Record() {
    Plan plan;
    plan.opened.source_database_id = "source";
    plan.families.resize(1);
    plan.families[0].description.name = "default";
    for (const auto& [begin, end] :
         std::vector<std::pair<std::string, std::string>>{{"a", "h"},
                                                          {"h", "z"}}) {
      IntervalRecord interval_record;
      interval_record.interval = {begin, end};
      plan.intervals.push_back(interval_record);
    }
    std::unique_ptr<LiveDb> live = Borrowed();
    REQUIRE_OK(RecordIntervals({}, plan, db->get(), live->families(), {},
                               nullptr, &record));
  }
  std::unique_ptr<LiveDb> Borrowed() {
    OpenReplica replica;
    replica.db = db->get();
    replica.families = {db->cf()};
    return LiveDb::Borrow(replica);
  }
  std::string DoubtsIn(const LiveDb& live) const {
    JudgedTarget judged;
    REQUIRE_OK(JudgeIntervals(record, live.db(), live.families(), &judged));
    std::string text;
    for (const IntervalRecord& interval_record : judged.record.intervals) {
      text += interval_record.doubted ? "d" : "-";
    }
    return text;
  }
  // By record, "-" or "d" for doubted: of the open database, and of the
  // directory once it is closed.
  std::string Doubts() {
    std::string found = DoubtsIn(*Borrowed());
    db.reset();
    std::unique_ptr<LiveDb> live;
    std::vector<std::string> notes;
    REQUIRE_OK(LiveDb::OpenToRead(path, {}, &live, &notes));
    const std::string closed = DoubtsIn(*live);
    INFO(found << " open, " << closed << " closed");
    REQUIRE(found == closed);
    return found;
  }
  void Compact(const char* from = nullptr, const char* to = nullptr) {
    const rocksdb::Slice begin(from == nullptr ? "" : from);
    const rocksdb::Slice end(to == nullptr ? "" : to);
    REQUIRE_OK((*db)->CompactRange(Forced(), from == nullptr ? nullptr : &begin,
                                   to == nullptr ? nullptr : &end));
  }
  // A table of another writer.
  void Ingest(const std::string& first, const std::string& last) {
    const std::string table = dir / "ingested.sst";
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), (*db)->GetOptions());
    REQUIRE_OK(writer.Open(table));
    REQUIRE_OK(writer.Put(first, "ingested"));
    REQUIRE_OK(writer.Put(last, "ingested"));
    REQUIRE_OK(writer.Finish());
    REQUIRE_OK((*db)->IngestExternalFile({table}, {}));
  }
};

TEST_CASE("A compaction that lost entries is doubted",
          "[target][covers][trace]") {
  Replica replica;
  SECTION("of all") { replica.Compact(); }
  SECTION("of what a compaction made") {
    replica.Compact("a", "e");
    replica.Compact();
  }
  // As if the tables had held what the compaction dropped.
  for (RecordedTable& table : replica.record.families[0].files) {
    table.entries += 5;
  }
  REQUIRE(replica.Doubts() == "dd");
}

TEST_CASE("A compaction may drop what deletions and newer entries hide",
          "[target][covers][trace]") {
  Replica replica;
  replica.db->Put("a", "new");
  replica.db->Delete("e");
  replica.db->Delete("n");
  replica.db->Flush();
  replica.Record();
  replica.Open();
  replica.Compact();
  REQUIRE(replica.Doubts() == "--");
}

TEST_CASE("A compaction that lost the tables of one interval is doubted there",
          "[target][covers][trace]") {
  Replica replica;
  replica.Compact("a", "e");
  replica.Compact("m", "p");
  for (RecordedTable& table : replica.record.families[0].files) {
    table.entries += table.smallest >= "m" ? 5 : 0;
  }
  REQUIRE(replica.Doubts() == "-d");
}

TEST_CASE("A compaction that took a table with range deletions is doubted "
          "where they may reach",
          "[target][covers][trace]") {
  Replica replica;
  replica.db->DeleteRange("m", "n");
  replica.db->Flush();
  replica.Record();
  replica.Open();
  replica.Compact();
  REQUIRE(replica.Doubts() == "-d");
}

TEST_CASE("Compactions of recorded tables are believed, however many",
          "[target][covers][trace]") {
  Replica replica;
  SECTION("of all") { replica.Compact(); }
  SECTION("of a part") { replica.Compact("a", "e"); }
  SECTION("of what a compaction made") {
    replica.Compact("a", "e");
    replica.Compact();
    replica.Compact();
  }
  REQUIRE(replica.Doubts() == "--");
}

TEST_CASE("A table that only moves to another level is believed",
          "[target][covers][trace]") {
  Replica replica;
  replica.Compact();
  rocksdb::ColumnFamilyMetaData metadata;
  (*replica.db)->GetColumnFamilyMetaData(&metadata);
  REQUIRE(metadata.file_count == 1);
  replica.Record();
  replica.Open();
  rocksdb::CompactRangeOptions options;
  options.change_level = true;
  options.target_level = 3;
  REQUIRE_OK((*replica.db)->CompactRange(options, nullptr, nullptr));
  (*replica.db)->GetColumnFamilyMetaData(&metadata);
  REQUIRE(metadata.levels[3].files.size() == 1);
  REQUIRE(replica.Doubts() == "--");
}

TEST_CASE("Foreign keys are doubted where they are, also once they were "
          "compacted",
          "[target][covers][trace]") {
  Replica replica;
  SECTION("written") {
    replica.db->Put("b", "foreign");
    replica.db->Put("d", "foreign");
    replica.db->Flush();
    replica.Compact();
    REQUIRE(replica.Doubts() == "d-");
  }
  SECTION("ingested") {
    replica.Ingest("q", "r");
    replica.Compact();
    REQUIRE(replica.Doubts() == "-d");
  }
  SECTION("deleted, and nothing of it left") {
    replica.db->Delete("o");
    replica.db->Delete("p");
    replica.db->Flush();
    replica.Compact();
    REQUIRE(replica.Doubts() == "-d");
  }
  SECTION("a part of them deleted") {
    replica.db->DeleteRange("m", "y");
    replica.db->Flush();
    replica.Compact();
    REQUIRE(replica.Doubts() == "-d");
  }
  SECTION("on both sides of a bound") {
    replica.db->Put("g", "foreign");
    replica.db->Put("i", "foreign");
    replica.db->Flush();
    replica.Compact();
    REQUIRE(replica.Doubts() == "dd");
  }
  SECTION("in a WAL alone") {
    replica.Compact();
    replica.db->Put("b", "foreign");
    REQUIRE(replica.DoubtsIn(*replica.Borrowed()) == "--");
    replica.db->Flush();  // as a refresh does before
    REQUIRE(replica.Doubts() == "d-");
  }
}

TEST_CASE("Tables that went without successors are doubted",
          "[target][covers][trace]") {
  Replica replica;
  replica.Compact("a", "e");
  replica.Record();
  replica.Open();
  const rocksdb::Slice begin("a");
  const rocksdb::Slice end("h");
  REQUIRE_OK(rocksdb::DeleteFilesInRange(replica.db->get(), replica.db->cf(),
                                         &begin, &end));
  REQUIRE(replica.Doubts() == "d-");
}

TEST_CASE("A compaction by an application with a compaction filter is doubted",
          "[target][covers][trace]") {
  Replica replica;
  DropsSome filter;
  SECTION("in its open database, and behind it") {
    replica.options.compaction_filter = &filter;
    replica.Open();
    replica.Compact();
    REQUIRE(replica.Doubts() == "dd");
  }
  SECTION("also where it was opened without one since") {
    replica.options.compaction_filter = &filter;
    replica.Open();
    replica.Compact();
    replica.options.compaction_filter = nullptr;
    replica.Open();
    replica.Compact();
    REQUIRE(replica.Doubts() == "dd");
  }
}

TEST_CASE("A compaction is doubted where OPTIONS are not of the same time",
          "[target][covers][trace]") {
  Replica replica;
  SECTION("options were set behind it") {
    replica.Compact();
    REQUIRE_OK(
        (*replica.db)->SetOptions({{"disable_auto_compactions", "true"}}));
    REQUIRE(replica.Doubts() == "dd");
  }
  SECTION("options were set before it") {
    REQUIRE_OK(
        (*replica.db)->SetOptions({{"disable_auto_compactions", "true"}}));
    replica.Compact();
    REQUIRE(replica.Doubts() == "--");
  }
  SECTION("the file of that time is not there") {
    replica.Compact();
    std::vector<std::string> options = PathsWith(replica.path, "");
    std::string newest;
    for (const std::string& path : options) {
      if (path.find("/OPTIONS-") != std::string::npos) {
        newest = std::max(newest, path);
      }
    }
    fs::rename(newest, replica.path + "/OPTIONS-000001");
    REQUIRE(replica.DoubtsIn(*replica.Borrowed()) == "dd");
  }
}

TEST_CASE("A compaction before the database was last opened is doubted",
          "[target][covers][trace]") {
  Replica replica;
  replica.Compact("a", "e");
  replica.Open();
  replica.Compact("m", "p");
  REQUIRE(replica.Doubts()[0] == 'd');
}

TEST_CASE("A database that was opened often without a change is believed",
          "[target][covers][trace]") {
  Replica replica;
  replica.Open();
  replica.Open();
  replica.Compact();
  REQUIRE(replica.Doubts() == "--");
}

TEST_CASE("A table of another writer that took others' places is doubted",
          "[target][covers][trace]") {
  Replica replica;
  replica.Compact();
  std::unique_ptr<LiveDb> live = replica.Borrowed();
  std::vector<LiveTable> now;
  REQUIRE_OK(ListLiveTables(live->db(), live->families()[0].handle, &now));
  REQUIRE(now.size() == 1);
  REQUIRE(now[0].is_own);
  const auto trace = [&] {
    std::vector<TracedFamily> traced = {
        {"default", rocksdb::BytewiseComparator(),
         &replica.record.families[0].files, &now}};
    TraceTables(rocksdb::FileSystem::Default().get(), replica.path, &traced);
    REQUIRE(traced[0].is_known);
    return !traced[0].changed.empty();
  };
  REQUIRE_FALSE(trace());
  // As one is that was ingested in the place of all.
  now[0].is_own = false;
  REQUIRE(trace());
}

TEST_CASE("A MANIFEST that does not hold the tables of now proves nothing",
          "[target][covers][trace]") {
  Replica replica;
  replica.Compact();
  std::unique_ptr<LiveDb> live = replica.Borrowed();
  std::vector<LiveTable> now;
  REQUIRE_OK(ListLiveTables(live->db(), live->families()[0].handle, &now));
  SECTION("another number") { now[0].name = "009999.sst"; }
  SECTION("another id") { now[0].id->low++; }
  SECTION("no id") { now[0].id.reset(); }
  SECTION("no MANIFEST") {
    std::ofstream(replica.path + "/CURRENT") << "MANIFEST-999999\n";
  }
  std::vector<TracedFamily> traced = {
      {"default", rocksdb::BytewiseComparator(),
         &replica.record.families[0].files, &now}};
  TraceTables(rocksdb::FileSystem::Default().get(), replica.path, &traced);
  REQUIRE_FALSE(traced[0].is_known);
}

TEST_CASE("A family that was dropped and made again is another one",
          "[target][covers][trace]") {
  ScratchDir dir;
  Families families = OneFamily(Quiet());
  families.emplace_back("more", Quiet());
  OpenDb db(dir / "db", families);
  db.Put("a", "old", "more");
  db.Flush();
  std::vector<LiveTable> then;
  REQUIRE_OK(ListLiveTables(db.get(), db.cf("more"), &then));
  const std::vector<RecordedTable> recorded = {
      {*then[0].id, then[0].smallest, then[0].largest, then[0].bytes,
       then[0].smallest_sequence, then[0].largest_sequence}};
  db.Drop("more");
  db.Create({"more", Quiet()});
  db.Put("a", "new", "more");
  db.Flush();
  std::vector<LiveTable> now;
  REQUIRE_OK(ListLiveTables(db.get(), db.cf("more"), &now));
  std::vector<TracedFamily> traced = {
      {"more", rocksdb::BytewiseComparator(), &recorded, &now}};
  TraceTables(rocksdb::FileSystem::Default().get(), dir / "db", &traced);
  REQUIRE_FALSE(traced[0].is_known);
}

TEST_CASE("Chunks, and compactions of them, are no changes of others",
          "[target][covers][trace]") {
  Replica replica;
  std::unique_ptr<LiveDb> live = replica.Borrowed();
  JudgedTarget judged;
  REQUIRE_OK(JudgeIntervals(replica.record, live->db(), live->families(),
                         &judged));
  replica.Ingest("b", "o");
  JournalState journal;
  journal.plan.parts.resize(1);
  journal.chunks.resize(1);
  rocksdb::TablePropertiesCollection tables;
  REQUIRE_OK((*replica.db)->GetPropertiesOfAllTables(&tables));
  for (const auto& [name, properties] : tables) {
    if (properties->db_id == "SST Writer") {
      JournalChunk chunk;
      chunk.creating_database_id = properties->db_id;
      chunk.creating_session_id = properties->db_session_id;
      chunk.original_file_number = properties->orig_file_number;
      chunk.chunk.smallest = "b";
      chunk.chunk.largest = "o";
      journal.chunks[0].push_back(chunk);
    }
  }
  REQUIRE(journal.chunks[0].size() == 1);
  const bool is_known = GENERATE(true, false);
  if (!is_known) {
    journal.chunks[0].clear();  // somebody else's
  }
  replica.Compact();
  Plan plan;
  plan.opened.source_database_id = "source";
  plan.families.resize(1);
  plan.families[0].description.name = "default";
  plan.intervals = replica.record.intervals;
  REQUIRE_OK(RecordIntervals({}, plan, live->db(), live->families(), judged,
                          &journal, &replica.record));
  REQUIRE(replica.Doubts() == (is_known ? "--" : "dd"));
  // And a compaction behind the record.
  if (is_known) {
    replica.Open();
    live = replica.Borrowed();
    replica.Compact();
    REQUIRE_OK(RecordTables(live->db(), live->families(), &replica.record));
    REQUIRE(replica.Doubts() == "--");
  }
}

}  // namespace
}  // namespace sstferry::test::table_trace_test
