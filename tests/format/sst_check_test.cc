#include "format/rocksdb/sst_check.h"

#include <algorithm>
#include <chrono>

#include "format/rocksdb/sst_reader.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/sst_describe.h"
#include "tests/support/sst_files.h"

namespace sstferry::sst_check_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using test::InternalKey;

const test::KeyValues kThree = {{"a", "1"}, {"b", "2"}, {"c", "3"}};

// Returns the blocks {a, b} and {c}.
std::vector<test::KeyValues> TwoBlocks() {
  return {{{InternalKey("a"), "1"}, {InternalKey("b"), "2"}},
          {{InternalKey("c"), "3"}}};
}

ChunkExpectation ExpectThree(uint32_t format_version = 5) {
  test::SstShape shape;
  shape.format_version = format_version;
  ChunkExpectation expected = test::Expect(shape, kThree);
  expected.comparator.clear();
  expected.key_bytes.reset();
  return expected;
}

void RequireRefused(const std::string& file, const ChunkExpectation& expected,
                    const std::string& why) {
  const Status s = CheckChunk(SliceSource(file), expected, nullptr);
  INFO(s.ToString());
  REQUIRE(s.IsCorruption());
  REQUIRE(s.ToString().find(why) != std::string::npos);
}

TEST_CASE("CheckChunk accepts a sound table of every footer version",
          "[format][sst]") {
  for (uint32_t version = 1; version <= kMaxSstFormatVersion; ++version) {
    INFO("version " << version);
    const std::string file = test::RawTable(TwoBlocks(), {"b", "c"}, version);
    ChunkExpectation expected = ExpectThree(version);
    REQUIRE_OK(CheckChunk(SliceSource(file), expected, nullptr));
    expected.all_blocks = true;
    REQUIRE_OK(CheckChunk(SliceSource(file), expected, nullptr));
  }
}

TEST_CASE("CheckChunk refuses a table that differs from the expectation",
          "[format][sst]") {
  const std::string file = test::RawTable(TwoBlocks(), {"b", "c"});
  const auto refused = [&](auto change, const std::string& why) {
    ChunkExpectation expected = ExpectThree();
    change(&expected);
    RequireRefused(file, expected, why);
  };
  refused([](auto* e) { e->smallest = std::string(1, 'A'); },
          "first key: expected 0x41");
  refused([](auto* e) { e->smallest.clear(); }, "first key");
  refused([](auto* e) { e->largest.push_back('c'); }, "last key");
  refused([](auto* e) { e->num_entries = 4; }, "entries: expected 4, found 3");
  refused([](auto* e) { e->key_bytes = 3; }, "raw key bytes");
  refused([](auto* e) { e->comparator = std::string("reverse"); },
          "comparator");
  refused([](auto* e) { e->format_version = 4; }, "format version");
  refused([](auto* e) {
    e->order = [](const Slice& a, const Slice& b) { return b.compare(a); };
  }, "key order");
}

TEST_CASE("CheckChunk refuses marked blocks where RocksDB cannot read them",
          "[format][sst]") {
  const auto file = [](const char* name, char value) {
    return test::RawTable(TwoBlocks(), {"b", "c"}, 5,
                          {{name, std::string(1, value)}});
  };
  const char* separated = "rocksdb.separate.key.value.in.data.block";
  const char* uniform = "rocksdb.num.uniform.blocks";
  ChunkExpectation expected = ExpectThree();
  expected.allow_marked_blocks = false;
  for (const char* name : {separated, uniform}) {
    REQUIRE_OK(CheckChunk(SliceSource(file(name, 0)), expected, nullptr));
    RequireRefused(file(name, 1), expected, "since 11.1");
  }
  expected.allow_marked_blocks = true;
  REQUIRE_OK(CheckChunk(SliceSource(file(uniform, 1)), expected, nullptr));
  RequireRefused(file(separated, 1), expected, "bit 28 clear");
}

TEST_CASE("SstReader knows RocksDB's compressions of version 7",
          "[format][sst]") {
  const auto open = [](uint32_t version, const std::string& compression) {
    const std::string file =
        test::RawTable(TwoBlocks(), {"b", "c"}, version,
                       {{"rocksdb.compression", compression}});
    SstReader reader;
    const SliceSource source(file);
    return reader.Open(&source);
  };
  REQUIRE_OK(open(7, "BuiltinV2;0407;"));
  REQUIRE_OK(open(7, "BuiltinV2;;"));
  REQUIRE_OK(open(7, ";;"));
  REQUIRE_OK(open(7, ""));
  REQUIRE(open(7, "Mine;80;").IsNotSupported());
  REQUIRE(open(7, "BuiltinV3;80;").IsNotSupported());
  REQUIRE_OK(open(6, "Mine;80;"));  // a name for people
}

TEST_CASE("CheckChunk refuses internal keys RocksDB would abort on",
          "[format][corruption]") {
  const auto file = [](const std::string& key) {
    std::vector<test::KeyValues> blocks = TwoBlocks();
    blocks[0][1].first = key;
    return test::RawTable(blocks, {"b", "c"});
  };
  REQUIRE_OK(CheckChunk(SliceSource(file(InternalKey("b"))), ExpectThree(),
                        nullptr));
  RequireRefused(file("abc"), ExpectThree(), "at least 8 bytes, found 3");
  RequireRefused(file(""), ExpectThree(), "at least 8 bytes, found 0");
  RequireRefused(file(InternalKey("b", 0)), ExpectThree(), "type 0");
  RequireRefused(file(InternalKey("b", 1, 5)), ExpectThree(), "sequence 5");
  RequireRefused(file(InternalKey("b", 2)), ExpectThree(), "type 2");
  RequireRefused(file(InternalKey("b", 0x16)), ExpectThree(), "type 22");
  ChunkExpectation expected = ExpectThree();
  expected.allow_entities = true;
  REQUIRE_OK(CheckChunk(SliceSource(file(InternalKey("b", 0x16))), expected,
                        nullptr));
  // Index keys are internal keys when the property says so.
  const std::string internal_index = test::RawTable(
      TwoBlocks(), {"b", InternalKey("c")}, 5,
      {{"rocksdb.index.key.is.user.key", std::string(1, '\0')}});
  RequireRefused(internal_index, ExpectThree(), "at least 8 bytes, found 1");
}

TEST_CASE("CheckChunk refuses a file whose checksums are right and whose "
          "internal key is 3 bytes long", "[format][corruption]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.restart_interval = 1;
  const test::KeyValues entries = {{"keyone", "value"}, {"keytwo", "value"}};
  std::string file = test::WriteSst(env.get(), shape, entries);
  REQUIRE_OK(CheckChunk(SliceSource(file), test::Expect(shape, entries),
                        nullptr));
  SstReader reader;
  const SliceSource source(file);
  REQUIRE_OK(reader.Open(&source));
  SstBlockHandle block;
  REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
    block = entry.handle;
    return Status::OK();
  }));
  // The second entry has the lengths 0, 14, 5 and then 19 bytes. The lengths
  // become 0, 3, 16: the same sum, but the key is too short.
  const size_t at = block.offset + 3 + 14 + 5;
  REQUIRE(file.substr(at, 3) == std::string("\x00\x0e\x05", 3));
  file[at + 1] = 3;
  file[at + 2] = 16;
  test::Reseal(&file, block);
  REQUIRE_OK(rocksdb::WriteStringToFile(env.get(), file, "/f.sst"));
  rocksdb::SstFileReader theirs(shape.ToOptions(env.get()));
  REQUIRE_OK(theirs.Open("/f.sst"));
  REQUIRE_OK(theirs.VerifyChecksum());
  RequireRefused(file, test::Expect(shape, entries),
                 "at least 8 bytes, found 3");
}

TEST_CASE("CheckChunk refuses a wrong order of keys, blocks and index",
          "[format][corruption]") {
  std::vector<test::KeyValues> blocks = TwoBlocks();
  std::swap(blocks[0][0], blocks[0][1]);
  RequireRefused(test::RawTable(blocks, {"b", "c"}), ExpectThree(),
                 "key order");
  blocks = TwoBlocks();
  RequireRefused(test::RawTable(blocks, {"c", "c"}), ExpectThree(),
                 "index order");
  RequireRefused(test::RawTable(blocks, {"a", "c"}), ExpectThree(),
                 "last key: expected at most the index key");
  RequireRefused(test::RawTable(blocks, {"c", "d"}), ExpectThree(),
                 "first key: expected one above the index key");
  blocks[1][0].first = InternalKey("b");
  RequireRefused(test::RawTable(blocks, {"b", "c"}), ExpectThree(),
                 "first key: expected one above the index key");
  blocks[1].clear();
  RequireRefused(test::RawTable(blocks, {"b", "c"}, 5,
                                {{"rocksdb.num.entries", "\x03"}}),
                 ExpectThree(), "expected entries, found none");
}

TEST_CASE("CheckChunk refuses a top-level index that does not fit its parts",
          "[format][corruption]") {
  // Returns a table with the given key in the top-level index. Its only
  // partition has one entry or none.
  const auto file = [](const std::string& top_key, bool empty_partition) {
    test::RawSst raw;
    const SstBlockHandle block =
        raw.Add(test::PlainBlock({{InternalKey("a"), "1"}}));
    test::KeyValues entries = {{"a", test::EncodeHandle(block)}};
    if (empty_partition) {
      entries.clear();
    }
    const SstBlockHandle partition = raw.Add(test::PlainBlock(entries));
    const SstBlockHandle top = raw.Add(
        test::PlainBlock({{top_key, test::EncodeHandle(partition)}}));
    const SstBlockHandle props = raw.Add(test::RawProperties(
        1, 1, block.end(),
        {{"rocksdb.block.based.table.index.type",
          std::string("\x02\0\0\0", 4)}}));
    return raw.Finish({{"rocksdb.properties", test::EncodeHandle(props)}}, top);
  };
  ChunkExpectation expected = ExpectThree();
  expected.largest = expected.smallest;
  expected.num_entries = 1;
  REQUIRE_OK(CheckChunk(SliceSource(file("a", false)), expected, nullptr));
  RequireRefused(file("b", false), expected, "top-level index key");
  RequireRefused(file("", false), expected, "top-level index key");
  RequireRefused(file("a", true), expected,
                 "index partition: expected entries");
}

TEST_CASE("SstFooter modifies checksums by offset from version 6 on",
          "[format][sst]") {
  SstFooter footer;
  REQUIRE(footer.ContextModifier(0x100000005ull) == 0);
  footer.base_context_checksum = 0x12345678u;
  REQUIRE(footer.ContextModifier(0) == 0x12345678u);
  REQUIRE(footer.ContextModifier(0x100000005ull) == 0x1234567eu);
  REQUIRE(footer.ContextModifier(0x1ffffffffull) == 0x12345678u);
}

TEST_CASE("CheckChunk refuses a table without data blocks",
          "[format][corruption]") {
  // A table without entries would meet this expectation.
  ChunkExpectation expected = ExpectThree();
  expected.smallest.clear();
  expected.largest.clear();
  expected.num_entries = 0;
  RequireRefused(test::RawTable({}, {}), expected, "expected data blocks");
}

TEST_CASE(
    "CheckChunk with all_blocks finds errors in blocks between the bounds",
    "[format][corruption]") {
  std::vector<test::KeyValues> blocks = {{{InternalKey("a"), "1"}},
                                         {{InternalKey("b"), "2"}},
                                         {{InternalKey("c"), "3"}}};
  ChunkExpectation expected = ExpectThree();
  expected.all_blocks = true;
  REQUIRE_OK(CheckChunk(SliceSource(test::RawTable(blocks, {"a", "b", "c"})),
                        expected, nullptr));
  blocks[1][0].first = "abc";
  const std::string file = test::RawTable(blocks, {"a", "b", "c"});
  RequireRefused(file, expected, "at least 8 bytes, found 3");
}

TEST_CASE("CheckChunk refuses properties of other files",
          "[format][corruption]") {
  const auto refused = [](const test::KeyValues& changed,
                          const std::string& why) {
    RequireRefused(test::RawTable(TwoBlocks(), {"b", "c"}, 5, changed),
                   ExpectThree(), why);
  };
  const std::string version = "rocksdb.external_sst_file.version";
  const std::string seqno = "rocksdb.external_sst_file.global_seqno";
  refused({{version, std::string("\x01\0\0\0", 4)}}, "expected 2, found 1");
  refused({{version, "\x02"}}, "valid number");
  refused({{seqno, std::string("\x01\0\0\0\0\0\0\0", 8)}}, "found 1");
  refused({{seqno, "short"}}, "valid number");
  refused({{"rocksdb.num.data.blocks", "\x03"}}, "data blocks in the index");
  refused({{"rocksdb.num.entries", std::string("\x80", 1)}}, "valid number");
  refused({{"rocksdb.data.size", "\x01"}}, "data bytes");
  refused({{"rocksdb.data.size", "\x7f"}}, "padding");
  refused({{"rocksdb.block.based.table.index.type",
            std::string("\x04\0\0\0", 4)}}, "valid number");
}

TEST_CASE("CheckChunk knows which writers leave blocks uncounted",
          "[format][sst]") {
  const auto file = [](char counted, const std::string& options) {
    return test::RawTable(TwoBlocks(), {"b", "c"}, 5,
                          {{"rocksdb.num.data.blocks", std::string(1, counted)},
                           {"rocksdb.compression_options", options}});
  };
  const std::string none = "level=3; max_dict_bytes=0; enabled=0; ";
  const std::string dictionary = "level=3; max_dict_bytes=4096; enabled=0; ";
  for (const char counted : {0, 1, 2}) {
    REQUIRE_OK(CheckChunk(SliceSource(file(counted, dictionary)),
                          ExpectThree(), nullptr));
  }
  RequireRefused(file(3, dictionary), ExpectThree(), "data blocks in the");
  RequireRefused(file(1, none), ExpectThree(), "data blocks in the index");
  RequireRefused(file(1, ""), ExpectThree(), "data blocks in the index");
}

TEST_CASE("CheckChunk refuses data blocks that leave gaps or overlap",
          "[format][corruption]") {
  const std::string block_a = test::PlainBlock({{InternalKey("a"), "1"}});
  const std::string block_c = test::PlainBlock({{InternalKey("c"), "3"}});
  // `moved` is added to the offset of block c in the index.
  const auto file = [&](const std::string& gap, int64_t moved) {
    test::RawSst raw;
    const SstBlockHandle one = raw.Add(block_a);
    if (!gap.empty()) {
      raw.Add(gap);
    }
    SstBlockHandle two = raw.Add(block_c);
    const uint64_t data_bytes = two.end();
    two.offset += static_cast<uint64_t>(moved);
    const SstBlockHandle index = raw.Add(test::PlainBlock(
        {{"a", test::EncodeHandle(one)}, {"c", test::EncodeHandle(two)}}));
    const SstBlockHandle props =
        raw.Add(test::RawProperties(2, 2, data_bytes));
    return raw.Finish({{"rocksdb.properties", test::EncodeHandle(props)}},
                      index);
  };
  ChunkExpectation expected = ExpectThree();
  expected.num_entries = 2;
  REQUIRE_OK(CheckChunk(SliceSource(file("", 0)), expected, nullptr));
  RequireRefused(file("hidden", 0), expected, "padding between data blocks");
  RequireRefused(file("", -1), expected, "index: expected a data block from");
  RequireRefused(file("", 1 << 20), expected,
                 "index: expected a data block from");
}

TEST_CASE("CheckChunk refuses files that a database flushed", "[format][sst]") {
  // The same table without the two properties of external files cannot be
  // ingested.
  const auto env = test::NewMemoryEnv();
  const test::SstShape shape;
  std::string file = test::WriteSst(env.get(), shape, kThree);
  SstReader reader;
  const SliceSource source(file);
  REQUIRE_OK(reader.Open(&source));
  ChunkExpectation expected = test::Expect(shape, kThree);
  const SstBlockHandle props =
      reader.FindMetaBlock("rocksdb.properties")->handle;
  const size_t at = file.find("external_sst_file", props.offset);
  REQUIRE(at < props.offset + props.size);
  file[at] = 'E';
  test::Reseal(&file, props);
  const Status s = CheckChunk(SliceSource(file), expected, nullptr);
  INFO(s.ToString());
  REQUIRE(s.IsCorruption());
}

TEST_CASE("Anchors split a file into parts of nearly equal size",
          "[format][sst]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.block_bytes = 4096;
  const test::KeyValues entries = test::SampleEntries(21000, 1000);
  for (const int index : {0, 2}) {
    shape.index =
        static_cast<rocksdb::BlockBasedTableOptions::IndexType>(index);
    const std::string bytes = test::WriteSst(env.get(), shape, entries);
    REQUIRE(bytes.size() > (20u << 20));
    const SliceSource source(bytes);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    std::vector<SstAnchor> anchors;
    REQUIRE_OK(reader.Anchors(16, &anchors));
    REQUIRE(anchors.size() == 16);
    const uint64_t total = reader.properties().data_bytes;
    REQUIRE(anchors.back().file_bytes == total);
    for (size_t i = 0; i < anchors.size(); ++i) {
      // Each anchor is within one block of its ideal place. The number of keys
      // before it must agree with its bytes.
      const double target = static_cast<double>(total) * (i + 1) / 16;
      REQUIRE(anchors[i].file_bytes >= target - 1);
      REQUIRE(anchors[i].file_bytes < target + 2 * 4096);
      const auto below = std::count_if(
          entries.begin(), entries.end(), [&](const auto& entry) {
            return entry.first <= anchors[i].user_key;
          });
      REQUIRE(std::abs(below - 21000.0 * (i + 1) / 16) < 20);
    }
    REQUIRE_OK(reader.Anchors(1, &anchors));
    REQUIRE(anchors.size() == 1);
    REQUIRE(anchors[0].file_bytes == total);
    REQUIRE_OK(reader.Anchors(1000000, &anchors));
    REQUIRE(anchors.size() == reader.properties().num_data_blocks);
  }
}

// Returns a table whose index has `blocks` data blocks of 100 bytes, and
// separators that share all but the last 4 of `key_bytes` bytes.
std::string WithSharedSeparators(uint32_t blocks, uint32_t key_bytes) {
  test::RawSst raw;
  raw.AddZeros(100 * blocks);
  std::string index;
  for (uint32_t i = 0; i < blocks; ++i) {
    const std::string handle =
        test::EncodeHandle({100 * i, 100 - kSstBlockTrailerBytes});
    const uint32_t shared = i == 0 ? 0 : key_bytes - 4;
    std::string key(key_bytes - 4 - shared, 'k');
    for (int shift = 24; shift >= 0; shift -= 8) {
      key.push_back(static_cast<char>(i >> shift));
    }
    test::PutVarint(&index, shared);
    test::PutVarint(&index, key.size());
    test::PutVarint(&index, handle.size());
    index += key + handle;
  }
  test::PutFixed(&index, 0, 4);
  test::PutFixed(&index, 1, 4);
  const SstBlockHandle index_at = raw.Add(index);
  const SstBlockHandle props =
      raw.Add(test::RawProperties(blocks, blocks, 100 * blocks));
  return raw.Finish({{"rocksdb.properties", test::EncodeHandle(props)}},
                    index_at);
}

TEST_CASE("Anchors take little memory, even with long keys", "[format][sst]") {
  const auto anchors_of = [](const std::string& bytes) {
    const SliceSource source(bytes);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    std::vector<SstAnchor> anchors;
    REQUIRE_OK(reader.Anchors(4096, &anchors));
    REQUIRE(anchors.back().file_bytes == reader.properties().data_bytes);
    return anchors;
  };
  constexpr uint32_t kBlocks = 1000;
  const std::vector<SstAnchor> even =
      anchors_of(WithSharedSeparators(kBlocks, 200'000));
  uint64_t key_bytes = 0;
  uint64_t before = 0;
  for (const SstAnchor& anchor : even) {
    key_bytes += anchor.user_key.size();
    REQUIRE(anchor.file_bytes - before <= 8 * 100);
    before = anchor.file_bytes;
  }
  REQUIRE(key_bytes <= kMaxAnchorKeyBytes + 200'000);
  REQUIRE(even.size() >= kBlocks / 8);
  REQUIRE(anchors_of(WithSharedSeparators(kBlocks, kMaxKeyBytes + 1)).size() ==
          1);
  REQUIRE(anchors_of(WithSharedSeparators(kBlocks, 100)).size() == kBlocks);
}

TEST_CASE("DescribeSst names footer, meta blocks, bounds and properties",
          "[format][sst]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.filter = 1;
  const std::string bytes = test::WriteSst(env.get(), shape, kThree);
  std::vector<std::pair<std::string, std::string>> rows;
  REQUIRE_OK(DescribeSst(SliceSource(bytes), &rows));
  const auto value = [&](const std::string& name) {
    for (const auto& row : rows) {
      if (row.first == name) {
        return row.second;
      }
    }
    return std::string("(none)");
  };
  REQUIRE(value("file bytes") == std::to_string(bytes.size()));
  REQUIRE(value("format version") == "5");
  REQUIRE(value("checksum") == "crc32c");
  REQUIRE(value("index type") == "binary search");
  REQUIRE(value("rocksdb.num.entries") == "3");
  REQUIRE(value("rocksdb.external_sst_file.version") == "2");
  REQUIRE(value("rocksdb.comparator") == "leveldb.BytewiseComparator");
  REQUIRE(value("first key") == "0x61 sequence 0 type 1");
  REQUIRE(value("last key") == "0x63 sequence 0 type 1");
  REQUIRE(value("meta block rocksdb.properties") != "(none)");
  for (const auto& [name, text] : rows) {
    for (const char c : name + text) {
      REQUIRE(static_cast<unsigned char>(c) >= 0x20);
    }
  }
}

TEST_CASE("CheckChunk on a 64 MB chunk takes milliseconds",
          "[format][.bench]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.block_bytes = 4096;
  shape.filter = 1;
  const test::KeyValues entries = test::SampleEntries(600000, 100);
  for (const int index : {0, 2}) {
    shape.index =
        static_cast<rocksdb::BlockBasedTableOptions::IndexType>(index);
    const std::string bytes = test::WriteSst(env.get(), shape, entries);
    const ChunkExpectation expected = test::Expect(shape, entries);
    ChunkFacts facts;
    REQUIRE_OK(CheckChunk(SliceSource(bytes), expected, &facts));
    const auto begin = std::chrono::steady_clock::now();
    constexpr int kRuns = 20;
    for (int run = 0; run < kRuns; ++run) {
      REQUIRE_OK(CheckChunk(SliceSource(bytes), expected, &facts));
    }
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - begin;
    WARN("index type " << index << ": " << bytes.size() << " bytes, "
                       << facts.data_blocks << " blocks: "
                       << took.count() / kRuns << " ms");
  }
}

}  // namespace
}  // namespace sstferry::sst_check_test
