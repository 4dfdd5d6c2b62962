// Sources whose owner crashed. The snapshot must have the entries that RocksDB
// recovers with the application's options, or be refused with a reason.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>

#include "format/release.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/follow/followed_source.h"
#include "pipeline/options/seen_options.h"
#include "pipeline/snapshot/pinned_files.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_wal_place.h"
#include "rocksdb/convenience.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/wide_columns.h"
#include "sstferry/source.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/log_bytes.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::snapshot_recovery_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Options;
using rocksdb::WriteOptions;

// Copies an open database without writers. Obsolete files may be deleted
// meanwhile.
void CopyOpen(const std::string& from, const std::string& to) {
  fs::create_directory(to);
  for (const std::string& name : NamesIn(from)) {
    std::error_code gone;
    fs::copy_file(from + "/" + name, to + "/" + name, gone);
  }
}

// Leaves `directory` as after a crash of its owner: `write_and_die` copies the
// files on the disk while the database is still open.
void Die(const std::string& directory,
         const std::function<void(const std::string& alive)>& write_and_die) {
  const std::string alive = directory + ".alive";
  if (fs::exists(directory)) {
    fs::rename(directory, alive);
  }
  write_and_die(alive);
  fs::remove_all(alive);
}

Options Plain() {
  Options options;
  options.create_if_missing = true;
  options.avoid_flush_during_recovery = true;
  // CopyOpen() copies file by file. No compaction may replace a file meanwhile.
  options.disable_auto_compactions = true;
  return options;
}

void DieAfter(const Options& options, const std::string& directory,
              const Entries& entries, bool flush = false) {
  Die(directory, [&](const std::string& alive) {
    test::OpenDb db(options, alive);
    for (const auto& [key, value] : entries) {
      REQUIRE_OK(db->Put(WriteOptions(), key, value));
    }
    if (flush) REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    REQUIRE_OK(db->SyncWAL());
    CopyOpen(alive, directory);
  });
}

SnapshotOptions Of(const std::string& directory) {
  SnapshotOptions options;
  options.database_dir = directory;
  return options;
}

rocksdb::Status TakeStatus(const SnapshotOptions& options) {
  std::unique_ptr<Snapshot> snapshot;
  return Snapshot::Create(options, &snapshot);
}

std::unique_ptr<Snapshot> Take(const SnapshotOptions& options) {
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  return snapshot;
}

bool HasNote(const Snapshot& snapshot, const std::string& words) {
  for (const std::string& note : snapshot.notes()) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

// Returns the entries that RocksDB itself recovers from a copy of `directory`.
Entries Recovered(const Options& options, const std::string& directory) {
  const std::string copy = directory + ".oracle";
  fs::remove_all(copy);
  fs::copy(directory, copy);
  Entries entries;
  {
    test::OpenDb db(options, copy);
    entries = ReadAll(db.get(), db.family(0));
  }
  fs::remove_all(copy);
  return entries;
}

void RequireAsRecovered(const Options& options, const std::string& directory,
                        const Entries& expected) {
  CHECK(Recovered(options, directory) == expected);
  const std::string before = Fingerprint(directory);
  CHECK(ReadAll(*Take(Of(directory)), "default") == expected);
  CHECK(Fingerprint(directory) == before);
}

void RequireRefused(const rocksdb::Status& status, const std::string& words) {
  INFO(status.ToString());
  CHECK(EndStateOf(status) == EndState::kRefused);
  CHECK(MessageOf(status).find(words) != std::string::npos);
}

std::string WalOf(const std::string& directory, size_t which) {
  return directory + "/" + FilesWith(directory, ".log").at(which);
}

TEST_CASE("Snapshot stops at a torn WAL before the newest as recovery does",
          "[snapshot][recovery]") {
  ScratchDir tree;
  const Options options = Plain();
  DieAfter(options, tree / "db", {{"0", "0"}}, true);
  DieAfter(options, tree / "db", {{"a", "1"}});
  DieAfter(options, tree / "db", {{"b", "1"}});
  DieAfter(options, tree / "db", {{"c", "1"}});
  // The WAL of the flush, then those with a, b and c.
  const size_t wals = FilesWith(tree / "db", ".log").size();
  REQUIRE(wals >= 3);
  fs::resize_file(WalOf(tree / "db", wals - 2), 21);
  RequireAsRecovered(options, tree / "db", {{"0", "0"}, {"a", "1"}});
  CHECK(HasNote(*Take(Of(tree / "db")), "ends inside a record"));
}

// The first round reads all WALs, which may take minutes. The torn end of the
// newest WAL needs further rounds.
TEST_CASE("The time limit of a snapshot begins after its first round",
          "[snapshot][recovery]") {
  ScratchDir tree;
  const Options options = Plain();
  DieAfter(options, tree / "db", {{"0", "0"}}, true);
  DieAfter(options, tree / "db", {{"a", "1"}});
  const size_t wals = FilesWith(tree / "db", ".log").size();
  fs::resize_file(WalOf(tree / "db", wals - 1), 21);
  SnapshotOptions asked = Of(tree / "db");
  asked.deadline = std::chrono::milliseconds(3000);
  std::atomic<bool> is_first{true};
  asked.cancelled = [&is_first] {
    if (is_first.exchange(false)) {
      const auto after =
          std::chrono::steady_clock::now() + std::chrono::milliseconds(3300);
      while (std::chrono::steady_clock::now() < after) {
        std::this_thread::yield();
      }
    }
    return false;
  };
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(asked, &snapshot));
  CHECK(snapshot->counters().rounds > 1);
  CHECK(ReadAll(*snapshot, "default") == Entries{{"0", "0"}});
}

TEST_CASE("Snapshot handles a missing WAL as RocksDB does",
          "[snapshot][recovery]") {
  ScratchDir tree;
  const Options options = Plain();
  DieAfter(options, tree / "db", {{"0", "0"}}, true);
  DieAfter(options, tree / "db", {{"a", "1"}});
  DieAfter(options, tree / "db", {{"b", "1"}});
  DieAfter(options, tree / "db", {{"c", "1"}});
  fs::remove(WalOf(tree / "db", FilesWith(tree / "db", ".log").size() - 2));
  RequireAsRecovered(options, tree / "db", Recovered(options, tree / "db"));
}

TEST_CASE("Snapshot of a torn WAL obeys the recovery mode of OPTIONS",
          "[snapshot][recovery]") {
  using Mode = rocksdb::WALRecoveryMode;
  const Mode mode = GENERATE(
      Mode::kPointInTimeRecovery, Mode::kTolerateCorruptedTailRecords,
      Mode::kAbsoluteConsistency, Mode::kSkipAnyCorruptedRecords);
  const size_t from_newest = GENERATE(1, 2);
  INFO("mode " << static_cast<int>(mode) << ", torn " << from_newest);
  ScratchDir tree;
  Options options = Plain();
  options.wal_recovery_mode = mode;
  DieAfter(options, tree / "db", {{"0", "0"}}, true);
  for (const char* key : {"a", "b", "c"}) {
    DieAfter(options, tree / "db", {{key, "1"}, {"x", std::string(50, 'x')}});
  }
  const std::string torn = WalOf(
      tree / "db", FilesWith(tree / "db", ".log").size() - from_newest);
  fs::resize_file(torn, fs::file_size(torn) - 10);
  if (mode == Mode::kAbsoluteConsistency) {
    const auto status = TakeStatus(Of(tree / "db"));
    INFO(status.ToString());
    CHECK(EndStateOf(status) == EndState::kCorrupt);
    return;
  }
  RequireAsRecovered(options, tree / "db", Recovered(options, tree / "db"));
}

// After a power loss, a WAL with preallocated blocks may end with zeros.
TEST_CASE("Snapshot of a torn last record with zeros after it equals RocksDB's "
          "recovery",
          "[snapshot][recovery]") {
  using Mode = rocksdb::WALRecoveryMode;
  const Mode mode = GENERATE(
      Mode::kPointInTimeRecovery, Mode::kTolerateCorruptedTailRecords,
      Mode::kAbsoluteConsistency, Mode::kSkipAnyCorruptedRecords);
  const uint64_t lost = GENERATE(1, 20, 60, 68);  // of 73 bytes
  const uint64_t zeros = GENERATE(0, 3, 4096, 70000);
  INFO("mode " << static_cast<int>(mode) << ", lost " << lost << ", zeros "
               << zeros);
  ScratchDir tree;
  Options options = Plain();
  options.wal_recovery_mode = mode;
  DieAfter(options, tree / "db", {{"0", "0"}}, true);
  DieAfter(options, tree / "db", {{"a", "1"}});
  DieAfter(options, tree / "db", {{"b", "1"}, {"x", std::string(50, 'x')}});
  const std::string torn =
      WalOf(tree / "db", FilesWith(tree / "db", ".log").size() - 1);
  const uint64_t bytes = fs::file_size(torn);
  fs::resize_file(torn, bytes - lost);
  fs::resize_file(torn, bytes - lost + zeros);
  const std::string before = Fingerprint(tree / "db");
  fs::copy(tree / "db", tree / "oracle");
  std::unique_ptr<rocksdb::DB> db;
  const rocksdb::Status opened =
      rocksdb::DB::Open(options, tree / "oracle", IntoDb(&db));
  INFO("RocksDB: " << opened.ToString());
  if (!opened.ok()) {
    CHECK(EndStateOf(TakeStatus(Of(tree / "db"))) == EndState::kCorrupt);
    return;
  }
  const Entries recovered = ReadAll(db.get(), db->DefaultColumnFamily());
  CHECK(recovered.count("b") == 1);
  CHECK(ReadAll(*Take(Of(tree / "db")), "default") == recovered);
  SnapshotOptions clone = Of(tree / "db");
  clone.as_files = true;
  REQUIRE_OK(TakeStatus(clone));
  CHECK(Fingerprint(tree / "db") == before);
}

TEST_CASE("Snapshot of a WAL with a bad byte before intact records is refused, "
          "even if RocksDB opens it",
          "[snapshot][recovery][corruption]") {
  ScratchDir tree;
  DieAfter(Plain(), tree / "db",
           {{"a", std::string(50, 'a')}, {"b", std::string(50, 'b')}});
  const std::string wal =
      WalOf(tree / "db", FilesWith(tree / "db", ".log").size() - 1);
  FlipByte(wal, 40, 1);
  const auto as_files = GENERATE(false, true);
  SnapshotOptions options = Of(tree / "db");
  options.as_files = as_files;
  CHECK(EndStateOf(TakeStatus(options)) == EndState::kCorrupt);
}

// RocksDB still opens tables with LevelDB's suffix.
TEST_CASE("Snapshot accepts tables that are called .ldb", "[snapshot]") {
  const bool all = GENERATE(true, false);
  ScratchDir tree;
  DieAfter(Plain(), tree / "db", {{"a", "1"}}, true);
  DieAfter(Plain(), tree / "db", {{"b", "1"}}, true);
  const std::vector<std::string> tables = FilesWith(tree / "db", ".sst");
  REQUIRE(tables.size() >= 2);
  for (const std::string& name : tables) {
    if (all || name == tables.front()) {
      const std::string path = tree / ("db/" + name);
      fs::rename(path, fs::path(path).replace_extension(".ldb"));
    }
  }
  RequireAsRecovered(Plain(), tree / "db", {{"a", "1"}, {"b", "1"}});
  SnapshotOptions options = Of(tree / "db");
  options.as_files = true;
  const auto clone = Take(options);
  CHECK(FilesWith(clone->directory() + "/db", ".sst") == tables);
}

// RocksDB fails to load options from an empty newest file. But an application
// that sets its options itself can open the database.
TEST_CASE("Snapshot reports that the newest OPTIONS file is empty, although an "
          "older one is intact",
          "[snapshot]") {
  ScratchDir tree;
  DieAfter(Plain(), tree / "db", {{"a", "1"}});
  std::ofstream(tree / "db/OPTIONS-009999").flush();
  const auto status = TakeStatus(Of(tree / "db"));
  RequireRefused(status, (tree / "db") + ": OPTIONS-009999: ");
  RequireRefused(status, "--method clone");
  SnapshotOptions options = Of(tree / "db");
  options.as_files = true;
  REQUIRE_OK(TakeStatus(options));
}

TEST_CASE("Snapshot works with track_and_verify_wals_in_manifest",
          "[snapshot][recovery]") {
  ScratchDir tree;
  Options options = Plain();
  options.track_and_verify_wals_in_manifest = true;
  DieAfter(options, tree / "db", {{"0", "0"}}, true);
  DieAfter(options, tree / "db", {{"a", "1"}});
  DieAfter(options, tree / "db", {{"b", "1"}});
  RequireAsRecovered(options, tree / "db",
                     {{"0", "0"}, {"a", "1"}, {"b", "1"}});
}

// After a power loss, a file may end with zeros. RocksDB takes them for the end
// of the WAL, so the source copies them. RocksDB does not open a WAL that is
// shorter than its size in the MANIFEST.
TEST_CASE("A clone whose WAL is shorter than the MANIFEST says is refused",
          "[snapshot][recovery][corruption]") {
  const bool ends_with_zeros = GENERATE(false, true);
  ScratchDir tree;
  Options options = Plain();
  options.track_and_verify_wals_in_manifest = true;
  options.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  uint64_t last_record = 0;  // its offset
  Die(tree / "db", [&](const std::string& alive) {
    test::OpenDb db(options, alive);
    rocksdb::ColumnFamilyHandle* second = nullptr;
    REQUIRE_OK(db->CreateColumnFamily(options, "second", &second));
    REQUIRE_OK(db->Put(WriteOptions(), second, "a", "1"));
    last_record = fs::file_size(WalOf(alive, 0));
    REQUIRE_OK(db->Put(WriteOptions(), "b", "1"));
    // Flushes only "default": "second" still needs the WAL, but it is closed.
    REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    REQUIRE_OK(db->Put(WriteOptions(), "c", "1"));
    REQUIRE_OK(db->SyncWAL());
    REQUIRE_OK(db->DestroyColumnFamilyHandle(second));
    CopyOpen(alive, tree / "db");
  });
  SnapshotOptions clone = Of(tree / "db");
  clone.as_files = true;
  REQUIRE_OK(TakeStatus(clone));
  const std::string tracked = WalOf(tree / "db", 0);
  const uint64_t bytes = fs::file_size(tracked);
  REQUIRE(last_record < bytes);
  fs::resize_file(tracked, last_record);
  if (ends_with_zeros) {
    fs::resize_file(tracked, bytes);
    REQUIRE_OK(TakeStatus(clone));
    return;
  }
  const auto status = TakeStatus(clone);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find(fs::path(tracked).filename().string() +
                                 ": the MANIFEST says that") !=
          std::string::npos);
}

// RocksDB 7.8 loops forever at the first old record in a recycled file if it
// recovers with kSkipAnyCorruptedRecords (log::Reader does not advance).
TEST_CASE("Snapshot leaves out old records after a recycled older WAL",
          "[snapshot][recovery]") {
  ScratchDir tree;
  Options options = Plain();
  options.recycle_log_file_num = 2;
  options.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  DieAfter(options, tree / "db", {{"a", "1"}});
  DieAfter(options, tree / "db", {{"b", "1"}});
  DieAfter(options, tree / "db", {{"c", "1"}});
  const size_t wals = FilesWith(tree / "db", ".log").size();
  REQUIRE(wals >= 3);
  // Records of another WAL number look like those from before recycling.
  std::ifstream other(WalOf(tree / "db", wals - 3), std::ios::binary);
  std::ofstream(WalOf(tree / "db", wals - 2), std::ios::binary | std::ios::app)
      << other.rdbuf();
  CHECK(ReadAll(*Take(Of(tree / "db")), "default") ==
        Entries{{"a", "1"}, {"b", "1"}, {"c", "1"}});
}

void WithTransactionDb(const std::string& directory,
                       rocksdb::TxnDBWritePolicy policy,
                       const std::function<void(rocksdb::TransactionDB*)>& go) {
  Die(directory, [&](const std::string& alive) {
    rocksdb::TransactionDBOptions transactions;
    transactions.write_policy = policy;
    rocksdb::TransactionDB* made = nullptr;
    REQUIRE_OK(rocksdb::TransactionDB::Open(Plain(), transactions, alive,
                                            &made));
    const std::unique_ptr<rocksdb::TransactionDB> db(made);
    go(db.get());
    CopyOpen(alive, directory);
  });
}

// RocksDB 9.1 and later recycle WALs with kPointInTimeRecovery.
TEST_CASE("A database that its application cannot open because of a recycled "
          "WAL is not moved while no process has it open",
          "[snapshot][recovery]") {
  const bool is_new = GENERATE(true, false);
  const std::string release = "rocksdb_version=";
  const std::string linked = release + ReleaseNumbers(kLinkedRelease);
  ScratchDir tree;
  WithTransactionDb(
      tree / "db", rocksdb::WRITE_COMMITTED, [](rocksdb::TransactionDB* db) {
        REQUIRE_OK(db->Put(WriteOptions(), "k", "1"));
        REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
      });
  // The newest WAL has no record, and a record of its file's earlier use.
  const std::string wal = FilesWith(tree / "db", ".log").back();
  const std::string old = test::PhysicalRecord(5, "old", 1);
  std::ofstream(tree / ("db/" + wal), std::ios::binary) << old;
  SnapshotOptions options = Of(tree / "db");
  options.as_files = GENERATE(false, true);
  WithTransactionDb(
      tree / "db", rocksdb::WRITE_COMMITTED, [&](rocksdb::TransactionDB*) {
        const std::string alive = tree / "db.alive";
        // A crash can leave this file, which two-phase recovery reads again.
        std::ofstream(alive + "/" + wal, std::ios::binary) << old;
        test::EditOptions(alive, "recycle_log_file_num=0",
                          "recycle_log_file_num=2");
        test::EditOptions(alive, linked, release + (is_new ? "11.8.1"
                                                           : "9.0.1"));
        SnapshotOptions open = options;
        open.database_dir = alive;
        REQUIRE_OK(TakeStatus(open));
      });
  const rocksdb::Status status = TakeStatus(options);
  INFO(status.ToString());
  REQUIRE(status.ok() == !is_new);
  if (is_new) {
    REQUIRE(EndStateOf(status) == EndState::kSourceError);
    REQUIRE(status.ToString().find(wal) != std::string::npos);
    REQUIRE(status.ToString().find("kTolerateCorruptedTailRecords") !=
            std::string::npos);
  }
  // RocksDB itself decides in the same way.
  if (is_new == (kLinkedRelease >= kStopsAtOldRecords)) {
    rocksdb::TransactionDB* made = nullptr;
    const rocksdb::Status opened =
        rocksdb::TransactionDB::Open(Plain(), {}, tree / "db", &made);
    const std::unique_ptr<rocksdb::TransactionDB> db(made);
    INFO(opened.ToString());
    REQUIRE(opened.ok() == !is_new);
  }
}

TEST_CASE("Snapshot reads compressed WALs", "[snapshot][recovery]") {
  ScratchDir tree;
  Options options = Plain();
  options.wal_compression = rocksdb::kZSTD;
  DieAfter(options, tree / "db", {{"0", "0"}}, true);
  DieAfter(options, tree / "db", {{"a", std::string(100'000, 'a')}});
  DieAfter(options, tree / "db", {{"b", "1"}, {"c", "1"}});
  RequireAsRecovered(
      options, tree / "db",
      {{"0", "0"}, {"a", std::string(100'000, 'a')}, {"b", "1"}, {"c", "1"}});
}

TEST_CASE("Snapshot refuses WALs whose sequence numbers count batches",
          "[snapshot][recovery]") {
  const auto policy = GENERATE(rocksdb::WRITE_PREPARED,
                               rocksdb::WRITE_UNPREPARED);
  ScratchDir tree;
  const auto write = [&](bool flush) {
    WithTransactionDb(tree / "db", policy, [&](rocksdb::TransactionDB* db) {
      rocksdb::WriteBatch batch;
      for (const char* key : {"a", "b", "c"}) {
        REQUIRE_OK(batch.Put(key, "1"));
      }
      REQUIRE_OK(db->Write(WriteOptions(), &batch));
      REQUIRE_OK(db->Put(WriteOptions(), "c", "2"));
      if (flush) REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    });
  };
  write(false);
  RequireRefused(TakeStatus(Of(tree / "db")), "WRITE_PREPARED");
  write(true);
  CHECK(ReadAll(*Take(Of(tree / "db")), "default") ==
        Entries{{"a", "1"}, {"b", "1"}, {"c", "2"}});
}

TEST_CASE("Snapshot replays a prepared wide-column entity as it is, or refuses",
          "[snapshot][recovery]") {
  ScratchDir tree;
  WithTransactionDb(tree / "db", rocksdb::WRITE_COMMITTED,
                    [](rocksdb::TransactionDB* db) {
                      REQUIRE_OK(db->Put(WriteOptions(), "plain", "1"));
                    });
  test::AppendPreparedEntity(
      WalOf(tree / "db", FilesWith(tree / "db", ".log").size() - 1), 2);
  std::unique_ptr<Snapshot> snapshot;
  const rocksdb::Status status =
      Snapshot::Create(Of(tree / "db"), &snapshot);
  if constexpr (kReplaysPreparedEntities) {
    REQUIRE_OK(status);
    rocksdb::PinnableWideColumns found;
    REQUIRE_OK(snapshot->db()->GetEntity(
        {}, snapshot->families().at(0).handle, "entity", &found));
    CHECK(found.columns() ==
          rocksdb::WideColumns{{"", "whole"}, {"a", "1"}});
  } else {
    RequireRefused(status, "wide-column entities");
    CHECK(MessageOf(status).find("--method clone") != std::string::npos);
  }
  SnapshotOptions as_files = Of(tree / "db");
  as_files.as_files = true;
  const auto clone = Take(as_files);
  CHECK(clone->files()->needs.release() == kReadsPreparedEntities);
}

TEST_CASE("Snapshot names prepared transactions that it leaves out",
          "[snapshot][recovery]") {
  ScratchDir tree;
  WithTransactionDb(
      tree / "db", rocksdb::WRITE_COMMITTED, [](rocksdb::TransactionDB* db) {
        REQUIRE_OK(db->Put(WriteOptions(), "k", "1"));
        const std::unique_ptr<rocksdb::Transaction> open(
            db->BeginTransaction(WriteOptions()));
        REQUIRE_OK(open->SetName("open"));
        REQUIRE_OK(open->Put("held", "1"));
        REQUIRE_OK(open->Prepare());
        const std::unique_ptr<rocksdb::Transaction> done(
            db->BeginTransaction(WriteOptions()));
        REQUIRE_OK(done->SetName("done"));
        REQUIRE_OK(done->Put("committed", "1"));
        REQUIRE_OK(done->Prepare());
        REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
        REQUIRE_OK(done->Commit());
        REQUIRE_OK(db->Put(WriteOptions(), "k", "2"));
      });
  const auto snapshot = Take(Of(tree / "db"));
  CHECK(ReadAll(*snapshot, "default") ==
        Entries{{"committed", "1"}, {"k", "2"}});
  CHECK(HasNote(*snapshot, "1 prepared transaction"));
}

TEST_CASE("Snapshot reads the WALs that the MANIFEST needs, even if a stale "
          "one is in the other directory",
          "[snapshot][recovery]") {
  ScratchDir tree;
  fs::create_directory(tree / "wals");
  DieAfter(Plain(), tree / "db", {{"base", "1"}}, true);
  // The old directory still has a WAL after the WALs were moved.
  REQUIRE_FALSE(FilesWith(tree / "db", ".log").empty());
  Options moved = Plain();
  moved.wal_dir = tree / "wals";
  DieAfter(moved, tree / "db", {{"k0", "v0"}}, true);
  DieAfter(moved, tree / "db", {{"k1", "v1"}});
  std::ofstream(tree / "db/000001.log") << "stale";
  const std::string newest = FilesWith(tree / "wals", ".log").back();
  { const std::ofstream empty(tree / ("db/" + newest)); }
  const Entries all{{"base", "1"}, {"k0", "v0"}, {"k1", "v1"}};
  CHECK(ReadAll(*Take(Of(tree / "db")), "default") == all);
  SnapshotOptions asked = Of(tree / "db");
  asked.wal_dir = tree / "wals";
  CHECK(ReadAll(*Take(asked), "default") == all);

  // Both directories have needed WALs: it is unknown which are current.
  fs::copy_file(tree / ("wals/" + newest), tree / ("db/" + newest),
                fs::copy_options::overwrite_existing);
  RequireRefused(TakeStatus(Of(tree / "db")), "--wal-dir");
  CHECK(ReadAll(*Take(asked), "default") == all);

  // WALs next to the tables and no LOCK: a copy that was never opened.
  fs::remove(tree / "db/LOCK");
  CHECK(TakeStatus(Of(tree / "db")).ok());
}

TEST_CASE("Snapshot uses no stale WAL instead of one that was truncated to 0",
          "[snapshot][recovery]") {
  ScratchDir tree;
  fs::create_directory(tree / "wals");
  Options moved = Plain();
  moved.wal_dir = tree / "wals";
  DieAfter(moved, tree / "db", {{"k", "v"}});
  const std::string newest = FilesWith(tree / "wals", ".log").back();
  fs::copy_file(tree / ("wals/" + newest), tree / ("db/" + newest));
  fs::resize_file(tree / ("wals/" + newest), 0);
  RequireRefused(TakeStatus(Of(tree / "db")), "--wal-dir");
  SnapshotOptions asked = Of(tree / "db");
  asked.wal_dir = tree / "wals";
  CHECK(ReadAll(*Take(asked), "default").empty());
}

TEST_CASE("Snapshot asks for the WAL directory if OPTIONS name a wrong one",
          "[snapshot][recovery]") {
  ScratchDir tree;
  fs::create_directory(tree / "wals");
  Options moved = Plain();
  moved.wal_dir = tree / "wals";
  DieAfter(moved, tree / "db", {{"k", "v"}});
  fs::rename(tree / "wals", tree / "elsewhere");
  RequireRefused(TakeStatus(Of(tree / "db")), "--wal-dir");
  SnapshotOptions asked = Of(tree / "db");
  asked.wal_dir = tree / "elsewhere";
  CHECK(ReadAll(*Take(asked), "default") == Entries{{"k", "v"}});
}

// A copy that the file system made has the original's OPTIONS and LOCK.
TEST_CASE("The WALs that an original wrote since are not read as those of its "
          "copy",
          "[snapshot][recovery]") {
  ScratchDir tree;
  fs::create_directory(tree / "wals");
  Options moved = Plain();
  moved.wal_dir = tree / "wals";
  DieAfter(moved, tree / "db", {{"a", "1"}}, true);
  fs::copy(tree / "db", tree / "copy");
  // The WALs are still those of the copy.
  CHECK(ReadAll(*Take(Of(tree / "copy")), "default") == Entries{{"a", "1"}});
  std::unique_ptr<PinnedFiles> pinned;
  REQUIRE_OK(PinnedFiles::Link(Of(tree / "copy"), &pinned));

  DieAfter(moved, tree / "db", {{"b", "1"}}, true);
  DieAfter(moved, tree / "db", {{"c", "1"}});
  RequireRefused(TakeStatus(Of(tree / "copy")), "--wal-dir");
  RequireRefused(pinned->Confirm(), "--wal-dir");
  ServedDatabase served;
  served.directory = tree / "copy";
  DatabaseFacts facts;
  RequireRefused(DescribeDatabase(served, {}, &facts), "--wal-dir");
  FollowedSourceOptions followed;
  followed.database_dir = tree / "copy";
  bool more = false;
  RequireRefused(FollowedSource(followed).ReadRound(true, &more), "--wal-dir");

  CHECK(ReadAll(*Take(Of(tree / "db")), "default") ==
        Entries{{"a", "1"}, {"b", "1"}, {"c", "1"}});
  // The copy has everything that was flushed before.
  SnapshotOptions asked = Of(tree / "copy");
  asked.wal_dir = tree / "copy";
  CHECK(ReadAll(*Take(asked), "default") == Entries{{"a", "1"}});
}

TEST_CASE("A WAL directory is not refused by a MANIFEST that has grown since",
          "[snapshot][recovery]") {
  ScratchDir tree;
  fs::create_directory(tree / "wals");
  Options moved = Plain();
  moved.wal_dir = tree / "wals";
  DieAfter(moved, tree / "db", {{"a", "1"}}, true);
  ManifestTail manifest(tree / "db");
  REQUIRE_OK(manifest.Read());
  DieAfter(moved, tree / "db", {{"b", "1"}}, true);
  DieAfter(moved, tree / "db", {{"c", "1"}});
  SeenOptions options(tree / "db");
  REQUIRE_OK(options.Look());
  std::string found;
  REQUIRE(FindWalDirectory(tree / "db", "", options, &manifest, &found)
              .IsTryAgain());
  REQUIRE_OK(FindWalDirectory(tree / "db", "", options, &manifest, &found));
  CHECK(found == tree / "wals");
}

TEST_CASE("WALs from which one family of a copy needs an older one are not "
          "read",
          "[snapshot][recovery]") {
  ScratchDir tree;
  fs::create_directory(tree / "wals");
  Options moved = Plain();
  moved.wal_dir = tree / "wals";
  test::OpenDb db(moved, tree / "db", {{"default", moved}, {"slow", moved}});
  REQUIRE_OK(db->Put(WriteOptions(), db.family(1), "s", "1"));
  REQUIRE_OK(db->Put(WriteOptions(), "a", "1"));
  REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
  CopyOpen(tree / "db", tree / "copy");
  CHECK(ReadAll(*Take(Of(tree / "copy")), "slow") == Entries{{"s", "1"}});

  const std::string oldest = WalOf(tree / "wals", 0);
  REQUIRE_OK(db->Put(WriteOptions(), "a", "2"));
  REQUIRE_OK(db->Flush(rocksdb::FlushOptions(), db.family(1)));
  // Waits until the flush has removed the WAL that it made obsolete.
  rocksdb::CancelAllBackgroundWork(db.get(), /*wait=*/true);
  REQUIRE_FALSE(fs::exists(oldest));
  // The oldest WAL begins with the next sequence number of the copy's tables.
  RequireRefused(TakeStatus(Of(tree / "copy")), "--wal-dir");
  CHECK(ReadAll(*Take(Of(tree / "db")), "slow") == Entries{{"s", "1"}});
}

TEST_CASE("Snapshot asks for the WAL directory if all OPTIONS are truncated",
          "[snapshot][recovery]") {
  ScratchDir tree;
  fs::create_directory(tree / "wals");
  Options moved = Plain();
  moved.wal_dir = tree / "wals";
  DieAfter(moved, tree / "db", {{"k", "v"}});
  for (const std::string& name : NamesIn(tree / "db")) {
    if (name.starts_with("OPTIONS-")) {
      fs::resize_file(tree / ("db/" + name), 100);
    }
  }
  SnapshotOptions options = Of(tree / "db");
  options.as_files = true;
  options.options_patience = std::chrono::milliseconds(20);
  RequireRefused(TakeStatus(options), "--wal-dir");
  options.wal_dir = tree / "wals";
  REQUIRE_OK(TakeStatus(options));
}

TEST_CASE("A snapshot reports whether its WALs have entries",
          "[snapshot][recovery]") {
  ScratchDir tree;
  DieAfter(Plain(), tree / "db", {{"0", "0"}}, true);
  DieAfter(Plain(), tree / "db", {{"k", "1"}});
  CHECK(Take(Of(tree / "db"))->wal_holds_entries());
  DieAfter(Plain(), tree / "db", {}, true);
  CHECK_FALSE(Take(Of(tree / "db"))->wal_holds_entries());
}

TEST_CASE("Snapshot of a source that never wrote OPTIONS for a family gives "
          "it default options, and says so",
          "[snapshot][recovery]") {
  ScratchDir tree;
  {
    test::OpenDb db(Plain(), tree / "db", {{"default", Plain()}});
    REQUIRE_OK(db->Put(WriteOptions(), "k", "1"));
  }
  std::map<std::string, std::string> texts;
  for (const std::string& name : FilesWith(tree / "db", "")) {
    if (name.rfind("OPTIONS-", 0) == 0) {
      std::ifstream file(tree / ("db/" + name));
      texts[name] = test::BytesIn(file);
    }
  }
  {
    test::OpenDb db(Plain(), tree / "db", {{"default", Plain()}, {"b", Plain()}});
    REQUIRE_OK(db->Put(WriteOptions(), db.family(1), "k", "2"));
  }
  for (const std::string& name : FilesWith(tree / "db", "")) {
    if (name.rfind("OPTIONS-", 0) == 0) fs::remove(tree / ("db/" + name));
  }
  for (const auto& [name, text] : texts) {
    std::ofstream(tree / ("db/" + name)) << text;
  }
  SnapshotOptions options = Of(tree / "db");
  options.options_patience = std::chrono::milliseconds(20);
  const auto snapshot = Take(options);
  CHECK(ReadAll(*snapshot, "b") == Entries{{"k", "2"}});
  CHECK(HasNote(*snapshot, "column family 'b': OPTIONS do not describe it"));
  CHECK_FALSE(HasNote(*snapshot, "wal_filter"));
}

}  // namespace
}  // namespace sstferry::snapshot_recovery_test
