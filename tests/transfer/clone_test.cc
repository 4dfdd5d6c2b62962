// Tests clones: the unchanged files of a snapshot, in another directory.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "pipeline/base/last_transfer.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/transaction_db.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/restored.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::clone_test {
namespace {

namespace fs = std::filesystem;

PullOptions Cloning(uint64_t chunk_bytes = 64'000'000) {
  PullOptions options;
  options.method = PullMethod::kClone;
  options.chunk_bytes = chunk_bytes;
  return options;
}

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  INFO(path);
  REQUIRE(in.good());
  return BytesIn(in);
}

// Returns the bytes of all tables, blob files and nonempty WALs by name.
std::map<std::string, std::string> DataFiles(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const char* suffix : {".sst", ".blob", ".log"}) {
    for (const std::string& path : PathsWith(directory, suffix)) {
      const std::string bytes = BytesOf(path);
      if (!bytes.empty()) {
        files[fs::path(path).filename().string()] = bytes;
      }
    }
  }
  return files;
}

// Flips one bit of the byte at `at`.
void FlipBit(const std::string& path, uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 0x10));
  REQUIRE(file.good());
}

// Makes several levels, an unflushed WAL, deletions and overwritten keys.
void MakeLeveled(const std::string& path,
                 rocksdb::ColumnFamilyOptions options = Quiet()) {
  OpenDb db(path, OneFamily(options));
  for (int i = 0; i < 2000; ++i) db.Put(NumberedKey(i), RandomBytes(300, i));
  db.Compact();
  for (int i = 0; i < 2000; i += 3) db.Put(NumberedKey(i), "overwritten");
  for (int i = 1; i < 2000; i += 7) db.Delete(NumberedKey(i));
  db.Flush();
  for (int i = 0; i < 100; ++i) db.Put(NumberedKey(5000 + i), "in the WAL");
}

// Pulls a clone. From a directory, also requires that a restore of an archive
// has the same files.
Ferried Clone(const ScratchDir& dir, PullOptions options = Cloning(),
              Via via = Via::kDirectory) {
  const Ferried moved =
      Ferry(dir / "source", dir / "target", std::move(options), via);
  if (moved.status.ok() && via == Via::kDirectory) {
    RequireRestoredAs(dir / "source", dir / "target");
  }
  return moved;
}

TEST_CASE("A clone has the source's files byte for byte, and opens",
          "[transfer][clone]") {
  const ScratchDir dir;
  MakeLeveled(dir / "source");
  const auto files = DataFiles(dir / "source");
  const Via via = GENERATE(Via::kDirectory, Via::kTcp);
  const Ferried moved = Clone(dir, Cloning(), via);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(DataFiles(dir / "target") == files);
  REQUIRE(files.size() >= 3);
  REQUIRE(moved.summary.method == "clone");
  REQUIRE(moved.summary.files_cloned >= files.size() + 2);
  REQUIRE(moved.summary.chunks == moved.summary.chunks_cloned);
  REQUIRE(moved.summary.chunks_unchecked == 0);
  REQUIRE(moved.summary.ingest_calls == 0);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A file that is larger than a unit is sent over all lanes",
          "[transfer][clone]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = 0; i < 3000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, i));
    }
    db.Compact();
  }
  PullOptions options = Cloning(64 << 10);
  options.lanes = 4;
  const Ferried moved = Clone(dir, options, Via::kTcp);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(FileCount(dir / "source", ".sst") == 1);
  REQUIRE(moved.summary.chunks_cloned > 20);
  REQUIRE(DataFiles(dir / "target") == DataFiles(dir / "source"));
  ExpectSameEntries(dir / "source", dir / "target");
}

// Counts the bytes of tables that are read through this file system.
class TableReads : public rocksdb::FileSystemWrapper {
 public:
  TableReads() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "TableReads"; }
  rocksdb::IOStatus NewRandomAccessFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
      rocksdb::IODebugContext* dbg) override {
    const rocksdb::IOStatus status =
        target()->NewRandomAccessFile(name, options, file, dbg);
    if (status.ok() && name.ends_with(".sst")) {
      *file = std::make_unique<Counted>(std::move(*file), this);
    }
    return status;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  class Counted : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    Counted(std::unique_ptr<rocksdb::FSRandomAccessFile> file,
            TableReads* reads)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), reads_(reads) {}
    rocksdb::IOStatus Read(uint64_t offset, size_t n,
                           const rocksdb::IOOptions& options,
                           rocksdb::Slice* result, char* scratch,
                           rocksdb::IODebugContext* dbg) const override {
      reads_->bytes_ += n;
      return FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result,
                                                  scratch, dbg);
    }

   private:
    TableReads* const reads_;
  };
  std::atomic<uint64_t> bytes_{0};
};

// Makes one table of about 8 MB, which has a tail unit.
void MakeLargeTable(const std::string& path) {
  OpenDb db(path, OneFamily(Quiet()));
  for (int i = 0; i < 8000; ++i) db.Put(NumberedKey(i), RandomBytes(1000, i));
  db.Compact();
}

TEST_CASE("Blocks of a large table are checked while they arrive, and are not "
          "read again",
          "[transfer][clone]") {
  const ScratchDir dir;
  MakeLargeTable(dir / "source");
  PullOptions options = Cloning();
  const auto reads = std::make_shared<TableReads>();
  options.file_system = reads;
  options.lanes = GENERATE(1u, 4u);
  const Ferried moved = Clone(dir, options, Via::kTcp);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(FileCount(dir / "source", ".sst") == 1);
  REQUIRE(moved.summary.sst_bytes > 8'000'000);
  // The target reads again: the tail, twice, and the block between the units,
  // with readahead. With several lanes, a lane may receive a unit before the
  // tail has arrived; then the unit is read again.
  const uint64_t once_more = options.lanes == 1 ? 0 : moved.summary.sst_bytes;
  REQUIRE(reads->bytes() < 3'000'000 + once_more);
  REQUIRE(DataFiles(dir / "target") == DataFiles(dir / "source"));
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A changed block in a large table ends a clone",
          "[transfer][clone][corruption]") {
  const ScratchDir dir;
  MakeLargeTable(dir / "source");
  const std::string path = PathsWith(dir / "source", ".sst").front();
  // The changed byte is in the first unit, at its end, or in the tail.
  const uint64_t part = GENERATE(50u, 965u, 975u);
  FlipBit(path, fs::file_size(path) * part / 1000);
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kCorrupt);
  REQUIRE(moved.message().find(fs::path(path).filename().string()) !=
          std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target"));
}

TEST_CASE("A clone keeps universal and FIFO levels, blobs and merge operands",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions universal = Quiet();
  universal.compaction_style = rocksdb::kCompactionStyleUniversal;
  rocksdb::ColumnFamilyOptions fifo = Quiet();
  fifo.compaction_style = rocksdb::kCompactionStyleFIFO;
  rocksdb::ColumnFamilyOptions blobs = Quiet();
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 100;
  rocksdb::ColumnFamilyOptions merges = Quiet();
  merges.merge_operator = MergeOperatorNamed("stringappend");
  const Families families = {{"default", Quiet()},
                             {"universal", universal},
                             {"fifo", fifo},
                             {"blobs", blobs},
                             {"merges", merges}};
  OpenDb db(dir / "source", families);
  // The snapshot keeps operands and old versions from being merged.
  const rocksdb::Snapshot* const received = db->GetSnapshot();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) {
      for (const char* name : {"default", "universal", "fifo", "blobs"}) {
        db.Put(NumberedKey(i), RandomBytes(400, i + round), name);
      }
      db.Merge(NumberedKey(i), std::to_string(round), "merges");
    }
    db.Flush();
  }
  db.Merge("in the WAL", "too", "merges");
  db->ReleaseSnapshot(received);
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(FileCount(dir / "target", ".blob") > 0);
  for (const auto& family : families) {
    INFO(family.name);
    REQUIRE(EntriesOf(dir / "target", families, family.name).size() ==
            (family.name == "merges" ? 301u : 300u));
  }
  REQUIRE(EntriesOf(dir / "target", families, "merges")[1].second == "0,1,2");
}

TEST_CASE("A database with a comparator or merge operator that is unknown here "
          "can be cloned",
          "[transfer][clone]") {
  const ScratchDir dir;
  static const NamedComparator order("an application's own order");
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.comparator = &order;
  const Families families = OneFamily(options);
  {
    OpenDb db(dir / "source", families);
    for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
    db.Put("more", "in the WAL");
  }
  PullOptions as_chunks;
  as_chunks.method = PullMethod::kIngest;
  REQUIRE(Ferry(dir / "source", dir / "refused", as_chunks).state() ==
          EndState::kRefused);
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(EntriesOf(dir / "target", families).size() == 501);
}

TEST_CASE("Plain tables are cloned and counted as unchecked",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  rocksdb::PlainTableOptions plain;
  plain.user_key_len = 9;
  options.table_factory.reset(rocksdb::NewPlainTableFactory(plain));
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  rocksdb::DBOptions mapped;
  mapped.allow_mmap_reads = true;
  const Families families = OneFamily(options);
  {
    OpenDb db(dir / "source", families, mapped);
    for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
  }
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.chunks_unchecked == 1);
  REQUIRE(DataFiles(dir / "target") == DataFiles(dir / "source"));
}

TEST_CASE("Prepared transactions are prepared in a clone",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::Options options{rocksdb::DBOptions(), Quiet()};
  options.create_if_missing = true;
  rocksdb::TransactionDBOptions kind;
  kind.write_policy = GENERATE(rocksdb::WRITE_COMMITTED,
                               rocksdb::WRITE_PREPARED,
                               rocksdb::WRITE_UNPREPARED);
  const auto open = [&](const std::string& path) {
    rocksdb::TransactionDB* db = nullptr;
    REQUIRE_OK(rocksdb::TransactionDB::Open(options, kind, path, &db));
    return std::unique_ptr<rocksdb::TransactionDB>(db);
  };
  std::unique_ptr<rocksdb::TransactionDB> source = open(dir / "source");
  REQUIRE_OK(source->Put({}, "before", "1"));
  std::unique_ptr<rocksdb::Transaction> transaction(
      source->BeginTransaction({}));
  REQUIRE_OK(transaction->SetName("transfer of money"));
  REQUIRE_OK(transaction->Put("prepared", "2"));
  REQUIRE_OK(transaction->Prepare());
  REQUIRE_OK(source->Put({}, "after", "3"));
  REQUIRE_OK(source->FlushWAL(true));
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.notes_mention("1 prepared transactions are in the clone"));
  const std::unique_ptr<rocksdb::TransactionDB> clone = open(dir / "target");
  std::string value;
  REQUIRE_OK(clone->Get({}, "after", &value));
  REQUIRE(clone->Get({}, "prepared", &value).IsNotFound());
  std::unique_ptr<rocksdb::Transaction> there(
      clone->GetTransactionByName("transfer of money"));
  REQUIRE(there != nullptr);
  REQUIRE_OK(there->Commit());
  REQUIRE_OK(clone->Get({}, "prepared", &value));
  REQUIRE_OK(transaction->Rollback());
}

TEST_CASE("Thousands of column families are cloned", "[transfer][clone]") {
  constexpr size_t kFamilies = 2000;
  const ScratchDir dir;
  Families families = OneFamily(Quiet());
  std::vector<std::string> names;
  for (size_t i = 0; i < kFamilies; ++i) {
    names.push_back("family " + std::to_string(i));
    families.emplace_back(names.back(), Quiet());
  }
  {
    // One MANIFEST record and one OPTIONS file for all of them, instead of
    // 2,000.
    OpenDb db(dir / "source", OneFamily(Quiet()));
    std::vector<rocksdb::ColumnFamilyHandle*> made;
    REQUIRE_OK(db->CreateColumnFamilies(Quiet(), names, &made));
    for (size_t i = 0; i < kFamilies; ++i) {
      REQUIRE_OK(db->Put({}, made[i], "key", names[i]));
    }
    for (size_t i = 0; i < kFamilies; i += 50) {
      REQUIRE_OK(db->Flush({}, made[i]));
    }
    for (rocksdb::ColumnFamilyHandle* family : made) {
      REQUIRE_OK(db->DestroyColumnFamilyHandle(family));
    }
  }
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.column_families.size() == kFamilies + 1);
  OpenDb db(dir / "target", families);
  for (const std::string& name : names) {
    std::string value;
    REQUIRE_OK(db->Get({}, db.cf(name), "key", &value));
    REQUIRE(value == name);
  }
}

TEST_CASE("A clone has its WALs beside its tables and names no directory of "
          "the source", "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::DBOptions options;
  options.wal_dir = dir / "wals";
  {
    OpenDb db(dir / "source", OneFamily(Quiet()), options);
    for (int i = 0; i < 50; ++i) db.Put(NumberedKey(i), "in the WAL");
  }
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.notes_mention("wal_dir"));
  for (const std::string& path : PathsWith(dir / "target", "")) {
    const std::string name = fs::path(path).filename().string();
    if (name.starts_with("OPTIONS-")) {
      REQUIRE(BytesOf(path).find(dir.path()) == std::string::npos);
    }
  }
  REQUIRE(EntriesOf(dir / "target", OneFamily(Quiet())).size() == 50);
}

std::string IdOf(const std::string& path) {
  OpenDb db(path, OneFamily(Quiet()));
  std::string id;
  REQUIRE_OK(db->GetDbIdentity(id));
  return id;
}

TEST_CASE("A clone has an id of its own, unless it replaces its source",
          "[transfer][clone]") {
  const ScratchDir dir;
  rocksdb::DBOptions options;
  options.write_dbid_to_manifest = GENERATE(true, false);
  {
    OpenDb db(dir / "source", OneFamily(Quiet()), options);
    db.Put("key", "value");
  }
  REQUIRE_OK(Clone(dir).status);
  PullOptions same = Cloning();
  same.keep_identity = true;
  REQUIRE_OK(Ferry(dir / "source", dir / "same", same).status);
  const std::string id = IdOf(dir / "source");
  const std::string own = IdOf(dir / "target");
  REQUIRE(own != id);
  REQUIRE(IdOf(dir / "target") == own);  // no open gives it another one
  REQUIRE(IdOf(dir / "same") == id);
}

TEST_CASE("A refresh in place of a clone needs no --adopt, and compares",
          "[transfer][clone][refresh]") {
  const ScratchDir dir;
  MakeLeveled(dir / "source");
  REQUIRE_OK(Clone(dir).status);
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put(NumberedKey(7), "changed since");
    db.Delete(NumberedKey(6));
  }
  PullOptions refresh;
  refresh.source.directory = dir / "source";
  refresh.target_dir = dir / "target";
  refresh.mode = PullMode::kRefresh;
  refresh.method = PullMethod::kIngest;
  Summary summary;
  const rocksdb::Status status = MakePull(refresh)->Run(&summary);
  INFO(status.ToString());
  REQUIRE_OK(status);
  REQUIRE(summary.parts_compared > 0);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A clone takes the place of an older one by a swap",
          "[transfer][clone][refresh]") {
  const ScratchDir dir;
  MakeLeveled(dir / "source");
  REQUIRE_OK(Clone(dir).status);
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("newer", "value");
  }
  PullOptions swap = Cloning();
  swap.source.directory = dir / "source";
  swap.target_dir = dir / "target";
  swap.mode = PullMode::kSwap;
  Summary summary;
  const rocksdb::Status status = MakePull(swap)->Run(&summary);
  INFO(status.ToString());
  REQUIRE_OK(status);
  REQUIRE(summary.method == "clone");
  REQUIRE(summary.mode == "swap");
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
}

TEST_CASE("A bit that flipped in a file of the source ends a clone",
          "[transfer][clone][corruption]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.enable_blob_files = true;
  options.min_blob_size = 200;
  MakeLeveled(dir / "source", options);
  const std::string suffix = GENERATE(".sst", ".blob");
  const uint64_t part = GENERATE(1, 2, 3);
  const std::string path = PathsWith(dir / "source", suffix).front();
  FlipBit(path, fs::file_size(path) * part / 4);
  const Ferried moved = Clone(dir);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kCorrupt);
  REQUIRE(moved.message().find(fs::path(path).filename().string()) !=
          std::string::npos);
}

TEST_CASE("A clone of some keys is refused", "[transfer][clone][refused]") {
  const ScratchDir dir;
  MakeLeveled(dir / "source");
  PullOptions options = Cloning();
  SECTION("of keys from one on") { options.selection.interval.begin = "k"; }
  SECTION("of keys up to one") { options.selection.interval.end = "k"; }
  const Ferried moved = Clone(dir, options);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
}

}  // namespace
}  // namespace sstferry::test::clone_test
