// A second process writes at full speed. Snapshots of its directory are
// compared entry by entry with what it had written up to the snapshot's
// sequence.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/listener.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/live_history.h"

namespace sstferry::snapshot_live_test {
namespace {

// Returns how many families the variant has. RocksDB 7.8 has a bug that crashes
// it if it recycles WALs of several families (SyncClosedLogs() syncs a WAL that
// was already recycled).
size_t FamiliesOf(const std::string& variant) {
  return variant == "recycle" ? 1 : 4;
}

constexpr char kDirectory[] = "SSTFERRY_TEST_WRITER_DIR";
constexpr char kVariant[] = "SSTFERRY_TEST_WRITER_VARIANT";
constexpr char kShared[] = "SSTFERRY_TEST_WRITER_SHARED";

// Counters in a file that both processes map.
struct SharedCounters {
  std::atomic<uint64_t> stop;
  std::atomic<uint64_t> batches;
  std::atomic<uint64_t> flushes;
  std::atomic<uint64_t> compactions;
  std::atomic<uint64_t> wal_switches;
};

SharedCounters* MapCounters(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(ftruncate(fd, sizeof(SharedCounters)) == 0);
  void* memory = mmap(nullptr, sizeof(SharedCounters), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  close(fd);
  REQUIRE(memory != MAP_FAILED);
  return static_cast<SharedCounters*>(memory);
}

class CountingListener : public rocksdb::EventListener {
 public:
  explicit CountingListener(SharedCounters* counters) : counters_(counters) {}
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    counters_->flushes++;
  }
  void OnCompactionCompleted(rocksdb::DB*,
                             const rocksdb::CompactionJobInfo&) override {
    counters_->compactions++;
  }
  void OnMemTableSealed(const rocksdb::MemTableInfo&) override {
    counters_->wal_switches++;
  }

 private:
  SharedCounters* const counters_;
};

std::vector<rocksdb::ColumnFamilyDescriptor> Families(
    const rocksdb::Options& options, size_t count) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < count; i++) {
    families.emplace_back(
        i == 0 ? rocksdb::kDefaultColumnFamilyName : "family" +
                                                         std::to_string(i),
        options);
  }
  return families;
}

rocksdb::Options WriterOptions(const std::string& variant) {
  rocksdb::Options options;
  options.write_buffer_size = 256 << 10;
  options.target_file_size_base = 128 << 10;
  options.max_bytes_for_level_base = 1 << 20;
  options.level0_file_num_compaction_trigger = 2;
  options.max_background_jobs = 4;
  if (variant == "recycle") {
    options.recycle_log_file_num = 3;
    // In other modes, RocksDB 7.8 does not recycle.
    options.wal_recovery_mode =
        rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  } else if (variant == "archive") {
    options.WAL_ttl_seconds = 1;
  } else if (variant == "manifest") {
    options.max_manifest_file_size = 2 << 10;
  } else if (variant == "manual") {
    options.manual_wal_flush = true;
  } else if (variant == "atomic") {
    options.atomic_flush = true;
  } else if (variant == "blob") {
    options.enable_blob_files = true;
    options.min_blob_size = 100;
    options.enable_blob_garbage_collection = true;
  } else if (variant == "bigwal") {
    options.write_buffer_size = 8 << 20;
  } else {
    REQUIRE(variant == "plain");
  }
  return options;
}

struct LiveTotals {
  uint64_t snapshots = 0;
  uint64_t rounds = 0;
  uint64_t differences = 0;
  uint64_t wal_bytes = 0;
};

void CompareOne(const SnapshotOptions& options, HistoryModel* model,
                LiveTotals* totals) {
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  totals->snapshots++;
  totals->rounds += snapshot->counters().rounds;
  totals->wal_bytes += snapshot->counters().wal_bytes_copied;
  INFO("snapshot " << totals->snapshots << " at sequence "
                   << snapshot->sequence());
  REQUIRE(model->AdvanceTo(snapshot->sequence()));
  REQUIRE(snapshot->families().size() == model->families());
  for (size_t i = 0; i < model->families(); i++) {
    const Entries found =
        ReadAll(snapshot->db(), snapshot->families()[i].handle);
    totals->differences += found == model->family(i) ? 0 : 1;
    CHECK(found == model->family(i));
  }
}

LiveTotals CompareLive(const std::string& variant, int snapshots) {
  ScratchDir tree;
  SharedCounters* counters = MapCounters(tree / "counters");
  ChildCase writer("The live writer writes until it is told to stop",
                   {{kDirectory, tree / "db"},
                    {kVariant, variant},
                    {kShared, tree / "counters"}});
  REQUIRE(writer.Listen() == "writing");
  SnapshotOptions options;
  options.database_dir = tree / "db";
  HistoryModel model(FamiliesOf(variant));
  LiveTotals totals;
  const auto has_flushed = [&] {
    return variant == "bigwal" ||
           (counters->flushes > 0 && counters->wal_switches > 0);
  };
  while (totals.snapshots < static_cast<uint64_t>(snapshots) ||
         !has_flushed()) {
    CompareOne(options, &model, &totals);
  }
  CHECK(counters->batches > model.batches() / 2);
  printf("live %-8s snapshots %llu batches %llu flushes %llu compactions %llu "
         "wal switches %llu rounds %llu wal bytes %llu differences %llu\n",
         variant.c_str(), static_cast<unsigned long long>(totals.snapshots),
         static_cast<unsigned long long>(counters->batches),
         static_cast<unsigned long long>(counters->flushes),
         static_cast<unsigned long long>(counters->compactions),
         static_cast<unsigned long long>(counters->wal_switches),
         static_cast<unsigned long long>(totals.rounds),
         static_cast<unsigned long long>(totals.wal_bytes),
         static_cast<unsigned long long>(totals.differences));
  fflush(stdout);
  counters->stop = 1;
  CHECK(writer.Wait() == 0);
  // The database is closed now: compare its whole history, up to the last
  // batch.
  const uint64_t written = counters->batches;
  CompareOne(options, &model, &totals);
  CHECK(model.batches() == written);
  CHECK(FilesWith(tree.path(), "").size() == 2);  // db, counters
  munmap(counters, sizeof(SharedCounters));
  return totals;
}

TEST_CASE("The live writer writes until it is told to stop",
          "[.child][snapshot]") {
  const std::string directory = FromParent(kDirectory);
  if (directory.empty()) {
    return;  // only runs as the second process of the cases below
  }
  SharedCounters* counters = MapCounters(FromParent(kShared));
  const std::string variant = FromParent(kVariant);
  const size_t families = FamiliesOf(variant);
  rocksdb::Options options = WriterOptions(variant);
  options.listeners.push_back(std::make_shared<CountingListener>(counters));
  test::OpenDb db(options, directory, Families(options, families));
  TellParent("writing");
  for (uint64_t number = 0; counters->stop == 0; number++) {
    rocksdb::WriteBatch batch =
        ToWriteBatch(HistoryBatch(number, families), db.families());
    REQUIRE_OK(db->Write(rocksdb::WriteOptions(), &batch));
    if (options.manual_wal_flush && number % 50 == 0) {
      REQUIRE_OK(db->FlushWAL(false));
    }
    counters->batches++;
  }
}

TEST_CASE("Snapshot of a directory that is being written equals the writer's "
          "history at its sequence",
          "[snapshot][live]") {
  const std::string variant =
      GENERATE("plain", "atomic", "recycle", "archive", "manifest", "manual",
               "blob", "bigwal");
  INFO(variant);
  const LiveTotals totals = CompareLive(variant, variant == "plain" ? 10 : 5);
  CHECK(totals.differences == 0);
}

TEST_CASE("Hundreds of snapshots of a directory that is being written equal "
          "the writer's history",
          "[.slow][snapshot][live]") {
  const char* asked = getenv("SSTFERRY_SNAPSHOTS");
  const char* variants = getenv("SSTFERRY_SNAPSHOT_VARIANT");
  const int snapshots = asked == nullptr ? 500 : atoi(asked);
  const std::string variant = variants == nullptr ? "plain" : variants;
  const LiveTotals totals = CompareLive(variant, snapshots);
  CHECK(totals.differences == 0);
  CHECK(totals.rounds > totals.snapshots);
}

}  // namespace
}  // namespace sstferry::snapshot_live_test
