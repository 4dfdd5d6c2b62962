// tests/golden_errors/sst_*: bad table files that CheckChunk() must refuse,
// each with the reason and the error. Each is a changed version of one sound
// table with the keys a, b and c in two data blocks, which the check expects.
// To write the files again after a deliberate change: test_format "[.rewrite]"
#include <functional>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/rocksdb/sst_check.h"
#include "tests/format/golden_files.h"
#include "tests/support/catch.h"
#include "tests/support/sst_files.h"

namespace sstferry::golden_sst_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using test::InternalKey;
using test::KeyValues;

using Blocks = std::vector<KeyValues>;

Blocks Sound() {
  return {{{InternalKey("a"), "1"}, {InternalKey("b"), "2"}},
          {{InternalKey("c"), "3"}}};
}

std::string SoundFile() { return test::RawTable(Sound(), {"b", "c"}); }

ChunkExpectation Expected() {
  ChunkExpectation expected;
  expected.smallest = "a";
  expected.largest = "c";
  expected.num_entries = 3;
  expected.format_version = 5;
  expected.order = [](const Slice& a, const Slice& b) { return a.compare(b); };
  return expected;
}

struct BadTable {
  const char* name;
  const char* why;
  std::string file;
};

// Returns the sound table with one entry's key changed.
std::string WithKey(size_t block, size_t entry, const std::string& key) {
  Blocks blocks = Sound();
  blocks[block][entry].first = key;
  return test::RawTable(blocks, {"b", "c"});
}

std::string WithProperty(const std::string& name, const std::string& value) {
  return test::RawTable(Sound(), {"b", "c"}, 5, {{name, value}});
}

// Returns the sound file with one byte changed. The checksum stays the old one.
std::string WithByte(size_t at, char byte) {
  std::string file = SoundFile();
  file[at] = byte;
  return file;
}

// Returns a table with one data block that has the given bytes.
std::string WithBlock(const std::string& block, char compression = 0) {
  test::RawSst raw;
  const SstBlockHandle data = raw.Add(block, compression);
  const SstBlockHandle index =
      raw.Add(test::PlainBlock({{"c", test::EncodeHandle(data)}}));
  const SstBlockHandle properties =
      raw.Add(test::RawProperties(3, 1, data.end()));
  return raw.Finish({{"rocksdb.properties", test::EncodeHandle(properties)}},
                    index);
}

// Returns a table of the sound blocks with `gap` between them. `change` may
// replace the handles that the index contains.
std::string WithHandles(
    const std::function<void(SstBlockHandle*, SstBlockHandle*)>& change,
    const std::string& gap = "") {
  test::RawSst raw;
  SstBlockHandle first = raw.Add(test::PlainBlock(Sound()[0]));
  if (!gap.empty()) {
    static_cast<void>(raw.Add(gap));
  }
  SstBlockHandle second = raw.Add(test::PlainBlock(Sound()[1]));
  const uint64_t data_end = second.end();
  change(&first, &second);
  const SstBlockHandle index =
      raw.Add(test::PlainBlock({{"b", test::EncodeHandle(first)},
                                {"c", test::EncodeHandle(second)}}));
  const SstBlockHandle properties =
      raw.Add(test::RawProperties(3, 2, data_end));
  return raw.Finish({{"rocksdb.properties", test::EncodeHandle(properties)}},
                    index);
}

std::vector<BadTable> BadContainers() {
  const std::string sound = SoundFile();
  const size_t end = sound.size();
  std::string no_properties;
  {
    test::RawSst raw;
    const SstBlockHandle data = raw.Add(test::PlainBlock(Sound()[0]));
    const SstBlockHandle index =
        raw.Add(test::PlainBlock({{"b", test::EncodeHandle(data)}}));
    no_properties = raw.Finish({}, index);
  }
  return {
      {"short", "ends inside the footer", sound.substr(end - 30)},
      {"magic", "the last byte is not that of a table", WithByte(end - 1, 0)},
      {"version_0", "there never was a format version 0",
       WithByte(end - 12, 0)},
      {"newer_version", "made by a newer RocksDB", WithByte(end - 12, 99)},
      {"checksum_type", "there is no checksum type 9", WithByte(end - 53, 9)},
      {"footer_handle", "the metaindex begins behind the end of the file",
       WithByte(end - 51, '\x7f')},
      {"cut", "the first byte is missing, so no block is where handles say",
       sound.substr(1)},
      {"no_properties", "has no properties block", no_properties},
      {"data_bit", "one bit of the first data block is flipped",
       WithByte(3, static_cast<char>(sound[3] ^ 1))},
      {"global_sequence", "RocksDB would take another sequence for all keys",
       WithProperty("rocksdb.external_sst_file.global_seqno",
                    std::string("\x05\0\0\0\0\0\0\0", 8))},
      {"external_version", "was not made to be ingested",
       WithProperty("rocksdb.external_sst_file.version",
                    std::string("\x01\0\0\0", 4))},
      {"entry_count", "holds another number of entries than announced",
       WithProperty("rocksdb.num.entries", "\x04")},
      {"deletions", "tells of deletions, of which a chunk has none",
       WithProperty("rocksdb.deleted.keys", "\x01")},
  };
}

std::vector<BadTable> BadBlocks() {
  std::string overlong = test::PlainBlock(Sound()[0]);
  overlong[1] = '\x7f';
  std::string shared = test::PlainBlock(Sound()[0]);
  shared[0] = '\x05';
  std::string restarts = test::PlainBlock(Sound()[0]);
  restarts[restarts.size() - 4] = '\x7f';
  return {
      {"key_short", "an internal key of 3 bytes, on which RocksDB aborts",
       WithKey(0, 1, "abc")},
      {"key_sequence", "a sequence above 0 would hide what is written later",
       WithKey(0, 1, InternalKey("b", 1, 7))},
      {"key_type", "a deletion where only values may be",
       WithKey(0, 1, InternalKey("b", 0))},
      {"key_order", "keys of the first block descend",
       WithKey(0, 0, InternalKey("bb"))},
      {"key_range", "the last key is not the one announced",
       WithKey(1, 0, InternalKey("bz"))},
      {"index_order", "index keys do not ascend",
       test::RawTable(Sound(), {"c", "c"})},
      {"index_low", "an index key below a key of its block",
       test::RawTable(Sound(), {"a", "c"})},
      {"block_gap", "bytes between two data blocks belong to none",
       WithHandles([](SstBlockHandle*, SstBlockHandle*) {}, "gap")},
      {"block_short", "a handle one byte shorter than its block",
       WithHandles([](SstBlockHandle* first, SstBlockHandle*) {
         first->size -= 1;
       })},
      {"block_twice", "two index entries name the same block",
       WithHandles([](SstBlockHandle* first, SstBlockHandle* second) {
         *second = *first;
       })},
      {"block_outside", "a data block behind the end of the file",
       WithHandles([](SstBlockHandle*, SstBlockHandle* second) {
         second->size = 1u << 20;
       })},
      {"entry_overlong", "a key reaches behind the end of its block",
       WithBlock(overlong)},
      {"entry_shared", "the first key shares bytes with one before it",
       WithBlock(shared)},
      {"restart_count", "more restarts than the block has room for",
       WithBlock(restarts)},
      {"compression", "there is no compression type 99",
       WithBlock(test::PlainBlock(Sound()[0]), 99)},
      {"snappy", "says snappy and is none",
       WithBlock(test::PlainBlock(Sound()[0]), 1)},
      {"empty_block", "a data block without entries",
       WithBlock(test::PlainBlock({}))},
  };
}

std::vector<BadTable> BadTables() {
  std::vector<BadTable> all = BadContainers();
  for (BadTable& table : BadBlocks()) {
    all.push_back(std::move(table));
  }
  return all;
}

std::filesystem::path PathOf(const BadTable& table) {
  return TestsFolder() / "golden_errors" /
         ("sst_" + std::string(table.name) + ".hex");
}

Status Check(const std::string& file) {
  return CheckChunk(SliceSource(file), Expected(), nullptr);
}

}  // namespace

TEST_CASE("Bad golden tables give the error in their note",
          "[format][sst][corruption]") {
  REQUIRE_OK(Check(SoundFile()));
  for (const BadTable& table : BadTables()) {
    INFO(table.name);
    Golden golden = ReadGolden(PathOf(table));
    REQUIRE(golden.notes["kind"] == "sst");
    REQUIRE(golden.notes["why"] == table.why);
    REQUIRE(ToHex(golden.bytes) == ToHex(table.file));
    const Status status = Check(golden.bytes);
    REQUIRE(CodeOf(status) == golden.notes["status"]);
    REQUIRE(MessageOf(status) == golden.notes["error"]);
  }
}

TEST_CASE("The golden bad tables are written again", "[.rewrite]") {
  for (const BadTable& table : BadTables()) {
    INFO(table.name);
    const Status status = Check(table.file);
    REQUIRE_FALSE(status.ok());
    WriteText(PathOf(table),
              "# kind: sst\n# why: " + std::string(table.why) +
                  "\n# status: " + CodeOf(status) +
                  "\n# error: " + MessageOf(status) + "\n" +
                  Wrapped(ToHex(Slice(table.file))));
  }
}

}  // namespace sstferry::golden_sst_test
