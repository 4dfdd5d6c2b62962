// How a refresh merges the deltas that were ingested above the data.
#include "pipeline/refresh/delta_compaction.h"

#include <set>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::delta_compaction_test {
namespace {

constexpr int kKeys = 20'000;
// The number of parts, and so of files, of a refresh.
constexpr int kParts = 4;

// A database with all its data in the last level.
class Replica {
 public:
  explicit Replica(bool dynamic_levels, size_t value_bytes = 100)
      : value_bytes_(value_bytes) {
    options_.create_if_missing = true;
    options_.disable_auto_compactions = true;
    options_.level_compaction_dynamic_level_bytes = dynamic_levels;
    options_.compression = rocksdb::kNoCompression;
    options_.target_file_size_base = 2'000 * value_bytes;
    REQUIRE_OK(rocksdb::DB::Open(options_, dir_ / "db", IntoDb(&db_)));
    for (int i = 0; i < kKeys; ++i) {
      REQUIRE_OK(db_->Put({}, Key(i), ValueOf(i - kKeys)));
    }
    rocksdb::CompactRangeOptions to_last;
    to_last.bottommost_level_compaction =
        rocksdb::BottommostLevelCompaction::kForce;
    to_last.change_level = true;
    to_last.target_level = kLast;
    REQUIRE_OK(db_->CompactRange(to_last, nullptr, nullptr));
    last_ = Names(kLast);
    REQUIRE(last_.size() > 5);
  }
  static constexpr int kLast = 6;

  static std::string Key(int i) { return std::to_string(100'000 + i); }

  std::string ValueOf(int night) const {
    return test::RandomBytes(value_bytes_,
                             static_cast<uint64_t>(kKeys + night));
  }

  // Ingests a delta above the data that changes one of `every` keys.
  void IngestDelta(int night, int every = 50) {
    IngestDelta(night, every, 0, kKeys);
  }
  // Ingests a delta that changes only keys in [begin, end).
  void IngestDelta(int night, int every, int begin, int end) {
    std::vector<std::string> paths;
    for (int part = 0; part < kParts; ++part) {
      rocksdb::SstFileWriter writer({}, options_);
      paths.push_back(dir_ / (std::to_string(night) + "." +
                              std::to_string(part)));
      REQUIRE_OK(writer.Open(paths.back()));
      const int part_end = begin + (part + 1) * (end - begin) / kParts;
      for (int i = begin + part * (end - begin) / kParts + night; i < part_end;
           i += every) {
        REQUIRE_OK(writer.Put(Key(i), ValueOf(night)));
      }
      REQUIRE_OK(writer.Finish());
    }
    rocksdb::IngestExternalFileOptions move;
    move.move_files = true;
    REQUIRE_OK(db_->IngestExternalFile(paths, move));
  }
  std::set<std::string> Names(int level) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    std::set<std::string> names;
    for (const auto& file : metadata.levels[level].files) {
      names.insert(file.name);
    }
    return names;
  }
  std::set<std::string> NamesAbove() {
    std::set<std::string> names;
    for (int level = 0; level < kLast; ++level) {
      names.merge(Names(level));
    }
    return names;
  }
  double BytesIn(int level) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    return static_cast<double>(metadata.levels[level].size);
  }
  double BytesAbove() {
    double bytes = 0;
    for (int level = 0; level < kLast; ++level) {
      bytes += BytesIn(level);
    }
    return bytes;
  }
  const std::set<std::string>& last() const { return last_; }
  void Compact() {
    FamilyHandle family;
    family.name = "default";
    family.handle = db_->DefaultColumnFamily();
    StopSignal stop;
    REQUIRE_OK(CompactDeltas(db_.get(), {family}, &stop));
  }
  std::string Get(int i) {
    std::string value;
    REQUIRE_OK(db_->Get({}, Key(i), &value));
    return value;
  }

 private:
  const size_t value_bytes_;
  ScratchDir dir_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::set<std::string> last_;
};

TEST_CASE("Deltas in level 0 are merged above the last level, which is kept",
          "[delta_compaction]") {
  Replica replica(/*dynamic_levels=*/true);
  for (int night = 0; night < 5; ++night) {
    replica.IngestDelta(night);
  }
  REQUIRE(replica.Names(0).size() == 5 * kParts);
  replica.Compact();
  REQUIRE(replica.Names(0).empty());
  REQUIRE_FALSE(replica.Names(Replica::kLast - 1).empty());
  REQUIRE(replica.Names(Replica::kLast) == replica.last());
  REQUIRE(replica.Get(4) == replica.ValueOf(4));
}

TEST_CASE("Small deltas of two refreshes become one sorted run",
          "[delta_compaction]") {
  Replica replica(GENERATE(false, true));
  replica.IngestDelta(0);
  replica.IngestDelta(1);
  replica.Compact();
  REQUIRE_FALSE(replica.NamesAbove().empty());
  REQUIRE(replica.NamesAbove() == replica.Names(Replica::kLast - 1));
  REQUIRE(replica.Names(Replica::kLast) == replica.last());
  REQUIRE(replica.Get(0) == replica.ValueOf(0));
  REQUIRE(replica.Get(1) == replica.ValueOf(1));
}

TEST_CASE("A single delta stays where it was ingested", "[delta_compaction]") {
  Replica replica(GENERATE(false, true));
  replica.IngestDelta(0);
  const std::set<std::string> above = replica.NamesAbove();
  replica.Compact();
  REQUIRE(replica.NamesAbove() == above);
}

TEST_CASE(
    "A delta beside a large one is not merged with it, but leaves level 0",
    "[delta_compaction]") {
  Replica replica(GENERATE(false, true), /*value_bytes=*/3'000);
  for (int night = 0; night < 4; ++night) {
    replica.IngestDelta(night, /*every=*/33);
    replica.Compact();
  }
  const std::set<std::string> merged = replica.Names(Replica::kLast - 1);
  REQUIRE(replica.NamesAbove() == merged);
  replica.IngestDelta(4, /*every=*/33);
  replica.Compact();  // the five deltas have 13 % of all bytes
  REQUIRE(replica.Names(0).empty());
  REQUIRE(replica.Names(Replica::kLast - 1) == merged);
  REQUIRE_FALSE(replica.Names(Replica::kLast - 2).empty());
  REQUIRE(replica.Names(Replica::kLast) == replica.last());
  for (int night = 0; night < 5; ++night) {
    REQUIRE((replica.Get(night) == replica.ValueOf(night)));
  }
}

TEST_CASE(
    "A delta of neighbouring keys rewrites only the files that it overlaps",
    "[delta_compaction]") {
  Replica replica(GENERATE(false, true), /*value_bytes=*/3'000);
  for (int night = 0; night < 4; ++night) {
    replica.IngestDelta(night, /*every=*/33);
    replica.Compact();
  }
  REQUIRE(replica.NamesAbove() == replica.Names(Replica::kLast - 1));
  const std::set<std::string> before = replica.NamesAbove();
  REQUIRE(before.size() > 5);
  replica.IngestDelta(4, /*every=*/1, kKeys / 2, kKeys / 2 + 200);
  replica.Compact();
  const std::set<std::string> after = replica.NamesAbove();
  REQUIRE(after == replica.Names(Replica::kLast - 1));
  size_t kept = 0;
  for (const std::string& name : before) {
    kept += after.count(name);
  }
  REQUIRE(kept + 2 >= before.size());
  REQUIRE(kept < before.size());
  REQUIRE((replica.Get(kKeys / 2 + 160) == replica.ValueOf(4)));
  REQUIRE((replica.Get(3) == replica.ValueOf(3)));
}

TEST_CASE("Deltas of many refreshes do not pile up above the last level",
          "[delta_compaction]") {
  Replica replica(GENERATE(false, true));
  for (int night = 0; night < 30; ++night) {
    replica.IngestDelta(night);
    replica.Compact();
    REQUIRE(replica.Names(0).size() <= 2 * kParts);
  }
  // All ingested deltas together had 60 % of the last level's bytes.
  REQUIRE(replica.BytesAbove() < 0.3 * replica.BytesIn(Replica::kLast));
  REQUIRE(replica.Get(29) == replica.ValueOf(29));
  REQUIRE(replica.Get(0) == replica.ValueOf(0));
}

}  // namespace
}  // namespace sstferry::delta_compaction_test
