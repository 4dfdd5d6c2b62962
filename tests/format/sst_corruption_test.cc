#include <rapidcheck.h>

#include "format/rocksdb/sst_check.h"
#include "format/rocksdb/sst_reader.h"
#include "tests/support/catch.h"
#include "tests/support/sst_describe.h"
#include "tests/support/sst_files.h"

namespace sstferry::sst_corruption_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::Slice;
using rocksdb::Status;
using test::EncodeHandle;
using test::KeyValues;
using test::PlainBlock;
using test::RawSst;

struct Region {
  uint64_t begin;
  uint64_t end;
};

// Returns the regions of a file that CheckChunk promises to check.
std::vector<Region> CheckedRegions(const std::string& file) {
  const SliceSource source(file);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  std::vector<SstBlockHandle> handles = {reader.footer().metaindex,
                                         reader.index_handle()};
  for (const SstMetaBlock& meta : reader.meta_blocks()) {
    handles.push_back(meta.handle);
  }
  std::vector<SstBlockHandle> data;
  REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
    data.push_back(entry.handle);
    return Status::OK();
  }));
  REQUIRE(data.size() >= 3);
  handles.push_back(data.front());
  handles.push_back(data.back());
  std::vector<Region> regions = {{reader.footer().footer_offset, file.size()}};
  if (reader.properties().index_type == SstIndexType::kTwoLevel) {
    REQUIRE_OK(reader.ForEachPartition(
        reader.index_handle(), [&](const SstBlockHandle& handle) {
          regions.push_back({handle.offset, handle.end()});
          return Status::OK();
        }));
  }
  for (const SstBlockHandle& handle : handles) {
    regions.push_back({handle.offset, handle.end()});
  }
  return regions;
}

void RequireFlipsRefused(const std::string& file,
                         const ChunkExpectation& expected) {
  REQUIRE_OK(CheckChunk(SliceSource(file), expected, nullptr));
  std::string bad = file;
  for (const Region& region : CheckedRegions(file)) {
    for (uint64_t bit = region.begin * 8; bit < region.end * 8; ++bit) {
      bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
      const Status s = CheckChunk(SliceSource(bad), expected, nullptr);
      if (!s.IsCorruption() && !s.IsNotSupported()) {
        INFO("byte " << bit / 8 << " bit " << bit % 8 << " of " << file.size()
                     << " -> " << s.ToString());
        REQUIRE(false);
      }
      bad[bit / 8] = file[bit / 8];
    }
  }
}

// Calls everything that reads a file, so that sanitizers find errors. Ignores
// the results.
void ReadEverything(const std::string& file, const ChunkExpectation& expected) {
  const SliceSource source(file);
  CheckChunk(source, expected, nullptr).PermitUncheckedError();
  std::vector<std::pair<std::string, std::string>> rows;
  DescribeSst(source, &rows).PermitUncheckedError();
  SstReader reader;
  if (!reader.Open(&source).ok()) {
    return;
  }
  std::vector<SstAnchor> anchors;
  reader.Anchors(4, &anchors).PermitUncheckedError();
  reader
      .ForEachIndexEntry([&](const SstIndexEntry& entry) {
        return reader.ForEachEntry(
            entry.handle,
            [](const Slice&, const Slice&) { return Status::OK(); });
      })
      .PermitUncheckedError();
}

TEST_CASE("CheckChunk refuses every single-bit flip of what it checks",
          "[format][corruption]") {
  const auto env = test::NewMemoryEnv();
  const test::KeyValues entries = test::SampleEntries(30);
  test::SstShape shape;
  shape.block_bytes = 300;
  shape.filter = 1;
  for (int checksum = rocksdb::kCRC32c; checksum <= rocksdb::kXXH3;
       ++checksum) {
    shape.checksum = static_cast<rocksdb::ChecksumType>(checksum);
    shape.format_version = 1u + static_cast<uint32_t>(checksum);
    shape.index = checksum % 2 == 0
                      ? BlockBasedTableOptions::kTwoLevelIndexSearch
                      : BlockBasedTableOptions::kBinarySearch;
    INFO(shape.Name());
    RequireFlipsRefused(test::WriteSst(env.get(), shape, entries),
                        test::Expect(shape, entries));
  }
}

TEST_CASE("CheckChunk refuses every single-bit flip of every version written",
          "[format][corruption]") {
  const auto env = test::NewMemoryEnv();
  const test::KeyValues entries = test::SampleEntries(20);
  test::SstShape shape;
  shape.block_bytes = 300;
  for (const uint32_t version : test::WritableVersions()) {
    shape.format_version = version;
    for (const auto checksum : {rocksdb::kCRC32c, rocksdb::kXXH3}) {
      shape.checksum = checksum;
      shape.filter = version % 2 == 0 ? 1 : 2;
      shape.index = shape.filter == 1
                        ? BlockBasedTableOptions::kBinarySearch
                        : BlockBasedTableOptions::kTwoLevelIndexSearch;
      INFO(shape.Name());
      RequireFlipsRefused(test::WriteSst(env.get(), shape, entries),
                          test::Expect(shape, entries));
    }
  }
}

TEST_CASE("CheckChunk refuses every single-bit flip of a version 6 or 7 file",
          "[format][corruption]") {
  std::vector<test::KeyValues> blocks;
  std::vector<std::string> separators;
  const test::KeyValues entries = test::SampleEntries(6, 5);
  for (const auto& [key, value] : entries) {
    blocks.push_back({{test::InternalKey(key), value}});
    separators.push_back(key);
  }
  for (const uint32_t version : {6u, 7u}) {
    test::SstShape shape;
    shape.format_version = version;
    ChunkExpectation expected = test::Expect(shape, entries);
    expected.comparator.clear();
    expected.key_bytes.reset();
    RequireFlipsRefused(test::RawTable(blocks, separators, version), expected);
  }
}

TEST_CASE("SstReader survives every single-bit flip without checksums",
          "[format][corruption]") {
  const auto env = test::NewMemoryEnv();
  const test::KeyValues entries = test::SampleEntries(12, 10);
  test::SstShape shape;
  shape.block_bytes = 100;
  shape.checksum = rocksdb::kNoChecksum;
  for (const int index : {0, 2, 3}) {
    shape.index = static_cast<BlockBasedTableOptions::IndexType>(index);
    shape.hash_in_blocks = index == 0;
    shape.compression = index == 3 ? rocksdb::kLZ4Compression
                                   : rocksdb::kNoCompression;
    const std::string file = test::WriteSst(env.get(), shape, entries);
    const ChunkExpectation expected = test::Expect(shape, entries);
    std::string bad = file;
    for (size_t bit = 0; bit < file.size() * 8; ++bit) {
      bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
      ReadEverything(bad, expected);
      bad[bit / 8] = file[bit / 8];
    }
  }
}

TEST_CASE("CheckChunk refuses a file cut at any length",
          "[format][corruption]") {
  const auto env = test::NewMemoryEnv();
  const test::KeyValues entries = test::SampleEntries(20);
  const test::SstShape shape;
  const std::string file = test::WriteSst(env.get(), shape, entries);
  const ChunkExpectation expected = test::Expect(shape, entries);
  for (size_t n = 0; n < file.size(); ++n) {
    const Status head =
        CheckChunk(SliceSource(Slice(file.data(), n)), expected, nullptr);
    const Status tail = CheckChunk(
        SliceSource(Slice(file.data() + file.size() - n, n)), expected,
        nullptr);
    INFO(n << " of " << file.size() << " bytes: " << head.ToString() << ", "
           << tail.ToString());
    REQUIRE(head.IsCorruption());
    REQUIRE(tail.IsCorruption());
  }
}

TEST_CASE("ReadSstFooter names other kinds of tables in its errors",
          "[format][sst]") {
  SstFooter footer;
  const auto with_magic = [&footer](uint64_t magic, uint32_t version) {
    std::string file(41 + 100, '\0');
    test::PutFixed(&file, version, 4);
    test::PutFixed(&file, magic, 8);
    return ReadSstFooter(SliceSource(file), &footer);
  };
  const auto named = [](const Status& s, const std::string& name) {
    INFO(s.ToString());
    REQUIRE(s.IsNotSupported());
    REQUIRE(s.ToString().find(name) != std::string::npos);
  };
  named(with_magic(0x8242229663bf9564ull, 1), "plain table");
  named(with_magic(0x4f3418eb7a8f13b8ull, 0), "plain table");
  named(with_magic(0x926789d0c5f17873ull, 1), "cuckoo table");
  REQUIRE_FALSE(footer.is_block_based);
  named(with_magic(0xdb4775248b80fb57ull, 0), "version 0");
  REQUIRE((footer.is_block_based && footer.format_version == 0));
  named(with_magic(0x88e241b785f4cff7ull, 8), "found 8");
  REQUIRE((footer.is_block_based && footer.format_version == 8));
  REQUIRE(with_magic(0x88e241b785f4cff7ull, 0).IsCorruption());
  REQUIRE(with_magic(1, 5).IsCorruption());
}

TEST_CASE("SstReader survives noise with a correct magic number",
          "[format][corruption]") {
  test::SstShape shape;
  const ChunkExpectation expected = test::Expect(shape, {{"a", "b"}});
  REQUIRE(rc::check([&](const std::string& noise, uint8_t checksum,
                        uint8_t version,
                uint16_t offset, uint8_t size) {
    std::string file = noise;
    file.resize(noise.size() + 64, 'n');
    std::string footer(1, static_cast<char>(checksum % 5));
    footer += test::EncodeHandle({offset % file.size(), size});
    footer += test::EncodeHandle({offset / 2 % file.size(), size});
    footer.resize(41, '\0');
    test::PutFixed(&footer, version % 8, 4);
    test::PutFixed(&footer, 0x88e241b785f4cff7ull, 8);
    ReadEverything(file + footer, expected);
    RC_ASSERT(!CheckChunk(SliceSource(file + footer), expected, nullptr).ok());
  }));
}

TEST_CASE("SstReader survives overwritten bytes where no checksum protects it",
          "[format][corruption]") {
  const auto env = test::NewMemoryEnv();
  const test::KeyValues entries = test::SampleEntries(40, 10);
  std::vector<std::string> files;
  test::SstShape shape;
  shape.block_bytes = 150;
  shape.checksum = rocksdb::kNoChecksum;
  for (const int index : {0, 1, 2, 3}) {
    for (const auto type : {rocksdb::kNoCompression, rocksdb::kZSTD,
                            rocksdb::kSnappyCompression}) {
      shape.index = static_cast<BlockBasedTableOptions::IndexType>(index);
      shape.compression = type;
      shape.hash_in_blocks = index % 2 == 0;
      shape.index_restart_interval = index == 1 ? 1 : 3;
      files.push_back(test::WriteSst(env.get(), shape, entries));
    }
  }
  const ChunkExpectation expected = test::Expect(shape, entries);
  REQUIRE(rc::check([&](uint8_t which,
                const std::vector<std::pair<uint32_t, uint8_t>>& edits) {
    std::string file = files[which % files.size()];
    for (const auto& [at, byte] : edits) {
      file[at % (file.size() - 12)] = static_cast<char>(byte);
    }
    ReadEverything(file, expected);
  }));
}

// Returns a block of `head` and `count` more entries. The first of these names
// has `name_bytes` bytes. The others share all but their last bytes with it, so
// the block is small. The names sort after all names of RocksDB.
std::string SharingBlock(const KeyValues& head, size_t name_bytes,
                         size_t count, const std::string& value) {
  std::string block;
  for (const auto& [key, head_value] : head) {
    test::PutVarint(&block, 0);
    test::PutVarint(&block, key.size());
    test::PutVarint(&block, head_value.size());
    block += key + head_value;
  }
  constexpr size_t kOwnBytes = 4;
  for (size_t i = 0; i < count; ++i) {
    const std::string name =
        std::string(name_bytes - kOwnBytes, 'x') + std::to_string(1000 + i);
    const size_t shared = i == 0 ? 0 : name.size() - kOwnBytes;
    test::PutVarint(&block, shared);
    test::PutVarint(&block, name.size() - shared);
    test::PutVarint(&block, value.size());
    block += name.substr(shared) + value;
  }
  test::PutFixed(&block, 0, 4);
  test::PutFixed(&block, 1, 4);
  return block;
}

// Returns a file with `count` long names, as properties or in its metaindex.
std::string FileOfLongNames(bool in_metaindex, size_t name_bytes,
                            size_t count) {
  RawSst file;
  const SstBlockHandle data =
      file.Add(PlainBlock({{test::InternalKey("k"), "v"}}));
  const SstBlockHandle index =
      file.Add(PlainBlock({{"k", EncodeHandle(data)}}));
  const std::string number(1, '\x01');
  const std::string data_bytes(1, static_cast<char>(data.end()));
  const KeyValues head = {{"rocksdb.data.size", data_bytes},
                          {"rocksdb.index.key.is.user.key", number},
                          {"rocksdb.num.data.blocks", number},
                          {"rocksdb.num.entries", number}};
  const SstBlockHandle props = file.Add(
      SharingBlock(head, name_bytes, in_metaindex ? 0 : count, ""));
  const KeyValues names = {{"rocksdb.properties", EncodeHandle(props)}};
  return file.FinishWith(SharingBlock(names, name_bytes,
                                      in_metaindex ? count : 0,
                                      EncodeHandle(data)),
                         index);
}

TEST_CASE("A small block that expands to huge names is refused",
          "[sst][corruption]") {
  constexpr size_t kNameBytes = 64 << 10;
  const auto open = [](const std::string& file) {
    const SliceSource source(file);
    SstReader reader;
    return reader.Open(&source);
  };
  REQUIRE_OK(open(FileOfLongNames(false, kNameBytes, 10)));
  for (const bool in_metaindex : {false, true}) {
    const std::string file = FileOfLongNames(in_metaindex, kNameBytes, 1025);
    REQUIRE(file.size() < 100000);
    const Status s = open(file);
    INFO(s.ToString());
    REQUIRE(s.IsCorruption());
    REQUIRE(s.ToString().find("names") != std::string::npos);
  }
}

TEST_CASE("VerifySstBlockBytes refuses a block with another size or offset",
          "[sst][corruption]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.format_version = test::WritableVersions().back();
  const std::string file =
      test::WriteSst(env.get(), shape, test::SampleEntries(24));
  const SliceSource source(file);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  const SstBlockHandle handle = reader.index_handle();
  const rocksdb::Slice bytes(file.data() + handle.offset,
                             handle.size + kSstBlockTrailerBytes);
  REQUIRE_OK(VerifySstBlockBytes(reader.footer(), handle, bytes));
  for (const size_t n : {size_t{0}, size_t{4}, bytes.size() - 1}) {
    REQUIRE(VerifySstBlockBytes(reader.footer(), handle,
                                rocksdb::Slice(bytes.data(), n))
                .IsCorruption());
  }
  const SstBlockHandle moved = {handle.offset + 1, handle.size};
  REQUIRE(VerifySstBlockBytes(reader.footer(), moved, bytes).IsCorruption() ==
          (reader.footer().format_version >= 6));
}

}  // namespace
}  // namespace sstferry::sst_corruption_test
