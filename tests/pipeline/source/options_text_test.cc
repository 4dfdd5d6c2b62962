#include "pipeline/options/options_text.h"

#include "format/options_line.h"
#include "tests/support/catch.h"

namespace sstferry::options_text_test {
namespace {

TEST_CASE("OptionsText finds database settings and the names of objects",
          "[snapshot]") {
  const std::string file =
      "# a comment\n"
      "[Version]\n  rocksdb_version=7.8.3\n"
      "[DBOptions]\n  wal_dir=/a\\:b\n  recycle_log_file_num=3\n"
      "[CFOptions \"default\"]\n  comparator=leveldb.BytewiseComparator\n"
      "  merge_operator={id=StringAppendOperator;delimiter=,;}\n"
      "  prefix_extractor=nullptr\n"
      "[TableOptions/BlockBasedTable \"default\"]\n  comparator=wrong\n"
      "[CFOptions \"odd\\#name\"]\n  comparator = x # trailing\n";
  const OptionsText text(file);
  CHECK(text.DatabaseOption("wal_dir", "") == "/a:b");
  CHECK(text.DatabaseOption("recycle_log_file_num", "") == "3");
  CHECK(text.DatabaseOption("rocksdb_version", "none") == "none");
  CHECK(ReleaseOfOptions(file) == RocksDbRelease{7, 8, 3});
  CHECK(text.FamilyObject("default", "comparator") ==
        "leveldb.BytewiseComparator");
  CHECK(text.FamilyObject("default", "merge_operator") ==
        "StringAppendOperator");
  CHECK(text.FamilyObject("default", "prefix_extractor").empty());
  CHECK(text.FamilyObject("odd#name", "comparator") == "x");
  CHECK(text.HasFamily("odd#name"));
  CHECK_FALSE(text.HasFamily("other"));
  CHECK(text.HasDatabase());
}

TEST_CASE("OptionsText knows a database's settings only if all are there",
          "[snapshot]") {
  const std::string begin = "[DBOptions]\n  wal_dir=/a\n  wal_dir=/b\n";
  CHECK_FALSE(OptionsText("").HasDatabase());
  CHECK_FALSE(OptionsText(begin).HasDatabase());
  CHECK_FALSE(OptionsText("[CFOptions \"default\"]\n  a=1\n").HasDatabase());
  const OptionsText text(begin + "[CFOptions \"default\"]\n  a=1\n");
  CHECK(text.HasDatabase());
  // RocksDB uses the first value of a key.
  CHECK(text.DatabaseOption("wal_dir", "") == "/a");
}

TEST_CASE("OptionsText skips lines that are not settings", "[snapshot]") {
  const OptionsText text("x=1\n[\n[CFOptions \"\n]\n[DBOptions]\n=\n==\n");
  CHECK(text.DatabaseOption("x", "none") == "none");
  CHECK_FALSE(text.HasFamily("default"));
}

}  // namespace
}  // namespace sstferry::options_text_test
