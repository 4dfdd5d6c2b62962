// Measures how much a clone sends night after night. Each night, a share of the
// keys is written; then a target copies the database by a clone and a swap,
// while the database is open. Prints one row of a table for each kind of load.
//
//   bench_clone_nights --sstferry PROGRAM --dir DIR [--bytes 500M]
//       [--nights 10] [--only NAME] [--link BYTES_PER_SECOND]
//
// Half of each value is noise, so that Snappy halves it. Files, levels and
// write buffers are an eighth of RocksDB's defaults, so that 500 MB have the
// same shape as 4 GB.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/content.h"
#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "benchmarks/support/workload.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;

constexpr uint64_t kSeed = 1;
constexpr size_t kValueBytes = 400;

enum class Where : uint8_t { kRandom, kNeighbours, kBehind };

struct Load {
  const char* name;
  uint64_t permille;  // permille of the keys, each night
  Where where;
  bool universal = false;
  bool blobs = false;
};

constexpr Load kLoads[] = {
    {"random 0.1 %", 1, Where::kRandom},
    {"random 1 %", 10, Where::kRandom},
    {"random 5 %", 50, Where::kRandom},
    {"neighbours 1 %", 10, Where::kNeighbours},
    {"appended 1 %", 10, Where::kBehind},
    {"universal, random 1 %", 10, Where::kRandom, true},
    {"blobs, random 1 %", 10, Where::kRandom, false, true},
};

struct Night {
  uint64_t sent = 0;
  uint64_t reused = 0;
  double seconds = 0;
  bool took_delta = false;
  double share() const {
    return static_cast<double>(sent) / static_cast<double>(sent + reused);
  }
};

rocksdb::Options OptionsOf(const Load& load) {
  rocksdb::Options options = DatabaseOptions();
  options.compression = rocksdb::kSnappyCompression;
  options.write_buffer_size = 8u << 20;
  options.target_file_size_base = 8u << 20;
  options.max_bytes_for_level_base = 32u << 20;
  if (load.universal) {
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
  }
  if (load.blobs) {
    options.enable_blob_files = true;
    options.blob_file_size = 32u << 20;
    options.enable_blob_garbage_collection = true;
  }
  return options;
}

// Waits for compactions. RocksDB 7.8 has no call for this, and a universal
// family may report a pending compaction forever.
Status Settle(rocksdb::DB* db) {
  constexpr int kQuietLooks = 15;
  const Status status = db->Flush(rocksdb::FlushOptions());
  for (int quiet = 0; status.ok() && quiet < kQuietLooks; ++quiet) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    uint64_t pending = 0;
    uint64_t running = 0;
    db->GetIntProperty("rocksdb.compaction-pending", &pending);
    db->GetIntProperty("rocksdb.num-running-compactions", &running);
    if (running > 0) {
      quiet = 0;
    } else if (pending == 0) {
      break;
    }
  }
  return status;
}

// A database and the target that copies it.
class World {
 public:
  World(const Load& load, uint64_t bytes, std::string directory,
        std::string program, std::string link)
      : load_(load),
        keys_(bytes / (kKeyBytes + kValueBytes)),
        directory_(std::move(directory)),
        program_(std::move(program)),
        link_(std::move(link)) {}

  [[nodiscard]] Status Make() {
    std::filesystem::create_directories(directory_);
    rocksdb::Options options = OptionsOf(load_);
    options.create_if_missing = true;
    Status status = rocksdb::DB::Open(options, source(), IntoDb(&db_));
    // Writes the keys in an order without neighbours: the step and the number
    // of keys have no common factor.
    uint64_t step = keys_ * 618 / 1000;
    while (std::gcd(step, keys_) != 1) ++step;
    for (uint64_t i = 0; status.ok() && i < keys_; ++i) {
      status = Put(i * step % keys_, 0);
    }
    return status.ok() ? Settle(db_.get()) : status;
  }

  [[nodiscard]] Status Write(uint64_t night) {
    Random random(night);
    const uint64_t writes = keys_ * load_.permille / 1000;
    const uint64_t first = static_cast<uint64_t>(
        NextShare(&random) * static_cast<double>(keys_ - writes));
    Status status;
    for (uint64_t i = 0; status.ok() && i < writes; ++i) {
      const uint64_t index =
          load_.where == Where::kRandom
              ? static_cast<uint64_t>(NextShare(&random) *
                                      static_cast<double>(keys_))
          : load_.where == Where::kNeighbours ? first + i
                                              : keys_ + appended_++;
      status = Put(index, night);
    }
    return status.ok() ? Settle(db_.get()) : status;
  }

  [[nodiscard]] Status Take(bool first, Night* night) const {
    const std::string command =
        program_ + (first ? " pull " : " swap ") + source() + " " + directory_ +
        "/target --json --progress never --log-level error" +
        (first || link_.empty() ? " --method clone" : " --max-rate " + link_) +
        (first ? "" : " --delete-rate 100G");
    const Stopwatch watch;
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
      return Status::IOError("cannot run", command);
    }
    std::string json;
    std::array<char, 4096> piece;
    for (size_t n = 0; (n = fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
      json.append(piece.data(), n);
    }
    if (pclose(pipe) != 0) {
      return Status::IOError(command, json);
    }
    night->seconds = watch.Seconds();
    night->sent = NumberIn(json, "wire_bytes");
    // Uses the first "method": the rows of "methods", later in the JSON, have
    // both.
    const std::string method = "\"method\": \"";
    const size_t at = json.find(method);
    night->took_delta = at != std::string::npos &&
                        json.compare(at + method.size(), 6, "ingest") == 0;
    night->reused = NumberIn(json, "bytes_reused");
    return Status::OK();
  }

 private:
  static uint64_t NumberIn(const std::string& json, const std::string& key) {
    const size_t at = json.find("\"" + key + "\": ");
    return at == std::string::npos
               ? 0
               : std::stoull(json.substr(at + key.size() + 4));
  }

  std::string source() const { return directory_ + "/source"; }

  Status Put(uint64_t index, uint64_t version) {
    // The key space has room for an eighth more keys after the last one.
    FillKey(kSeed, index, keys_ + keys_ / 8, &key_);
    FillValue(kSeed + version, index, kValueBytes, &value_);
    Repeat(value_.size() / 2, &value_);
    return db_->Put(rocksdb::WriteOptions(), key_, value_);
  }

  const Load load_;
  const uint64_t keys_;
  const std::string directory_;
  const std::string program_;
  const std::string link_;
  std::unique_ptr<rocksdb::DB> db_;
  uint64_t appended_ = 0;
  std::string key_;
  std::string value_;
};

void PrintRow(const Load& load, const Night& seed, std::vector<Night> nights) {
  std::sort(nights.begin(), nights.end(), [](const Night& a, const Night& b) {
    return a.share() < b.share();
  });
  std::vector<double> seconds;
  Night all;
  for (const Night& night : nights) {
    seconds.push_back(night.seconds);
    all.sent += night.sent;
    all.reused += night.reused;
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = (nights[(nights.size() - 1) / 2].share() +
                         nights[nights.size() / 2].share()) / 2;
  std::printf(
      "| %s | %.0f MB in %.2f s | %.1f %% | %.1f %% | %.1f %% | %.2f s | %d "
      "|\n",
      load.name, static_cast<double>(seed.sent) / 1e6, seed.seconds,
      100 * all.share(), 100 * median,
      100 * nights.back().share(), seconds[seconds.size() / 2],
      static_cast<int>(std::count_if(
          nights.begin(), nights.end(),
          [](const Night& night) { return night.took_delta; })));
  std::fflush(stdout);
}

Status Run(const Load& load, uint64_t bytes, uint64_t nights,
           const std::string& directory, const std::string& program,
           const std::string& link) {
  World world(load, bytes, directory, program, link);
  Night seed;
  std::vector<Night> taken(nights);
  Status status = world.Make();
  if (status.ok()) status = world.Take(/*first=*/true, &seed);
  for (uint64_t n = 0; n < nights && status.ok(); ++n) {
    status = world.Write(n + 1);
    if (status.ok()) status = world.Take(/*first=*/false, &taken[n]);
  }
  if (status.ok()) PrintRow(load, seed, std::move(taken));
  return status;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  using sstferry::bench::Load;
  sstferry::bench::Flags flags(argc, argv);
  const std::string program = flags.Required("sstferry");
  const std::string dir = flags.Required("dir");
  const uint64_t bytes = flags.Number("bytes", 500'000'000);
  const uint64_t nights = std::max<uint64_t>(1, flags.Number("nights", 10));
  const std::string only = flags.Text("only");
  // Each swap chooses its method by the rule, for a link with this rate.
  const std::string link = flags.Text("link");
  flags.Done();
  rocksdb::Status status;
  std::printf(
      "| Written each night | First clone | Sent, all nights | Median | Worst "
      "| Seconds, median | Nights of deltas |\n|---|---|---|---|---|---|---|\n");
  for (const Load& load : sstferry::bench::kLoads) {
    if (status.ok() && (only.empty() || only == load.name)) {
      status = sstferry::bench::Run(load, bytes, nights, dir + "/now", program,
                                    link);
      std::filesystem::remove_all(dir + "/now");
    }
  }
  sstferry::bench::Report report;
  return report.Finish(status);
}
