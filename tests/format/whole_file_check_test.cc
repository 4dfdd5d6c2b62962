// Checks complete files of a clone by their own checksums: every flipped bit is
// found.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "format/file_name.h"
#include "format/rocksdb/blob_check.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/file_identity.h"
#include "format/rocksdb/manifest_append.h"
#include "format/rocksdb/manifest_reader.h"
#include "format/rocksdb/sst_file_check.h"
#include "format/rocksdb/sst_reader.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/sst_files.h"
#include "tests/support/test_db.h"

namespace sstferry::test::whole_file_check_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::Slice;
using rocksdb::Status;

SstShape PartitionedShape() {
  SstShape shape;
  shape.index = BlockBasedTableOptions::kTwoLevelIndexSearch;
  shape.filter = 2;
  shape.compression = rocksdb::kZSTD;
  shape.dict_bytes = 2000;
  return shape;
}

SstShape AlignedShape() {
  SstShape shape;
  shape.align = true;
  shape.filter = 1;
  shape.checksum = rocksdb::kXXH3;
  return shape;
}

TEST_CASE("No flipped bit of a table passes the check of the whole file",
          "[format][clone][corruption]") {
  const auto env = NewMemoryEnv();
  for (const SstShape& shape :
       {SstShape(), PartitionedShape(), AlignedShape()}) {
    INFO(shape.Name());
    const std::string file = WriteSst(env.get(), shape, SampleEntries(300));
    SstFileFacts facts;
    REQUIRE_OK(CheckSstFile(SliceSource(file), {}, &facts));
    REQUIRE_FALSE(facts.unchecked);
    REQUIRE(facts.format_version == shape.format_version);
    std::string bad = file;
    // RocksDB may overwrite this sequence number without a new checksum. So the
    // checksum does not cover it.
    const std::string stamp = "global_seqno";
    const size_t stamped = file.find(stamp) + stamp.size();
    for (size_t at = 0; at < file.size(); ++at) {
      // Before version 6, a footer has no checksum. A flipped bit may turn its
      // version into another valid one.
      const bool is_version = at + 12 >= file.size() && at + 8 < file.size();
      if ((at >= stamped && at < stamped + 8) || is_version) {
        continue;
      }
      bad[at] ^= static_cast<char>(1u << (at % 8));
      const Status status = CheckSstFile(SliceSource(bad), {}, &facts);
      // Padding has no checksum. If it is not zero, the file counts as
      // unchecked.
      if (status.ok() && !facts.unchecked) {
        FAIL("byte " << at << " of " << file.size());
      }
      bad[at] = file[at];
    }
  }
}

TEST_CASE(
    "A table without block checksums is unchecked, a truncated one is bad",
    "[format][clone][corruption]") {
  const auto env = NewMemoryEnv();
  SstShape shape;
  shape.checksum = rocksdb::kNoChecksum;
  const std::string file = WriteSst(env.get(), shape, SampleEntries(100));
  SstFileFacts facts;
  REQUIRE_OK(CheckSstFile(SliceSource(file), {}, &facts));
  REQUIRE(facts.unchecked);
  for (const size_t bytes : {size_t{0}, size_t{10}, file.size() - 1}) {
    REQUIRE(CheckSstFile(SliceSource(Slice(file.data(), bytes)), {}, &facts)
                .IsCorruption());
  }
}

std::string MakeBlobFile(const ScratchDir& dir) {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.enable_blob_files = true;
  options.min_blob_size = 10;
  OpenDb db(dir / "db", OneFamily(options));
  for (int i = 0; i < 20; ++i) db.Put(NumberedKey(i), RandomBytes(100, i));
  db.Put("large", RandomBytes(600'000, 7));
  db.Flush();
  return FileBytes(PathsWith(dir / "db", ".blob").front());
}

TEST_CASE("No flipped bit of a blob file passes its check",
          "[format][clone][corruption]") {
  const ScratchDir dir;
  const std::string file = MakeBlobFile(dir);
  uint64_t count = 0;
  REQUIRE_OK(CheckBlobFile(SliceSource(file), &count));
  REQUIRE(count == 21);
  std::string bad = file;
  for (size_t at = 0; at < file.size();
       at += at < 4000 || at + 100 > file.size() ? 1 : 9973) {
    // The header has no checksum after its magic.
    if (at >= 4 && at < 30) {
      continue;
    }
    bad[at] ^= static_cast<char>(1u << (at % 8));
    INFO("byte " << at);
    REQUIRE(CheckBlobFile(SliceSource(bad), &count).IsCorruption());
    bad[at] = file[at];
  }
  for (const size_t bytes : {size_t{0}, size_t{61}, file.size() - 1}) {
    REQUIRE(CheckBlobFile(SliceSource(Slice(file.data(), bytes)), &count)
                .IsCorruption());
  }
}

TEST_CASE("A database id that is appended to a MANIFEST takes effect",
          "[format][clone]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "db", OneFamily(Quiet()));
    db.Put("key", "value");
    db.Flush();
  }
  const std::string before = ManifestBytes(dir / "db");
  // The record is appended at every distance from the end of a block.
  for (size_t padding = 0; padding < 40; ++padding) {
    const uint64_t at = 32768 - padding;
    std::string appended;
    AppendDatabaseId(at, "an id of its own", &appended);
    const std::string first = PhysicalRecord(1, std::string(at - 7, 'x'), 0);
    const Followed followed =
        Follow(first + appended, LogKind::kManifest);
    INFO(padding);
    REQUIRE(followed.records.size() == 2);
    REQUIRE_FALSE(followed.stopped_inside);
    ManifestReader reader;
    REQUIRE_OK(reader.Add(followed.records.back()));
    REQUIRE(reader.state().database_id == "an id of its own");
  }
  std::string whole = before;
  AppendDatabaseId(before.size(), "an id of its own", &whole);
  ManifestReader reader;
  for (const std::string& record :
       Follow(whole, LogKind::kManifest).records) {
    REQUIRE_OK(reader.Add(record));
  }
  REQUIRE(reader.state().database_id == "an id of its own");
  REQUIRE(reader.state().families.at(0).files.size() == 1);
}

TEST_CASE("A family whose drop is appended to a MANIFEST is missing",
          "[format][clone]") {
  const ScratchDir dir;
  {
    Families families = OneFamily(Quiet());
    families.emplace_back("dropped", Quiet());
    families.emplace_back("kept", Quiet());
    OpenDb db(dir / "db", families);
    for (const char* family : {"default", "dropped", "kept"}) {
      db.Put("key", "value", family);
    }
    db.Flush();
  }
  std::string whole = ManifestBytes(dir / "db");
  AppendDroppedFamily(whole.size(), 1, &whole);
  ManifestReader reader;
  for (const std::string& record :
       Follow(whole, LogKind::kManifest).records) {
    REQUIRE_OK(reader.Add(record));
  }
  REQUIRE(reader.state().families.size() == 2);
  REQUIRE(reader.state().families.at(2).name == "kept");
}

TEST_CASE("RocksDB's unique id of a table is derived from its properties",
          "[format]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "db", OneFamily(Quiet()));
    for (int table = 0; table < 3; ++table) {
      db.Put("key", "value");
      db.Flush();
    }
  }
  ManifestReader reader;
  for (const std::string& record :
       Follow(ManifestBytes(dir / "db"), LogKind::kManifest).records) {
    REQUIRE_OK(reader.Add(record));
  }
  int tables = 0;
  for (const auto& [number, file] : reader.state().families.at(0).files) {
    REQUIRE(file.has_unique_id);
    std::ifstream in(dir / "db" + ("/" + NumberedName(number, ".sst")),
                     std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const SliceSource source(bytes);
    SstReader table;
    REQUIRE_OK(table.Open(&source));
    const SstProperties& properties = table.properties();
    TableOrigin origin{properties.db_id, properties.db_session_id,
                       properties.original_file_number, {}};
    REQUIRE(MayBeFile(file, origin));
    ++origin.number;
    REQUIRE_FALSE(MayBeFile(file, origin));
    --origin.number;
    origin.database_id += "x";
    REQUIRE_FALSE(MayBeFile(file, origin));
    origin.database_id.pop_back();
    origin.session_id.back() = origin.session_id.back() == 'A' ? 'B' : 'A';
    REQUIRE_FALSE(MayBeFile(file, origin));
    ++tables;
  }
  REQUIRE(tables == 3);
}

TEST_CASE("Tables whose removal is appended to a MANIFEST are missing",
          "[format][archive]") {
  const ScratchDir dir;
  {
    Families families = OneFamily(Quiet());
    families.emplace_back("other", Quiet());
    OpenDb db(dir / "db", families);
    for (int i = 0; i < 5; ++i) {
      db.Put(NumberedKey(i), "value");
      db.Put(NumberedKey(i), "value", "other");
      db.Flush();
    }
  }
  std::string whole = ManifestBytes(dir / "db");
  const auto read = [&whole] {
    ManifestReader reader;
    for (const std::string& record :
         Follow(whole, LogKind::kManifest).records) {
      REQUIRE_OK(reader.Add(record));
    }
    return reader.state();
  };
  std::vector<std::pair<int, uint64_t>> tables;
  const ManifestState before = read();
  for (const auto& [number, file] : before.families.at(1).files) {
    tables.emplace_back(file.level, number);
  }
  REQUIRE(tables.size() == 5);
  tables.pop_back();
  AppendRemovedTables(whole.size(), 1, tables, &whole);
  REQUIRE(read().families.at(0).files.size() == 5);
  REQUIRE(read().families.at(1).files.size() == 1);
}

}  // namespace
}  // namespace sstferry::test::whole_file_check_test
