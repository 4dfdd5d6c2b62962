#include "pipeline/snapshot/replay_watch.h"

#include <cstdio>
#include <utility>

#include "format/coding.h"

namespace sstferry {

class ReplayWatch::Warnings : public rocksdb::Logger {
 public:
  Warnings() : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[1024];
    vsnprintf(line, sizeof(line), format, arguments);
    const std::lock_guard<std::mutex> lock(mu_);
    if (first_.empty()) {
      first_ = line;
    }
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mu_);
    first_.clear();
  }
  std::string first() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return first_;
  }

 private:
  mutable std::mutex mu_;
  std::string first_;
};

ReplayWatch::ReplayWatch(const ReplayedRecords& expected, bool may_follow,
                         std::function<bool()> stopped)
    : expected_(expected),
      may_follow_(may_follow),
      stopped_(std::move(stopped)),
      warnings_(std::make_shared<Warnings>()),
      has_expected_(expected.count == 0) {}

ReplayWatch::~ReplayWatch() = default;

void ReplayWatch::Watch(rocksdb::DBOptions* options) {
  options->info_log = warnings_;
  options->wal_filter = this;
}

bool ReplayWatch::IsComplete() const {
  return has_expected_ && (may_follow_ || seen_ == expected_);
}

std::string ReplayWatch::warning() const { return warnings_->first(); }

void ReplayWatch::ColumnFamilyLogNumberMap(
    const std::map<uint32_t, uint64_t>& /*wals*/,
    const std::map<std::string, uint32_t>& /*families*/) {
  warnings_->Clear();  // drops warnings from before the recovery
}

ReplayWatch::WalProcessingOption ReplayWatch::LogRecordFound(
    unsigned long long wal,  // NOLINT: API
    const std::string& /*name*/, const rocksdb::WriteBatch& batch,
    rocksdb::WriteBatch* /*new_batch*/, bool* /*batch_changed*/) {
  if (stopped_ && stopped_()) {
    return WalProcessingOption::kStopReplay;
  }
  seen_.Add(wal, DecodeFixed64(batch.Data().data()));
  has_expected_ |= seen_ == expected_;
  return WalProcessingOption::kContinueProcessing;
}

}  // namespace sstferry
