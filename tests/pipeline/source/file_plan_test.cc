// Which files overlap, and what ranges become of carried and other files.
#include "pipeline/source/plan/file_plan.h"

#include <rapidcheck.h>

#include <algorithm>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/source/plan/planner.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

FilePlan Span(const std::string& name, const std::string& smallest,
              const std::string& largest) {
  FilePlan file;
  file.name = name;
  file.smallest = smallest;
  file.largest = largest;
  return file;
}

TEST_CASE("Files that share one user key overlap", "[source][carry]") {
  std::vector<FilePlan> files = {Span("1", "a", "c"), Span("2", "c", "d"),
                                 Span("3", "e", "f")};
  MarkOverlaps(rocksdb::BytewiseComparator(), &files);
  REQUIRE(files[0].overlaps == "2");
  REQUIRE(files[1].overlaps == "1");
  REQUIRE(files[2].overlaps == "");
}

TEST_CASE("A long file overlaps all that lie under it", "[source][carry]") {
  std::vector<FilePlan> files = {Span("1", "a", "z"), Span("2", "b", "c"),
                                 Span("3", "d", "e"), Span("4", "zz", "zzz")};
  MarkOverlaps(rocksdb::BytewiseComparator(), &files);
  REQUIRE(files[0].overlaps == "2");
  REQUIRE(files[1].overlaps == "1");
  REQUIRE(files[2].overlaps == "1");
  REQUIRE(files[3].overlaps == "");
}

// By looking at every pair.
bool OverlapsAny(const std::vector<FilePlan>& files, size_t at) {
  for (size_t i = 0; i < files.size(); ++i) {
    if (i != at && files[i].smallest <= files[at].largest &&
        files[at].smallest <= files[i].largest) {
      return true;
    }
  }
  return false;
}

TEST_CASE("Overlaps are those of any two files, in any shape",
          "[source][carry]") {
  const bool held = rc::check("overlaps are found", [] {
    const auto spans = *rc::gen::container<std::vector<std::pair<int, int>>>(
        rc::gen::pair(rc::gen::inRange(0, 40), rc::gen::inRange(0, 8)));
    std::vector<FilePlan> files;
    for (const auto& [first, length] : spans) {
      files.push_back(Span(std::to_string(files.size()),
                           std::string(1, static_cast<char>('A' + first)),
                           std::string(1, static_cast<char>('A' + first +
                                                            length))));
    }
    std::sort(files.begin(), files.end(),
              [](const FilePlan& a, const FilePlan& b) {
                return a.smallest < b.smallest;
              });
    MarkOverlaps(rocksdb::BytewiseComparator(), &files);
    for (size_t i = 0; i < files.size(); ++i) {
      RC_ASSERT(files[i].overlaps.empty() != OverlapsAny(files, i));
      for (const FilePlan& other : files) {
        if (other.name == files[i].overlaps) {
          RC_ASSERT(other.smallest <= files[i].largest);
          RC_ASSERT(files[i].smallest <= other.largest);
        }
      }
    }
  });
  REQUIRE(held);
}

// Real tables, since what is rebuilt is weighed by its index.
FilePlan WriteTable(const ScratchDir& dir, int begin, int end,
                    const std::string& name = "") {
  FilePlan file = Span(name + std::to_string(begin) + ".sst", "", "");
  file.path = dir / file.name;
  rocksdb::BlockBasedTableOptions table;
  // The index may end in a key far behind the last one.
  table.index_shortening = rocksdb::BlockBasedTableOptions::
      IndexShorteningMode::kShortenSeparatorsAndSuccessor;
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  REQUIRE_OK(writer.Open(file.path));
  for (int i = begin; i < end; ++i) {
    const std::string key = "k" + std::to_string(10000 + i);
    REQUIRE_OK(writer.Put(key, std::string(500, 'v')));
    if (i == begin) file.smallest = key;
    file.largest = key;
  }
  REQUIRE_OK(writer.Finish());
  file.bytes = BytesOf(file.path).size();
  file.entries = static_cast<uint64_t>(end - begin);
  return file;
}

// Ascending, without holes, from bound to bound.
void RequireTiles(const KeyInterval& whole, const std::vector<Range>& ranges,
                  size_t first) {
  std::optional<std::string> next = whole.begin;
  for (size_t i = first; i < ranges.size(); ++i) {
    REQUIRE(ranges[i].id == i);
    REQUIRE(ranges[i].interval.begin == next);
    next = ranges[i].interval.end;
    REQUIRE((i + 1 == ranges.size() || next.has_value()));
    if (ranges[i].interval.begin && next) {
      REQUIRE(*ranges[i].interval.begin < *next);
    }
  }
  REQUIRE(next == whole.end);
}

// A family to cut, of a database that only has to be there.
struct OpenedFamily {
  explicit OpenedFamily(const std::string& path) {
    MakeSampleDatabase(path);
    REQUIRE_OK(rocksdb::DB::OpenForReadOnly(rocksdb::Options(), path,
                                            IntoDb(&db)));
    family.handle = db->DefaultColumnFamily();
  }
  std::unique_ptr<rocksdb::DB> db;
  PlannerFamily family;
};

TEST_CASE("Ranges end before a carried file, whatever the indexes say",
          "[source][carry][planner]") {
  const ScratchDir dir;
  const OpenedFamily opened(dir / "db");
  // Several runs over the same keys, each with its last cut point at "l".
  FamilyPlan plan;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    plan.files.push_back(WriteTable(dir, 0, 500, name));
  }
  plan.files.push_back(WriteTable(dir, 2000, 2010));
  plan.files.back().carry = true;
  plan.files.back().carried_bytes = 9;
  std::vector<Range> ranges;
  std::vector<CarriedFile> carried;
  REQUIRE_OK(CutFamily(opened.family, {}, 500'000, &plan, &ranges, &carried));
  REQUIRE(ranges.size() >= 3);
  RequireTiles({}, ranges, 0);
}

TEST_CASE("Carried files and what lies between tile the interval",
          "[source][carry][planner]") {
  const ScratchDir dir;
  const OpenedFamily opened(dir / "db");
  const std::vector<FilePlan> files = {
      WriteTable(dir, 0, 90), WriteTable(dir, 100, 900),
      WriteTable(dir, 900, 990), WriteTable(dir, 2000, 2990)};
  // Every choice of what is carried, with and without bounds.
  for (int choice = 0; choice < 32; ++choice) {
    PlannerOptions options;
    if (choice >= 16) {
      options.interval.begin = "k1";
      options.interval.end = "k3";
    }
    FamilyPlan plan;
    plan.files = files;
    uint64_t count = 0;
    for (size_t i = 0; i < files.size(); ++i) {
      plan.files[i].carry = (choice >> i & 1) != 0;
      plan.files[i].carried_bytes = 77 + i;
      count += plan.files[i].carry ? 1 : 0;
    }
    std::vector<Range> ranges(3);  // of families before this one
    std::vector<CarriedFile> carried;
    REQUIRE_OK(
        CutFamily(opened.family, options, 100'000, &plan, &ranges, &carried));
    INFO("choice " << choice);
    REQUIRE(carried.size() == count);
    REQUIRE(ranges.size() > 3);
    REQUIRE((choice % 16 == 15 || ranges.size() > 3 + count));
    RequireTiles(options.interval, ranges, 3);
    for (const CarriedFile& one : carried) {
      const KeyInterval& interval = ranges.at(one.range_id).interval;
      REQUIRE(ranges[one.range_id].estimated_bytes == one.bytes);
      for (const FilePlan& file : plan.files) {
        const bool holds = (!interval.begin || file.largest >= *interval.begin)
                           && (!interval.end || file.smallest < *interval.end);
        REQUIRE(holds == (file.path == one.path));
      }
    }
  }
}

}  // namespace
}  // namespace sstferry
