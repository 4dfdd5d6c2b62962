#include "format/rocksdb/sst_reader.h"

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table_properties.h"
#include "tests/support/catch.h"
#include "tests/support/sst_describe.h"
#include "tests/support/sst_files.h"

namespace sstferry::sst_reader_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::Slice;
using rocksdb::Status;

void RequireSameProperties(const SstProperties& ours,
                           const rocksdb::TableProperties& theirs) {
  REQUIRE(ours.num_entries == theirs.num_entries);
  REQUIRE(ours.num_deletions == theirs.num_deletions);
  REQUIRE(ours.num_merge_operands == theirs.num_merge_operands);
  REQUIRE(ours.num_range_deletions == theirs.num_range_deletions);
  REQUIRE(ours.num_data_blocks == theirs.num_data_blocks);
  REQUIRE(ours.raw_key_bytes == theirs.raw_key_size);
  REQUIRE(ours.data_bytes == theirs.data_size);
  REQUIRE(ours.index_key_is_user_key == theirs.index_key_is_user_key);
  REQUIRE(ours.index_value_is_delta_encoded ==
          theirs.index_value_is_delta_encoded);
  REQUIRE(ours.original_file_number == theirs.orig_file_number);
  REQUIRE(ours.comparator == theirs.comparator_name);
  REQUIRE(ours.compression == theirs.compression_name);
  REQUIRE(ours.compression_options == theirs.compression_options);
  REQUIRE(ours.db_id == theirs.db_id);
  REQUIRE(ours.db_session_id == theirs.db_session_id);
}

// Returns all entries that our reader finds, with internal keys.
test::KeyValues ReadAll(const SstReader& reader) {
  test::KeyValues entries;
  REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& index) {
    const Status s = reader.ForEachEntry(
        index.handle, [&](const Slice& key, const Slice& value) {
          REQUIRE(index.separator.compare(
                      Slice(key.data(), key.size() - 8)) >= 0);
          entries.emplace_back(key.ToString(), value.ToString());
          return Status::OK();
        });
    return s;
  }));
  return entries;
}

void RequireReadsLikeRocksDb(rocksdb::Env* env, const test::SstShape& shape,
                             const test::KeyValues& entries) {
  const std::string bytes = test::WriteSst(env, shape, entries);
  const SliceSource source(bytes);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  rocksdb::SstFileReader theirs(shape.ToOptions(env));
  REQUIRE_OK(theirs.Open("/f.sst"));
  RequireSameProperties(reader.properties(), *theirs.GetTableProperties());
  REQUIRE(reader.footer().format_version == shape.format_version);
  REQUIRE(static_cast<int>(reader.footer().checksum) == shape.checksum);
  REQUIRE(static_cast<int>(reader.properties().index_type) == shape.index);

  const test::KeyValues ours = ReadAll(reader);
  REQUIRE(ours.size() == entries.size());
  rocksdb::ReadOptions read_options;
  read_options.total_order_seek = true;
  std::unique_ptr<rocksdb::Iterator> it(theirs.NewIterator(read_options));
  size_t i = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++i) {
    REQUIRE(ours[i].first == test::InternalKey(it->key().ToString()));
    REQUIRE(Slice(ours[i].second) == it->value());
  }
  REQUIRE_OK(it->status());
  REQUIRE(i == entries.size());
  std::string first;
  std::string last;
  REQUIRE_OK(ReadBoundKeys(reader, &first, &last));
  REQUIRE(first == ours.front().first);
  REQUIRE(last == ours.back().first);

  ChunkExpectation expected = test::Expect(shape, entries);
  ChunkFacts facts;
  REQUIRE_OK(CheckChunk(source, expected, &facts));
  REQUIRE(facts.num_entries == entries.size());
  REQUIRE(facts.file_bytes == bytes.size());
  REQUIRE(facts.original_file_number ==
          theirs.GetTableProperties()->orig_file_number);
  expected.all_blocks = true;
  REQUIRE_OK(CheckChunk(source, expected, nullptr));
}

TEST_CASE("SstReader and CheckChunk agree with RocksDB on every table shape",
          "[format][sst]") {
  const auto env = test::NewMemoryEnv();
  const test::KeyValues entries = test::SampleEntries(150);
  std::vector<std::pair<rocksdb::CompressionType, uint32_t>> compressions;
  for (const rocksdb::CompressionType type :
       rocksdb::GetSupportedCompressions()) {
    compressions.emplace_back(type, 0);
    compressions.emplace_back(type, 4096);
  }
  REQUIRE(compressions.size() >= 10);
  unsigned turn = 0;
  for (const uint32_t version : test::WritableVersions()) {
    for (const auto& [compression, dict_bytes] : compressions) {
      for (int checksum = 0; checksum <= rocksdb::kXXH3; ++checksum) {
        for (int index = 0; index <= 3; ++index, ++turn) {
          test::SstShape shape;
          shape.format_version = version;
          shape.compression = compression;
          shape.dict_bytes = dict_bytes;
          shape.checksum = static_cast<rocksdb::ChecksumType>(checksum);
          shape.index =
              static_cast<BlockBasedTableOptions::IndexType>(index);
          shape.hash_in_blocks = turn % 3 == 0;
          shape.filter = turn % 5 == 0 ? 0 : (index == 2 ? turn % 2 + 1 : 1);
          shape.index_restart_interval = index == 1 ? 1 : 1 + turn % 4;
          INFO(shape.Name());
          RequireReadsLikeRocksDb(env.get(), shape, entries);
        }
      }
    }
  }
}

TEST_CASE("SstReader finds range deletions that no property counts",
          "[format][sst]") {
  const auto has_any = [](const test::KeyValues& range_deletions) {
    const std::string file = test::RawTable(
        {{{test::InternalKey("a"), "1"}}}, {"a"}, 5,
        {{"rocksdb.num.range-deletions", std::string(1, '\0')}},
        range_deletions);
    const SliceSource source(file);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    REQUIRE(reader.properties().num_range_deletions == 0);
    return reader.has_range_deletions();
  };
  REQUIRE(has_any({{test::InternalKey("c", 0x0f), "k"}}));
  REQUIRE_FALSE(has_any({}));
}

TEST_CASE("SstReader reads blocks compressed with a dictionary",
          "[format][sst]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.dict_bytes = 4096;
  for (const rocksdb::CompressionType type :
       {rocksdb::kZSTD, rocksdb::kLZ4Compression, rocksdb::kLZ4HCCompression,
        rocksdb::kZlibCompression}) {
    shape.compression = type;
    INFO(shape.Name());
    const test::KeyValues entries = test::SampleEntries(2000);
    const std::string bytes = test::WriteSst(env.get(), shape, entries);
    const SliceSource source(bytes);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    REQUIRE(reader.FindMetaBlock("rocksdb.compression_dict") != nullptr);
    uint64_t value_bytes = 0;
    for (const auto& entry : entries) {
      value_bytes += entry.second.size();
    }
    REQUIRE(reader.properties().data_bytes < value_bytes);
    RequireReadsLikeRocksDb(env.get(), shape, entries);
  }
}

TEST_CASE("SstReader and CheckChunk read marked blocks where RocksDB makes "
          "them",
          "[format][sst]") {
  if (!test::CanMarkBlocks()) {
    SUCCEED("since RocksDB 11.1");
    return;
  }
  const auto env = test::NewMemoryEnv();
  const test::KeyValues entries = test::SampleEntries(400);
  for (int turn = 0; turn < 64; ++turn) {
    test::SstShape shape;
    shape.separate_values = (turn & 1) != 0;
    shape.mark_uniform = (turn & 2) != 0;
    shape.super_block_bytes = (turn & 4) != 0 ? 4096 : 0;
    shape.hash_in_blocks = (turn & 8) != 0;
    shape.compression =
        (turn & 16) != 0 ? rocksdb::kZSTD : rocksdb::kNoCompression;
    shape.format_version = (turn & 32) != 0 ? 7 : 5;
    shape.index = static_cast<BlockBasedTableOptions::IndexType>(turn % 4);
    if (shape.index == BlockBasedTableOptions::kHashSearch) {
      shape.index = BlockBasedTableOptions::kBinarySearch;
    }
    INFO(shape.Name());
    RequireReadsLikeRocksDb(env.get(), shape, entries);
    const std::string bytes = test::ReadWhole(env.get(), "/f.sst");
    SstReader reader;
    const SliceSource source(bytes);
    REQUIRE_OK(reader.Open(&source));
    REQUIRE(reader.properties().has_separated_values ==
            (shape.separate_values ? 1 : 0));
    REQUIRE((reader.properties().num_uniform_blocks != 0) ==
            shape.mark_uniform);
    ChunkExpectation expected = test::Expect(shape, entries);
    expected.allow_marked_blocks = false;
    const Status s = CheckChunk(source, expected, nullptr);
    INFO(s.ToString());
    REQUIRE(s.ok() == !(shape.separate_values || shape.mark_uniform));
  }
}

TEST_CASE("SstReader and CheckChunk read aligned blocks", "[format][sst]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.align = true;
  shape.block_bytes = 4096;
  RequireReadsLikeRocksDb(env.get(), shape, test::SampleEntries(1000));
}

TEST_CASE("SstReader and CheckChunk read keys and values of all sizes",
          "[format][sst]") {
  const auto env = test::NewMemoryEnv();
  test::SstShape shape;
  shape.compression = rocksdb::kZSTD;
  test::KeyValues entries = {{"", ""},
                             {std::string(1, '\0'), "nul"},
                             {std::string(3, '\0'), std::string(1 << 20, 'v')},
                             {"a", std::string(300, '\xff')},
                             {std::string(64 << 10, 'k'), ""},
                             {std::string(64 << 10, 'k') + "1", "x"},
                             {std::string(64 << 10, '\xff'), "last"}};
  for (const uint32_t version : test::WritableVersions()) {
    shape.format_version = version;
    RequireReadsLikeRocksDb(env.get(), shape, entries);
  }
  entries = {{"", ""}};
  RequireReadsLikeRocksDb(env.get(), shape, entries);
}

// The files are flushed and compacted, with overwrites, deletes of all kinds
// and snapshots. With snapshots, several versions of one user key are kept,
// also across block borders.
TEST_CASE("SstReader agrees with RocksDB on the files of a database",
          "[format][sst]") {
  for (const int index : {0, 2, 3}) {
    const auto env = test::NewMemoryEnv();
    test::SstShape shape;
    shape.block_bytes = 128;
    shape.index = static_cast<BlockBasedTableOptions::IndexType>(index);
    shape.compression = rocksdb::kSnappyCompression;
    rocksdb::Options options = shape.ToOptions(env.get());
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open(options, "/db", IntoDb(&db)));
    std::vector<const rocksdb::Snapshot*> snapshots;
    for (int round = 0; round < 4; ++round) {
      for (const auto& [key, value] : test::SampleEntries(100)) {
        REQUIRE_OK(db->Put(rocksdb::WriteOptions(), key,
                           value + std::to_string(round)));
        snapshots.push_back(db->GetSnapshot());
      }
      REQUIRE_OK(db->Delete(rocksdb::WriteOptions(), "key1000007"));
      REQUIRE_OK(db->DeleteRange(rocksdb::WriteOptions(),
                                 db->DefaultColumnFamily(), "key1000070",
                                 "key1000090"));
      REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    }
    const auto check_files = [&] {
      rocksdb::TablePropertiesCollection all;
      REQUIRE_OK(db->GetPropertiesOfAllTables(&all));
      REQUIRE(!all.empty());
      for (const auto& [path, theirs] : all) {
        const std::string bytes = test::ReadWhole(env.get(), path);
        const SliceSource source(bytes);
        SstReader reader;
        REQUIRE_OK(reader.Open(&source));
        RequireSameProperties(reader.properties(), *theirs);
        REQUIRE(ReadAll(reader).size() + theirs->num_range_deletions ==
                theirs->num_entries);
        REQUIRE(!reader.properties().external_version.has_value());
      }
    };
    check_files();
    REQUIRE_OK(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr,
                                nullptr));
    check_files();
    for (const rocksdb::Snapshot* snapshot : snapshots) {
      db->ReleaseSnapshot(snapshot);
    }
  }
}

TEST_CASE("SstReader reads a table that has only range deletions",
          "[format][sst]") {
  for (const int index : {0, 2}) {
    const auto env = test::NewMemoryEnv();
    test::SstShape shape;
    shape.index = static_cast<BlockBasedTableOptions::IndexType>(index);
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(),
                                  shape.ToOptions(env.get()));
    REQUIRE_OK(writer.Open("/f.sst"));
    REQUIRE_OK(writer.DeleteRange("a", "b"));
    REQUIRE_OK(writer.Finish());
    const std::string bytes = test::ReadWhole(env.get(), "/f.sst");
    const SliceSource source(bytes);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    REQUIRE(reader.properties().num_range_deletions == 1);
    REQUIRE(ReadAll(reader).empty());
    std::vector<SstAnchor> anchors;
    REQUIRE_OK(reader.Anchors(4, &anchors));
    REQUIRE(anchors.empty());
    std::vector<std::pair<std::string, std::string>> rows;
    REQUIRE_OK(DescribeSst(source, &rows));
  }
}

}  // namespace
}  // namespace sstferry::sst_reader_test
