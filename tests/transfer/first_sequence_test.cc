// Tests RocksDB's sequence 0. If the last sequence and all entries are at 0,
// old RocksDB versions lose entries when they compact while a snapshot exists.
// So no pull leaves a replica in that state, and a refresh mends such a
// replica.
#include <cstdlib>

#include "format/coding.h"
#include "format/sealed_file.h"
#include "pipeline/pull/first_sequence.h"
#include "rocksdb/sst_file_writer.h"
#include "sstferry/status.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::first_sequence_test {
namespace {

constexpr int kEntries = 2000;

// Returns how often each case is tried. Losses depend on the timing of threads.
int Tries() {
  const char* const text = getenv("SSTFERRY_TRIES");
  return text == nullptr ? 3 : std::max(1, atoi(text));
}

void CompactAll(rocksdb::DB* db) {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK(db->CompactRange(options, nullptr, nullptr));
}

void MakeSource(const std::string& dir, const Families& families) {
  OpenDb db(dir, families);
  for (int i = 0; i < kEntries; ++i) {
    db.Put(NumberedKey(i), RandomBytes(100, i));
  }
  db.Flush();
}

// Makes a replica as older sstferry versions left it: all entries and RocksDB's
// last sequence are at 0.
void MakeReplicaAtZero(const std::string& dir, const Families& families) {
  OpenDb db(dir, families);
  std::vector<std::string> files;
  for (int file = 0; file < 4; ++file) {
    const std::string path = dir + "." + std::to_string(file) + ".sst";
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db->GetOptions());
    REQUIRE_OK(writer.Open(path));
    for (int i = file * kEntries / 4; i < (file + 1) * kEntries / 4; ++i) {
      REQUIRE_OK(writer.Put(NumberedKey(i), RandomBytes(90, i)));
    }
    REQUIRE_OK(writer.Finish());
    files.push_back(path);
  }
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  REQUIRE_OK(db->IngestExternalFile(files, options));
  REQUIRE(db->GetLatestSequenceNumber() == 0);
}

bool StandsAtZero(const std::string& dir) {
  bool at_zero = false;
  REQUIRE_OK(sstferry::StandsAtZero(rocksdb::FileSystem::Default().get(), dir,
                                    &at_zero));
  return at_zero;
}

// Returns the families of a serving application, which compacts automatically.
// Ingested chunks are in level 0 at first.
Families Serving() {
  rocksdb::ColumnFamilyOptions options;
  options.level_compaction_dynamic_level_bytes = true;
  options.level0_file_num_compaction_trigger = 2;
  options.target_file_size_base = 16 << 10;
  options.max_bytes_for_level_base = 32 << 10;
  return OneFamily(options);
}

size_t CountOf(const std::string& dir) {
  return EntriesOf(dir, OneFamily()).size();
}

}  // namespace

TEST_CASE("A new replica keeps its entries when its application compacts "
          "beside a snapshot",
          "[transfer][zero]") {
  const PullMethod method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  const bool swaps = GENERATE(false, true);
  const ScratchDir dir;
  MakeSource(dir / "source", OneFamily(Quiet()));
  PullOptions options;
  options.method = method;
  if (swaps) {
    Ferry(dir / "source", dir / "target", options);
    OpenDb(dir / "source", OneFamily(Quiet())).Put("a new", "one");
    options.mode = PullMode::kSwap;
    REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  } else {
    REQUIRE_OK(Ferry(dir / "source", dir / "target", options).status);
  }
  {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    REQUIRE(db->GetLatestSequenceNumber() >=
            static_cast<uint64_t>(kEntries + swaps));
    const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
    CompactAll(db.get());
    std::string value;
    rocksdb::ReadOptions then;
    then.snapshot = snapshot;
    REQUIRE_OK(db->Get(then, NumberedKey(7), &value));
    db->ReleaseSnapshot(snapshot);
  }
  REQUIRE(CountOf(dir / "target") == static_cast<size_t>(kEntries + swaps));
}

TEST_CASE("A clone of a replica whose last sequence is 0 has a higher one",
          "[transfer][zero]") {
  const ScratchDir dir;
  MakeReplicaAtZero(dir / "source", OneFamily(Quiet()));
  REQUIRE(StandsAtZero(dir / "source"));
  PullOptions options;
  options.method = PullMethod::kClone;
  options.keep_identity = GENERATE(false, true);
  options.verify = true;
  REQUIRE_OK(Ferry(dir / "source", dir / "target", options).status);
  REQUIRE(!StandsAtZero(dir / "target"));
  {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
    CompactAll(db.get());
    db->ReleaseSnapshot(snapshot);
  }
  REQUIRE(CountOf(dir / "target") == kEntries);
}

TEST_CASE("A refresh of an open replica at sequence 0 loses no entry during "
          "the application's compactions",
          "[transfer][zero]") {
  for (int i = 0; i < Tries(); ++i) {
    const ScratchDir dir;
    MakeSource(dir / "source", OneFamily());
    MakeReplicaAtZero(dir / "target", Serving());
    {
      OpenDb db(dir / "target", Serving());
      PullOptions options;
      options.adopt = true;
      options.chunk_bytes = 64 << 10;
      const Ferried ended =
          RefreshOpen(dir / "source", &db, {"default"}, options);
      REQUIRE_OK(ended.status);
      REQUIRE(ended.notes_mention("sequence number 0"));
      REQUIRE(db->GetLatestSequenceNumber() > 0);
    }
    ExpectSameEntries(dir / "source", dir / "target");
    // A second refresh has nothing to mend and says nothing about it.
    const Ferried again = Refresh(dir / "source", dir / "target");
    REQUIRE_OK(again.status);
    REQUIRE(!again.notes_mention("sequence number 0"));
    ExpectSameEntries(dir / "source", dir / "target");
  }
}

TEST_CASE("A refresh in a directory raises the last sequence from 0",
          "[transfer][zero]") {
  const ScratchDir dir;
  MakeSource(dir / "source", OneFamily(Quiet()));
  MakeReplicaAtZero(dir / "target", OneFamily(Quiet()));
  PullOptions options;
  options.adopt = true;
  const Ferried ended = Refresh(dir / "source", dir / "target", options);
  REQUIRE_OK(ended.status);
  REQUIRE(ended.notes_mention("sequence number 0"));
  REQUIRE(!StandsAtZero(dir / "target"));
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("LeaveSequenceZero changes no key, lasts, and does nothing twice",
          "[transfer][zero]") {
  const ScratchDir dir;
  const Families families = OneFamily(
      GENERATE(false, true) ? Quiet() : Serving().front().options);
  MakeReplicaAtZero(dir / "target", OneFamily(Quiet()));
  {
    OpenDb db(dir / "target", families);
    bool left = false;
    REQUIRE_OK(LeaveSequenceZero(db.get(), {db.cf()}, &left));
    REQUIRE(left);
    REQUIRE(db->GetLatestSequenceNumber() == 1);
    REQUIRE_OK(LeaveSequenceZero(db.get(), {db.cf()}, &left));
    REQUIRE(!left);
    REQUIRE(db->GetLatestSequenceNumber() == 1);
  }
  {
    OpenDb db(dir / "target", families);
    REQUIRE(db->GetLatestSequenceNumber() > 0);
    const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
    CompactAll(db.get());
    db->ReleaseSnapshot(snapshot);
  }
  REQUIRE(CountOf(dir / "target") == kEntries);
}

TEST_CASE("SpendFirstSequence protects a snapshot while the database is open",
          "[transfer][zero]") {
  const ScratchDir dir;
  MakeReplicaAtZero(dir / "target", OneFamily(Quiet()));
  {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    bool spent = false;
    REQUIRE_OK(SpendFirstSequence(db.get(), {db.cf()}, &spent));
    REQUIRE(spent);
    const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
    REQUIRE(snapshot->GetSequenceNumber() == 1);
    CompactAll(db.get());
    db->ReleaseSnapshot(snapshot);
  }
  REQUIRE(CountOf(dir / "target") == kEntries);
}

TEST_CASE("An empty database stays at sequence 0", "[transfer][zero]") {
  const ScratchDir dir;
  OpenDb db(dir / "target", OneFamily(Quiet()));
  bool spent = true;
  REQUIRE_OK(SpendFirstSequence(db.get(), {db.cf()}, &spent));
  REQUIRE(!spent);
  REQUIRE_OK(LeaveSequenceZero(db.get(), {db.cf()}, &spent));
  REQUIRE(!spent);
  REQUIRE(db->GetLatestSequenceNumber() == 0);
}

TEST_CASE("An unchanged replica at sequence 0 is mended permanently",
          "[transfer][zero]") {
  const bool is_open = GENERATE(false, true);
  const ScratchDir dir;
  MakeReplicaAtZero(dir / "source", OneFamily(Quiet()));
  MakeReplicaAtZero(dir / "target", OneFamily(Quiet()));
  PullOptions options;
  options.adopt = true;
  if (is_open) {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    const Ferried ended =
        RefreshOpen(dir / "source", &db, {"default"}, options);
    REQUIRE_OK(ended.status);
    REQUIRE(ended.summary.chunks_delta + ended.summary.chunks_built == 0);
  } else {
    const Ferried ended = Refresh(dir / "source", dir / "target", options);
    REQUIRE_OK(ended.status);
    REQUIRE(ended.summary.chunks_delta + ended.summary.chunks_built == 0);
  }
  REQUIRE(!StandsAtZero(dir / "target"));
  ExpectSameEntries(dir / "source", dir / "target");
  OpenDb db(dir / "target", OneFamily(Quiet()));
  REQUIRE(db->GetLatestSequenceNumber() > 0);
}

TEST_CASE("Status and verify report a replica at sequence 0",
          "[transfer][zero]") {
  const ScratchDir dir;
  MakeReplicaAtZero(dir / "a", OneFamily(Quiet()));
  MakeReplicaAtZero(dir / "b", OneFamily(Quiet()));
  VerifyOptions options;
  options.left.directory = dir / "a";
  options.right.directory = dir / "b";
  Ferried ended;
  ended.status = MakeVerify(options)->Run(&ended.summary);
  REQUIRE_OK(ended.status);
  REQUIRE(
      ended.notes_mention(dir / "a" + " is at RocksDB's last sequence"));
  REQUIRE(
      ended.notes_mention(dir / "b" + " is at RocksDB's last sequence"));
  const auto at_zero = [&] {
    StatusOptions asked;
    asked.where.directory = dir / "b";
    StatusReport report;
    REQUIRE_OK(MakeStatusQuery(asked)->Run(&report));
    return report.target.stands_at_zero;
  };
  REQUIRE(at_zero());
  REQUIRE_OK(RaiseLastSequence(rocksdb::FileSystem::Default().get(), dir / "b",
                               1));
  REQUIRE(!at_zero());
}

TEST_CASE("RaiseLastSequence never lowers the last sequence",
          "[transfer][zero]") {
  const ScratchDir dir;
  MakeSource(dir / "target", OneFamily(Quiet()));
  const auto& disk = rocksdb::FileSystem::Default();
  const std::string before = Fingerprint(dir / "target");
  REQUIRE_OK(RaiseLastSequence(disk.get(), dir / "target", 5));
  REQUIRE(Fingerprint(dir / "target") == before);
  REQUIRE_OK(RaiseLastSequence(disk.get(), dir / "target", 1'000'000));
  OpenDb db(dir / "target", OneFamily(Quiet()));
  REQUIRE(db->GetLatestSequenceNumber() == 1'000'000);
  db.Put("k", "v");
  REQUIRE(db->GetLatestSequenceNumber() == 1'000'001);
}

}  // namespace sstferry::test::first_sequence_test
