// Deltas: the deletions that CheckChunk() accepts.
#include "format/rocksdb/sst_check.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/sst_files.h"

namespace sstferry::sst_check_delta_test {
namespace {

using rocksdb::Status;
using test::InternalKey;

constexpr uint8_t kDeletion = 0;
constexpr uint8_t kRangeDeletion = 15;

// Entries in key order. An empty value means a deletion.
struct Delta {
  test::KeyValues entries;
  test::KeyValues cleared;  // begin and end of each range deletion

  std::string Write(const test::SstShape& shape) const {
    const std::unique_ptr<rocksdb::Env> env = test::NewMemoryEnv();
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(),
                                  shape.ToOptions(env.get()));
    REQUIRE_OK(writer.Open("/f.sst"));
    for (const auto& [key, value] : entries) {
      REQUIRE_OK(value.empty() ? writer.Delete(key) : writer.Put(key, value));
    }
    for (const auto& [begin, end] : cleared) {
      REQUIRE_OK(writer.DeleteRange(begin, end));
    }
    REQUIRE_OK(writer.Finish());
    return test::ReadWhole(env.get(), "/f.sst");
  }
  ChunkExpectation Expected(const test::SstShape& shape) const {
    ChunkExpectation expected = test::Expect(shape, entries);
    expected.is_delta = true;
    expected.num_entries = 0;
    for (const auto& entry : entries) {
      expected.num_entries += entry.second.empty() ? 0 : 1;
    }
    return expected;
  }
};

void RequireAccepted(const std::string& file, ChunkExpectation expected) {
  for (const bool all_blocks : {false, true}) {
    expected.all_blocks = all_blocks;
    REQUIRE_OK(CheckChunk(SliceSource(file), expected, nullptr));
  }
}

void RequireRefused(const std::string& file, ChunkExpectation expected,
                    const std::string& why) {
  for (const bool all_blocks : {false, true}) {
    expected.all_blocks = all_blocks;
    const Status s = CheckChunk(SliceSource(file), expected, nullptr);
    INFO(s.ToString());
    REQUIRE(s.IsCorruption());
    REQUIRE(s.ToString().find(why) != std::string::npos);
  }
}

TEST_CASE("CheckChunk accepts deltas in every table shape", "[format][sst]") {
  test::KeyValues many = test::SampleEntries(300);
  for (size_t i = 0; i < many.size(); i += 3) {
    many[i].second.clear();
  }
  const std::vector<Delta> deltas = {
      {many, {}},
      {many, {{many[0].first, many[99].first},
              {many[102].first, many[297].first}}},
      {{{"", ""}, {"k", ""}}, {{"", "k"}}},  // the empty key is a key
      {{{"k", ""}}, {}},
      {{{"a", ""}, {"m", ""}, {"x", "1"}}, {{"a", "m"}}},
  };
  for (const uint32_t version : test::WritableVersions()) {
    for (const auto index :
         {rocksdb::BlockBasedTableOptions::kBinarySearch,
          rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch,
          rocksdb::BlockBasedTableOptions::kBinarySearchWithFirstKey}) {
      test::SstShape shape;
      shape.format_version = version;
      shape.index = index;
      for (size_t i = 0; i < deltas.size(); ++i) {
        INFO(shape.Name() << " delta " << i);
        RequireAccepted(deltas[i].Write(shape), deltas[i].Expected(shape));
      }
    }
  }
}

TEST_CASE("CheckChunk accepts deletions only in deltas", "[format][sst]") {
  const test::SstShape shape;
  const Delta single = {{{"a", "1"}, {"b", ""}, {"c", "2"}}, {}};
  ChunkExpectation expected = single.Expected(shape);
  RequireAccepted(single.Write(shape), expected);
  expected.is_delta = false;
  RequireRefused(single.Write(shape), expected, "expected 2, found 3");
  const Delta cleared = {{{"a", ""}, {"b", ""}}, {{"a", "b"}}};
  expected = cleared.Expected(shape);
  expected.is_delta = false;
  RequireRefused(cleared.Write(shape), expected, "entries: expected 0");
}

TEST_CASE("CheckChunk refuses range deletions that reach further than the "
          "delta's own deletions",
          "[format][sst]") {
  const test::SstShape shape;
  const auto refused = [&](const Delta& delta, const std::string& why) {
    RequireRefused(delta.Write(shape), delta.Expected(shape), why);
  };
  const test::KeyValues entries = {{"b", ""}, {"f", ""}, {"k", "1"}};
  refused({entries, {{"a", "f"}}}, "range deletion 0: expected one");
  refused({entries, {{"b", "l"}}}, "range deletion 0: expected one");
  // Each range deletion needs two point deletions of its own, at its bounds.
  refused({{{"b", "1"}, {"f", ""}, {"k", "1"}}, {{"b", "f"}}},
          "range deletions: expected 0, found 1");
  refused({{{"b", ""}, {"f", ""}, {"h", ""}, {"k", "1"}},
           {{"b", "f"}, {"f", "h"}}},
          "range deletions: expected 0, found 2");
  const test::KeyValues four = {{"b", ""}, {"d", ""}, {"f", ""}, {"h", ""}};
  RequireAccepted(Delta{four, {{"b", "d"}, {"f", "h"}}}.Write(shape),
                  Delta{four, {}}.Expected(shape));
  refused({four, {{"b", "d"}, {"d", "h"}}}, "range deletion 1: expected one");
  refused({four, {{"f", "h"}, {"b", "d"}}}, "range deletion 1: expected one");
}

// A table built from raw blocks, for errors that SstFileWriter cannot write.
struct RawDelta {
  std::vector<test::KeyValues> blocks = {{{InternalKey("c", kDeletion), ""}},
                                         {{InternalKey("d"), "2"}},
                                         {{InternalKey("k", kDeletion), ""}}};
  std::vector<std::string> separators = {"c", "d", "k"};
  uint8_t deletions = 3;
  test::KeyValues part = {{InternalKey("c", kRangeDeletion), "k"}};

  std::string File() const {
    return test::RawTable(
        blocks, separators, 5,
        {{"rocksdb.deleted.keys", std::string(1, deletions)}}, part);
  }
  static ChunkExpectation Expected() {
    ChunkExpectation expected =
        Delta{{{"c", ""}, {"d", "2"}, {"k", ""}}, {}}.Expected({});
    expected.key_bytes.reset();
    expected.comparator.clear();
    return expected;
  }
};

TEST_CASE("CheckChunk refuses deltas that only a hostile peer writes",
          "[format][sst]") {
  const auto refused = [](auto change, const std::string& why) {
    RawDelta delta;
    change(&delta);
    RequireRefused(delta.File(), RawDelta::Expected(), why);
  };
  RequireAccepted(RawDelta().File(), RawDelta::Expected());
  refused([](RawDelta* d) { d->part[0].second = "c"; }, "range deletion 0");
  refused([](RawDelta* d) { d->part[0].second = "b"; }, "range deletion 0");
  refused([](RawDelta* d) { d->part[0].first = InternalKey("c", 15, 1); },
          "range deletion 0");
  refused([](RawDelta* d) { d->part[0].first = InternalKey("c", 1); },
          "range deletion 0");
  refused([](RawDelta* d) { d->part[0].first = "c"; }, "range deletion 0");
  refused([](RawDelta* d) { d->blocks[0][0].first = InternalKey("c", 7); },
          "sequence 0 and a value's type");
  refused([](RawDelta* d) { d->blocks[0][0].first = InternalKey("b", 0); },
          "first key");
  refused(
      [](RawDelta* d) {
        d->blocks[2][0].first = InternalKey("l", 0);
        d->separators[2] = "l";
      },
      "last key");
}

TEST_CASE("CheckChunk counts range deletions in their block",
          "[format][sst]") {
  RawDelta delta;
  const std::string file =
      test::RawTable(delta.blocks, delta.separators, 5,
                     {{"rocksdb.deleted.keys", "\6"},
                      {"rocksdb.num.entries", "\7"},
                      {"rocksdb.num.range-deletions", "\2"}},
                     delta.part);
  RequireRefused(file, RawDelta::Expected(),
                 "range deletions in their block: expected 2, found 1");
}

}  // namespace
}  // namespace sstferry::sst_check_delta_test
