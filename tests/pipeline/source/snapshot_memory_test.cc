// A snapshot of a database whose data is nearly all in WALs must not keep it
// all in memory.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "pipeline/snapshot/snapshot.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/sanitizer.h"

namespace sstferry::snapshot_memory_test {
namespace {

constexpr char kDirectory[] = "SSTFERRY_TEST_MEMORY_DIR";
constexpr uint64_t kMiB = 1 << 20;
constexpr size_t kValueBytes = 1000;

uint64_t PeakKiB() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == "VmHWM:") {
      uint64_t value = 0;
      file >> value;
      return value;
    }
  }
  return 0;
}

// Writes `bytes` of values only to WALs: memtables are too large to be flushed.
uint64_t WriteOnlyWals(const std::string& directory, uint64_t bytes) {
  rocksdb::Options options;
  options.write_buffer_size = 8ull << 30;
  options.max_total_wal_size = 64ull << 30;
  options.avoid_flush_during_shutdown = true;
  test::OpenDb db(options, directory, {{"default", options}, {"b", options}});
  uint64_t entries = 0;
  std::string value(kValueBytes, 'x');
  for (; entries * kValueBytes < bytes; entries++) {
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), db.family(entries % 2),
                       std::to_string(entries * 7919 % 1000003) + "-" +
                           std::to_string(entries),
                       value));
  }
  return entries;
}

TEST_CASE("The memory writer writes and stops", "[.child][snapshot]") {
  if (FromParent(kDirectory).empty()) {
    return;  // only runs as the second process of the cases below
  }
  const uint64_t bytes = strtoull(getenv("SSTFERRY_TEST_BYTES"), nullptr, 10);
  TellParent(std::to_string(WriteOnlyWals(FromParent(kDirectory), bytes)));
}

TEST_CASE("The memory reader takes a snapshot and reads it",
          "[.child][snapshot]") {
  if (FromParent(kDirectory).empty()) {
    return;  // only runs as the third process of the cases below
  }
  SnapshotOptions options;
  options.database_dir = FromParent(kDirectory);
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  read.fill_cache = false;
  uint64_t entries = 0;
  for (const SnapshotFamily& family : snapshot->families()) {
    const std::unique_ptr<rocksdb::Iterator> it(
        snapshot->db()->NewIterator(read, family.handle));
    for (it->SeekToFirst(); it->Valid(); it->Next()) entries++;
    REQUIRE_OK(it->status());
  }
  TellParent(std::to_string(entries) + " " + std::to_string(PeakKiB()) + " " +
             std::to_string(snapshot->counters().flush_micros));
}

void CheckMemory(uint64_t bytes) {
  ScratchDir tree;
  ChildCase writer("The memory writer writes and stops",
                   {{kDirectory, tree / "db"},
                    {"SSTFERRY_TEST_BYTES", std::to_string(bytes)}});
  const std::string written = writer.Listen();
  REQUIRE(writer.Wait() == 0);
  REQUIRE(FilesWith(tree / "db", ".sst").empty());
  ChildCase reader("The memory reader takes a snapshot and reads it",
                   {{kDirectory, tree / "db"}});
  unsigned long long entries = 0;
  unsigned long long peak_kib = 0;
  unsigned long long micros = 0;
  REQUIRE(sscanf(reader.Listen().c_str(), "%llu %llu %llu", &entries,
                 &peak_kib, &micros) == 3);
  CHECK(reader.Wait() == 0);
  printf("%llu bytes only in WALs: peak %llu KiB, replayed in %llu ms\n",
         static_cast<unsigned long long>(bytes), peak_kib, micros / 1000);
  CHECK(std::to_string(entries) == written);
  // Two memtables of 16 MiB, two more that are being flushed, buffers and code.
  CHECK((test::kSanitized || peak_kib * 1024 < 128 * kMiB));
}

TEST_CASE("Snapshot of 250 MB that are only in WALs stays in bounded memory",
          "[snapshot]") {
  CheckMemory(250'000'000);
}

TEST_CASE("Snapshot of 2 GB that are only in WALs stays in bounded memory",
          "[.slow][snapshot]") {
  CheckMemory(2'000'000'000);
}

}  // namespace
}  // namespace sstferry::snapshot_memory_test
