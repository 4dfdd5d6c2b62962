// What is not carried, and that nothing carried hides a flipped bit.
#include "format/sst/sst_tail.h"

#include <map>

#include "format/end_state.h"
#include "format/sst/sst_check.h"
#include "rocksdb/filter_policy.h"
#include "tests/support/carried_sst.h"
#include "tests/support/catch.h"
#include "tests/support/sst_files.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using test::EncodeHandle;
using test::KeyValues;
using test::PlainBlock;
using test::RawSst;
using test::TableShape;

// Small enough to try every bit; filter, partitions and a dictionary inside.
TableShape TinyShape(uint32_t version, rocksdb::ChecksumType checksum) {
  TableShape shape = test::PlainShape("tiny", 24);
  shape.table.format_version = version;
  shape.table.checksum = checksum;
  shape.table.block_size = 256;
  shape.table.metadata_block_size = 64;
  shape.table.index_type =
      rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  shape.table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  shape.table.partition_filters = true;
  return shape;
}

std::string FlipBit(const std::string& file, size_t bit) {
  std::string bad = file;
  bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
  return bad;
}

Status RewriteStatus(const std::string& file, SstTail* tail) {
  const SliceSource source(file);
  SstReader reader;
  const Status s = reader.Open(&source);
  return s.ok() ? RewriteSstTail(reader, tail) : s;
}

Status CarryStatus(const std::string& file) {
  SstTail tail;
  return test::CarryBytes(file, &tail);
}

void RequireBodyFlipsFound(const TableShape& shape) {
  const std::string file = test::WriteDbFile(shape);
  SstTail tail;
  REQUIRE_OK(test::CarryBytes(file, &tail));
  for (size_t bit = 0; bit < tail.body_bytes * 8; ++bit) {
    const Status s = CarryStatus(FlipBit(file, bit));
    if (s.ok()) {
      INFO("byte " << bit / 8 << " bit " << bit % 8 << " of "
                   << tail.body_bytes);
      REQUIRE(false);
    }
  }
}

TEST_CASE("ForEachBodyBlock and checksums find every flipped bit of a body",
          "[sst][carry][corruption]") {
  for (const uint32_t version : test::WritableVersions()) {
    RequireBodyFlipsFound(TinyShape(version, rocksdb::kCRC32c));
  }
  for (const auto checksum :
       {rocksdb::kxxHash, rocksdb::kxxHash64, rocksdb::kXXH3}) {
    RequireBodyFlipsFound(TinyShape(5, checksum));
  }
}

TEST_CASE("Flipped bits between aligned blocks are found",
          "[sst][carry][corruption]") {
  TableShape shape = TinyShape(5, rocksdb::kXXH3);
  shape.table.block_align = true;
  RequireBodyFlipsFound(shape);
}

TEST_CASE("Flipped bits of a dictionary and of compressed blocks are found",
          "[sst][carry][corruption]") {
  TableShape shape = TinyShape(5, rocksdb::kXXH3);
  shape.options.compression = rocksdb::kZSTD;
  shape.options.compression_opts.max_dict_bytes = 256;
  RequireBodyFlipsFound(shape);
}

// The one field that nothing guards; versions 2 to 5 read alike.
bool OnlyVersionDiffers(const SstTail& a, const SstTail& b) {
  constexpr size_t kVersionFromEnd = 12;
  std::string relabelled = a.bytes;
  relabelled.replace(relabelled.size() - kVersionFromEnd, 4,
                     b.bytes.substr(b.bytes.size() - kVersionFromEnd, 4));
  return relabelled == b.bytes && a.body_bytes == b.body_bytes &&
         a.format_version <= 5 && a.format_version >= 2;
}

TEST_CASE("RewriteSstTail refuses every flipped bit of a source file's tail",
          "[sst][carry][corruption]") {
  for (const uint32_t version : test::WritableVersions()) {
    for (const auto checksum : {rocksdb::kCRC32c, rocksdb::kxxHash,
                                rocksdb::kxxHash64, rocksdb::kXXH3}) {
      const std::string file =
          test::WriteDbFile(TinyShape(version, checksum));
      SstTail good;
      REQUIRE_OK(test::CarryBytes(file, &good));
      for (size_t bit = good.body_bytes * 8; bit < file.size() * 8; ++bit) {
        const std::string bad = FlipBit(file, bit);
        SstTail tail;
        const Status s = RewriteStatus(bad, &tail);
        if (s.ok() ? !OnlyVersionDiffers(tail, good)
                   : !s.IsCorruption() && !s.IsNotSupported()) {
          INFO("version " << version << " byte " << bit / 8 << " bit "
                          << bit % 8 << " of " << file.size() << " -> "
                          << s.ToString());
          REQUIRE(false);
        }
      }
    }
  }
}

TEST_CASE("CheckChunk refuses every flipped bit of a carried file's tail",
          "[sst][carry][corruption]") {
  for (const uint32_t version : test::WritableVersions()) {
    const TableShape shape = TinyShape(version, rocksdb::kCRC32c);
    const std::string file = test::Carried(test::WriteDbFile(shape));
    test::SstShape described;
    described.format_version = version;
    const ChunkExpectation expected = test::Expect(described, shape.entries);
    REQUIRE_OK(CheckChunk(SliceSource(file), expected, nullptr));
    SstTail tail;
    REQUIRE_OK(test::CarryBytes(file, &tail));
    for (size_t bit = tail.body_bytes * 8; bit < file.size() * 8; ++bit) {
      const std::string bad = FlipBit(file, bit);
      const Status s = CheckChunk(SliceSource(bad), expected, nullptr);
      if (!s.IsCorruption() && !s.IsNotSupported()) {
        INFO("version " << version << " byte " << bit / 8 << " bit " << bit % 8
                        << " of " << file.size() << " -> " << s.ToString());
        REQUIRE(false);
      }
    }
  }
}

TEST_CASE("RewriteSstTail refuses a file that is cut anywhere",
          "[sst][carry][corruption]") {
  const std::string file =
      test::WriteDbFile(TinyShape(5, rocksdb::kCRC32c));
  for (size_t n = 0; n < file.size(); ++n) {
    const Status s = CarryStatus(file.substr(0, n));
    INFO("cut at " << n << " -> " << s.ToString());
    REQUIRE((s.IsCorruption() || s.IsNotSupported()));
  }
}

// A file of hand-made blocks, one entry. What a test wants wrong it changes.
struct HandMade {
  uint32_t version = 5;
  KeyValues properties;        // beside the usual ones
  std::string before_footer;   // between properties and metaindex: a block
  std::string extra_name;      // of a block in the body
  std::string unnamed;         // a block in the body that nothing names
  int unnamed_at = 1;          // 0 before data, 1 behind, 2 behind the index

  std::string Make() const {
    RawSst file(version);
    const auto add_unnamed = [&](int at) {
      if (!unnamed.empty() && unnamed_at == at) {
        file.Add(unnamed);
      }
    };
    add_unnamed(0);
    const std::string key = test::InternalKey("k");
    const SstBlockHandle data = file.Add(PlainBlock({{key, "v"}}));
    SstBlockHandle extra;
    if (!extra_name.empty()) {
      extra = file.Add("an extra block");
    }
    add_unnamed(1);
    const SstBlockHandle index =
        file.Add(PlainBlock({{"k", EncodeHandle(data)}}));
    add_unnamed(2);
    const SstBlockHandle props = file.Add(
        test::RawProperties(1, 1, data.end(), properties));
    if (!before_footer.empty()) {
      file.Add(before_footer);
    }
    std::map<std::string, std::string> names = {
        {"rocksdb.properties", EncodeHandle(props)}};
    if (version >= 6) {
      names["rocksdb.index"] = EncodeHandle(index);
    }
    if (!extra_name.empty()) {
      names[extra_name] = EncodeHandle(extra);
    }
    return file.Finish(KeyValues(names.begin(), names.end()), index);
  }
};

std::string RefusalOf(const HandMade& made) {
  const Status s = CarryStatus(made.Make());
  INFO(s.ToString());
  REQUIRE(s.IsNotSupported());
  return MessageOf(s);
}

TEST_CASE("RewriteSstTail takes the plain hand-made file",
          "[sst][carry]") {
  for (const uint32_t version : {2u, 3u, 4u, 5u, 6u, 7u}) {
    HandMade made;
    made.version = version;
    INFO("version " << version);
    REQUIRE_OK(CarryStatus(made.Make()));
    made.properties = {{"app.own", "1"}, {"rocksdb.num.entries", "\x01"}};
    made.extra_name = "rocksdb.compression_dict";
    REQUIRE_OK(CarryStatus(made.Make()));
  }
}

TEST_CASE("RewriteSstTail names the reason why a file cannot be carried",
          "[sst][carry]") {
  HandMade made;
  made.version = 1;
  REQUIRE(RefusalOf(made) == "has format version 1");

  made = HandMade();
  made.properties = {{"rocksdb.foo", "1"}};
  REQUIRE(RefusalOf(made) == "holds an unknown property rocksdb.foo");
  made.properties = {{"rocksdb.embedded.blob.stats", "1"}};
  REQUIRE(RefusalOf(made) ==
          "holds an unknown property rocksdb.embedded.blob.stats");
  made.properties = {{"rocksdb.seqno.time.map", "1"}};
  REQUIRE(RefusalOf(made) ==
          "holds an unknown property rocksdb.seqno.time.map");
  made.properties = {{"rocksdb.key.largest.seqno", "\x07"}};
  REQUIRE(RefusalOf(made) == "holds sequence numbers above 0");
  made.properties = {{"rocksdb.key.largest.seqno", std::string(1, '\0')},
                     {"rocksdb.key.smallest.seqno", std::string(1, '\0')}};
  REQUIRE_OK(CarryStatus(made.Make()));
  made.properties = {{"rocksdb.external_sst_file.global_seqno",
                      std::string("\x05\0\0\0\0\0\0\0", 8)}};
  REQUIRE(RefusalOf(made) == "was ingested with sequence number 5");
  made.properties = {{"rocksdb.external_sst_file.version",
                      std::string("\x03\0\0\0", 4)}};
  REQUIRE(RefusalOf(made) == "was ingested as version 3");

  made = HandMade();
  made.extra_name = "rocksdb.user_defined_index.trie";
  REQUIRE(RefusalOf(made) ==
          "holds an unknown block rocksdb.user_defined_index.trie");
  made = HandMade();
  made.before_footer = "a block behind the properties";
  REQUIRE(RefusalOf(made) == "has other blocks behind its properties");
}

// Entries that share all but their last bytes with the first name, which is
// `name_bytes` long; the names sort above all of RocksDB's own.
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

// A file with `count` properties, or names in its metaindex, of that length.
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

TEST_CASE("A small block that means huge names is not believed",
          "[sst][carry][corruption]") {
  constexpr size_t kNameBytes = 64 << 10;
  REQUIRE_OK(CarryStatus(FileOfLongNames(false, kNameBytes, 10)));
  for (const bool in_metaindex : {false, true}) {
    const std::string file = FileOfLongNames(in_metaindex, kNameBytes, 1025);
    REQUIRE(file.size() < 100000);
    const Status s = CarryStatus(file);
    INFO(s.ToString());
    REQUIRE(s.IsCorruption());
    REQUIRE(s.ToString().find("names") != std::string::npos);
  }
  // Just readable, but not once no prefix is shared.
  const Status s = CarryStatus(FileOfLongNames(false, kNameBytes - 6, 1024));
  REQUIRE(MessageOf(s).starts_with("has a tail of "));
}

TEST_CASE("ForEachBodyBlock refuses bytes that no block covers",
          "[sst][carry]") {
  HandMade made;
  made.unnamed = "a block that nothing names";
  for (const int at : {0, 1, 2}) {
    made.unnamed_at = at;
    const std::string reason = RefusalOf(made);
    INFO(reason);
    REQUIRE(reason.starts_with("has bytes that no known block covers, from "));
  }
}

TEST_CASE("ForEachBodyBlock refuses more padding than alignment needs",
          "[sst][carry]") {
  for (const bool too_much : {false, true}) {
    RawSst file;
    const SstBlockHandle first =
        file.Add(PlainBlock({{test::InternalKey("a"), "1"}}));
    file.AddZeros(kMaxSstPaddingBytes + (too_much ? 1 : 0));
    const SstBlockHandle second =
        file.Add(PlainBlock({{test::InternalKey("b"), "2"}}));
    const SstBlockHandle index = file.Add(PlainBlock(
        {{"a", EncodeHandle(first)}, {"b", EncodeHandle(second)}}));
    const SstBlockHandle props =
        file.Add(test::RawProperties(2, 2, second.end()));
    const Status s = CarryStatus(file.Finish(
        {{"rocksdb.properties", EncodeHandle(props)}}, index));
    INFO(s.ToString());
    REQUIRE(s.ok() == !too_much);
    REQUIRE(s.IsNotSupported() == too_much);
  }
}

TEST_CASE("ForEachBodyBlock stops at the visitor's first failure",
          "[sst][carry]") {
  const std::string file = test::WriteDbFile(TinyShape(5, rocksdb::kXXH3));
  const SliceSource source(file);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  SstTail tail;
  REQUIRE_OK(RewriteSstTail(reader, &tail));
  size_t blocks = 0;
  REQUIRE_OK(ForEachBodyBlock(reader, tail, [&](const SstBlockHandle&) {
    ++blocks;
    return Status::OK();
  }));
  REQUIRE(blocks > 10);
  for (size_t stop = 1; stop <= blocks; ++stop) {
    size_t seen = 0;
    const Status s =
        ForEachBodyBlock(reader, tail, [&](const SstBlockHandle&) {
          return ++seen == stop ? Status::Aborted("enough") : Status::OK();
        });
    REQUIRE(s.IsAborted());
    REQUIRE(seen == stop);
  }
}

TEST_CASE("VerifySstBlockBytes refuses a block of another size or place",
          "[sst][carry][corruption]") {
  const std::string file = test::WriteDbFile(
      TinyShape(test::WritableVersions().back(), rocksdb::kXXH3));
  const SliceSource source(file);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  const SstBlockHandle handle = reader.index_handle();
  const Slice bytes(file.data() + handle.offset,
                    handle.size + kSstBlockTrailerBytes);
  REQUIRE_OK(VerifySstBlockBytes(reader.footer(), handle, bytes));
  for (const size_t n : {size_t{0}, size_t{4}, bytes.size() - 1}) {
    REQUIRE(VerifySstBlockBytes(reader.footer(), handle,
                                Slice(bytes.data(), n))
                .IsCorruption());
  }
  const SstBlockHandle moved = {handle.offset + 1, handle.size};
  REQUIRE(VerifySstBlockBytes(reader.footer(), moved, bytes).IsCorruption() ==
          (reader.footer().format_version >= 6));
}

}  // namespace
}  // namespace sstferry
