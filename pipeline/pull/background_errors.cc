#include "pipeline/pull/background_errors.h"

#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::BackgroundErrorReason;
using rocksdb::Status;

const char* WorkOf(BackgroundErrorReason reason) {
  switch (reason) {
    case BackgroundErrorReason::kFlush:
    case BackgroundErrorReason::kFlushNoWAL:
      return "a flush";
    case BackgroundErrorReason::kCompaction:
      return "a compaction";
    case BackgroundErrorReason::kWriteCallback:
    case BackgroundErrorReason::kMemTable:
      return "a write";
    case BackgroundErrorReason::kManifestWrite:
    case BackgroundErrorReason::kManifestWriteNoWAL:
      return "a write of its MANIFEST";
    default:  // reasons of later versions
      return "background work";
  }
}

class BackgroundErrorListener : public rocksdb::EventListener {
 public:
  BackgroundErrorListener(std::string dir, BackgroundErrorFunction on_error)
      : dir_(std::move(dir)), on_error_(std::move(on_error)) {}

  void OnBackgroundError(BackgroundErrorReason reason,
                         Status* error) override {
    const Status seen = *error;
    const EndState state = seen.IsNoSpace()      ? EndState::kNoSpace
                           : seen.IsCorruption() ? EndState::kCorrupt
                                                 : EndState::kInternal;
    on_error_(WithContext(seen, state,
                          "background error of RocksDB in " + dir_ +
                              " during " + WorkOf(reason)));
  }

 private:
  const std::string dir_;
  const BackgroundErrorFunction on_error_;
};

}  // namespace

std::shared_ptr<rocksdb::EventListener> MakeBackgroundErrorListener(
    const std::string& dir, BackgroundErrorFunction on_error) {
  return std::make_shared<BackgroundErrorListener>(dir, std::move(on_error));
}

}  // namespace sstferry
