// Tests how parts are planned from files.
#include "pipeline/parts/file_plan.h"

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/parts/planner.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::file_plan_test {
namespace {

// Writes a real table, because the planner weighs a file by its index.
FilePlan WriteTable(const ScratchDir& dir, int begin, int end,
                    const std::string& name = "") {
  FilePlan file;
  file.name = name + std::to_string(begin) + ".sst";
  file.path = dir / file.name;
  rocksdb::BlockBasedTableOptions table;
  // With this setting, the index may end with a key far after the last one.
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

// Requires that the parts ascend and cover the interval without holes.
void RequireTiles(const KeyInterval& whole, const std::vector<Part>& parts,
                  size_t first) {
  std::optional<std::string> next = whole.begin;
  for (size_t i = first; i < parts.size(); ++i) {
    REQUIRE(parts[i].id == i);
    REQUIRE(parts[i].interval.begin == next);
    next = parts[i].interval.end;
    REQUIRE((i + 1 == parts.size() || next.has_value()));
    if (parts[i].interval.begin && next) {
      REQUIRE(*parts[i].interval.begin < *next);
    }
  }
  REQUIRE(next == whole.end);
}

// A family to cut into parts. Its database only has to exist.
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

TEST_CASE("Parts tile the interval, whatever the indexes say",
          "[source][planner]") {
  const ScratchDir dir;
  const OpenedFamily opened(dir / "db");
  // Several sorted runs over the same keys, each with its last cut point at
  // "l", and a file apart from them.
  FamilyPlan plan;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    plan.files.push_back(WriteTable(dir, 0, 500, name));
  }
  plan.files.push_back(WriteTable(dir, 900, 990));
  plan.files.push_back(WriteTable(dir, 2000, 2990));
  PlannerOptions options;
  if (GENERATE(false, true)) {
    options.interval.begin = "k1";
    options.interval.end = "k3";
  }
  std::vector<Part> parts(3);  // parts of earlier families
  REQUIRE_OK(CutFamily(opened.family, options, 100'000, &plan, &parts));
  REQUIRE(parts.size() >= 6);
  RequireTiles(options.interval, parts, 3);
}

}  // namespace
}  // namespace sstferry::file_plan_test
