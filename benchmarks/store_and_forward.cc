// Moves the same chunks without overlap: the source builds all of them on its
// disk, then sends all of them, then the target ingests all of them. The
// difference from sstferry shows the gain from overlapping the stages. Prints
// the time of each stage separately.
//
//   bench_store_and_forward source --db DIR --scratch DIR --listen 127.0.0.1:0
//   bench_store_and_forward target --dir DIR --connect HOST:PORT --lanes 4
//                                  [--chunk-bytes 64M] [--build-rate 0]
//
// --build-rate limits the rate, in bytes per second, at which the source writes
// to its disk, to compare with published figures for a slow disk. 0: no limit.
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/database.h"
#include "benchmarks/support/file_transfer.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/sst_file_writer.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;

// The target's request to the source; sent as these bytes.
struct Wish {
  uint64_t chunk_bytes = 64000000;
  uint64_t build_rate_bytes_per_sec = 0;
};

// Builds the chunks of one part; their names are PART-CHUNK.
class ChunkBuilder {
 public:
  // All builders of a run share one limiter; null: no limit.
  ChunkBuilder(std::string dir, uint64_t chunk_bytes,
               std::shared_ptr<rocksdb::RateLimiter> limiter)
      : dir_(std::move(dir)),
        chunk_bytes_(chunk_bytes),
        limiter_(std::move(limiter)) {}

  Status Build(rocksdb::DB* db, const KeyRange& part, size_t part_number) {
    const rocksdb::Slice upper_bound(part.end);
    const auto it = NewRangeIterator(db, part, &upper_bound);
    size_t chunk_number = 0;
    Status s;
    while (s.ok() && it->Valid()) {
      s = BuildChunk(dir_ + "/" + std::to_string(part_number) + "-" +
                         std::to_string(chunk_number++) + ".sst",
                     it.get());
    }
    return s.ok() ? it->status() : s;
  }

 private:
  Status BuildChunk(const std::string& path, rocksdb::Iterator* it) {
    rocksdb::Options options = DatabaseOptions();
    options.rate_limiter = limiter_;
    rocksdb::EnvOptions env_options(options);
    rocksdb::SstFileWriter writer(
        env_options, options, /*column_family=*/nullptr,
        /*invalidate_page_cache=*/true,
        limiter_ ? rocksdb::Env::IO_LOW : rocksdb::Env::IO_TOTAL);
    Status s = writer.Open(path);
    uint64_t bytes = 0;
    for (; s.ok() && it->Valid() && bytes < chunk_bytes_; it->Next()) {
      s = writer.Put(it->key(), it->value());
      bytes += it->key().size() + it->value().size();
    }
    return s.ok() ? writer.Finish() : s;
  }

  std::string dir_;
  uint64_t chunk_bytes_;
  std::shared_ptr<rocksdb::RateLimiter> limiter_;
};

// Builds the parts, with one thread per lane.
Status BuildAll(const std::string& db_dir, const std::string& scratch,
                const Wish& wish, size_t lanes) {
  std::unique_ptr<rocksdb::DB> db;
  Status first = OpenReadOnly(db_dir, &db);
  if (!first.ok()) return first;
  const std::vector<KeyRange> parts = SplitByFiles(db.get(), lanes * 4);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::vector<std::thread> threads;
  std::shared_ptr<rocksdb::RateLimiter> limiter;
  if (wish.build_rate_bytes_per_sec > 0) {
    limiter.reset(rocksdb::NewGenericRateLimiter(
        static_cast<int64_t>(wish.build_rate_bytes_per_sec)));
  }
  for (size_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&] {
      ChunkBuilder builder(scratch, wish.chunk_bytes, limiter);
      for (size_t i = next++; i < parts.size(); i = next++) {
        const Status s = builder.Build(db.get(), parts[i], i);
        std::lock_guard<std::mutex> lock(mutex);
        if (first.ok()) first = s;
        if (!s.ok()) return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

Status RunSource(const std::string& db, const std::string& scratch,
                 const std::string& listen, Report* report) {
  Socket listener;
  std::vector<Socket> lanes;
  Wish wish;
  if (mkdir(scratch.c_str(), 0755) != 0) return ErrnoStatus(scratch);
  Status s = Listen(listen, &listener);
  if (s.ok()) s = AcceptLanes(listener, &lanes);
  if (s.ok()) s = lanes[0].ReceiveAll(&wish, sizeof(wish));
  if (!s.ok()) return s;
  Stopwatch build_watch;
  s = BuildAll(db, scratch, wish, lanes.size());
  report->Add("build_seconds", build_watch.Seconds());
  std::vector<std::string> names;
  if (s.ok()) s = ListFiles(scratch, &names);
  if (!s.ok()) return s;
  TransferTotals totals;
  Stopwatch send_watch;
  s = SendFiles(scratch, names, &lanes, &totals);
  // The target closes its side when it has synced the last file.
  char byte = 0;
  if (s.ok()) s = lanes[0].ReceiveAll(&byte, 1);
  report->Add("send_seconds", send_watch.Seconds());
  report->Add("files", totals.files);
  report->Add("bytes", totals.bytes);
  return s;
}

Status Ingest(const std::string& dir, const std::string& staging,
              Report* report) {
  Stopwatch ingest_watch;
  std::unique_ptr<rocksdb::DB> db;
  Status s = rocksdb::DB::Open(DatabaseOptions(), dir, IntoDb(&db));
  if (!s.ok()) return s;
  std::vector<std::string> names;
  s = ListFiles(staging, &names);
  for (std::string& name : names) name = staging + "/" + name;
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.write_global_seqno = false;
  if (s.ok() && !names.empty()) s = db->IngestExternalFile(names, options);
  const Status closed = db->Close();
  report->Add("ingest_seconds", ingest_watch.Seconds());
  return s.ok() ? closed : s;
}

Status RunTarget(const std::string& dir, const std::string& connect,
                 uint32_t lane_count, const Wish& wish, Report* report) {
  const std::string staging = dir + ".staging";
  if (mkdir(staging.c_str(), 0755) != 0) return ErrnoStatus(staging);
  std::vector<Socket> lanes;
  Status s = ConnectLanes(connect, lane_count, &lanes);
  if (s.ok()) s = lanes[0].SendAll(&wish, sizeof(wish));
  TransferTotals totals;
  if (s.ok()) s = ReceiveFiles(staging, WriteMode::kBuffered, &lanes, &totals);
  const char byte = 1;
  if (s.ok()) s = lanes[0].SendAll(&byte, 1);
  if (s.ok()) s = Ingest(dir, staging, report);
  report->Add("files", totals.files);
  report->Add("bytes", totals.bytes);
  std::error_code error;
  std::filesystem::remove_all(staging, error);
  return s.ok() && error ? Status::IOError(staging, error.message()) : s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  using namespace sstferry::bench;
  Flags flags(argc, argv);
  Report report;
  rocksdb::Status s;
  Stopwatch watch;
  if (flags.role() == "source") {
    const std::string db = flags.Required("db");
    const std::string scratch = flags.Required("scratch");
    const std::string listen = flags.Text("listen", "127.0.0.1:0");
    flags.Done();
    s = RunSource(db, scratch, listen, &report);
  } else if (flags.role() == "target") {
    const std::string dir = flags.Required("dir");
    const std::string connect = flags.Required("connect");
    const auto lanes = static_cast<uint32_t>(flags.Number("lanes", 4));
    Wish wish;
    wish.chunk_bytes = flags.Number("chunk-bytes", wish.chunk_bytes);
    wish.build_rate_bytes_per_sec = flags.Number("build-rate", 0);
    flags.Done();
    s = RunTarget(dir, connect, lanes, wish, &report);
  } else {
    WrongUsage("the first argument is source or target");
  }
  report.Add("seconds", watch.Seconds());
  return report.Finish(s);
}
