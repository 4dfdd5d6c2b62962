// Checks the blocks of a part of a table while the part arrives.
#include <algorithm>

#include "format/rocksdb/sst_file_check.h"
#include "format/rocksdb/sst_part_check.h"
#include "format/rocksdb/sst_reader.h"
#include "tests/support/catch.h"
#include "tests/support/sst_files.h"
#include "tests/support/test_db.h"

namespace sstferry::test::sst_part_check_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::Slice;
using rocksdb::Status;

std::string Table(const SstShape& shape) {
  const auto env = NewMemoryEnv();
  return WriteSst(env.get(), shape, SampleEntries(400));
}

std::vector<SstShape> Shapes() {
  SstShape partitioned;
  partitioned.index = BlockBasedTableOptions::kTwoLevelIndexSearch;
  partitioned.filter = 2;
  partitioned.compression = rocksdb::kZSTD;
  SstShape hashed;
  hashed.checksum = rocksdb::kXXH3;
  return {SstShape(), partitioned, hashed};
}

// Returns the end of the last data block.
uint64_t DataEnd(const std::string& table) {
  const SliceSource source{Slice(table)};
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  uint64_t end = 0;
  REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
    end = entry.handle.end();
    return Status::OK();
  }));
  return end;
}

std::unique_ptr<SstPartCheck> Start(const std::string& table, ByteSpan part) {
  return SstPartCheck::Make(SliceSource(Slice(table)), DataEnd(table), part);
}

Status AddInPieces(const std::string& table, ByteSpan part, size_t piece,
                   SstPartCheck* check) {
  Status status;
  for (uint64_t at = part.begin; at < part.end && status.ok(); at += piece) {
    status = check->Add(Slice(
        table.data() + at,
        std::min<size_t>(piece, static_cast<size_t>(part.end - at))));
  }
  return status;
}

TEST_CASE("Blocks of a part are checked in pieces of any size",
          "[format][clone]") {
  for (const SstShape& shape : Shapes()) {
    INFO(shape.Name());
    const std::string table = Table(shape);
    const uint64_t end = DataEnd(table);
    const ByteSpan part = {end / 3, end - 10};
    for (const size_t piece : {1, 7, 300, 511, 4096, 1 << 20}) {
      const auto check = Start(table, part);
      REQUIRE(check != nullptr);
      REQUIRE(check->checked() == ByteSpan());
      REQUIRE_OK(AddInPieces(table, part, piece, check.get()));
      const ByteSpan checked = check->checked();
      // Blocks that cross the part's bounds are not checked. A block has about
      // 512 bytes.
      REQUIRE(checked.begin >= part.begin);
      REQUIRE(checked.begin < part.begin + 1024);
      REQUIRE(checked.end <= part.end);
      REQUIRE(checked.end + 1024 > part.end);
    }
  }
}

TEST_CASE("A file's check reads what its parts' checks have not read, and "
          "nothing else of its blocks", "[format][clone][corruption]") {
  const std::string table = Table(SstShape());
  const uint64_t end = DataEnd(table);
  std::vector<ByteSpan> checked;
  for (const ByteSpan part : {ByteSpan{end / 2, end}, ByteSpan{0, end / 2}}) {
    const auto check = Start(table, part);
    REQUIRE(check != nullptr);
    REQUIRE_OK(AddInPieces(table, part, 1000, check.get()));
    checked.push_back(check->checked());
  }
  const uint64_t low_end = checked[1].end;
  const uint64_t high_begin = checked[0].begin;
  REQUIRE(low_end < high_begin);  // a block between the parts
  SstFileFacts facts;
  REQUIRE_OK(CheckSstFile(SliceSource(Slice(table)), checked, &facts));
  for (size_t at = 0; at < end; ++at) {
    std::string bad = table;
    bad[at] ^= 1;
    const Status status =
        CheckSstFile(SliceSource(Slice(bad)), checked, &facts);
    const bool is_seen = at < low_end || at >= high_begin;
    INFO(at);
    REQUIRE(status.ok() == is_seen);
  }
}

TEST_CASE("No flipped bit of a block passes while its part arrives",
          "[format][clone][corruption]") {
  for (const SstShape& shape : Shapes()) {
    INFO(shape.Name());
    const std::string table = Table(shape);
    const ByteSpan part = {0, DataEnd(table)};
    for (size_t at = 0; at < part.end; at += 3) {
      std::string bad = table;
      bad[at] ^= static_cast<char>(1u << (at % 8));
      const auto check = Start(table, part);
      REQUIRE(check != nullptr);
      INFO(at);
      REQUIRE(AddInPieces(bad, part, 700, check.get()).IsCorruption());
    }
  }
}

TEST_CASE("A part is not checked while it arrives where its blocks are not "
          "known", "[format][clone]") {
  const std::string table = Table(SstShape());
  const uint64_t end = DataEnd(table);
  const SliceSource source{Slice(table)};
  // The index begins before the bytes that are present.
  REQUIRE(SstPartCheck::Make(source, table.size() - 60, {0, end}) == nullptr);
  // No block is completely inside the part.
  REQUIRE(SstPartCheck::Make(source, end, {10, 20}) == nullptr);
  SstShape unchecked;
  unchecked.checksum = rocksdb::kNoChecksum;
  const std::string without = Table(unchecked);
  REQUIRE(Start(without, {0, DataEnd(without)}) == nullptr);
  SstShape aligned;
  aligned.align = true;
  const std::string padded = Table(aligned);
  REQUIRE(Start(padded, {0, DataEnd(padded)}) == nullptr);
  const std::string garbage(5000, 'x');
  REQUIRE(SstPartCheck::Make(SliceSource(Slice(garbage)), 0, {0, 4000}) ==
          nullptr);
}

}  // namespace
}  // namespace sstferry::test::sst_part_check_test
