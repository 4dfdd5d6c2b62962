#include "tests/support/carried_sst.h"

#include <algorithm>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"

namespace sstferry::test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

std::unique_ptr<rocksdb::DB> OpenIn(const rocksdb::Options& options) {
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, "/db", IntoDb(&db)));
  return db;
}

KeyValues ReadAll(rocksdb::DB* db) {
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read));
  KeyValues entries;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    entries.emplace_back(it->key().ToString(), it->value().ToString());
  }
  REQUIRE_OK(it->status());
  return entries;
}

// Through index, filter and hash index, as an application asks.
void RequireFinds(rocksdb::DB* db, const KeyValues& entries) {
  std::string value;
  for (const auto& [key, expected] : entries) {
    REQUIRE_OK(db->Get({}, key, &value));
    REQUIRE(value == expected);
  }
  REQUIRE(db->Get({}, "key1000001", &value).IsNotFound());
  REQUIRE(db->Get({}, "zzzz", &value).IsNotFound());
}

void CompactAll(rocksdb::DB* db) {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK(db->CompactRange(options, nullptr, nullptr));
}

std::string OnlyFile(rocksdb::DB* db) {
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  REQUIRE(files.size() == 1);
  REQUIRE(files[0].smallest_seqno == 0);
  REQUIRE(files[0].largest_seqno == 0);
  return ReadWhole(db->GetEnv(), files[0].db_path + files[0].name);
}

}  // namespace

rocksdb::Options TableShape::ToOptions(rocksdb::Env* env) const {
  rocksdb::Options made = options;
  rocksdb::ConfigOptions lenient;
  lenient.ignore_unknown_options = true;
  rocksdb::BlockBasedTableOptions table_options;
  REQUIRE_OK(rocksdb::GetBlockBasedTableOptionsFromString(
      lenient, table, newer, &table_options));
  made.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options));
  made.env = env;
  made.create_if_missing = true;
  made.disable_auto_compactions = true;
  return made;
}

TableShape PlainShape(const std::string& name, size_t count) {
  TableShape shape;
  shape.name = name;
  shape.options.compression = rocksdb::kNoCompression;
  shape.table.block_size = 512;
  shape.table.metadata_block_size = 256;
  shape.table.format_version = 5;
  shape.entries = SampleEntries(count);
  return shape;
}

KeyValues InOrder(const TableShape& shape) {
  KeyValues entries = shape.entries;
  std::sort(entries.begin(), entries.end(),
            [&](const auto& a, const auto& b) {
              return shape.options.comparator->Compare(a.first, b.first) < 0;
            });
  return entries;
}

std::string WriteDbFile(const TableShape& shape) {
  const auto env = NewMemoryEnv();
  const auto db = OpenIn(shape.ToOptions(env.get()));
  for (const auto& [key, value] : shape.entries) {
    REQUIRE_OK(db->Put({}, key, value));
  }
  CompactAll(db.get());
  return OnlyFile(db.get());
}

Status CarryBytes(const std::string& file, SstTail* tail) {
  const SliceSource source(file);
  SstReader reader;
  Status s = reader.Open(&source);
  if (s.ok()) {
    s = RewriteSstTail(reader, tail);
  }
  if (!s.ok()) {
    return s;
  }
  uint64_t end = 0;
  const auto padding_is_zero = [&](uint64_t next) {
    return file.substr(end, next - end) == std::string(next - end, '\0');
  };
  return ForEachBodyBlock(reader, *tail, [&](const SstBlockHandle& handle) {
    if (handle.offset < end || handle.end() > tail->body_bytes ||
        !padding_is_zero(handle.offset)) {
      return Status::Corruption("not what lies between two blocks");
    }
    end = handle.end();
    return VerifySstBlockBytes(
        reader.footer(), handle,
        Slice(file.data() + handle.offset,
              handle.size + kSstBlockTrailerBytes));
  });
}

std::string Carried(const std::string& file) {
  SstTail tail;
  REQUIRE_OK(CarryBytes(file, &tail));
  return file.substr(0, tail.body_bytes) + tail.bytes;
}

std::string RequireIngests(const TableShape& shape, const std::string& file,
                           const KeyValues& entries) {
  const auto env = NewMemoryEnv();
  const rocksdb::Options options = shape.ToOptions(env.get());
  REQUIRE_OK(rocksdb::WriteStringToFile(env.get(), file, "/carried.sst"));
  auto db = OpenIn(options);
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = false;
  ingest.write_global_seqno = false;
  ingest.verify_checksums_before_ingest = true;
  ingest.fail_if_not_bottommost_level = true;
  REQUIRE_OK(db->IngestExternalFile({"/carried.sst"}, ingest));
  const std::string ingested = OnlyFile(db.get());
  REQUIRE(ReadAll(db.get()) == entries);
  RequireFinds(db.get(), entries);
  REQUIRE_OK(db->VerifyChecksum());
  db.reset();
  db = OpenIn(options);
  REQUIRE(ReadAll(db.get()) == entries);
  REQUIRE_OK(db->VerifyChecksum());
  CompactAll(db.get());
  REQUIRE(ReadAll(db.get()) == entries);
  db.reset();
  db = OpenIn(options);
  REQUIRE(ReadAll(db.get()) == entries);
  RequireFinds(db.get(), entries);
  REQUIRE_OK(db->VerifyChecksum());
  return ingested;
}

}  // namespace sstferry::test
