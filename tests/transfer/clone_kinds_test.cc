// Tests clones of databases that chunks cannot represent. The tests open them
// as their application does.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "format/byte_source.h"
#include "format/coding.h"
#include "format/crc32c.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/wide_columns.h"
#include "tests/support/catch.h"
#include "tests/support/restored.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

#if ROCKSDB_MAJOR < 8
namespace rocksdb {
// RocksDB 7's library defines it, but no header declares it.
const Comparator* BytewiseComparatorWithU64Ts();
}  // namespace rocksdb
#endif

namespace sstferry::test::clone_kinds_test {
namespace {

namespace fs = std::filesystem;

Ferried Clone(const ScratchDir& dir) {
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  RequireRestoredAs(dir / "source", dir / "target");
  return moved;
}

std::string Timestamp(uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>(number >> (8 * i));
  }
  return bytes;
}

TEST_CASE("Every version of user-defined timestamps is in a clone",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions stamped = Quiet();
  stamped.comparator = rocksdb::BytewiseComparatorWithU64Ts();
  Families families = OneFamily(Quiet());
  families.push_back({"stamped", stamped});
  const auto read = [](const OpenDb& db, const std::string& key,
                       uint64_t at) {
    const std::string stamp = Timestamp(at);
    const rocksdb::Slice as_of(stamp);
    rocksdb::ReadOptions options;
    options.timestamp = &as_of;
    std::string value;
    const rocksdb::Status status =
        db->Get(options, db.cf("stamped"), key, &value);
    return status.ok() ? value : status.ToString();
  };
  {
    OpenDb db(dir / "source", families);
    for (const uint64_t at : {10u, 20u}) {
      REQUIRE_OK(db->Put({}, db.cf("stamped"), "in tables", Timestamp(at),
                         "value at " + std::to_string(at)));
    }
    REQUIRE_OK(db->Delete({}, db.cf("stamped"), "in tables", Timestamp(30)));
    db.Flush();
    REQUIRE_OK(db->Put({}, db.cf("stamped"), "in the WAL", Timestamp(40),
                       "value at 40"));
  }
  PullOptions as_chunks;
  as_chunks.method = PullMethod::kIngest;
  REQUIRE(Ferry(dir / "source", dir / "refused", as_chunks).state() ==
          EndState::kRefused);
  Clone(dir);
  const OpenDb clone(dir / "target", families);
  CHECK(read(clone, "in tables", 15) == "value at 10");
  CHECK(read(clone, "in tables", 25) == "value at 20");
  CHECK(read(clone, "in tables", 35).starts_with("NotFound"));
  CHECK(read(clone, "in the WAL", 45) == "value at 40");
  CHECK(read(clone, "in the WAL", 35).starts_with("NotFound"));
}

TEST_CASE("Wide columns are in a clone", "[transfer][clone]") {
  const ScratchDir dir;
  const rocksdb::WideColumns columns = {{"", "of the whole"},
                                        {"a", "1"},
                                        {"b", "2"}};
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    REQUIRE_OK(db->PutEntity({}, db.cf(), "in tables", columns));
    db.Flush();
    REQUIRE_OK(db->PutEntity({}, db.cf(), "in the WAL", columns));
  }
  Clone(dir);
  const OpenDb clone(dir / "target", OneFamily(Quiet()));
  for (const char* key : {"in tables", "in the WAL"}) {
    rocksdb::PinnableWideColumns found;
    REQUIRE_OK(clone->GetEntity({}, clone.cf(), key, &found));
    CHECK(found.columns() == columns);
  }
}

TEST_CASE("A WAL that has the number of a table is in a clone",
          "[transfer][clone]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("in a", "table");
    db.Flush();
    db.Put("in the", "WAL");
  }
  // RocksDB leaves such files if it recovers a TransactionDB whose WALs are in
  // another directory.
  const fs::path table = PathsWith(dir / "source", ".sst").front();
  const std::vector<std::string> wals = PathsWith(dir / "source", ".log");
  fs::rename(*std::max_element(wals.begin(), wals.end()),
             fs::path(table).replace_extension(".log"));
  Clone(dir);
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.mode = PullMode::kSwap;
  options.method = PullMethod::kClone;
  Summary same;
  REQUIRE_OK(MakePull(options)->Run(&same));
  REQUIRE_FALSE(same.exchanged);
  const std::vector<std::pair<std::string, std::string>> all = {
      {"in a", "table"}, {"in the", "WAL"}};
  REQUIRE(EntriesOf(dir / "target", OneFamily(Quiet())) == all);
  options.always_swap = true;
  Summary swapped;  // links the table, and receives the WAL
  REQUIRE_OK(MakePull(options)->Run(&swapped));
  REQUIRE(swapped.exchanged);
  REQUIRE(swapped.files_reused == 1);
  REQUIRE(EntriesOf(dir / "target", OneFamily(Quiet())) == all);
}

TEST_CASE("Versions that a snapshot at the source needed are in a clone",
          "[transfer][clone]") {
  const ScratchDir dir;
  std::string properties;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    const rocksdb::Snapshot* received = nullptr;
    for (int version = 0; version < 3; ++version) {
      for (int i = 0; i < 100; ++i) {
        db.Put(NumberedKey(i), std::to_string(version));
      }
      if (received == nullptr) {
        received = db->GetSnapshot();
      }
    }
    db.Flush();
    db->ReleaseSnapshot(received);
    REQUIRE(db->GetProperty("rocksdb.estimate-num-keys", &properties));
  }
  Clone(dir);
  const OpenDb clone(dir / "target", OneFamily(Quiet()));
  // The table has two versions of each key, as at the source.
  std::string there;
  REQUIRE(clone->GetProperty("rocksdb.estimate-num-keys", &there));
  CHECK(there == "200");
  CHECK(there == properties);
  CHECK(EntriesOf(dir / "source", OneFamily(Quiet())).size() == 100);
}

#if ROCKSDB_MAJOR > 8 || (ROCKSDB_MAJOR == 8 && ROCKSDB_MINOR >= 6)
TEST_CASE("Tables without the timestamps of their keys are in a clone",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions stamped = Quiet();
  stamped.comparator = rocksdb::BytewiseComparatorWithU64Ts();
  stamped.persist_user_defined_timestamps = false;
  Families families = OneFamily(Quiet());
  families.push_back({"stamped", stamped});
  rocksdb::DBOptions one_writer;
  one_writer.allow_concurrent_memtable_write = false;
  {
    OpenDb db(dir / "source", families, one_writer);
    for (int i = 0; i < 100; ++i) {
      REQUIRE_OK(db->Put({}, db.cf("stamped"), NumberedKey(i), Timestamp(10),
                         "value"));
    }
    db.Flush();
  }
  Clone(dir);
  const OpenDb clone(dir / "target", families, one_writer);
  const std::string stamp = Timestamp(20);
  const rocksdb::Slice as_of(stamp);
  rocksdb::ReadOptions options;
  options.timestamp = &as_of;
  for (int i = 0; i < 100; ++i) {
    std::string value;
    REQUIRE_OK(clone->Get(options, clone.cf("stamped"), NumberedKey(i),
                          &value));
    REQUIRE(value == "value");
  }
}
#else
// Appends to the MANIFEST, as a newer RocksDB does, that the keys in the
// database's only table have no timestamps.
void SayKeysLackTimestamps(const std::string& path) {
  std::string manifest = BytesOf(path + "/CURRENT");
  manifest = path + "/" + manifest.substr(0, manifest.size() - 1);
  ManifestReader reader;
  LogFollower follower(LogKind::kManifest);
  const std::string bytes = BytesOf(manifest);
  REQUIRE_OK(follower.Follow(SliceSource(bytes),
                             [&](const rocksdb::Slice& record, uint64_t) {
                               return reader.Add(record);
                             }));
  const ManifestFile& file =
      reader.state().families.at(0).files.begin()->second;
  std::string edit;
  const auto put = [&edit](uint64_t number) {
    for (; number >= 0x80; number >>= 7) {
      edit.push_back(static_cast<char>(number | 0x80));
    }
    edit.push_back(static_cast<char>(number));
  };
  const auto put_bytes = [&](const std::string& text) {
    put(text.size());
    edit += text;
  };
  for (const int number : {6, file.level}) put(number);  // deleted file
  put(file.number);
  for (const int number : {103, file.level}) put(number);  // new file
  put(file.number);
  put(file.bytes);
  put_bytes(file.smallest);
  put_bytes(file.largest);
  put(file.smallest_sequence);
  put(file.largest_sequence);
  put(16);  // user-defined timestamps are persisted
  put_bytes(std::string(1, '\0'));
  put(1);  // no more fields
  const std::string checked = '\1' + edit;
  std::string record;
  PutFixed32(&record, MaskCrc32c(Crc32c(checked.data(), checked.size())));
  PutFixed16(&record, static_cast<uint16_t>(edit.size()));
  std::ofstream(manifest, std::ios::app | std::ios::binary)
      << record << checked;
}

TEST_CASE("Tables without the timestamps of their keys are refused if the "
          "application cannot read them",
          "[transfer][clone]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = 0; i < 100; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
  }
  SayKeysLackTimestamps(dir / "source");
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.opens_since == "8.6");
  options.for_rocksdb = "8.5.4";
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kIncompatible);
  REQUIRE(refused.message().find("RocksDB reads since 8.6") !=
          std::string::npos);
  REQUIRE(refused.summary.wire_bytes < 10'000);
}
#endif

// Flips one bit in the middle of the directory's only table.
void DamageTable(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() != ".sst") continue;
    std::fstream file(entry.path(),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(200);
    const char old = static_cast<char>(file.get());
    file.seekp(200);
    file.put(static_cast<char>(old ^ 1));
  }
}

TEST_CASE("A database whose MANIFEST has a damaged record is neither cloned "
          "nor pushed",
          "[transfer][clone][corruption]") {
  const ScratchDir dir;
  rocksdb::DBOptions named;
  named.write_dbid_to_manifest = true;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()), named);
    for (int table = 0; table < 2; ++table) {
      db.Put(NumberedKey(table), "value");
      db.Flush();
    }
  }
  std::string name = BytesOf(dir / "source/CURRENT");
  name.pop_back();
  const std::string path = dir / ("source/" + name);
  std::string bytes = BytesOf(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteBytes(path, bytes);
  PullOptions clone;
  clone.method = PullMethod::kClone;
  const Ferried moved = Ferry(dir / "source", dir / "target", clone);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kCorrupt);
  REQUIRE(moved.message().find(name + ": MANIFEST: record at offset ") !=
          std::string::npos);
  REQUIRE(moved.message().find(": expected checksum ") != std::string::npos);
  REQUIRE(moved.summary.wire_bytes < 10'000);
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
  InitArchive(dir / "archive");
  ArchiveOptions push;
  push.action = ArchiveAction::kPush;
  push.store.where.directory = dir / "archive";
  push.source.directory = dir / "source";
  ArchiveReport report;
  const rocksdb::Status pushed = MakeArchiveJob(push)->Run(&report);
  INFO(pushed.ToString());
  REQUIRE(EndStateOf(pushed) == EndState::kCorrupt);
}

TEST_CASE("Tables without checksums are compared with the file checksums of "
          "the MANIFEST",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  rocksdb::BlockBasedTableOptions table;
  const bool plain = GENERATE(false, true);
  table.checksum = rocksdb::kNoChecksum;
  rocksdb::PlainTableOptions keys;
  keys.user_key_len = 9;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  options.table_factory.reset(plain
                                  ? rocksdb::NewPlainTableFactory(keys)
                                  : rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DBOptions summed;
  summed.allow_mmap_reads = true;
  summed.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  {
    OpenDb db(dir / "source", OneFamily(options), summed);
    for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
  }
  const Ferried whole = Clone(dir);
  INFO(whole.message());
  REQUIRE_OK(whole.status);
  REQUIRE(whole.summary.chunks_unchecked == 0);
  std::filesystem::remove_all(dir / "target");
  DamageTable(dir / "source");
  PullOptions clone;
  clone.method = PullMethod::kClone;
  const Ferried damaged = Ferry(dir / "source", dir / "target", clone);
  INFO(damaged.message());
  REQUIRE(EndStateOf(damaged.status) == EndState::kCorrupt);
  REQUIRE(damaged.message().find("file checksum") != std::string::npos);
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
}

TEST_CASE("Rebuilt tables have no checksum of the file, and a note says so",
          "[transfer]") {
  const ScratchDir dir;
  rocksdb::DBOptions summed;
  summed.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  {
    OpenDb db(dir / "source", OneFamily(Quiet()), summed);
    for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
  }
  PullOptions pull;
  pull.method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  const bool is_clone = pull.method == PullMethod::kClone;
  const Ferried moved = Ferry(dir / "source", dir / "target", pull);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.notes_mention("file_checksum_gen_factory") == !is_clone);
  OpenDb db(dir / "target", OneFamily(Quiet()), summed);
  const auto names = [&db] {
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    REQUIRE(files.size() == 1);
    return files[0].file_checksum_func_name;
  };
  REQUIRE((names() == "FileChecksumCrc32c") == is_clone);
  REQUIRE_OK(db->VerifyFileChecksums({}));
  REQUIRE_OK(db->VerifyChecksum());
  db.Compact();
  REQUIRE(names() == "FileChecksumCrc32c");
}

// Ingests two keys below all entries of the database.
rocksdb::Status IngestBehind(const ScratchDir& dir, OpenDb* db) {
  const std::string path = dir / "older.sst";
  rocksdb::SstFileWriter writer{rocksdb::EnvOptions(), rocksdb::Options()};
  REQUIRE_OK(writer.Open(path));
  REQUIRE_OK(writer.Put("deleted", "older"));
  REQUIRE_OK(writer.Put("never written", "older"));
  REQUIRE_OK(writer.Finish());
  rocksdb::IngestExternalFileOptions behind;
  behind.ingest_behind = true;
  return (*db)->IngestExternalFile({path}, behind);
}

TEST_CASE("A database that ingests older data is cloned with its deletions",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions universal = Quiet();
  universal.compaction_style = rocksdb::kCompactionStyleUniversal;
  rocksdb::DBOptions behind;
  behind.allow_ingest_behind = true;
  {
    OpenDb db(dir / "source", OneFamily(universal), behind);
    db.Put("a", "value");
    db.Put("deleted", "value");
    db.Flush();
    db.Delete("deleted");
    db.Flush();
  }
  PullOptions chunks;
  chunks.method = PullMethod::kIngest;
  const Ferried refused = Ferry(dir / "source", dir / "chunks", chunks);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("database: according to its OPTIONS "
                                 "(allow_ingest_behind)") !=
          std::string::npos);
  const Ferried cloned = FerryByRule(dir / "source", dir / "clone");
  REQUIRE_OK(cloned.status);
  REQUIRE(cloned.summary.method == "clone");
  OpenDb db(dir / "clone", OneFamily(universal), behind);
  REQUIRE_OK(IngestBehind(dir, &db));
  std::string value;
  REQUIRE(db->Get({}, "deleted", &value).IsNotFound());
  REQUIRE_OK(db->Get({}, "never written", &value));
}

TEST_CASE("Cuckoo tables are in a clone, and counted as unchecked",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.table_factory.reset(rocksdb::NewCuckooTableFactory());
  rocksdb::DBOptions mapped;
  mapped.allow_mmap_reads = true;
  mapped.allow_concurrent_memtable_write = false;
  const Families families = OneFamily(options);
  {
    OpenDb db(dir / "source", families, mapped);
    for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "8 bytes.");
    db.Flush();
  }
  CHECK(Clone(dir).summary.chunks_unchecked == 1);
  const OpenDb clone(dir / "target", families, mapped);
  for (int i = 0; i < 500; i += 7) {
    std::string value;
    REQUIRE_OK(clone->Get({}, NumberedKey(i), &value));
    REQUIRE(value == "8 bytes.");
  }
}

}  // namespace
}  // namespace sstferry::test::clone_kinds_test
