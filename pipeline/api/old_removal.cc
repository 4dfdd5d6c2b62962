// Deletes databases that swaps have kept. Runs after a swap.
#include "pipeline/api/operation_parts.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/disk/old_directories.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

class OldRemoval : public Operation {
 public:
  OldRemoval(const PullOptions& options, uint32_t keep)
      : options_(options), keep_(keep) {}

  Status Run(Summary* summary) override {
    const LowIoScope low(!options_.full_rate);
    const auto file_system = options_.file_system != nullptr
                                 ? options_.file_system
                                 : rocksdb::FileSystem::Default();
    std::vector<std::string> removed;
    const Status status = RemoveOldDirectories(
        file_system.get(), options_.target_dir, keep_,
        options_.delete_rate_bytes_per_sec, &stop_, &removed);
    for (const std::string& path : removed) {
      summary->notes.push_back("deleted " + path +
                               ", which an earlier swap had replaced");
    }
    FinishSummary(status, {FailedPart::kTarget}, summary);
    return status;
  }
  void Cancel() override { stop_.Stop(); }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override { return {}; }

 private:
  const PullOptions options_;
  const uint32_t keep_;
  StopSignal stop_;
};

}  // namespace

std::unique_ptr<Operation> MakeOldRemoval(const PullOptions& options,
                                          uint32_t keep) {
  return std::make_unique<OldRemoval>(options, keep);
}

}  // namespace sstferry
