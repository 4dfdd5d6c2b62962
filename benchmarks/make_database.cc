// Makes a database to copy.
//
//   bench_make_database --dir DIR --value-bytes 256 --bytes 1200M
//                       [--compact|--no-compact|--live] [--seed 1]
//                       [--text FILE] [--noise-percent 100] [--log-normal]
//
// --log-normal: --value-bytes is the median (ValueSizes of workload.h).
// --noise-percent P: the first P percent of a value are noise, which the rest
//   repeats, and blocks are not compressed. With 19 and 256-byte values, zstd
//   shrinks the tables to about a quarter.
// --compact (default): entries are written in key order and then compacted with
//   bottommost_level_compaction=kForce. The program fails unless every file
//   ends at sequence zero.
// --no-compact: entries are written in a scattered order, one in ten over an
//   older version. The program does not wait for compactions, so that several
//   levels and L0 contain data.
// --live: like a database in use. Half of each value is noise (Snappy halves
//   it). Keys are written at random, three in ten of them twice; one in fifty
//   is deleted. Four levels contain files, and only a WAL has the newest
//   entries.
// --text FILE: the records of `apt-cache dumpavail` ("-" is standard input)
//   under the key "package/version/architecture", up to --bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "benchmarks/support/content.h"
#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "benchmarks/support/workload.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;

constexpr int kMaxCompactions = 3;
// With at most this many bytes, --live uses the smallest levels.
constexpr uint64_t kLiveBytes = 1'200'000'000;

struct MakeOptions {
  std::string dir;
  std::string text_file;  // empty: noise
  uint64_t value_bytes = 256;
  bool log_normal = false;
  uint64_t noise_percent = 100;
  uint64_t bytes = 1200000000;  // keys and values
  uint64_t seed = 1;
  bool compact = true;
  bool live = false;
};

rocksdb::WriteOptions WithoutWal() {
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  return write;
}

// Returns a step coprime to `count`, which visits every index once, with large
// distances.
uint64_t ScatterStep(uint64_t count) {
  uint64_t step = static_cast<uint64_t>(static_cast<double>(count) * 0.618) | 1;
  while (std::gcd(step, count) != 1) step += 2;
  return step;
}

uint64_t NoiseEntries(const MakeOptions& options) {
  return std::max<uint64_t>(1,
                            options.bytes / (kKeyBytes + options.value_bytes));
}

Status LoadNoise(const MakeOptions& options, rocksdb::DB* db) {
  const uint64_t count = NoiseEntries(options);
  const ValueSizes sizes{options.value_bytes, options.log_normal};
  const uint64_t step = options.compact ? 1 : ScatterStep(count);
  std::string key;
  std::string value;
  // Writes old versions of every tenth entry, which the load below overwrites.
  for (uint64_t i = 0; !options.compact && i < count; i += 10) {
    FillKey(options.seed, i, count, &key);
    FillValue(options.seed + 1, i, options.value_bytes, &value);
    const Status s = db->Put(WithoutWal(), key, value);
    if (!s.ok()) return s;
  }
  uint64_t index = 0;
  for (uint64_t n = 0; n < count; ++n, index = (index + step) % count) {
    FillKey(options.seed, index, count, &key);
    FillValue(options.seed, index, sizes.SizeOf(index), &value);
    Repeat(value.size() * options.noise_percent / 100, &value);
    const Status s = db->Put(WithoutWal(), key, value);
    if (!s.ok()) return s;
  }
  return Status::OK();
}

// Performs one write of a live load: the entry of `index`, or its deletion.
Status WriteLive(const MakeOptions& options, uint64_t index, uint64_t count,
                 uint64_t version, bool with_wal, rocksdb::DB* db) {
  const rocksdb::WriteOptions write =
      with_wal ? rocksdb::WriteOptions() : WithoutWal();
  std::string key;
  FillKey(options.seed, index, count, &key);
  if (version > 0 && index % 15 == 0) return db->Delete(write, key);
  std::string value;
  FillValue(options.seed + version, index, options.value_bytes, &value);
  Repeat(value.size() / 2, &value);
  return db->Put(write, key, value);
}

// Waits for compactions; RocksDB 7.8 has no call for this.
Status WaitForCompactions(rocksdb::DB* db) {
  Status s = db->Flush(rocksdb::FlushOptions());
  uint64_t pending = 1;
  uint64_t running = 1;
  while (s.ok() && (pending > 0 || running > 0)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const bool told =
        db->GetIntProperty("rocksdb.compaction-pending", &pending) &&
        db->GetIntProperty("rocksdb.num-running-compactions", &running);
    if (!told) s = Status::NotSupported("RocksDB reports no compactions");
  }
  return s;
}

Status LoadLive(const MakeOptions& options, rocksdb::DB* db) {
  const uint64_t count = NoiseEntries(options);
  const uint64_t step = ScatterStep(count);
  const auto write = [&](uint64_t writes, uint64_t stride, uint64_t version,
                         bool with_wal) {
    Status s;
    uint64_t index = version;
    for (uint64_t n = 0; s.ok() && n < writes; ++n) {
      s = WriteLive(options, index % count, count, version, with_wal, db);
      index = (index + stride) % count;
    }
    return s;
  };
  Status s = write(count, step, 0, false);
  if (s.ok()) s = write(count * 3 / 10, step, 1, false);
  if (s.ok()) s = WaitForCompactions(db);
  if (s.ok()) s = write(count / 50, step, 2, false);
  if (s.ok()) s = WaitForCompactions(db);
  // The last entries stay in the WAL: less than a write buffer.
  if (s.ok()) s = write(std::min<uint64_t>(count / 100, 10'000), step, 3, true);
  return s.ok() ? db->SyncWAL() : s;
}

// Returns the value if `line` is the field "NAME: VALUE"; else "".
std::string Field(const std::string& line, const std::string& name) {
  if (line.rfind(name + ": ", 0) != 0) return "";
  return line.substr(name.size() + 2);
}

Status LoadText(const MakeOptions& options, rocksdb::DB* db) {
  std::ifstream file;
  if (options.text_file != "-") {
    file.open(options.text_file);
    if (!file) return Status::IOError(options.text_file, "cannot be read");
  }
  std::istream& input = options.text_file == "-" ? std::cin : file;
  std::string line, record, package, version, architecture;
  uint64_t loaded = 0;
  bool more = true;
  while (more && loaded < options.bytes) {
    more = static_cast<bool>(std::getline(input, line));
    if (more && !line.empty()) {
      if (record.empty()) package = version = architecture = "";
      record += line + '\n';
      if (package.empty()) package = Field(line, "Package");
      if (version.empty()) version = Field(line, "Version");
      if (architecture.empty()) architecture = Field(line, "Architecture");
      continue;
    }
    if (record.empty()) continue;
    const std::string key = package + "/" + version + "/" + architecture;
    const Status s = db->Put(WithoutWal(), key, record);
    if (!s.ok()) return s;
    loaded += key.size() + record.size();
    record.clear();
  }
  return loaded > 0 ? Status::OK()
                    : Status::InvalidArgument("no record in the text");
}

Status CompactToSequenceZero(rocksdb::DB* db) {
  rocksdb::CompactRangeOptions part;
  part.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  part.max_subcompactions = 2;
  Shape shape;
  // On a busy machine, RocksDB's own compactions may prevent the first call
  // from compacting all files.
  for (int i = 0; i < kMaxCompactions; ++i) {
    const Status s = db->CompactRange(part, nullptr, nullptr);
    if (!s.ok()) return s;
    shape = ShapeOf(db);
    if (shape.files_with_sequence == 0) return Status::OK();
  }
  return Status::Corruption(
      "expected every file at sequence zero, found " +
      std::to_string(shape.files_with_sequence) + " that are not");
}

Status Make(const MakeOptions& options, Report* report) {
  rocksdb::Options db_options = DatabaseOptions();
  db_options.error_if_exists = true;
  if (options.noise_percent < 100) {
    db_options.compression = rocksdb::kNoCompression;
  }
  // A scattered load fills L0 faster than compactions empty it.
  if (!options.compact) db_options.write_buffer_size = 32u << 20;
  if (options.live) {
    // Uses four levels, whatever the size.
    const uint64_t scale = std::max<uint64_t>(1, options.bytes / kLiveBytes);
    db_options.write_buffer_size = (16u << 20) * std::min<uint64_t>(scale, 4);
    db_options.target_file_size_base = 32u << 20;
    db_options.max_bytes_for_level_base = (48u << 20) * scale;
    db_options.max_bytes_for_level_multiplier = 5;
    db_options.level_compaction_dynamic_level_bytes = false;
    db_options.avoid_flush_during_shutdown = true;
  }
  std::unique_ptr<rocksdb::DB> db;
  Status s = rocksdb::DB::Open(db_options, options.dir, IntoDb(&db));
  if (!s.ok()) return s;
  rocksdb::DB* const raw = db.get();
  s = options.live ? LoadLive(options, raw)
      : options.text_file.empty() ? LoadNoise(options, raw)
                                  : LoadText(options, raw);
  if (s.ok() && !options.live) s = db->Flush(rocksdb::FlushOptions());
  if (s.ok() && options.compact) s = CompactToSequenceZero(raw);
  if (!options.compact) rocksdb::CancelAllBackgroundWork(raw, true);
  const Shape shape = ShapeOf(raw);
  report->Add("dir", options.dir);
  if (options.text_file.empty()) {
    report->Add("keys", NoiseEntries(options));
  }
  report->Add("files", shape.files);
  report->Add("sst_bytes", shape.bytes);
  report->Add("files_with_sequence", shape.files_with_sequence);
  report->AddRaw("levels", LevelsJson(shape));
  const Status closed = db->Close();
  return s.ok() ? closed : s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  sstferry::bench::Flags flags(argc, argv);
  sstferry::bench::MakeOptions options;
  options.dir = flags.Required("dir");
  options.text_file = flags.Text("text");
  options.value_bytes = flags.Number("value-bytes", options.value_bytes);
  options.bytes = flags.Number("bytes", options.bytes);
  options.noise_percent = flags.Number("noise-percent", options.noise_percent);
  options.seed = flags.Number("seed", options.seed);
  options.log_normal = flags.Switch("log-normal", false);
  options.live = flags.Switch("live", false);
  options.compact = flags.Switch("compact", !options.live);
  flags.Done();
  sstferry::bench::Stopwatch watch;
  sstferry::bench::Report report;
  const rocksdb::Status s = sstferry::bench::Make(options, &report);
  report.Add("seconds", watch.Seconds());
  return report.Finish(s);
}
