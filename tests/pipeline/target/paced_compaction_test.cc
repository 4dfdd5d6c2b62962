// The compaction that ends a refresh: what it rewrites, and what it leaves.
#include "pipeline/target/database/paced_compaction.h"

#include <chrono>
#include <filesystem>
#include <set>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/statistics.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

constexpr int kPerFile = 1000;

class Replica {
 public:
  Replica() {
    options_.create_if_missing = true;
    options_.disable_auto_compactions = true;
    options_.level_compaction_dynamic_level_bytes = false;
    options_.compression = rocksdb::kNoCompression;
    options_.statistics = rocksdb::CreateDBStatistics();
    REQUIRE_OK(rocksdb::DB::Open(options_, dir_ / "db", IntoDb(&db_)));
  }
  static std::string Key(int i) { return std::to_string(100'000 + i); }

  // Files of the last level with kPerFile keys each.
  void Fill(int files) {
    for (int i = 0; i < files; ++i) {
      Ingest(i * kPerFile, (i + 1) * kPerFile, 0, false);
    }
  }
  // Replaces [begin, end) by as many other entries.
  void Replace(int begin, int end) { Ingest(begin, end, 7, true); }

  std::set<std::string> Names(int level) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    std::set<std::string> names;
    for (const auto& file : metadata.levels[level].files) {
      names.insert(file.name);
    }
    return names;
  }
  uint64_t RangeDeletions() {
    rocksdb::TablePropertiesCollection tables;
    REQUIRE_OK(db_->GetPropertiesOfAllTables(&tables));
    uint64_t count = 0;
    for (const auto& [path, properties] : tables) {
      count += properties->num_range_deletions;
    }
    return count;
  }
  uint64_t Read() const {
    return options_.statistics->getTickerCount(rocksdb::COMPACT_READ_BYTES);
  }
  rocksdb::Status Compact(uint64_t bytes_per_sec = 0, bool stopped = false) {
    StopSignal stop;
    if (stopped) {
      stop.Stop();
    }
    return CompactReplaced(db_.get(),
                           {{"default", db_->DefaultColumnFamily()}}, {},
                           bytes_per_sec, &stop);
  }
  uint64_t BytesAt(int level) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    return metadata.levels[level].size;
  }
  rocksdb::DB* db() { return db_.get(); }

 private:
  void Ingest(int begin, int end, uint64_t seed, bool clears) {
    const std::string path = dir_ / (std::to_string(made_++) + ".sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    REQUIRE_OK(writer.Open(path));
    for (int i = begin; i < end; ++i) {
      REQUIRE_OK(writer.Put(Key(i), test::RandomBytes(100, seed + i)));
    }
    if (clears) {
      REQUIRE_OK(writer.DeleteRange(Key(begin), Key(end - 1)));
    }
    REQUIRE_OK(writer.Finish());
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    REQUIRE_OK(db_->IngestExternalFile({path}, ingest));
  }

  ScratchDir dir_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  int made_ = 0;
};

}  // namespace

TEST_CASE("Only files that something replaces are rewritten, once each",
          "[target][compact]") {
  Replica replica;
  replica.Fill(5);
  const std::set<std::string> before = replica.Names(6);
  REQUIRE(before.size() == 5);
  replica.Replace(100, 200);    // of the first file
  replica.Replace(300, 400);    // the same
  replica.Replace(4100, 4200);  // of the last
  const uint64_t one = replica.BytesAt(6) / 5;
  const uint64_t upper = replica.BytesAt(5);
  REQUIRE(replica.RangeDeletions() == 3);
  REQUIRE_OK(replica.Compact());
  const std::set<std::string> after = replica.Names(6);
  size_t kept = 0;
  for (const std::string& name : before) {
    kept += after.count(name);
  }
  REQUIRE(kept == 3);
  REQUIRE(replica.Names(5).empty());
  REQUIRE(replica.RangeDeletions() == 0);
  REQUIRE(replica.Read() < 2 * one + upper + one / 2);
  // Again there is nothing to do.
  const uint64_t read = replica.Read();
  REQUIRE_OK(replica.Compact());
  REQUIRE(replica.Read() == read);
}

TEST_CASE("A replaced interval that lies in the last level loses its deletion",
          "[target][compact]") {
  Replica replica;
  replica.Fill(1);
  replica.Replace(2000, 2100);
  REQUIRE(replica.Names(6).size() == 2);
  REQUIRE(replica.RangeDeletions() == 1);
  REQUIRE_OK(replica.Compact());
  REQUIRE(replica.RangeDeletions() == 0);
  std::string value;
  REQUIRE_OK(replica.db()->Get({}, Replica::Key(2050), &value));
  REQUIRE(value == test::RandomBytes(100, 2057));
}

TEST_CASE("A compaction that is stopped says so and is gone on with",
          "[target][compact]") {
  Replica replica;
  replica.Fill(3);
  replica.Replace(100, 200);
  replica.Replace(2100, 2200);
  REQUIRE(EndStateOf(replica.Compact(0, /*stopped=*/true)) ==
          EndState::kCancelled);
  REQUIRE(replica.RangeDeletions() == 2);
  REQUIRE_OK(replica.Compact());
  REQUIRE(replica.RangeDeletions() == 0);
}

TEST_CASE("A compaction pauses for what it reads, and without a rate for "
          "nothing",
          "[target][compact]") {
  Replica replica;
  replica.Fill(1);
  replica.Replace(100, 200);
  const uint64_t bytes = replica.BytesAt(5) + replica.BytesAt(6);
  const auto start = std::chrono::steady_clock::now();
  REQUIRE_OK(replica.Compact(bytes * 4));  // a quarter of a second
  REQUIRE(std::chrono::steady_clock::now() - start >=
          std::chrono::milliseconds(240));
}

}  // namespace sstferry
