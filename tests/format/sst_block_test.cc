#include "format/rocksdb/sst_block.h"

#include <rapidcheck.h>

#include "tests/support/catch.h"
#include "tests/support/sst_files.h"

namespace sstferry::sst_block_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Reads all entries of a block, or returns the first error.
Status Walk(const std::string& contents, const SstBlockLayout& layout,
            test::KeyValues* entries) {
  SstBlockCursor cursor;
  Status s = cursor.Init(contents, layout, 0);
  if (s.ok()) {
    s = cursor.Next();
  }
  for (; s.ok() && cursor.valid(); s = cursor.Next()) {
    entries->emplace_back(cursor.key(), cursor.value().ToString());
  }
  return s;
}

void RequireCorrupt(const std::string& contents,
                    const SstBlockLayout& layout = SstBlockLayout()) {
  test::KeyValues entries;
  const Status s = Walk(contents, layout, &entries);
  INFO(s.ToString());
  REQUIRE(s.IsCorruption());
}

std::string Entry(uint32_t shared, uint32_t unshared, uint32_t value_bytes,
                  const std::string& bytes) {
  std::string entry;
  test::PutVarint(&entry, shared);
  test::PutVarint(&entry, unshared);
  test::PutVarint(&entry, value_bytes);
  return entry + bytes;
}

std::string WithTail(const std::string& entries,
                     const std::vector<uint32_t>& restarts,
                     uint32_t packed_bits = 0) {
  std::string block = entries;
  for (const uint32_t restart : restarts) {
    test::PutFixed(&block, restart, 4);
  }
  test::PutFixed(&block, restarts.size() | packed_bits, 4);
  return block;
}

TEST_CASE("SstBlockCursor returns the entries of a block in order",
          "[format][sst]") {
  // A block put together by hand: "apple" = 1, "apply" = 2, "b" = "".
  const std::string block(
      "\x00\x05\x01" "apple1" "\x04\x01\x01" "y2" "\x00\x01\x00" "b"
      "\x00\x00\x00\x00" "\x0e\x00\x00\x00" "\x02\x00\x00\x00", 30);
  test::KeyValues entries;
  REQUIRE_OK(Walk(block, SstBlockLayout(), &entries));
  REQUIRE(entries == test::KeyValues{{"apple", "1"}, {"apply", "2"},
                                     {"b", ""}});
  entries.clear();
  REQUIRE_OK(Walk(WithTail("", {0}), SstBlockLayout(), &entries));
  REQUIRE(entries.empty());
}

TEST_CASE("SstBlockCursor decodes delta-encoded handles and first keys",
          "[format][sst]") {
  SstBlockLayout layout;
  layout.values_are_handles = true;
  layout.delta_handles = true;
  layout.has_first_key = true;
  // The first handle is (100, 50). The second is encoded as a difference: its
  // size is 50 - 3, its offset 100 + 50 + 5 (after the block's 5-byte trailer).
  const std::string entries = std::string("\x00\x02k1\x64\x32\x01" "a", 8) +
                              std::string("\x01\x01" "2\x05\x01" "b", 6);
  const std::string block = WithTail(entries, {0});
  SstBlockCursor cursor;
  REQUIRE_OK(cursor.Init(block, layout, 0));
  REQUIRE_OK(cursor.Next());
  REQUIRE(cursor.handle() == SstBlockHandle{100, 50});
  REQUIRE(cursor.first_key() == "a");
  REQUIRE_OK(cursor.Next());
  REQUIRE(cursor.key() == "k2");
  REQUIRE(cursor.handle() == SstBlockHandle{155, 47});
  REQUIRE(cursor.first_key() == "b");
  REQUIRE_OK(cursor.Next());
  REQUIRE(!cursor.valid());
}

TEST_CASE("SstBlockCursor refuses malformed tails", "[format][corruption]") {
  const std::string entry = Entry(0, 1, 1, "kv");
  RequireCorrupt("");
  RequireCorrupt(std::string(7, '\0'));
  RequireCorrupt(WithTail(entry, {}));               // no restart at all
  RequireCorrupt(WithTail(entry, {1}));              // the first is not 0
  RequireCorrupt(WithTail(entry, {0, 0}));           // the same entry twice
  RequireCorrupt(WithTail(entry, {0, 2}));           // inside an entry
  RequireCorrupt(WithTail(entry, {0, 5}));           // after the last entry
  RequireCorrupt(WithTail(entry, {0, 0xffffffffu}));
  RequireCorrupt(entry + std::string("\xff\xff\xff\x0f", 4));
  RequireCorrupt(WithTail(entry + entry, {0}, 1u << 30));
  // The second entry shares a byte with the first, so it cannot be a restart.
  RequireCorrupt(WithTail(entry + Entry(1, 1, 0, "x"), {0, 5}));
  for (const int bit : {28, 29}) {
    test::KeyValues entries;
    REQUIRE(Walk(WithTail(entry, {0}, 1u << bit), SstBlockLayout(), &entries)
                .IsNotSupported());
  }
  SstBlockLayout index;
  index.uniform = true;
  test::KeyValues entries;
  REQUIRE_OK(Walk(WithTail(entry, {0}, 1u << 29), index, &entries));
  REQUIRE_OK(Walk(WithTail(entry, {0}), index, &entries));
}

// Builds a block: entries, values, restarts, then the offset of the values.
std::string Separated(const std::string& entries, const std::string& values,
                      const std::vector<uint32_t>& restarts,
                      uint32_t values_at) {
  std::string block = entries + values;
  for (const uint32_t restart : restarts) {
    test::PutFixed(&block, restart, 4);
  }
  test::PutFixed(&block, values_at, 4);
  test::PutFixed(&block, restarts.size() | 1u << 28, 4);
  return block;
}

TEST_CASE("SstBlockCursor returns values that are stored apart from their keys",
          "[format][sst]") {
  SstBlockLayout layout;
  layout.is_data = true;
  layout.separated = true;
  // "apple" = 1, "apply" = 23, "b" = "". An entry at a restart also contains
  // the offset of its value.
  const std::string keys =
      std::string("\x00\x05\x01\x00" "apple", 9) +
      std::string("\x04\x01\x02" "y", 4) +
      std::string("\x00\x01\x00\x03" "b", 5);
  test::KeyValues entries;
  REQUIRE_OK(Walk(Separated(keys, "123", {0, 13}, 18), layout, &entries));
  REQUIRE(entries == test::KeyValues{{"apple", "1"}, {"apply", "23"},
                                     {"b", ""}});
  entries.clear();
  REQUIRE_OK(Walk(Separated("", "", {0}, 0), layout, &entries));
  REQUIRE(entries.empty());

  // RocksDB would abort on these: the properties and a block disagree.
  RequireCorrupt(WithTail(Entry(0, 1, 1, "kv"), {0}), layout);
  RequireCorrupt(Separated(keys, "12", {0, 13}, 18), layout);
  RequireCorrupt(Separated(keys, "1234", {0, 13}, 18), layout);
  RequireCorrupt(Separated(keys, "123", {0}, 18), layout);
  RequireCorrupt(Separated(keys, "123", {0, 13}, 17), layout);
  RequireCorrupt(Separated(keys, "123", {0, 13}, 19), layout);
  RequireCorrupt(Separated(keys, "123", {0, 13}, 22), layout);
  RequireCorrupt(Separated(keys, "123", {0, 13}, 0xffffffffu), layout);
  std::string wrong = keys;
  wrong[16] = 2;  // the second restart's value would begin one byte early
  RequireCorrupt(Separated(wrong, "123", {0, 13}, 18), layout);
  RequireCorrupt(std::string("\x00\x00\x00\x00\x01\x00\x00\x10", 8), layout);
}

TEST_CASE("SstBlockCursor reads separated values in a block with a hash index",
          "[format][sst]") {
  SstBlockLayout layout;
  layout.is_data = true;
  layout.separated = true;
  std::string block("\x00\x01\x01\x00" "k" "v" "\x00\x00\x00\x00", 10);
  block += std::string("\x00\xff\x02\x00", 4);  // two buckets
  test::PutFixed(&block, 5, 4);
  test::PutFixed(&block, 1u | 1u << 31 | 1u << 28, 4);
  test::KeyValues entries;
  REQUIRE_OK(Walk(block, layout, &entries));
  REQUIRE(entries == test::KeyValues{{"k", "v"}});
  block[10] = 1;  // there is no restart 1
  RequireCorrupt(block, layout);
}

TEST_CASE("SstBlockCursor refuses malformed entries", "[format][corruption]") {
  RequireCorrupt(WithTail(Entry(1, 1, 1, "kv"), {0}));  // nothing to share
  RequireCorrupt(WithTail(Entry(0, 9, 1, "kv"), {0}));
  RequireCorrupt(WithTail(Entry(0, 1, 9, "kv"), {0}));
  RequireCorrupt(WithTail(Entry(0, 0xffffffffu, 0xffffffffu, "kv"), {0}));
  RequireCorrupt(WithTail(Entry(0, 1, 0xffffffffu, "kv"), {0}));
  RequireCorrupt(WithTail(Entry(0, 1, 1, "kv") + Entry(2, 1, 1, "kv"), {0}));
  RequireCorrupt(WithTail(std::string(12, '\xff'), {0}));  // endless varint
  SstBlockLayout layout;
  layout.values_are_handles = true;
  RequireCorrupt(WithTail(Entry(0, 1, 1, "k\x01"), {0}), layout);
  RequireCorrupt(WithTail(Entry(0, 1, 3, "k\x01\x01\x01"), {0}), layout);
  layout.has_first_key = true;
  RequireCorrupt(WithTail(Entry(0, 1, 3, "k\x01\x01\x09"), {0}), layout);
}

TEST_CASE("SstBlockCursor refuses a small block with huge keys",
          "[format][corruption]") {
  constexpr uint32_t kKeyBytes = 16u << 20;
  std::string entries = Entry(0, kKeyBytes, 0, std::string(kKeyBytes, 'k'));
  for (int i = 0; i < 400; ++i) {
    entries += Entry(kKeyBytes - 1, 1, 0, "k");
  }
  const std::string block = WithTail(entries, {0});
  SstBlockCursor cursor;
  REQUIRE_OK(cursor.Init(block, SstBlockLayout(), 0));
  Status s;
  do {
    s = cursor.Next();
  } while (s.ok() && cursor.valid());
  INFO(s.ToString());
  REQUIRE(s.IsCorruption());
  const uint64_t most = MaxSstKeyBytes(block.size()) / kKeyBytes;
  REQUIRE(cursor.entries() == most);
  REQUIRE(most < 300);
  // Keys with a restart at every 16th entry, as RocksDB writes them, are fine.
  entries.clear();
  std::vector<uint32_t> restarts;
  for (int i = 0; i < 64; ++i) {
    if (i % 16 == 0) {
      restarts.push_back(static_cast<uint32_t>(entries.size()));
      entries += Entry(0, 300'000, 0, std::string(300'000, 'k'));
    } else {
      entries += Entry(299'999, 1, 0, "k");
    }
  }
  test::KeyValues found;
  REQUIRE_OK(Walk(WithTail(entries, restarts), SstBlockLayout(), &found));
  REQUIRE(found.size() == 64);
}

TEST_CASE("SstBlockCursor refuses malformed hash indexes",
          "[format][corruption]") {
  const std::string entry = Entry(0, 1, 1, "kv");
  const auto block = [&](const std::string& buckets, uint32_t count) {
    std::string bytes = entry + std::string(4, '\0') + buckets;
    test::PutFixed(&bytes, count, 2);
    test::PutFixed(&bytes, 1u | 1u << 31, 4);
    return bytes;
  };
  SstBlockLayout layout;
  layout.is_data = true;
  test::KeyValues entries;
  REQUIRE_OK(Walk(block(std::string("\x00\xff\xfe", 3), 3), layout, &entries));
  REQUIRE(entries == test::KeyValues{{"k", "v"}});
  RequireCorrupt(block(std::string("\x00\xff\xfe", 3), 3));  // not allowed here
  RequireCorrupt(block("\x01\xff\xfe", 3), layout);  // there is no restart 1
  RequireCorrupt(block("", 0), layout);
  RequireCorrupt(block("", 0xffff), layout);
  RequireCorrupt(block("\xff\xff", 3), layout);
}

TEST_CASE("SstBlockCursor survives arbitrary bytes", "[format][corruption]") {
  REQUIRE(rc::check([](const std::string& noise, uint8_t flags,
                       uint8_t restarts) {
    SstBlockLayout layout;
    layout.is_data = (flags & 1) != 0;
    layout.values_are_handles = (flags & 2) != 0;
    layout.delta_handles = (flags & 6) == 6;
    layout.has_first_key = (flags & 10) == 10;
    std::string block = noise;
    test::PutFixed(&block,
                   (restarts % 4u) | (flags & 16u) << 27 | (flags & 32u) << 23,
                   4);
    test::KeyValues entries;
    const Status s = Walk(block, layout, &entries);
    RC_ASSERT(s.ok() || s.IsCorruption() || s.IsNotSupported());
    size_t bytes = 0;
    for (const auto& [key, value] : entries) {
      bytes += value.size();
    }
    RC_ASSERT(bytes <= block.size());
  }));
}

TEST_CASE("DecompressSstBlock refuses sizes that cannot be true",
          "[format][corruption]") {
  for (const SstCompression type :
       {SstCompression::kZlib, SstCompression::kBzip2, SstCompression::kLz4,
        SstCompression::kLz4hc, SstCompression::kZstd}) {
    std::string payload;
    test::PutVarint(&payload, 0xfffffff0u);
    payload += "short";
    SstBuffer out;
    INFO(SstCompressionName(type));
    REQUIRE(DecompressSstBlock(type, 5, payload, Slice(), 1u << 20, &out)
                .IsCorruption());
    payload.clear();
    test::PutVarint(&payload, 100);
    payload += "noise";
    REQUIRE(DecompressSstBlock(type, 5, payload, Slice(), 1u << 20, &out)
                .IsCorruption());
    REQUIRE(DecompressSstBlock(type, 5, Slice(), Slice(), 1u << 20, &out)
                .IsCorruption());
  }
  SstBuffer out;
  REQUIRE(DecompressSstBlock(SstCompression::kSnappy, 5, "\xff\xff\xff\x7f",
                             Slice(), 1u << 20, &out)
              .IsCorruption());
  REQUIRE(DecompressSstBlock(static_cast<SstCompression>(0x81), 7, "x",
                             Slice(), 1u << 20, &out)
              .IsNotSupported());
  REQUIRE(DecompressSstBlock(SstCompression::kZlib, 1, "x", Slice(), 1u << 20,
                             &out)
              .IsNotSupported());
}

TEST_CASE("DecompressSstBlock survives arbitrary bytes",
          "[format][corruption]") {
  REQUIRE(rc::check([](const std::string& noise, const std::string& dict,
               uint8_t type, uint8_t size) {
    std::string payload;
    test::PutVarint(&payload, size);
    payload += noise;
    SstBuffer out;
    const auto compression = static_cast<SstCompression>(type % 7 + 1);
    const Status s =
        DecompressSstBlock(compression, 5, payload, dict, 4096, &out);
    RC_ASSERT(s.ok() || s.IsCorruption() || s.IsNotSupported());
    RC_ASSERT(!s.ok() || out.size <= 4096);
  }));
}

}  // namespace
}  // namespace sstferry::sst_block_test
