#include "benchmarks/serving_refresh.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "benchmarks/support/content.h"

namespace sstferry::bench {

namespace {

using rocksdb::Status;

// Ingestions that end further apart than this belong to two calls: between two
// calls, the program syncs; between the files of one call, it does not.
constexpr auto kCallGap = std::chrono::milliseconds(3);

void ReadSource(Flags* flags, PullOptions* pull) {
  const std::string source = flags->Required("source");
  const Status s = ParseSourceAddress(source, &pull->source);
  if (!s.ok()) WrongUsage("--source: " + s.ToString());
}

// Reads --share: with 0.2, the first fifth of the keys.
void ReadShare(Flags* flags, uint64_t keys, uint64_t seed,
               PullOptions* pull) {
  const std::string text = flags->Text("share", "1");
  char* rest = nullptr;
  const double share = std::strtod(text.c_str(), &rest);
  if (*rest != '\0' || share <= 0) WrongUsage("--share: not a share: " + text);
  if (share >= 1) return;
  std::string end;
  FillKey(seed, static_cast<uint64_t>(share * static_cast<double>(keys)), keys,
          &end);
  pull->selection.interval.end = end;
}

}  // namespace

RefreshOptions ReadRefreshOptions(Flags* flags, uint64_t read_keys,
                                  uint64_t read_seed) {
  RefreshOptions options;
  PullOptions& pull = options.pull;
  pull.mode = PullMode::kRefresh;
  ReadSource(flags, &pull);
  ReadShare(flags, read_keys, read_seed, &pull);
  pull.lanes = static_cast<uint32_t>(flags->Number("lanes", pull.lanes));
  pull.chunk_bytes = flags->Number("chunk-bytes", pull.chunk_bytes);
  pull.max_rate_bytes_per_sec = flags->Number("max-rate", 0);
  pull.min_rate_bytes_per_sec =
      flags->Number("min-rate", pull.min_rate_bytes_per_sec);
  pull.compact = flags->Switch("compact", true);
  pull.log = [](LogLevel level, const std::string& text) {
    if (level <= LogLevel::kWarning) std::fprintf(stderr, "%s\n", text.c_str());
  };
  options.nice = static_cast<int>(flags->Number("pipeline-nice", 0));
  return options;
}

void IngestLog::OnExternalFileIngested(
    rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo& info) {
  const Clock::time_point now = Clock::now();
  std::lock_guard<std::mutex> lock(mutex_);
  if (calls_.empty() || now - calls_.back().end > kCallGap) {
    calls_.push_back({now, 0});
  }
  calls_.back().end = now;
  ++calls_.back().files;
}

std::vector<IngestCall> IngestLog::calls() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

RefreshRun::RefreshRun(const RefreshOptions& options,
                       const OpenReplica& replica)
    : nice_(options.nice), operation_(MakeRefresh(options.pull, replica)) {}

RefreshRun::~RefreshRun() { Join().PermitUncheckedError(); }

void RefreshRun::Start() {
  thread_ = std::thread([this] {
    // Applies to this thread and to those that it starts.
    if (nice_ != 0) {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_);
    }
    status_ = operation_->Run(&summary_);
    ended_ = true;
  });
}

std::string RefreshRun::Stage() const {
  if (ended_) return "";
  const std::string phase = operation_->progress().phase;
  if (phase == "transfer") return "transfer";
  if (phase == "sync") return "publish";
  // In a refresh in place, "swap" only records the end of the transfer.
  if (phase == "swap" || phase == "compact") return "compaction";
  return "prepare";
}

Status RefreshRun::Join() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace sstferry::bench
