// Changes a database that bench_make_database made, like the writes of a day.
//
//   bench_change_database --dir DIR --keys N [--key-seed 1] [--generation 1]
//       [--how random|clustered] [--overwrite-permille 10]
//       [--overwrite-per-million 0]
//       [--delete-permille 0] [--insert-permille 0] [--append-permille 0]
//       [--at-percent 50]
//       [--value-bytes 400] [--leave flushed|wal|compacted]
//
// The options say how many of the N keys are overwritten and deleted, and how
// many new keys are inserted, or appended after all others. The changed keys
// are spread at random, or are one run of neighbours that starts at
// --at-percent. --leave: where the changes are at the end: in a file of level
// 0, only in the WAL, or merged.
#include <algorithm>
#include <memory>
#include <string>

#include "benchmarks/support/content.h"
#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "benchmarks/support/workload.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;

constexpr size_t kWalBufferBytes = size_t{2} << 30;

struct ChangeOptions {
  std::string dir;
  std::string leave;
  bool clustered = false;
  uint64_t keys = 0;
  uint64_t key_seed = 1;
  uint64_t generation = 1;
  uint64_t overwrite_permille = 10;
  uint64_t overwrite_per_million = 0;  // added to overwrite_permille
  uint64_t delete_permille = 0;
  uint64_t insert_permille = 0;
  uint64_t append_permille = 0;
  uint64_t at_percent = 50;
  uint64_t value_bytes = 400;
};

Status Open(const ChangeOptions& options, std::unique_ptr<rocksdb::DB>* db) {
  rocksdb::DBOptions db_options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  const Status s =
      rocksdb::LoadLatestOptions(rocksdb::ConfigOptions(), options.dir,
                                 &db_options, &families);
  if (!s.ok()) return s;
  rocksdb::Options all(db_options, families.front().options);
  all.error_if_exists = false;  // the database exists already
  if (options.leave == "wal") {
    all.avoid_flush_during_shutdown = true;
    all.write_buffer_size = kWalBufferBytes;
  }
  return rocksdb::DB::Open(all, options.dir, IntoDb(db));
}

// Numbers of the keys to change, one after another.
class Chosen {
 public:
  explicit Chosen(const ChangeOptions& options)
      : options_(options), random_(options.generation),
        next_(options.keys * options.at_percent / 100) {}
  uint64_t Next() {
    return options_.clustered
               ? next_++ % options_.keys
               : static_cast<uint64_t>(NextShare(&random_) *
                                       static_cast<double>(options_.keys));
  }

 private:
  const ChangeOptions& options_;
  Random random_;
  uint64_t next_;
};

Status Write(const ChangeOptions& options, rocksdb::DB* db) {
  Chosen chosen(options);
  std::string key;
  std::string value;
  Status s;
  const auto share = [&](uint64_t permille) {
    return options.keys * permille / 1000;
  };
  for (uint64_t n = share(options.overwrite_permille) +
                    options.keys * options.overwrite_per_million / 1'000'000;
       s.ok() && n > 0; --n) {
    const uint64_t i = chosen.Next();
    FillKey(options.key_seed, i, options.keys, &key);
    FillValue(options.key_seed + options.generation, i, options.value_bytes,
              &value);
    s = db->Put(rocksdb::WriteOptions(), key, value);
  }
  for (uint64_t n = share(options.delete_permille); s.ok() && n > 0; --n) {
    FillKey(options.key_seed, chosen.Next(), options.keys, &key);
    s = db->Delete(rocksdb::WriteOptions(), key);
  }
  const uint64_t inserted = share(options.insert_permille);
  for (uint64_t i = 0; s.ok() && i < inserted; ++i) {
    FillKey(options.key_seed + 1000 * options.generation, i, inserted, &key);
    FillValue(options.generation, i, options.value_bytes, &value);
    s = db->Put(rocksdb::WriteOptions(), key, value);
  }
  // Eight bytes, because some of the other keys begin with one byte 0xff.
  const std::string behind_all(8, '\xff');
  const uint64_t appended = share(options.append_permille);
  for (uint64_t i = 0; s.ok() && i < appended; ++i) {
    FillKey(options.generation, i, appended, &key);
    FillValue(options.generation, i, options.value_bytes, &value);
    s = db->Put(rocksdb::WriteOptions(), behind_all + key, value);
  }
  return s;
}

Status Change(const ChangeOptions& options) {
  std::unique_ptr<rocksdb::DB> db;
  Status s = Open(options, &db);
  if (!s.ok()) return s;
  s = Write(options, db.get());
  if (s.ok() && options.leave != "wal") {
    s = db->Flush(rocksdb::FlushOptions());
  }
  if (s.ok() && options.leave == "compacted") {
    rocksdb::CompactRangeOptions part;
    part.bottommost_level_compaction =
        rocksdb::BottommostLevelCompaction::kForce;
    s = db->CompactRange(part, nullptr, nullptr);
  }
  const Status closed = db->Close();
  return s.ok() ? closed : s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  using sstferry::bench::WrongUsage;
  sstferry::bench::Flags flags(argc, argv);
  sstferry::bench::ChangeOptions options;
  options.dir = flags.Required("dir");
  options.keys = flags.Number("keys", 0);
  options.key_seed = flags.Number("key-seed", options.key_seed);
  options.generation = flags.Number("generation", options.generation);
  const std::string how = flags.Text("how", "random");
  options.clustered = how == "clustered";
  options.overwrite_permille =
      flags.Number("overwrite-permille", options.overwrite_permille);
  options.overwrite_per_million = flags.Number("overwrite-per-million", 0);
  options.delete_permille = flags.Number("delete-permille", 0);
  options.insert_permille = flags.Number("insert-permille", 0);
  options.append_permille = flags.Number("append-permille", 0);
  options.at_percent = flags.Number("at-percent", options.at_percent);
  options.value_bytes = flags.Number("value-bytes", options.value_bytes);
  options.leave = flags.Text("leave", "flushed");
  flags.Done();
  if (options.keys == 0) WrongUsage("--keys must not be 0");
  if (how != "random" && how != "clustered") {
    WrongUsage("--how is random or clustered");
  }
  if (options.leave != "flushed" && options.leave != "wal" &&
      options.leave != "compacted") {
    WrongUsage("--leave is flushed, wal or compacted");
  }
  sstferry::bench::Report report;
  const rocksdb::Status s = sstferry::bench::Change(options);
  return report.Finish(s);
}
