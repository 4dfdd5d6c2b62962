// The audit of a standby finds each planted fault, and reports no others.
#include "pipeline/follow/audit.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "format/byte_source.h"
#include "format/coding.h"
#include "format/end_state.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/disk/durable.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/sst_file_writer.h"
#include "sstferry/follow.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/log_bytes.h"
#include "tests/support/named_comparator.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/standby_world.h"
#include "tests/support/test_db.h"

namespace rocksdb {
// Part of RocksDB's library. The header that declares it depends on the
// release.
const Comparator* BytewiseComparatorWithU64Ts();
}  // namespace rocksdb

namespace sstferry::test::audit_test {
namespace {

namespace fs = std::filesystem;

// The type of a record that is not split. Batches in small WALs are not split.
constexpr uint8_t kFullRecord = 1;
constexpr uint64_t kBaseKeys = 40;

std::string BaseKey(uint64_t i) { return "base" + NumberedKey(i); }

// Returns options without compression, so that tables contain the bytes of keys
// and values.
rocksdb::ColumnFamilyOptions Plain() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  return options;
}

Families AuditedFamilies() {
  rocksdb::ColumnFamilyOptions merged = Plain();
  merged.merge_operator = MergeOperatorNamed("stringappend");
  rocksdb::ColumnFamilyOptions blobs = Plain();
  blobs.enable_blob_files = true;
  return {{"default", Plain()},
          {"other", Plain()},
          {"merged", merged},
          {"blobs", blobs}};
}

// A source, its standby, and the audits of its cuts. Used by one thread.
class AuditWorld {
 public:
  explicit AuditWorld(Families families = AuditedFamilies(),
                      const std::function<void(OpenDb*)>& fill = nullptr)
      : families_(std::move(families)) {
    fs::create_directory(root());
    rocksdb::DBOptions options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    // The source must read replaced tables without checking their ids.
    options.verify_sst_unique_id_in_manifest = false;
    db_ = std::make_unique<OpenDb>(source_dir(), families_, options);
    if (fill) {
      fill(db_.get());
    } else {
      for (uint64_t i = 0; i < kBaseKeys; ++i) {
        for (const auto& family : families_) {
          db_->Put(BaseKey(i), "v" + std::to_string(i), family.name);
        }
      }
      db_->Put("a", std::string(1500, 'p'));
    }
    db_->Flush();
    options_.dir = dir();
    options_.file_system = rocksdb::FileSystem::Default();
    options_.cpu_percent = 100;
    options_.patience = std::chrono::milliseconds(0);
    options_.log = [this](LogLevel, const std::string& text) {
      said_ += text + "\n";
    };
    options_.on_fault = [this](const HealthFile& fault) { fault_ = fault; };
    audit_ = std::make_unique<StandbyAudit>(options_);
    REQUIRE_OK(Standby::Open(dir(), options_.file_system, &standby_));
    REQUIRE_OK(Cut(CutReason::kFirst));
  }

  AuditOptions* options() { return &options_; }
  void RestartAudit() { audit_ = std::make_unique<StandbyAudit>(options_); }
  OpenDb* source() { return db_.get(); }
  Standby* standby() { return standby_.get(); }
  StandbyAudit* audit() { return audit_.get(); }

  void Write(rocksdb::WriteBatch batch) {
    REQUIRE_OK((*db_)->Write(rocksdb::WriteOptions(), &batch));
  }
  // Appends the source's new records to the standby. `is_judged`: the follower
  // has classified all records of the source's MANIFEST.
  void Follow(bool is_judged = true) {
    Round round = ReadRoundOf(source_dir(), standby_->position());
    const std::string manifest = ManifestBytes(source_dir());
    if (is_judged) {
      round.end.judged = {manifest.size(), DigestOf(manifest)};
    }
    REQUIRE_OK(standby_->Append(standby_->position(), round));
    REQUIRE(standby_->gap().reason == CutReason::kNone);
  }
  rocksdb::Status Cut(CutReason reason) {
    PullOptions pull;
    pull.source.directory = source_dir();
    pull.target_dir = dir();
    pull.file_system = rocksdb::FileSystem::Default();
    pull.lanes = 1;
    pull.full_rate = true;  // does not slow down on a busy machine
    return CutStandby(pull, {reason, "", exact_filters_}, standby_.get(),
                      audit_.get());
  }
  // Makes the cuts from now on exact.
  void BeExact() { exact_filters_ = true; }
  // Takes a scheduled cut and waits for its audit.
  void CutAndAudit() {
    REQUIRE_OK(Cut(CutReason::kCutEvery));
    audit_->Await();
  }

  AuditFile Record() const {
    AuditFile record;
    std::string damage;
    REQUIRE_OK(ReadAuditFile(dir(), &record, &damage));
    REQUIRE(damage.empty());
    return record;
  }
  ReplicaFault KnownFault() const {
    HealthFile fault;
    REQUIRE_OK(ReadKnownFault(dir(), &fault));
    return fault.fault;
  }
  // Requires that audits have left no files next to the standby.
  void RequireNothingLeft() const {
    for (const auto& entry : fs::directory_iterator(root())) {
      REQUIRE(entry.path().string() == dir());
    }
  }
  const std::string& said() const { return said_; }
  const HealthFile& fault() const { return fault_; }
  std::string root() const { return dir_ / "disk"; }
  std::string dir() const { return root() + "/standby"; }
  std::string source_dir() const { return dir_ / "source"; }
  std::string scratch(const std::string& name) const { return dir_ / name; }

 private:
  ScratchDir dir_;
  const Families families_;
  AuditOptions options_;
  std::unique_ptr<OpenDb> db_;
  std::unique_ptr<Standby> standby_;
  bool exact_filters_ = false;
  std::string said_;  // read only while no audit runs
  HealthFile fault_;
  std::unique_ptr<StandbyAudit> audit_;
};

// Returns the batch with the sequence of `record`, a batch in a WAL.
std::string WithSequenceOf(const std::string& record,
                           const rocksdb::WriteBatch& batch) {
  return record.substr(0, 8) + batch.Data().substr(8);
}

using Records = std::vector<std::string>;

// Changes the records of a WAL of the standby and rewrites the WAL.
void Rewrite(const std::string& path,
             const std::function<void(Records*)>& change) {
  Followed wal = test::Follow(FileBytes(path));
  REQUIRE_OK(wal.status);
  change(&wal.records);
  std::string bytes;
  for (const std::string& record : wal.records) {
    bytes += PhysicalRecord(kFullRecord, record);
  }
  REQUIRE(bytes.size() < kLogBlockBytes);
  std::ofstream(path, std::ios::binary) << bytes;
}

// Removes the records that contain this text.
void LeaveOutThat(Records* records, const std::string& text) {
  std::erase_if(*records, [&text](const std::string& record) {
    return record.find(text) != std::string::npos;
  });
}

// Returns the name of a table of the family.
std::string TableOf(OpenDb* source, const std::string& family) {
  std::vector<rocksdb::LiveFileMetaData> files;
  (*source)->GetLiveFilesMetaData(&files);
  std::string name;
  for (const rocksdb::LiveFileMetaData& file : files) {
    if (file.column_family_name == family) name = file.name;
  }
  REQUIRE_FALSE(name.empty());
  return name;
}

// Makes a table of the same size with other entries.
void WriteTableOfSize(
    const std::string& path, uint64_t bytes,
    const std::vector<std::pair<std::string, std::string>>& entries) {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  for (size_t padding = 0; padding < 4096; ++padding) {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    REQUIRE_OK(writer.Open(path));
    for (size_t i = 0; i < entries.size(); ++i) {
      REQUIRE_OK(writer.Put(entries[i].first,
                            i == 0 ? std::string(padding, 'p')
                                   : entries[i].second));
    }
    REQUIRE_OK(writer.Finish());
    if (fs::file_size(path) == bytes) return;
    fs::remove(path);
  }
  FAIL("no table of " << bytes << " bytes");
}

// Changes the first byte of a value in an uncompressed table, and corrects the
// checksum of its block.
void FlipInTable(const std::string& path, const std::string& value) {
  std::string bytes = FileBytes(path);
  const std::string before = bytes;
  const SliceSource source(before);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  size_t flipped = 0;
  REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
    const SstBlockHandle& block = entry.handle;
    const size_t at = before.find(value, block.offset);
    if (at >= block.offset + block.size) return rocksdb::Status::OK();
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    const rocksdb::Slice summed(bytes.data() + block.offset, block.size + 1);
    EncodeFixed32(&bytes[block.offset + block.size + 1],
                  ComputeSstChecksum(reader.footer().checksum, summed) +
                      reader.footer().ContextModifier(block.offset));
    ++flipped;
    return rocksdb::Status::OK();
  }));
  REQUIRE(flipped == 1);
  fs::remove(path);  // it may be a link
  std::ofstream(path, std::ios::binary) << bytes;
}

// Writes the entries that planted faults change, and flushes the source.
// Returns the standby's WAL with them.
std::string WriteInOneWal(AuditWorld* world) {
  OpenDb& source = *world->source();
  if (const uint64_t cut = world->Record().slices; cut > 0) {
    source.Put(BaseKey(5), "again");
    for (uint64_t i = 10; i < 18; ++i) source.Put(BaseKey(i), "again");
    source.Put("b1", std::to_string(cut), "blobs");
    for (const char* key : {"k1", "k2", "zz"}) source.Delete(key);
    source.Delete("o1", "other");
    world->Follow();
    source.Flush();
  }
  source.Put("k1", "one");
  source.Put("o1", "other", "other");
  source.Delete(BaseKey(5));
  source.DeleteRange(BaseKey(10), BaseKey(15));
  source.Merge("m1", "operand", "merged");
  source.Put("b1", std::string(500, 'b'), "blobs");
  source.Put("k2", "one");
  source.Put("k2", "two");
  world->Follow();
  const std::string wal = PathsWith(world->dir(), ".log").back();
  source.Flush();
  source.Put("k3", "three");
  return wal;
}

TEST_CASE("A standby that equals its source is audited without a difference",
          "[follow][audit]") {
  AuditWorld world;
  WriteInOneWal(&world);
  world.Follow();
  // Before the cut is exchanged, the standby receives more records than it has.
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:TotalsAgreed") {
      world.source()->Put("k4", "four");
      world.Follow();
    }
  });
  world.CutAndAudit();
  TEST_SetFaultHook(nullptr);
  INFO(world.said());
  const AuditFile record = world.Record();
  REQUIRE(record.differences == 0);
  REQUIRE(record.unaudited_cuts == 0);
  REQUIRE(record.slices == 1);
  REQUIRE(record.passes == 1);
  REQUIRE(record.done_begun_micros > 0);
  REQUIRE(record.done_ended_micros >= record.done_begun_micros);
  // 40 keys of each of 4 families and "a", minus 6 deleted keys, plus k1, k2,
  // k3, o1, m1 and b1.
  REQUIRE(record.entries == 4 * kBaseKeys + 1 - 6 + 6);
  REQUIRE(record.families.empty());
  REQUIRE(world.KnownFault() == ReplicaFault::kNone);
  world.RequireNothingLeft();
}

struct Planted {
  std::string name;
  std::function<void(Records*)> change;  // changes a WAL, or null
  std::string found;                     // part of the message
  // Replaces the table with this path, if `change` is null.
  std::function<void(const std::string&)> replace = nullptr;
};

constexpr size_t kKinds = 12;

rocksdb::WriteBatch BatchOf(const std::string& key, const std::string& value) {
  rocksdb::WriteBatch batch;
  REQUIRE_OK(batch.Put(key, value));
  return batch;
}

void LeaveOut(Records* records, size_t at) {
  records->erase(records->begin() + static_cast<std::ptrdiff_t>(at));
}

std::vector<Planted> Plants(OpenDb* source) {
  rocksdb::ColumnFamilyHandle* const blobs = source->cf("blobs");
  return {
      {"a record left out", [](Records* r) { LeaveOut(r, 0); },
       "'default': 1 entries differ, from key 0x6B31 to 0x6B31: 0 only here, 1 "
       "only at the source"},
      {"a family's entry left out", [](Records* r) { LeaveOut(r, 1); },
       "'other': 1 entries differ"},
      {"a deletion left out", [](Records* r) { LeaveOut(r, 2); },
       "1 only here, 0 only at the source"},
      {"a range deletion left out", [](Records* r) { LeaveOut(r, 3); },
       "5 only here, 0 only at the source"},
      {"a longer range deletion",
       [](Records* r) {
         rocksdb::WriteBatch batch;
         REQUIRE_OK(batch.DeleteRange(BaseKey(10), BaseKey(18)));
         (*r)[3] = WithSequenceOf((*r)[3], batch);
       },
       "0 only here, 3 only at the source"},
      {"a merge operand left out", [](Records* r) { LeaveOut(r, 4); },
       "'merged': 1 entries differ"},
      {"another value of a blob",
       [blobs](Records* r) {
         rocksdb::WriteBatch batch;
         REQUIRE_OK(batch.Put(blobs, "b1", std::string(500, 'c')));
         (*r)[5] = WithSequenceOf((*r)[5], batch);
       },
       "'blobs': 1 entries differ, from key 0x6231 to 0x6231: 0 only here, 0 "
       "only at the source, 1 with another value"},
      {"another value",
       [](Records* r) {
         (*r)[0] = WithSequenceOf((*r)[0], BatchOf("k1", "two"));
       },
       "1 with another value"},
      {"an extra key",
       [](Records* r) {
         (*r)[6] = WithSequenceOf((*r)[6], BatchOf("zz", "extra"));
       },
       "0x7A7A: 1 only here, 0 only at the source"},
      {"a WAL of another life",
       [](Records* r) {
         for (size_t i = 0; i < r->size(); ++i) {
           (*r)[i] = WithSequenceOf(
               (*r)[i], BatchOf("life" + std::to_string(i), "2"));
         }
       },
       " entries differ"},
      {"an entry of a table, flipped, with a right checksum", nullptr,
       "1 entries differ, from key 0x", [](const std::string& table) {
         FlipInTable(table, "v7");
       }},
      {"a table of another time", nullptr, "with another value",
       [](const std::string& table) {
         const auto bytes = fs::file_size(table);
         std::vector<std::pair<std::string, std::string>> entries = {{"a", ""}};
         for (uint64_t i = 0; i < kBaseKeys; ++i) {
           entries.emplace_back(BaseKey(i), "u" + std::to_string(i));
         }
         fs::remove(table);
         WriteTableOfSize(table, bytes, entries);
       }},
  };
}

TEST_CASE("Each fault that is planted in a standby is found in one pass over "
          "all slices",
          "[follow][audit]") {
  const size_t kind = GENERATE(range(size_t{0}, kKinds));
  const bool in_slices = GENERATE(false, true);
  AuditWorld world;
  const std::vector<Planted> plants = Plants(world.source());
  REQUIRE(plants.size() == kKinds);
  const Planted& planted = plants[kind];
  INFO(planted.name);
  if (in_slices) {
    world.options()->max_bytes = 1000;
    world.RestartAudit();
  }
  // Each cut repairs the fault, so it is planted again before each cut.
  while (world.Record().differences == 0) {
    INFO("slice " << world.Record().slices << "\n" << world.said());
    REQUIRE(world.Record().passes == 0);
    const std::string table = world.dir() + TableOf(world.source(), "default");
    const std::string wal = WriteInOneWal(&world);
    world.Follow();
    if (planted.change) {
      Rewrite(wal, planted.change);
    } else {
      planted.replace(table);
      // Without a compaction, the cut would link this table from the source.
      world.source()->Flush();
      world.source()->Compact();
      world.source()->Put("newest", "1");
      world.Follow();
    }
    world.CutAndAudit();
  }
  INFO(world.said());
  const AuditFile record = world.Record();
  REQUIRE(record.unaudited_cuts == 0);
  REQUIRE(record.compares_all);
  REQUIRE(record.passes == 0);
  REQUIRE(world.KnownFault() == ReplicaFault::kDifferent);
  if (!in_slices) {
    REQUIRE(record.difference.find(planted.found) != std::string::npos);
    REQUIRE(world.fault().what.find(planted.found) != std::string::npos);
  }
  world.RequireNothingLeft();
}

// Takes a cut with a change since the last one. `plants`: the standby's WAL
// misses the change.
void CutWithChange(AuditWorld* world, bool plants) {
  const std::string value =
      "changed " + std::to_string(world->Record().slices) + " ";
  world->source()->Put(BaseKey(20), value, "other");
  world->source()->Put("newest", "1");
  world->Follow();
  const std::string wal = PathsWith(world->dir(), ".log").back();
  world->source()->Flush();
  world->source()->Put("newest", "2");
  world->Follow();
  if (plants) {
    Rewrite(wal, [&value](Records* r) { LeaveOutThat(r, value); });
  }
  world->CutAndAudit();
}

TEST_CASE("Slices cover all families and keys, one after the other",
          "[follow][audit]") {
  AuditWorld world;
  world.options()->max_bytes = 300;
  world.RestartAudit();
  uint64_t slices = 0;
  std::string before;
  while (world.Record().passes == 0) {
    REQUIRE(slices < 100);
    CutWithChange(&world, false);
    const AuditFile record = world.Record();
    INFO(world.said());
    REQUIRE(record.slices == ++slices);
    REQUIRE(record.differences == 0);
    REQUIRE((record.passes == 1 || record.pass_begun_micros > 0));
    const std::string at =
        std::to_string(record.next_family) + record.next_key.value_or("");
    REQUIRE(at != before);
    before = at;
    if (slices == 3) world.RestartAudit();  // a restarted follower
  }
  REQUIRE(slices > 8);
  REQUIRE(world.Record().entries == 4 * kBaseKeys + 2);
  world.RequireNothingLeft();
}

TEST_CASE("A fault that stays is found in one pass over all slices",
          "[follow][audit]") {
  AuditWorld world;
  world.options()->max_bytes = 300;
  world.RestartAudit();
  while (world.Record().differences == 0) {
    REQUIRE(world.Record().passes == 0);
    CutWithChange(&world, true);
  }
  REQUIRE(world.Record().slices > 3);
  REQUIRE(world.KnownFault() == ReplicaFault::kDifferent);
  // The next cut is not a scheduled one, so it is not audited. The one after it
  // is compared completely.
  REQUIRE_OK(world.Cut(CutReason::kDamage));
  world.audit()->Await();
  REQUIRE(world.KnownFault() == ReplicaFault::kNone);
  REQUIRE(world.Record().compares_all);
  CutWithChange(&world, false);
  const AuditFile record = world.Record();
  INFO(world.said());
  REQUIRE_FALSE(record.compares_all);
  REQUIRE(record.passes == 1);
  REQUIRE(record.differences == 1);
}

TEST_CASE("A standby's table with the contents of another family is found",
          "[follow][audit]") {
  AuditWorld world;
  const std::string table =
      world.dir() + TableOf(world.source(), "default");
  const std::string other = world.dir() + TableOf(world.source(), "other");
  fs::remove(table);
  fs::copy_file(other, table);
  // At the source, a compaction replaces the table by another one.
  world.source()->Put(BaseKey(0), "w");
  world.Follow();
  world.source()->Flush();
  world.source()->Compact();
  world.source()->Put("newest", "1");
  world.Follow();
  world.CutAndAudit();
  INFO(world.said());
  const AuditFile record = world.Record();
  REQUIRE(record.differences == 1);
  REQUIRE(world.KnownFault() != ReplicaFault::kNone);
  world.RequireNothingLeft();
}

TEST_CASE("Random writes, flushes and compactions are audited without a "
          "difference",
          "[follow][audit]") {
  AuditWorld world;
  world.options()->max_bytes = 1500;
  world.RestartAudit();
  std::mt19937_64 random(20261128);
  const auto upto = [&random](uint64_t most) { return random() % most; };
  const std::vector<std::string> names = {"default", "other", "merged",
                                          "blobs"};
  for (int cut = 0; cut < 25; ++cut) {
    for (uint64_t i = 0; i < 60; ++i) {
      const std::string& family = names[upto(names.size())];
      const std::string key = BaseKey(upto(kBaseKeys * 2));
      switch (upto(10)) {
        case 0:
          world.source()->Delete(key, family);
          break;
        case 1:
          world.source()->DeleteRange(key, key + "5", family);
          break;
        case 2:
          world.source()->Merge(key, std::to_string(i), "merged");
          break;
        default:
          world.source()->Put(key, std::string(upto(50), 'v'), family);
      }
      if (upto(40) == 0) {
        REQUIRE_OK((*world.source())
                       ->Flush(rocksdb::FlushOptions(),
                               world.source()->cf(family)));
      }
    }
    if (upto(4) == 0) world.source()->Compact(names[upto(names.size())]);
    world.Follow();
    world.CutAndAudit();
  }
  INFO(world.said());
  const AuditFile record = world.Record();
  REQUIRE(record.differences == 0);
  REQUIRE(record.unaudited_cuts == 0);
  REQUIRE(record.slices == 25);
  REQUIRE(record.passes > 1);
  world.RequireNothingLeft();
}

class KeepsAll : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "keeps all"; }
};

class LastOperand : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "an application's own"; }
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice*,
             const rocksdb::Slice& value, std::string* new_value,
             rocksdb::Logger*) const override {
    new_value->assign(value.data(), value.size());
    return true;
  }
};

TEST_CASE("Families that cannot be audited are named, and the rest is audited",
          "[follow][audit]") {
  static const CaselessComparator kUnknownOrder;
  static const KeepsAll kFilter;
  rocksdb::ColumnFamilyOptions ordered = Quiet();
  ordered.comparator = &kUnknownOrder;
  rocksdb::ColumnFamilyOptions filtered = Quiet();
  filtered.compaction_filter = &kFilter;
  rocksdb::ColumnFamilyOptions merged = Quiet();
  merged.merge_operator = std::make_shared<LastOperand>();
  rocksdb::ColumnFamilyOptions timed = Quiet();
  timed.comparator = rocksdb::BytewiseComparatorWithU64Ts();
  const Families families = {{"default", Quiet()},
                             {"filtered", filtered},
                             {"merged", merged},
                             {"ordered", ordered},
                             {"timed", timed}};
  AuditWorld world(families, [&families](OpenDb* db) {
    const std::string timestamp(8, '\1');
    for (uint64_t i = 0; i < kBaseKeys; ++i) {
      for (const auto& family : families) {
        if (family.name != "timed") {
          db->Put(BaseKey(i), "v", family.name);
          continue;
        }
        REQUIRE_OK((*db)->Put(rocksdb::WriteOptions(), db->cf("timed"),
                              BaseKey(i), timestamp, "v"));
      }
    }
  });
  world.source()->Put("k", "v");
  world.source()->Merge("k", "w", "merged");
  world.Follow();
  world.CutAndAudit();
  INFO(world.said());
  const AuditFile record = world.Record();
  REQUIRE(record.differences == 0);
  REQUIRE(record.passes == 1);
  REQUIRE(record.entries == kBaseKeys + 1);
  REQUIRE(record.families.size() == 4);
  REQUIRE(record.families[0].name == "filtered");
  REQUIRE(record.families[0].reason.starts_with("it has a compaction filter"));
  REQUIRE(record.families[1].name == "merged");
  REQUIRE(record.families[1].reason ==
          "its merge operator is an application's own, which this process does "
          "not have");
  REQUIRE(record.families[2].name == "ordered");
  REQUIRE(record.families[2].reason ==
          "its comparator is an order without case, which this process does "
          "not have");
  REQUIRE(record.families[3].name == "timed");
  REQUIRE(record.families[3].reason ==
          "its keys carry user-defined timestamps");
}

TEST_CASE("A pass that has left out a family begins again when the family can "
          "be audited",
          "[follow][audit]") {
  static const KeepsAll kFilter;
  rocksdb::ColumnFamilyOptions filtered = Plain();
  filtered.compaction_filter = &kFilter;
  AuditWorld world({{"default", Plain()},
                    {"filtered", filtered},
                    {"other", Plain()}});
  world.options()->max_bytes = 300;
  world.RestartAudit();
  while (world.Record().next_family < 2) {
    CutWithChange(&world, false);
    REQUIRE(world.Record().families.size() == 1);
  }
  const AuditFile before = world.Record();
  REQUIRE(before.passes == 0);
  world.BeExact();
  REQUIRE_OK(world.Cut(CutReason::kBarrier));
  while (world.Record().passes == 0) {
    CutWithChange(&world, false);
    INFO(world.said());
    REQUIRE(world.Record().families.empty());
    REQUIRE(world.Record().differences == 0);
  }
  const AuditFile after = world.Record();
  REQUIRE(after.done_begun_micros > before.pass_begun_micros);
  REQUIRE(after.entries - before.entries == 3 * kBaseKeys + 2);
}

TEST_CASE("A cut that is not classified completely, or that is newer than its "
          "standby, is not audited",
          "[follow][audit]") {
  AuditWorld world;
  world.source()->Put("k", "v");
  const bool is_judged = GENERATE(false, true);
  if (is_judged) {
    world.Follow();
    world.source()->Put("k", "w");  // in the cut, but not in the standby
  } else {
    world.Follow();
    world.source()->Flush();
    world.source()->Put("k", "w");
    world.Follow(/*is_judged=*/false);
  }
  world.CutAndAudit();
  INFO(world.said());
  const AuditFile record = world.Record();
  INFO(record.difference);
  REQUIRE(record.slices == 0);
  REQUIRE(record.unaudited_cuts == 1);
  REQUIRE(record.unaudited_reason.find("in time") != std::string::npos);
  REQUIRE(world.KnownFault() == ReplicaFault::kNone);
  world.RequireNothingLeft();
}

TEST_CASE("An audit that is stopped before its first entry counts as missing",
          "[follow][audit]") {
  AuditWorld world;
  WriteInOneWal(&world);
  world.Follow();
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "StandbyAudit:Opened") world.audit()->Cancel();
  });
  world.CutAndAudit();
  TEST_SetFaultHook(nullptr);
  const AuditFile record = world.Record();
  REQUIRE(record.slices == 0);
  REQUIRE(record.differences == 0);
  REQUIRE(record.unaudited_cuts == 1);
  REQUIRE(record.unaudited_reason.find("stopped before it compared an entry") !=
          std::string::npos);
  world.RequireNothingLeft();
}

TEST_CASE("A damaged record of audits is reported and replaced",
          "[follow][audit]") {
  AuditWorld world;
  world.source()->Put("k", "v");
  world.Follow();
  world.CutAndAudit();
  REQUIRE(world.Record().passes == 1);
  const std::string path = world.dir() + "/" + kAuditFileName;
  std::ofstream(path, std::ios::app) << "x";
  AuditFile record;
  std::string damage;
  REQUIRE_OK(ReadAuditFile(world.dir(), &record, &damage));
  REQUIRE(record == AuditFile());
  REQUIRE(damage.starts_with(path + ": "));
  world.Follow();
  world.CutAndAudit();
  REQUIRE(world.said().find(damage) != std::string::npos);
  REQUIRE(world.Record().passes == 1);  // counted from 0 again
}

TEST_CASE("Audits pause until their CPU time is within their share",
          "[follow][audit]") {
  AuditWorld world;
  world.options()->cpu_percent = 1;
  world.RestartAudit();
  for (int i = 0; i < 3; ++i) {
    world.source()->Put("k", std::to_string(i));
    world.Follow();
    world.CutAndAudit();
    const AuditFile record = world.Record();
    REQUIRE(record.unaudited_cuts == 0);
    // At 1 %, an audit may run only if 100 times the last one's CPU time has
    // passed since it began.
    const bool rests =
        i > 0 && record.begun_micros + 100 * record.cpu_micros >
                     MicrosNow();
    REQUIRE((!rests || record.slices <= static_cast<uint64_t>(i)));
    if (i == 0) REQUIRE(record.slices == 1);
  }
}

// Removes the records with `key` from those WALs of the standby that the new
// cut does not have.
void PlantInOldWal(const std::string& dir, const std::string& key) {
  for (const std::string& path : PathsWith(dir, ".log")) {
    const std::string name = fs::path(path).filename();
    const Followed wal = test::Follow(FileBytes(path));
    const bool holds = std::any_of(
        wal.records.begin(), wal.records.end(), [&key](const std::string& one) {
          return one.find(key) != std::string::npos;
        });
    if (!holds || fs::exists(dir + ".sstferry/db/" + name)) {
      continue;
    }
    Rewrite(path, [&key](Records* records) { LeaveOutThat(records, key); });
  }
}

rocksdb::Status PromoteNow(const std::string& dir) {
  PromoteOptions promote;
  promote.dir = dir;
  promote.source_is_down = true;
  StandbyState state;
  return MakePromote(promote)->Run(&state);
}

TEST_CASE("A difference stops a promotion, and the next cut compares all",
          "[follow][audit]") {
  StandbyWorld world;
  world.Write(20);
  // Some cuts are not audited, so each cut gets a fault until one is found.
  std::atomic<bool> is_found{false};
  // Guards `said` and assertions, because Catch allows one thread at a time.
  std::mutex mu;
  rocksdb::Status promoted;
  std::string said;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:AccessSet" && IsStandby(world.dir()) && !is_found) {
      const std::lock_guard<std::mutex> lock(mu);
      PlantInOldWal(world.dir(), "planted");
    }
  });
  FollowOptions options;
  options.pull = world.Options();
  options.cut_every = std::chrono::milliseconds(1);
  options.pull.log = [&](LogLevel level, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mu);
    if (level != LogLevel::kDebug) said += text + "\n";
    if (level == LogLevel::kError && !is_found.exchange(true)) {
      promoted = PromoteNow(world.dir());
    }
  };
  std::unique_ptr<StandbyJob> job = MakeFollow(options);
  rocksdb::Status followed;
  std::thread runs([&] {
    StandbyState state;
    followed = job->Run(&state);
  });
  const std::shared_ptr<void> ends(nullptr, [&](void*) {
    if (job != nullptr) job->Cancel();
    if (runs.joinable()) runs.join();
    TEST_SetFaultHook(nullptr);
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto state = [&] {
    bool found = false;
    StandbyState now;
    rocksdb::Status read;
    // While DIR is exchanged, the file may be missing for a moment.
    if (fs::exists(world.dir() + "/" + kFollowFileName)) {
      read = ReadStandbyState(world.dir(), &found, &now);
    }
    // Lock only for a moment, because the follower's log needs the mutex.
    if (!read.ok() || std::chrono::steady_clock::now() > until) {
      const std::lock_guard<std::mutex> lock(mu);
      REQUIRE_OK(read);
      FAIL(said);
    }
    return now;
  };
  const auto cuts = [&state] {
    uint64_t sum = 0;
    for (const auto& [reason, count] : state().cuts) sum += count;
    return sum;
  };
  for (int i = 0; !is_found; ++i) {
    const uint64_t sequence = world.sequence();
    REQUIRE(AwaitThat([&] { return state().durable_sequence >= sequence; }));
    const uint64_t before = cuts();
    {
      const std::lock_guard<std::mutex> lock(mu);
      world.source()->Put("planted", std::to_string(i));
      world.source()->Put("k", std::to_string(i));
      world.source()->Flush();
      world.source()->Put("k", std::to_string(i) + "b");
    }
    // Do not write meanwhile: a snapshot needs a source that pauses briefly.
    REQUIRE(AwaitThat([&] { return is_found || cuts() > before; }));
  }
  REQUIRE(AwaitThat([&] { return state().cuts["damage"] != 0; }));
  const StandbyState now = state();
  job->Cancel();
  runs.join();
  job.reset();  // releases the standby's lock
  INFO(said);
  REQUIRE_OK(followed);
  REQUIRE(now.audit.differences == 1);
  REQUIRE(now.audit.difference.find("key 0x706C616E746564") !=
          std::string::npos);
  REQUIRE(EndStateOf(promoted) == EndState::kCorrupt);
  REQUIRE(MessageOf(promoted).find("different from its source") !=
          std::string::npos);
  HealthFile health;
  REQUIRE_OK(ReadKnownFault(world.dir(), &health));
  REQUIRE(health.fault == ReplicaFault::kNone);
  REQUIRE_OK(PromoteNow(world.dir()));
  for (const auto& entry : fs::directory_iterator(world.root())) {
    REQUIRE(entry.path().string() == world.dir());
  }
  REQUIRE_FALSE(fs::exists(world.dir() + "/" + kAuditFileName));
  OpenDb mended(world.dir(), {{"default", Quiet()}, {"other", Quiet()}});
  std::string here;
  std::string there;
  REQUIRE_OK(mended->Get(rocksdb::ReadOptions(), "planted", &here));
  REQUIRE_OK(
      (*world.source())->Get(rocksdb::ReadOptions(), "planted", &there));
  REQUIRE(here == there);
}

TEST_CASE("A fault that cannot be recorded is repaired by the next cut",
          "[follow][audit]") {
  StandbyWorld world;
  world.Write(100);
  world.source()->Flush();
  world.Write(1);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  world.CloseStandby();
  const std::string table = PathsWith(world.dir(), ".sst").front();
  const std::string good = FileBytes(table);
  std::string bytes = good;
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  std::ofstream(table, std::ios::binary) << bytes;
  const auto disk = std::make_shared<FaultyFileSystem>();
  disk->FailAt(FileStep::kCreate, 1, DiskFull(), kHealthFileName,
               /*for_good=*/true);
  FollowOptions options;
  options.pull = world.Options();
  options.pull.file_system = disk;
  options.cut_every = std::chrono::milliseconds(1);
  RunningFollower follower(options);
  // Some cuts are not audited.
  REQUIRE(AwaitThat([&] {
    bool found = false;
    StandbyState state;
    // While DIR is exchanged, its files may be missing for a moment.
    return ReadStandbyState(world.dir(), &found, &state).ok() && found &&
           state.cuts["damage"] > 0;
  }));
  REQUIRE_OK(follower.Stop());
  REQUIRE(disk->count(FileStep::kCreate, kHealthFileName) > 0);
  REQUIRE(FileBytes(table) == good);
  REQUIRE_OK(PromoteNow(world.dir()));
}

TEST_CASE("Wrong bytes of a table that both sides have are damage",
          "[follow][audit]") {
  // A table has a wrong byte near its end, which was not read before. Both
  // sides link the same table, or the source has replaced it by a correct one.
  const bool is_shared = GENERATE(true, false);
  AuditWorld world({{"default", Plain()}}, [](OpenDb* source) {
    for (uint64_t i = 0; i < 500; ++i) {
      source->Put(BaseKey(i), std::string(100, 'v'));
    }
  });
  const std::string table = PathsWith(world.dir(), ".sst").front();
  std::string bytes = FileBytes(table);
  const size_t at = bytes.find(BaseKey(0));
  REQUIRE(at != std::string::npos);
  bytes[at + 20'000] = static_cast<char>(bytes[at + 20'000] ^ 1);
  std::ofstream(table, std::ios::binary) << bytes;
  if (!is_shared) {
    world.source()->Put(BaseKey(0), "w");
    world.Follow();
    world.source()->Flush();
    world.source()->Compact();
  }
  world.source()->Put("newest", "1");
  world.Follow();
  world.CutAndAudit();
  INFO(world.said());
  const AuditFile record = world.Record();
  REQUIRE(record.differences == 1);
  REQUIRE(record.difference.find("entries differ") == std::string::npos);
  REQUIRE(world.KnownFault() == ReplicaFault::kDamaged);
  world.RequireNothingLeft();
}

}  // namespace
}  // namespace sstferry::test::audit_test
