// What a refresh reads of table files.
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"
#include "tests/support/table_reads.h"

namespace sstferry::test::refresh_reads_test {
namespace {

// Tables several times as long as what RocksDB reads to open one.
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

TEST_CASE("A refresh of what did not change reads no data block of either side",
          "[transfer][refresh]") {
  for (const bool is_open : {false, true}) {
    const ScratchDir dir;
    const std::string source = dir / "source";
    const std::string target = dir / "target";
    Fill(source);
    REQUIRE_OK(Refresh(source, target, Long()).status);
    std::unique_ptr<OpenDb> open;
    if (is_open) {
      open = std::make_unique<OpenDb>(target, OneFamily(LongTables()));
    }
    const TableReads reads({source, target});
    REQUIRE(reads.tables() >= 6);
    const Ferried again =
        is_open ? RefreshOpen(source, open.get(), {"default"}, Long())
                : Refresh(source, target, Long());
    REQUIRE_OK(again.status);
    REQUIRE(again.summary.parts_unchanged == again.summary.parts);
    REQUIRE(reads.all_reads() > 0);
    REQUIRE(reads.data_reads() == 0);
  }
}

TEST_CASE("A refresh that compares all reads data blocks, and it shows",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source");
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Long()).status);
  PullOptions options = Long();
  options.compare = CompareMode::kDigest;
  const TableReads reads({dir / "source", dir / "target"});
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  REQUIRE(reads.data_reads() > 0);
}

}  // namespace
}  // namespace sstferry::test::refresh_reads_test
