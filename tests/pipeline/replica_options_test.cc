#include "pipeline/options/replica_options.h"

#include <fstream>

#include "format/end_state.h"
#include "format/options_line.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::replica_options_test {
namespace {

// Returns OPTIONS of a fork of RocksDB with a lower version than the linked
// one.
std::string ForkText() {
  return "[Version]\n  rocksdb_version=6.14.6\n  options_file_version=1.1\n\n"
         "[DBOptions]\n  max_open_files=17\n  refresh_options_sec=0\n"
         "[CFOptions \"default\"]\n  num_levels=5\n"
         "  max_bytes_for_level_multiplier_additional=1:{1}:{1}\n"
         "  shape_of_a_fork=round\n"
         "[TableOptions/BlockBasedTable \"default\"]\n  block_size=8192\n"
         "  format_version=4\n";
}

size_t CountOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    count++;
  }
  return count;
}

TEST_CASE("A replica's OPTIONS name no directory, in any form of the line",
          "[pipeline][options]") {
  for (const char* line :
       {"wal_dir=/x", "  wal_dir=/x", "wal_dir =/x", "\twal_dir\t= /x",
        "db_log_dir  =/x", "  wal_dir=/x # why", "cf_paths={/x,1}",
        "db_paths=/x"}) {
    INFO(line);
    const std::string text = ReplicaOptionsText(
        "[DBOptions]\n" + std::string(line) + "\n  a=/x\n", RocksDbRelease());
    REQUIRE(text.find("/x") == text.rfind("/x"));
    REQUIRE(text.find("  a=/x\n") != std::string::npos);
    REQUIRE(text.find("[DBOptions]\n") == 0);
  }
}

TEST_CASE("A replica's OPTIONS name its application's release, and no "
          "format_version that this release cannot read",
          "[pipeline][options]") {
  const std::string source =
      "[Version]\n  rocksdb_version=11.8.1\n"
      "[TableOptions/BlockBasedTable \"default\"]\n  format_version=7\n"
      "[TableOptions/BlockBasedTable \"other\"]\n  format_version=3\n";
  const auto of = [&source](const RocksDbRelease& release) {
    return ReplicaOptionsText(source, release);
  };
  REQUIRE(of(RocksDbRelease()) == source);
  REQUIRE(of({11, 8, 1}) == source);
  const std::string old = of({7, 10, 2});
  REQUIRE(ReleaseOfOptions(old) == RocksDbRelease{7, 10, 2});
  // The file still names 11.8.1: RocksDB 7.10 ignores unknown names only in a
  // file of a later release.
  REQUIRE(CountOf("rocksdb_version=11.8.1\n", old) == 1);
  REQUIRE(ReplicaOptionsText(old, {7, 10, 2}) == old);
  REQUIRE(ReplicaOptionsText(old, {12, 0, 0}).find("made for") ==
          std::string::npos);
  REQUIRE(CountOf("rocksdb_version=12.0.0\n", of({12, 0, 0})) == 1);
  REQUIRE(CountOf("format_version=5\n", old) == 1);
  REQUIRE(CountOf("format_version=3\n", old) == 1);
  REQUIRE(CountOf("\n", old) == CountOf("\n", source) + 1);
  REQUIRE(CountOf("format_version=6\n", of({9, 0, 0})) == 1);
}

TEST_CASE("A replica of an older application keeps options that no release "
          "has, and members that its release has",
          "[pipeline][options]") {
  const std::string text = ReplicaOptionsText(
      "[Version]\n  rocksdb_version=11.8.1\n[CFOptions \"default\"]\n"
      "  shape_of_a_fork={round=1;checksum=true;}\n"
      "  compression_opts={checksum=false;level=3;strategy=0;}\n"
      "  merge_operator={id=Mine;checksum=\\:;}\n"
      "  compaction_pri=kRoundRobin\n  bottommost_temperature=kIce\n"
      "  uniform_cv_threshold=0.2\n",
      {8, 5, 4});
  REQUIRE(text ==
          "# made for RocksDB 8.5.4\n"
          "[Version]\n  rocksdb_version=11.8.1\n[CFOptions \"default\"]\n"
          "  shape_of_a_fork={round=1;checksum=true;}\n"
          "  compression_opts={level=3;strategy=0;}\n"
          "  merge_operator={id=Mine;checksum=\\:;}\n"
          "  compaction_pri=kRoundRobin\n");
}

TEST_CASE("OPTIONS of a fork are loaded although its version is lower than the "
          "linked one's",
          "[pipeline][options]") {
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  REQUIRE_OK(LoadOptionsText(ForkText(), &database, &families, nullptr));
  REQUIRE(database.max_open_files == 17);
  REQUIRE(families.size() == 1);
  REQUIRE(families[0].options.num_levels == 5);
}

TEST_CASE("If RocksDB cannot load a value, the default is used",
          "[pipeline][options]") {
  std::string text = ForkText();
  text.insert(text.find("  num_levels"), "  compression=kFutureZip\n");
  text.insert(text.find("  refresh"), "  max_subcompactions=many\n");
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  REQUIRE_OK(LoadOptionsText(text, &database, &families, nullptr));
  REQUIRE(database.max_open_files == 17);
  REQUIRE(database.max_subcompactions ==
          rocksdb::DBOptions().max_subcompactions);
  REQUIRE(families[0].options.num_levels == 5);
}

TEST_CASE("OPTIONS with a format_version above the library's can be loaded",
          "[pipeline][options]") {
  std::string text = ForkText();
  text.replace(text.find("format_version=4"), 16, "format_version=9");
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  REQUIRE_OK(LoadOptionsText(text, &database, &families, nullptr));
  REQUIRE(families[0]
              .options.table_factory
              ->GetOptions<rocksdb::BlockBasedTableOptions>()
              ->format_version == kMaxTableFormatVersion);
}

TEST_CASE("WriteOptionsText writes what ParseOptionsText reads, default first",
          "[pipeline][options]") {
  DatabaseDescription given;
  given.release = {8, 11, 4};
  given.options = {{"max_open_files", "12"}, {"made_by_a_fork", "a\\:b"}};
  FamilyDescription family;
  family.name = "odd \"#:\\\n name";
  family.comparator = "leveldb.BytewiseComparator";
  family.merge_operator = "{id=StringAppendOperator;delimiter=\\:;}";
  family.table_factory = "BlockBasedTable";
  family.options = {{"num_levels", "3"}};
  family.table_options = {{"block_size", "4096"}};
  given.families = {family};
  std::string text;
  REQUIRE_OK(WriteOptionsText(given, &text));
  DatabaseDescription read;
  std::vector<std::string> notes;
  REQUIRE_OK(ParseOptionsText(text, &read, &notes));
  REQUIRE(read.release == given.release);
  REQUIRE(read.options == given.options);
  REQUIRE(read.families.size() == 2);
  REQUIRE(read.families[0].name == "default");
  REQUIRE(read.families[1] == family);
  REQUIRE(notes.empty());
}

TEST_CASE("WriteOptionsText refuses names and values with line breaks",
          "[pipeline][options]") {
  const auto write = [](const std::string& name, const std::string& value) {
    DatabaseDescription given;
    given.options = {{name, value}};
    std::string text;
    return EndStateOf(WriteOptionsText(given, &text));
  };
  REQUIRE(write("a", "b") == EndState::kOk);
  REQUIRE(write("a", "b\n  wal_dir=/x") == EndState::kCorrupt);
  REQUIRE(write("a", std::string("b\0c", 3)) == EndState::kCorrupt);
  REQUIRE(write("a\nb", "c") == EndState::kCorrupt);
  REQUIRE(write("[CFOptions", "c") == EndState::kCorrupt);
  REQUIRE(write("#a", "c") == EndState::kCorrupt);
  REQUIRE(write("", "c") == EndState::kCorrupt);
}

TEST_CASE("The release of a replica is the one in its newest OPTIONS",
          "[pipeline][options]") {
  const ScratchDir dir;
  const auto file_system = rocksdb::FileSystem::Default();
  REQUIRE(!ReleaseOfReplica(file_system, dir / "none").is_known());
  REQUIRE(!ReleaseOfReplica(file_system, dir.path()).is_known());
  std::ofstream(dir / "OPTIONS-000009")
      << "[Version]\n  rocksdb_version=10.4.2\n";
  std::ofstream(dir / "OPTIONS-000010")
      << "[Version]\n  rocksdb_version=8.11.4\n";
  REQUIRE(ReleaseOfReplica(file_system, dir.path()) ==
          RocksDbRelease{8, 11, 4});
}

}  // namespace
}  // namespace sstferry::replica_options_test
