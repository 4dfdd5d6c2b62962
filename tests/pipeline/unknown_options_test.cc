#include "pipeline/options/unknown_options.h"

#include <fstream>

#include "format/limits.h"
#include "pipeline/options/replica_options.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::unknown_options_test {
namespace {

std::string NoteOf(const std::string& text) {
  return UnknownOptionsNote(FindUnknownOptions(text));
}

std::string Golden(const std::string& name) {
  std::ifstream file(std::string(SSTFERRY_SOURCE_DIR) + "/tests/golden/" +
                     name);
  REQUIRE(file.good());
  return test::BytesIn(file);
}

// Some names in OPTIONS files differ from the members in RocksDB's headers, so
// this test writes a real file.
TEST_CASE("The table has every name in an OPTIONS file of the linked RocksDB",
          "[options]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions other = test::Quiet();
  other.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  other.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory());
  other.compression_per_level = {rocksdb::kNoCompression};
  other.table_factory.reset(rocksdb::NewPlainTableFactory());
  test::Families families = test::OneFamily({});
  families.emplace_back("plain", other);
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.allow_mmap_reads = true;
  options.allow_concurrent_memtable_write = false;
  const test::OpenDb db(dir / "db", families, options);
  std::string text;
  REQUIRE_OK(ReadNewestOptions(rocksdb::Env::Default(), dir / "db", &text));
  REQUIRE(text.find("[TableOptions/PlainTable \"plain\"]") !=
          std::string::npos);
  INFO(text);
  REQUIRE(NoteOf(text).empty());
}

TEST_CASE("The table has every name in OPTIONS files of other releases",
          "[options]") {
  for (const char* name :
       {"OPTIONS-7.8.3", "OPTIONS-9.10.0", "OPTIONS-11.8.1",
        "old_database/6.8.1/OPTIONS-000005"}) {
    INFO(name);
    REQUIRE(NoteOf(Golden(name)).empty());
  }
  // A release that does not exist, with its own options.
  const UnknownOptions unknown = FindUnknownOptions(Golden("OPTIONS-99.1.0"));
  REQUIRE(unknown.count > 0);
  REQUIRE(unknown.first.front().name == "swarm_mode");
}

TEST_CASE(
    "An option that the table does not have is named, with value and place",
    "[options]") {
  const std::string text =
      "before_any_section=1\n"
      "[Version]\n"
      "  rocksdb_version=99.0.0\n  options_file_version=1.1\n"
      "[DBOptions]\n"
      "  wal_dir=/wals  # swarm=on\n"
      "  # bees=9\n"
      "  swarm_mode = on\n"
      "[CFOptions \"users\"]\n"
      "  shape_of_a_fork=round\n"
      "  num_levels=7\n"
      "  wal_dir=of the database alone\n"
      "  compression_opts={level=1;hive=3;}\n"
      "  memtable_factory={id=SkipListFactory;wax=1;}\n"
      "[TableOptions/BlockBasedTable \"users\"]\n"
      "  block_size=4096\n"
      "[CFOptions \"other\"]\n"
      "  shape_of_a_fork=square\n"
      "[TableOptions/HoneyTable \"other\"]\n"
      "  combs=6\n";
  const UnknownOptions unknown = FindUnknownOptions(text);
  REQUIRE(unknown.count == 5);
  REQUIRE(UnknownOptionsNote(unknown) ==
          "OPTIONS: this sstferry does not know 5 options, nor what they "
          "change: 'swarm_mode' = 'on' (the database), 'shape_of_a_fork' = "
          "'round' (column family 'users'), 'wal_dir' = 'of the database "
          "alone' (column family 'users'), 'compression_opts.hive' = '3' "
          "(column family 'users'), 'combs' = '6' (section "
          "'TableOptions/HoneyTable'); a newer sstferry may know them");
  REQUIRE(NoteOf("[DBOptions]\n  max_open_files=7\n").empty());
  std::vector<std::string> notes = {"first"};
  NoteUnknownOptions("[DBOptions]\n  max_open_files=7\n", &notes);
  REQUIRE(notes.size() == 1);
  NoteUnknownOptions("[DBOptions]\n  swarm_mode=on\n", &notes);
  REQUIRE(notes.size() == 2);
  REQUIRE(notes[1].find("1 option, nor") != std::string::npos);
}

TEST_CASE("However many options are unknown, their note has a limited length",
          "[options]") {
  std::string text = "[DBOptions]\n";
  std::string bytes(200, '\x01');
  for (uint64_t i = 0; i < kMaxUnknownOptions + 10; ++i) {
    text += bytes + std::to_string(i) + "=" + bytes + "\n";
  }
  const UnknownOptions unknown = FindUnknownOptions(text);
  REQUIRE(unknown.count == kMaxUnknownOptions);
  REQUIRE(unknown.first.size() == kToldUnknownOptions);
  const std::string note = UnknownOptionsNote(unknown);
  INFO(note);
  REQUIRE(note.size() <= kMaxNoteBytes);
  REQUIRE(note.find("'... = '") != std::string::npos);
  REQUIRE(note.find(" and 4095 more;") != std::string::npos);
}

}  // namespace
}  // namespace sstferry::unknown_options_test
