// Files of the source that replace intervals at the target by a range deletion
// in their new tail.
#include <fstream>
#include <map>
#include <memory>

#include "format/sst/sst_reader.h"
#include "format/sst/sst_tail.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/source/chunk/file_carrier.h"
#include "rocksdb/cache.h"
#include "rocksdb/metadata.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

std::string Key(int i) { return "k" + std::to_string(500'000 + i); }

std::unique_ptr<rocksdb::DB> OpenAt(
    const std::string& path, const std::shared_ptr<rocksdb::Cache>& cache,
    uint32_t format_version = 5) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.disable_auto_compactions = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  table.format_version = format_version;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, path, IntoDb(&db)));
  return db;
}

void CompactDown(rocksdb::DB* db) {
  REQUIRE_OK(db->Flush({}));
  rocksdb::CompactRangeOptions down;
  down.change_level = true;
  down.target_level = 6;
  down.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK(db->CompactRange(down, nullptr, nullptr));
}

class OneFileSink final : public ChunkSink {
 public:
  explicit OneFileSink(const std::string& path)
      : out_(path, std::ios::binary) {}
  Status Begin(const ChunkBegin& begin) override {
    begun = begin;
    return Status::OK();
  }
  Status Append(const Slice& bytes) override {
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return Status::OK();
  }
  Status End(const ChunkEnd& end) override {
    out_.close();
    ended = end;
    return Status::OK();
  }
  ChunkBegin begun;
  ChunkEnd ended;

 private:
  std::ofstream out_;
};

// As it is planned: its size is that without a stamp.
CarriedFile Plan(const std::string& path, const SstStamp& stamp) {
  std::unique_ptr<FileSource> source;
  REQUIRE_OK(FileSource::Open(rocksdb::FileSystem::Default().get(), path,
                              &source, EndState::kSourceError));
  SstReader reader;
  REQUIRE_OK(reader.Open(source.get()));
  SstTail tail;
  REQUIRE_OK(RewriteSstTail(reader, &tail));
  return {0, path, tail.body_bytes + tail.bytes.size(), stamp};
}

std::string OnlyFile(rocksdb::DB* db) {
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  REQUIRE(files.size() == 1);
  return files[0].directory + "/" + files[0].relative_filename;
}

std::string SessionId(char last) { return std::string(19, 'S') + last; }

std::map<std::string, std::string> Read(rocksdb::DB* db) {
  std::map<std::string, std::string> found;
  std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator({}));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    found[iterator->key().ToString()] = iterator->value().ToString();
  }
  REQUIRE_OK(iterator->status());
  return found;
}

Status Ingest(rocksdb::DB* db, const std::string& path) {
  rocksdb::IngestExternalFileOptions how;
  how.allow_global_seqno = true;
  return db->IngestExternalFile({path}, how);
}

TEST_CASE("A carried file with a stamp replaces its interval and no more",
          "[source][refresh][carry]") {
  const uint32_t version = GENERATE(2u, 3u, 4u, 5u, kMaxTableFormatVersion);
  const ScratchDir dir;
  const auto cache = rocksdb::NewLRUCache(8 << 20);
  auto source = OpenAt(dir / "source", cache, version);
  for (int i = 0; i < 3000; i += 2) {
    REQUIRE_OK(source->Put({}, Key(i), "source" + std::to_string(i)));
  }
  CompactDown(source.get());
  auto target = OpenAt(dir / "target", cache);
  for (int i = -50; i < 3100; i += 3) {
    REQUIRE_OK(target->Put({}, Key(i), "target"));
  }
  CompactDown(target.get());
  const auto before = Read(target.get());

  OneFileSink sink(dir / "chunk.sst");
  std::vector<char> buffer;
  const std::string end = Key(2998) + std::string(1, '\0');
  const SstStamp stamp{Key(-20), end, SessionId('1')};
  REQUIRE_OK(FileCarrier({}, &sink, &buffer)
                 .Carry({}, Plan(OnlyFile(source.get()), stamp), 0));
  REQUIRE(sink.ended.clears);
  REQUIRE_FALSE(sink.ended.deletes_last);
  REQUIRE(sink.ended.smallest == Key(-20));
  REQUIRE(sink.ended.largest == end);
  REQUIRE(sink.ended.entries == 1500);
  REQUIRE(sink.begun.file_bytes == sink.ended.file_bytes);
  REQUIRE(std::filesystem::file_size(dir / "chunk.sst") ==
          sink.ended.file_bytes);
  REQUIRE_OK(Ingest(target.get(), dir / "chunk.sst"));
  std::map<std::string, std::string> expected = Read(source.get());
  for (const auto& [key, value] : before) {
    if (key < stamp.begin || key > Key(2998)) {
      expected[key] = value;
    }
  }
  REQUIRE((Read(target.get()) == expected));
  REQUIRE_OK(target->VerifyChecksum());
  // No older value stands below one of the file's.
  for (const auto& [key, value] : Read(source.get())) {
    REQUIRE_OK(target->SingleDelete({}, key));
    expected.erase(key);
  }
  REQUIRE((Read(target.get()) == expected));
  CompactDown(target.get());
  REQUIRE((Read(target.get()) == expected));
}

TEST_CASE("Two stamps of one file share no cached block that differs",
          "[source][refresh][carry]") {
  const ScratchDir dir;
  const auto cache = rocksdb::NewLRUCache(8 << 20);
  auto source = OpenAt(dir / "source", cache);
  REQUIRE_OK(source->Put({}, Key(10), "new"));
  REQUIRE_OK(source->Put({}, Key(20), "new"));
  CompactDown(source.get());
  const std::string file = OnlyFile(source.get());
  size_t hidden = 0;
  for (const int begin : {5, 0}) {
    auto target = OpenAt(dir / std::to_string(begin), cache);
    for (int i = 0; i < 30; ++i) {
      REQUIRE_OK(target->Put({}, Key(i), "old"));
    }
    CompactDown(target.get());
    const std::string chunk = dir / (std::to_string(begin) + ".sst");
    OneFileSink sink(chunk);
    std::vector<char> buffer;
      const SstStamp stamp{Key(begin), Key(20) + std::string(1, '\0'),
                         SessionId(static_cast<char>('A' + begin))};
    REQUIRE_OK(
        FileCarrier({}, &sink, &buffer).Carry({}, Plan(file, stamp), 0));
    REQUIRE_OK(Ingest(target.get(), chunk));
    REQUIRE(Read(target.get()).size() == static_cast<size_t>(begin) + 2 + 9);
    ++hidden;
  }
  REQUIRE(hidden == 2);
}

TEST_CASE("A file that holds range deletions, or has no identity, gets no stamp",
          "[source][refresh][carry]") {
  const ScratchDir dir;
  auto source = OpenAt(dir / "source", rocksdb::NewLRUCache(1 << 20));
  REQUIRE_OK(source->Put({}, Key(1), "v"));
  REQUIRE_OK(source->DeleteRange({}, source->DefaultColumnFamily(), Key(2),
                                 Key(3)));
  const rocksdb::Snapshot* held = source->GetSnapshot();
  REQUIRE_OK(source->Flush({}));
  std::unique_ptr<FileSource> file;
  REQUIRE_OK(FileSource::Open(rocksdb::FileSystem::Default().get(),
                              OnlyFile(source.get()), &file,
                              EndState::kSourceError));
  SstReader reader;
  REQUIRE_OK(reader.Open(file.get()));
  const SstStamp stamp{Key(0), Key(1), SessionId('1')};
  SstTail tail;
  const Status status = RewriteSstTail(reader, &stamp, &tail);
  REQUIRE(status.IsNotSupported());
  // Newer versions tell of its sequence numbers, too.
  const bool by_deletions =
      status.ToString().find("range deletions") != std::string::npos;
  const bool by_sequence =
      status.ToString().find("sequence numbers") != std::string::npos;
  REQUIRE((by_deletions || by_sequence));
  source->ReleaseSnapshot(held);
}

}  // namespace
}  // namespace sstferry
