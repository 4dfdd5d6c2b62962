// Tests the sizes and formats of the chunks that arrive.
#include <filesystem>

#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/table.h"
#include "rocksdb/table_properties.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::chunks_test {
namespace {

using rocksdb::BlockBasedTableOptions;

rocksdb::ColumnFamilyOptions Uncompressed() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  return options;
}

rocksdb::ColumnFamilyOptions WithFormat(uint32_t version) {
  BlockBasedTableOptions table;
  table.format_version = version;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

SstReader& OpenSst(const std::string& path,
                   std::unique_ptr<FileSource>* source, SstReader* reader) {
  REQUIRE_OK(FileSource::Open(rocksdb::FileSystem::Default().get(), path,
                              source));
  REQUIRE_OK(reader->Open(source->get()));
  return *reader;
}

std::set<uint32_t> FormatsIn(const std::string& directory) {
  std::set<uint32_t> versions;
  for (const std::string& path : PathsWith(directory, ".sst")) {
    std::unique_ptr<FileSource> source;
    SstReader reader;
    versions.insert(OpenSst(path, &source, &reader).footer().format_version);
  }
  return versions;
}

}  // namespace

TEST_CASE("A chunk overruns its size by at most one entry",
          "[transfer][exact]") {
  // The source's files are compressed to a small part of their data. So a part,
  // which is cut by file bytes, holds many chunks.
  const ScratchDir dir;
  constexpr uint64_t kChunkBytes = 100'000;
  constexpr uint64_t kLargestEntry = 9 + 30'000;
  rocksdb::ColumnFamilyOptions packed = Quiet();
  packed.compression = rocksdb::kZSTD;
  {
    OpenDb db(dir / "source", OneFamily(packed));
    for (int i = 0; i < 1000; ++i) {
      db.Put(NumberedKey(i), std::string((i % 30 + 1) * 1000, 'v'));
    }
    db.Flush();
  }
  { OpenDb db(dir / "source", OneFamily(Uncompressed())); }
  PullOptions options;
  options.chunk_bytes = kChunkBytes;
  options.lanes = 2;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  REQUIRE_OK(moved.status);
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE(moved.summary.chunks > 20 * moved.summary.parts);
  uint64_t full = 0;
  for (const std::string& path : PathsWith(dir / "target", ".sst")) {
    std::unique_ptr<FileSource> source;
    SstReader reader;
    const uint64_t data =
        OpenSst(path, &source, &reader).properties().data_bytes;
    // `data` also includes restart points and the trailers of blocks.
    INFO(path << " holds " << data << " bytes of data");
    REQUIRE(data < kChunkBytes + kLargestEntry + 2000);
    full += data >= kChunkBytes;
  }
  REQUIRE(full + moved.summary.parts >= moved.summary.chunks);
}

TEST_CASE("Entries larger than a chunk take one chunk each",
          "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Uncompressed()));
    for (int i = 0; i < 20; ++i) {
      db.Put(NumberedKey(i), RandomBytes(300'000, i));
    }
    db.Flush();
  }
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.chunks == 20);
  Expectation expected;
  expected.families = OneFamily(Uncompressed());
  ExpectEqual(dir / "source", dir / "target", expected);
}

TEST_CASE("The format version is never newer than the source's files",
          "[transfer][exact]") {
  for (const uint32_t version : {2u, 4u, kMaxTableFormatVersion}) {
    const ScratchDir dir;
    Families families = {{"default", WithFormat(version)}};
    {
      OpenDb db(dir / "source", families);
      for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "value");
      db.Flush();
    }
    const Ferried moved = Ferry(dir / "source", dir / "target");
    REQUIRE_OK(moved.status);
    REQUIRE(FormatsIn(dir / "target") == std::set<uint32_t>{version});
    Expectation expected;
    expected.families = families;
    // OPTIONS stay the source's, its format_version included.
    ExpectEqual(dir / "source", dir / "target", expected);
  }
}

TEST_CASE("Data only in the WAL takes the format version that OPTIONS name",
          "[transfer][exact]") {
  const ScratchDir dir;
  rocksdb::DBOptions options;
  options.avoid_flush_during_shutdown = true;
  {
    OpenDb db(dir / "source", OneFamily(WithFormat(3)), options);
    for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "value");
  }
  REQUIRE_OK(Ferry(dir / "source", dir / "target").status);
  REQUIRE(FormatsIn(dir / "target") == std::set<uint32_t>{3});
}

TEST_CASE("Names, sizes and contents of the source stay as they were",
          "[transfer][exact]") {
  const ScratchDir dir;
  rocksdb::DBOptions options;
  options.avoid_flush_during_shutdown = true;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()), options);
    for (int i = 0; i < 1000; ++i) db.Put(NumberedKey(i), "flushed");
    db.Flush();
    for (int i = 0; i < 1000; ++i) db.Put(NumberedKey(i), "in the WAL");
  }
  const std::string before = Fingerprint(dir / "source");
  PullOptions pull;
  pull.verify = true;
  REQUIRE_OK(Ferry(dir / "source", dir / "one", pull).status);
  pull.snapshot_dir = dir / "snapshots";
  std::filesystem::create_directory(pull.snapshot_dir);
  REQUIRE_OK(Ferry(dir / "source", dir / "two", pull).status);
  REQUIRE(std::filesystem::is_empty(pull.snapshot_dir));
  REQUIRE(Fingerprint(dir / "source") == before);
}

}  // namespace sstferry::test::chunks_test
