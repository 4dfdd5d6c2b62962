// Tests how much of the table files a refresh reads.
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"
#include "tests/support/table_reads.h"

namespace sstferry::test::refresh_reads_test {
namespace {

// Makes tables several times as long as the tail that RocksDB reads at an open.
rocksdb::ColumnFamilyOptions LongTables() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  options.target_file_size_base = 4 * kTableTailBytes;
  return options;
}

void Fill(const std::string& dir) {
  OpenDb db(dir, OneFamily(LongTables()));
  for (uint64_t i = 0; i < 8000; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, i));
  }
  db.Flush();
  db.Compact();
}

PullOptions Long() {
  PullOptions options;
  options.chunk_bytes = 4 * kTableTailBytes;
  options.lanes = 2;
  return options;
}

TEST_CASE("A refresh of unchanged data reads data blocks of both sides",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source");
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Long()).status);
  for (const char* const side : {"source", "target"}) {
    const TableReads reads({dir / side});
    REQUIRE_OK(Refresh(dir / "source", dir / "target", Long()).status);
    REQUIRE(reads.data_reads() > 0);
  }
}

}  // namespace
}  // namespace sstferry::test::refresh_reads_test
