#include "tests/support/compacted.h"

#include "rocksdb/table.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"

namespace sstferry::test {

rocksdb::ColumnFamilyOptions SmallFiles() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  options.target_file_size_base = 64 << 10;
  return options;
}

rocksdb::ColumnFamilyOptions WithTable(
    const rocksdb::BlockBasedTableOptions& table,
    rocksdb::ColumnFamilyOptions options) {
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

void FillCompacted(OpenDb* db, uint64_t begin, uint64_t end,
                   const std::string& family) {
  for (uint64_t i = begin; i < end; ++i) {
    db->Put(NumberedKey(i), RandomBytes(200, i), family);
  }
  db->Flush();
  db->Compact(family);
}

Summary PlanOf(const std::string& source_dir, PullOptions options) {
  options.source = SourceAddress();
  options.source.directory = source_dir;
  Summary summary;
  const std::string before = Fingerprint(source_dir);
  REQUIRE_OK(MakePlan(options)->Run(&summary));
  REQUIRE(Fingerprint(source_dir) == before);
  return summary;
}

void RequireUsable(const std::string& source_dir,
                   const std::string& target_dir, const Families& families) {
  Expectation expected;
  expected.families = families;
  for (int round = 0; round < 2; ++round) {
    {
      OpenDb db(target_dir, families);
      REQUIRE_OK(db->VerifyChecksum());
      for (const auto& family : families) {
        db.Compact(family.name);
      }
    }
    ExpectSameEntries(source_dir, target_dir, expected);
  }
}

}  // namespace sstferry::test
