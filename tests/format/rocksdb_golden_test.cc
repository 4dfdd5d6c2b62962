// tests/golden/rocksdb contains MANIFESTs and WALs of released versions, each
// with a text of what our readers read from it. To write them with the linked
// RocksDB: test_format "[.rewrite-rocksdb]".
#include <filesystem>

#include "format/coding.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_reader.h"
#include "format/rocksdb/wal_facts.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/version.h"
#include "rocksdb/write_batch.h"
#include "tests/format/golden_files.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::rocksdb_golden_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

namespace fs = std::filesystem;

fs::path Folder() { return TestsFolder() / "golden" / "rocksdb"; }

std::string Hex(const std::string& bytes) { return ToHex(Slice(bytes)); }

std::string DescribeFile(const ManifestFile& file) {
  return "  table " + std::to_string(file.number) + " path " +
         std::to_string(file.path_id) + " level " +
         std::to_string(file.level) + " bytes " + std::to_string(file.bytes) +
         " " + Hex(file.smallest) + ".." + Hex(file.largest) + " sequences " +
         std::to_string(file.smallest_sequence) + ".." +
         std::to_string(file.largest_sequence) + " blob " +
         std::to_string(file.oldest_blob_file) + " times " +
         std::to_string(file.oldest_ancestor_time) + " " +
         std::to_string(file.creation_time) + " epoch " +
         std::to_string(file.epoch) + " tail " +
         std::to_string(file.tail_bytes) + " id " +
         (file.has_unique_id ? ToHex(file.unique_id) : "none") +
         " checksum " + file.checksum_function + " " + Hex(file.checksum) +
         "\n";
}

std::string Describe(const ManifestState& state) {
  std::string text =
      "database " + state.database_id + " next file " +
      std::to_string(state.next_file) + " last sequence " +
      std::to_string(state.last_sequence) + " highest family " +
      std::to_string(state.max_family) + " oldest log " +
      std::to_string(state.min_log_number_to_keep) + " or " +
      std::to_string(OldestNeededWal(state, false)) + "\n";
  for (const auto& [number, bytes] : state.wals) {
    text += "WAL " + std::to_string(number) + " " + std::to_string(bytes) +
            "\n";
  }
  for (const auto& [id, family] : state.families) {
    text += "family " + std::to_string(id) + " " + family.name + " " +
            family.comparator + " log " + std::to_string(family.log_number) +
            "\n";
    for (const auto& [number, file] : family.files) {
      text += DescribeFile(file);
    }
    for (const auto& [number, blob] : family.blobs) {
      text += "  blob file " + std::to_string(number) + " " +
              std::to_string(blob.total_count) + " " +
              std::to_string(blob.total_bytes) + " garbage " +
              std::to_string(blob.garbage_count) + " " +
              std::to_string(blob.garbage_bytes) + "\n";
    }
  }
  return text;
}

// Records entries and markers of transactions as text.
class Writer : public BatchHandler {
 public:
  Status OnEntry(BatchEntryKind kind, uint32_t family_id, const Slice& key,
                 const Slice& value) override {
    text += "  entry " + std::to_string(static_cast<int>(kind)) + " family " +
            std::to_string(family_id) + " " + key.ToString() + " " +
            Hex(value.ToString()) + "\n";
    return Status::OK();
  }
  Status OnMarker(BatchMarker marker, const Slice& name) override {
    text += "  marker " + std::to_string(static_cast<int>(marker)) + " " +
            name.ToString() + "\n";
    return Status::OK();
  }
  std::string text;
};

std::string DescribeWal(const test::Followed& followed, uint64_t number) {
  Writer writer;
  WalFacts facts;
  for (const std::string& record : followed.records) {
    BatchHeader header;
    REQUIRE_OK(ReadWriteBatch(record, &header, nullptr));
    writer.text += "batch " + std::to_string(header.sequence) + " " +
                   std::to_string(header.count) + "\n";
    REQUIRE_OK(ReadWriteBatch(record, &header, &writer));
    REQUIRE_OK(facts.Add(number, record));
  }
  for (const uint8_t type : followed.meta_types) {
    writer.text += "record type " + std::to_string(type) + "\n";
  }
  for (const std::string& name : facts.prepared()) {
    writer.text += "prepared " + name + "\n";
  }
  return writer.text + (followed.recyclable ? "recyclable\n" : "") +
         (facts.counts_batches() ? "counts batches\n" : "") + "end " +
         std::to_string(followed.end) + "\n";
}

std::string Describe(const std::string& bytes, bool is_wal, uint64_t number) {
  const test::Followed followed = test::Follow(
      bytes, is_wal ? LogKind::kWal : LogKind::kManifest, number);
  REQUIRE_OK(followed.status);
  if (is_wal) {
    return DescribeWal(followed, number);
  }
  ManifestReader reader;
  for (const std::string& record : followed.records) {
    REQUIRE_OK(reader.Add(record));
  }
  return Describe(reader.state());
}

void Rewrite(const std::string& kind, const std::string& name,
             const std::string& bytes, uint64_t number) {
  const std::string version = std::to_string(ROCKSDB_MAJOR) + "." +
                              std::to_string(ROCKSDB_MINOR) + "." +
                              std::to_string(ROCKSDB_PATCH);
  const fs::path base = Folder() / (kind + "_" + name + "_" + version);
  fs::create_directories(Folder());
  WriteText(base.string() + ".hex",
            "# number: " + std::to_string(number) + "\n" + Wrapped(Hex(bytes)));
  WriteText(base.string() + ".txt", Describe(bytes, kind == "wal", number));
}

void RewriteWal(rocksdb::DB* db, const std::string& name) {
  std::unique_ptr<rocksdb::LogFile> wal;
  REQUIRE_OK(db->GetCurrentWalFile(&wal));
  Rewrite("wal", name,
          test::FileBytes(db->GetName() + "/" +
                          test::WalName(wal->LogNumber())),
          wal->LogNumber());
}

rocksdb::DBOptions Options() {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  return options;
}

void RewriteManifest(const ScratchDir& dir) {
  rocksdb::ColumnFamilyOptions blobs = test::Quiet();
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 4;
  blobs.enable_blob_garbage_collection = true;
  test::Families families = test::OneFamily(test::Quiet());
  families.emplace_back("blobs", blobs);
  families.emplace_back("dropped", test::Quiet());
  rocksdb::DBOptions options = Options();
  options.atomic_flush = true;
  options.write_dbid_to_manifest = true;
  options.track_and_verify_wals_in_manifest = true;
  options.file_checksum_gen_factory =
      rocksdb::GetFileChecksumGenCrc32cFactory();
  test::OpenDb db(dir / "manifest", families, options);
  for (const char* value : {"first", "second"}) {
    db.Put("a", value);
    db.Put("a", value, "blobs");
    db.Put(value, value, "blobs");
    db.Put("a", value, "dropped");
    db.Flush();
  }
  db.Compact("blobs");
  REQUIRE_OK(db->DropColumnFamily(db.cf("dropped")));
  rocksdb::SstFileWriter writer({}, {});
  REQUIRE_OK(writer.Open(dir / "1.sst"));
  REQUIRE_OK(writer.Put("ingested", "value"));
  REQUIRE_OK(writer.Finish());
  REQUIRE_OK(db->IngestExternalFile(db.cf(), {dir / "1.sst"}, {}));
  db.Put("b", "in the WAL");
  REQUIRE_OK(db->SyncWAL());
  Rewrite("manifest", "whole", test::ManifestBytes(dir / "manifest"), 0);
}

void RewritePlainWals(const ScratchDir& dir) {
  for (const bool recycled : {false, true}) {
    rocksdb::DBOptions options = Options();
    options.recycle_log_file_num = recycled ? 1 : 0;
    options.wal_compression = recycled ? rocksdb::kNoCompression
                                       : rocksdb::kZSTD;
    options.wal_recovery_mode =
        rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    const std::string name = recycled ? "recycled" : "compressed";
    test::OpenDb db(dir / name, test::OneFamily(test::Quiet()), options);
    for (int life = 0; life < 3; ++life) {
      db.Put("long", std::string(100 - 30 * life, 'x'));
      db.Put("key", "value");
      if (life < 2) {
        db.Flush();
      }
    }
    RewriteWal(db.get(), name);
  }
  test::Families families = test::OneFamily(test::Quiet());
  families.emplace_back("second", test::Quiet());
  const test::OpenDb db(dir / "entries", families, Options());
  rocksdb::WriteBatch batch;
  REQUIRE_OK(batch.Put("a", "1"));
  REQUIRE_OK(batch.Delete(db.cf("second"), "b"));
  REQUIRE_OK(batch.SingleDelete("c"));
  REQUIRE_OK(batch.DeleteRange(db.cf("second"), "d", "e"));
  REQUIRE_OK(batch.PutEntity(db.cf(), "f", {{"name", "value"}}));
  REQUIRE_OK(batch.PutLogData("note"));
  REQUIRE_OK(db->Write({}, &batch));
  RewriteWal(db.get(), "entries");
}

void RewriteTransactions(const ScratchDir& dir) {
  for (const auto& [policy, name] :
       {std::pair(rocksdb::WRITE_COMMITTED, "write_committed"),
        std::pair(rocksdb::WRITE_PREPARED, "write_prepared"),
        std::pair(rocksdb::WRITE_UNPREPARED, "write_unprepared")}) {
    rocksdb::TransactionDBOptions transactions;
    transactions.write_policy = policy;
    rocksdb::TransactionDB* raw = nullptr;
    REQUIRE_OK(rocksdb::TransactionDB::Open(
        rocksdb::Options(Options(), {}), transactions, dir / name, &raw));
    const std::unique_ptr<rocksdb::TransactionDB> db(raw);
    std::vector<std::unique_ptr<rocksdb::Transaction>> open;
    for (const char* transaction : {"commits", "rolls back", "stays"}) {
      open.emplace_back(db->BeginTransaction({}));
      REQUIRE_OK(open.back()->SetName(transaction));
      REQUIRE_OK(open.back()->Put(transaction, "value"));
      REQUIRE_OK(open.back()->Prepare());
    }
    REQUIRE_OK(open[0]->Commit());
    REQUIRE_OK(open[1]->Rollback());
    RewriteWal(db.get(), name);
    // RocksDB asserts that no transaction is open
    REQUIRE_OK(open[2]->Rollback());
  }
}

}  // namespace

TEST_CASE("Logs and MANIFESTs of released versions are read as before",
          "[format][rocksdb][golden]") {
  size_t read = 0;
  for (const auto& entry : fs::directory_iterator(Folder())) {
    if (entry.path().extension() != ".hex") {
      continue;
    }
    INFO(entry.path().string());
    ++read;
    const Golden golden = ReadGolden(entry.path());
    const bool is_wal = entry.path().filename().string().rfind("wal", 0) == 0;
    fs::path text = entry.path();
    REQUIRE(Describe(golden.bytes, is_wal,
                     std::stoull(golden.notes.at("number"))) ==
            ReadText(text.replace_extension(".txt")));
  }
  REQUIRE(read >= 7);
}

TEST_CASE("Logs and MANIFESTs of the linked RocksDB are written again",
          "[.rewrite-rocksdb]") {
  const ScratchDir dir;
  RewriteManifest(dir);
  RewritePlainWals(dir);
  RewriteTransactions(dir);
}

}  // namespace sstferry::rocksdb_golden_test
