// Snapshots of databases without writers: their contents, and that the source
// is not changed.
#include "pipeline/snapshot/snapshot.h"

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "pipeline/follow/followed_source.h"
#include "pipeline/snapshot/file_snapshot.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "sstferry/source.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"

namespace sstferry::snapshot_test {
namespace {

rocksdb::Options Plain() {
  rocksdb::Options options;
  options.disable_auto_compactions = true;
  return options;
}

SnapshotOptions Of(const std::string& directory) {
  SnapshotOptions options;
  options.database_dir = directory;
  return options;
}

std::unique_ptr<Snapshot> Take(const SnapshotOptions& options) {
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  return snapshot;
}

void Fill(test::OpenDb* db, size_t family, int from, int to) {
  for (int i = from; i < to; i++) {
    REQUIRE_OK((*db)->Put(rocksdb::WriteOptions(), db->family(family),
                          "key" + std::to_string(i), std::string(100, 'v')));
  }
}

void FlushAll(test::OpenDb* db) {
  for (auto* family : db->families()) {
    REQUIRE_OK((*db)->Flush(rocksdb::FlushOptions(), family));
  }
}

TEST_CASE("Snapshot of a closed database has the entries of tables and WALs",
          "[snapshot]") {
  ScratchDir tree;
  Entries expected_default;
  Entries expected_other;
  {
    test::OpenDb db(Plain(), tree / "db",
              {{"default", Plain()}, {"other", Plain()}});
    Fill(&db, 0, 0, 500);
    FlushAll(&db);
    Fill(&db, 0, 400, 900);
    Fill(&db, 1, 0, 100);
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), "", "empty key"));
    expected_default = ReadAll(db.get(), db.family(0));
    expected_other = ReadAll(db.get(), db.family(1));
  }
  const std::string before = Fingerprint(tree / "db");
  {
    const auto snapshot = Take(Of(tree / "db"));
    CHECK(ReadAll(*snapshot, "default") == expected_default);
    CHECK(ReadAll(*snapshot, "other") == expected_other);
    CHECK(snapshot->sequence() == 500 + 500 + 100 + 1);
    CHECK_FALSE(snapshot->wal_not_flushed());
    CHECK(snapshot->counters().wal_bytes_copied > 0);
    CHECK(FilesWith(snapshot->directory() + "/held", "").empty());
    CHECK_FALSE(snapshot->database_id().empty());
    CHECK(snapshot->options_text().find("[DBOptions]") != std::string::npos);
    // Everything is in SST files, so their metadata counts all entries.
    uint64_t entries = 0;
    for (const SnapshotFamily& family : snapshot->families()) {
      std::string memtable;
      REQUIRE(snapshot->db()->GetProperty(
          family.handle, "rocksdb.num-entries-active-mem-table", &memtable));
      CHECK(memtable == "0");
      rocksdb::TablePropertiesCollection properties;
      REQUIRE_OK(snapshot->db()->GetPropertiesOfAllTables(family.handle,
                                                          &properties));
      for (const auto& file : properties) entries += file.second->num_entries;
    }
    CHECK(entries == 500 + 500 + 100 + 1);
  }
  CHECK(Fingerprint(tree / "db") == before);
  CHECK(NamesIn(tree.path()) == std::vector<std::string>{"db"});
}

TEST_CASE("Snapshot of a database open in this process writes nothing to it",
          "[snapshot]") {
  ScratchDir tree;
  test::OpenDb db(Plain(), tree / "db");
  Fill(&db, 0, 0, 300);
  FlushAll(&db);
  // Waits until the flush has removed the WAL that it made obsolete.
  rocksdb::CancelAllBackgroundWork(db.get(), /*wait=*/true);
  Fill(&db, 0, 300, 600);
  const std::string before = Fingerprint(tree / "db");
  {
    const auto snapshot = Take(Of(tree / "db"));
    CHECK(ReadAll(*snapshot, "default") == ReadAll(db.get(), db.family(0)));
    CHECK(Fingerprint(tree / "db") == before);
    Fill(&db, 0, 600, 700);
    CHECK(ReadAll(*snapshot, "default").size() == 600);
  }
  CHECK(ReadAll(db.get(), db.family(0)).size() == 700);
}

TEST_CASE("Snapshot does not overwrite a file that the source makes later",
          "[snapshot]") {
  // A table with a higher number than the MANIFEST knows is like one of a flush
  // that is not recorded yet. The copy's own files get such numbers, too.
  ScratchDir tree;
  {
    test::OpenDb db(Plain(), tree / "db");
    Fill(&db, 0, 0, 200);
  }
  for (int number = 1; number < 60; number++) {
    char name[32];
    snprintf(name, sizeof(name), "db/%06d.sst", number);
    if (!std::filesystem::exists(tree / name)) {
      std::filesystem::copy_file(tree / "db/CURRENT", tree / name);
    }
  }
  const std::string before = Fingerprint(tree / "db");
  CHECK(ReadAll(*Take(Of(tree / "db")), "default").size() == 200);
  CHECK(Fingerprint(tree / "db") == before);
}

TEST_CASE("Snapshot takes a checkpoint without reading its origin's WALs",
          "[snapshot]") {
  // RocksDB 9.0 made `true` the default.
  for (const bool id_in_manifest : {false, true}) {
    INFO("write_dbid_to_manifest " << id_in_manifest);
    ScratchDir tree;
    std::filesystem::create_directory(tree / "wals");
    rocksdb::Options options = Plain();
    options.wal_dir = tree / "wals";
    options.write_dbid_to_manifest = id_in_manifest;
    test::OpenDb db(options, tree / "db");
    Fill(&db, 0, 0, 100);
    rocksdb::Checkpoint* made = nullptr;
    REQUIRE_OK(rocksdb::Checkpoint::Create(db.get(), &made));
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    REQUIRE_OK(checkpoint->CreateCheckpoint(tree / "checkpoint"));
    Fill(&db, 0, 100, 150);
    const auto snapshot = Take(Of(tree / "checkpoint"));
    CHECK(ReadAll(*snapshot, "default").size() == 100);
    std::string id;
    REQUIRE_OK(db->GetDbIdentity(id));
    CHECK(snapshot->database_id() == (id_in_manifest ? id : ""));
    // A snapshot of the database itself does read the WALs in wal_dir.
    CHECK(ReadAll(*Take(Of(tree / "db")), "default").size() == 150);
  }
}

TEST_CASE("Snapshot refuses a database whose WAL directory is gone",
          "[snapshot][corruption]") {
  ScratchDir tree;
  std::filesystem::create_directory(tree / "wals");
  rocksdb::Options options = Plain();
  options.wal_dir = tree / "wals";
  {
    test::OpenDb db(options, tree / "db");
    Fill(&db, 0, 0, 100);
  }
  std::filesystem::remove_all(tree / "wals");
  // The directory to which a volume is mounted stays, and is empty.
  const bool is_mount_point = GENERATE(false, true);
  if (is_mount_point) std::filesystem::create_directory(tree / "wals");
  SnapshotOptions asked = Of(tree / "db");
  const bool is_asked = GENERATE(false, true) && is_mount_point;
  if (is_asked) asked.wal_dir = tree / "wals";
  asked.as_files = GENERATE(false, true);
  std::unique_ptr<Snapshot> snapshot;
  const auto status = Snapshot::Create(asked, &snapshot);
  INFO(status.ToString());
  CHECK(EndStateOf(status) == EndState::kRefused);
  CHECK(MessageOf(status).find(tree / "wals") != std::string::npos);
  CHECK(MessageOf(status).find("mount ") != std::string::npos);
  ServedDatabase served;
  served.directory = tree / "db";
  served.wal_dir = asked.wal_dir;
  DatabaseFacts facts;
  CHECK(EndStateOf(DescribeDatabase(served, {}, &facts)) ==
        EndState::kRefused);
  FollowedSourceOptions followed;
  followed.database_dir = tree / "db";
  followed.wal_dir = asked.wal_dir;
  bool more = false;
  CHECK(EndStateOf(FollowedSource(followed).ReadRound(true, &more)) ==
        EndState::kRefused);
  // The WALs are lost.
  asked.wal_dir = tree / "db";
  CHECK(Take(asked)->families().size() == 1);
}

TEST_CASE("Snapshot refuses an open database if it finds no WAL of it",
          "[snapshot]") {
  ScratchDir tree;
  std::filesystem::create_directory(tree / "wals");
  rocksdb::Options options = Plain();
  options.wal_dir = tree / "wals";
  test::OpenDb db(options, tree / "db");
  Fill(&db, 0, 0, 10);
  for (const std::string& name : NamesIn(tree / "db")) {
    if (name.rfind("OPTIONS-", 0) == 0) {
      std::filesystem::remove(tree / ("db/" + name));
    }
  }
  SnapshotOptions asked = Of(tree / "db");
  asked.deadline = std::chrono::milliseconds(20);
  std::unique_ptr<Snapshot> snapshot;
  const auto status = Snapshot::Create(asked, &snapshot);
  CHECK(EndStateOf(status) == EndState::kRefused);
  CHECK(MessageOf(status).find("--wal-dir") != std::string::npos);
  asked.wal_dir = tree / "wals";
  CHECK(ReadAll(*Take(asked), "default").size() == 10);
}

TEST_CASE("A database with more files than a clone can have is not cloned",
          "[snapshot][clone]") {
  ScratchDir tree;
  ManifestState state;
  ManifestFamily& family = state.families[0];
  for (uint64_t number = 1; number <= kMaxCloneDataFiles; ++number) {
    family.files.emplace_hint(family.files.end(), number, ManifestFile());
  }
  const OptionsText options("");
  REQUIRE_OK(CheckClonable(tree.path(), state, options));
  family.blobs[kMaxCloneDataFiles + 1];
  const auto status = CheckClonable(tree.path(), state, options);
  CHECK(EndStateOf(status) == EndState::kRefused);
  CHECK(MessageOf(status).find("--method ingest") != std::string::npos);
}

TEST_CASE("A database whose values are in files that RocksDB does not know is "
          "not cloned",
          "[snapshot][clone]") {
  ScratchDir tree;
  ManifestState state;
  ManifestFamily& family = state.families[0];
  family.name = "default";
  const OptionsText plain("[CFOptions \"default\"]\n"
                          "  table_factory=BlockBasedTable\n"
                          "  compaction_filter_factory=app.Filters\n");
  family.files[8].oldest_blob_file = 7;
  const auto refused = CheckClonable(tree.path(), state, plain);
  CHECK(EndStateOf(refused) == EndState::kRefused);
  CHECK(MessageOf(refused).find("000008.sst refers to blob file 7") !=
        std::string::npos);
  family.blobs[7];
  REQUIRE_OK(CheckClonable(tree.path(), state, plain));
  for (const char* const sign :
       {"table_factory=TitanTable",
        "compaction_filter_factory=BlobIndexCompactionFilterFactory",
        "compaction_filter_factory={id=BlobIndexCompactionFilterFactoryGC;}"}) {
    const OptionsText options("[CFOptions \"default\"]\n  " +
                              std::string(sign) + "\n");
    INFO(sign);
    CHECK(EndStateOf(CheckClonable(tree.path(), state, options)) ==
          EndState::kRefused);
  }
}

TEST_CASE(
    "Snapshot of an open handle has entries that were written without WAL",
    "[snapshot]") {
  ScratchDir tree;
  test::OpenDb db(Plain(), tree / "db", {{"default", Plain()}, {"b", Plain()}});
  rocksdb::WriteOptions no_wal;
  no_wal.disableWAL = true;
  REQUIRE_OK(db->Put(no_wal, db.family(1), "unlogged", "1"));
  Fill(&db, 0, 0, 50);
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::FromOpenDatabase(db.get(), db.families(),
                                        SnapshotOptions(), &snapshot));
  CHECK(ReadAll(*snapshot, "default").size() == 50);
  CHECK(ReadAll(*snapshot, "b") == Entries{{"unlogged", "1"}});
  std::string id;
  REQUIRE_OK(db->GetDbIdentity(id));
  CHECK(snapshot->database_id() == id);
  snapshot.reset();
  CHECK(NamesIn(tree.path()) == std::vector<std::string>{"db"});
}

TEST_CASE("Snapshot of an empty database and of empty families is empty",
          "[snapshot]") {
  ScratchDir tree;
  { test::OpenDb db(Plain(), tree / "db", {{"default", Plain()}, {"e", Plain()}}); }
  const auto snapshot = Take(Of(tree / "db"));
  CHECK(snapshot->families().size() == 2);
  CHECK(ReadAll(*snapshot, "default").empty());
  CHECK(ReadAll(*snapshot, "e").empty());
}

TEST_CASE("Snapshot without an OPTIONS file reads with default options",
          "[snapshot]") {
  ScratchDir tree;
  {
    test::OpenDb db(Plain(), tree / "db", {{"default", Plain()}, {"b", Plain()}});
    Fill(&db, 1, 0, 70);
  }
  for (const std::string& name : NamesIn(tree / "db")) {
    if (name.rfind("OPTIONS-", 0) == 0) {
      std::filesystem::remove(tree / ("db/" + name));
    }
  }
  const auto snapshot = Take(Of(tree / "db"));
  CHECK(ReadAll(*snapshot, "b").size() == 70);
  CHECK(snapshot->options_text().empty());
  const std::vector<std::string>& notes = snapshot->notes();
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("wal_filter") != std::string::npos;
  }));
}

TEST_CASE("Snapshot keeps the source's options apart from the copy's",
          "[snapshot]") {
  ScratchDir tree;
  rocksdb::Options options = Plain();
  options.comparator = rocksdb::ReverseBytewiseComparator();
  options.compression = rocksdb::kLZ4Compression;
  options.write_buffer_size = 7 << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 9000;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  {
    test::OpenDb db(options, tree / "db");
    Fill(&db, 0, 0, 10);
  }
  const auto snapshot = Take(Of(tree / "db"));
  const auto& kept = snapshot->families()[0].options;
  CHECK(kept.comparator == rocksdb::ReverseBytewiseComparator());
  CHECK(kept.compression == rocksdb::kLZ4Compression);
  CHECK(kept.write_buffer_size == 7 << 20);
  CHECK(kept.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>()
            ->block_size == 9000);
  const std::unique_ptr<rocksdb::Iterator> it(
      snapshot->db()->NewIterator(rocksdb::ReadOptions()));
  it->SeekToFirst();
  REQUIRE(it->Valid());
  CHECK(it->key() == "key9");
}

TEST_CASE("Snapshot reads separate blob files and plain tables",
          "[snapshot]") {
  ScratchDir tree;
  rocksdb::Options blob = Plain();
  blob.enable_blob_files = true;
  {
    test::OpenDb db(blob, tree / "db");
    Fill(&db, 0, 0, 100);
    FlushAll(&db);
    Fill(&db, 0, 100, 120);
  }
  CHECK(FilesWith(tree / "db", ".blob").size() == 1);
  CHECK(ReadAll(*Take(Of(tree / "db")), "default").size() == 120);
  rocksdb::Options plain = Plain();
  plain.table_factory.reset(rocksdb::NewPlainTableFactory());
  plain.allow_mmap_reads = true;
  plain.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(3));
  {
    test::OpenDb db(plain, tree / "plain");
    Fill(&db, 0, 0, 100);
    FlushAll(&db);
  }
  const auto snapshot = Take(Of(tree / "plain"));
  std::string value;
  REQUIRE_OK(snapshot->db()->Get(rocksdb::ReadOptions(), "key42", &value));
  CHECK(value == std::string(100, 'v'));
}

TEST_CASE("Snapshot of some families opens the others but does not name them",
          "[snapshot]") {
  ScratchDir tree;
  {
    test::OpenDb db(Plain(), tree / "db",
              {{"default", Plain()}, {"a", Plain()}, {"b", Plain()}});
    Fill(&db, 1, 0, 5);
  }
  SnapshotOptions options = Of(tree / "db");
  options.families = {"a"};
  const auto snapshot = Take(options);
  REQUIRE(snapshot->families().size() == 1);
  CHECK(ReadAll(*snapshot, "a").size() == 5);
  options.families = {"nobody"};
  std::unique_ptr<Snapshot> none;
  const auto status = Snapshot::Create(options, &none);
  CHECK(EndStateOf(status) == EndState::kRefused);
  CHECK(MessageOf(status).find("'nobody'") != std::string::npos);
}

TEST_CASE("Snapshot stops when it is cancelled and leaves nothing",
          "[snapshot]") {
  ScratchDir tree;
  { test::OpenDb db(Plain(), tree / "db"); }
  SnapshotOptions options = Of(tree / "db");
  options.cancelled = [] { return true; };
  std::unique_ptr<Snapshot> snapshot;
  const auto status = Snapshot::Create(options, &snapshot);
  CHECK(EndStateOf(status) == EndState::kCancelled);
  CHECK(NamesIn(tree.path()) == std::vector<std::string>{"db"});
}

TEST_CASE("Snapshot can be cancelled at any moment, inside RocksDB too",
          "[snapshot]") {
  ScratchDir tree;
  {
    test::OpenDb db(Plain(), tree / "db");
    REQUIRE_OK(db->Put({}, "key", "in the WAL"));
  }
  bool cancelled = true;
  for (uint64_t questions = 0; cancelled; ++questions) {
    INFO("cancelled after " << questions << " questions");
    REQUIRE(questions < 5000);
    std::atomic<uint64_t> asked{0};
    SnapshotOptions options = Of(tree / "db");
    options.cancelled = [&] { return ++asked > questions; };
    std::unique_ptr<Snapshot> snapshot;
    const auto status = Snapshot::Create(options, &snapshot);
    cancelled = !status.ok();
    if (cancelled) {
      REQUIRE(EndStateOf(status) == EndState::kCancelled);
      REQUIRE(NamesIn(tree.path()) == std::vector<std::string>{"db"});
    }
  }
}

}  // namespace
}  // namespace sstferry::snapshot_test
