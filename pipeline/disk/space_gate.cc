#include "pipeline/disk/space_gate.h"

#include <utility>

#include "format/end_state.h"
#include "pipeline/base/duration.h"
#include "pipeline/disk/free_space.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookInterval{100};

}  // namespace

SpaceGate::SpaceGate(rocksdb::FileSystem* file_system, std::string dir,
                     uint64_t reserve_bytes,
                     std::chrono::milliseconds deadline, StopSignal* stop,
                     std::function<void(const std::string&)> say)
    : file_system_(file_system),
      dir_(std::move(dir)),
      reserve_bytes_(reserve_bytes),
      deadline_(deadline),
      stop_(stop),
      say_(std::move(say)) {}

Status SpaceGate::Pass(uint64_t bytes) {
  const steady_clock::time_point until = steady_clock::now() + deadline_;
  while (true) {
    uint64_t free_bytes = 0;
    Status status = FreeBytes(file_system_, dir_, &free_bytes);
    if (status.ok() && free_bytes < reserve_bytes_ + bytes) {
      status = MakeStatus(
          EndState::kNoSpace,
          "disk of " + dir_ + ": expected " +
              SpaceText(reserve_bytes_ + bytes) + " free (" +
              SpaceText(reserve_bytes_) + " that --min-free keeps, and " +
              SpaceText(bytes) + " for a chunk), found " +
              SpaceText(free_bytes));
    }
    if (EndStateOf(status) != EndState::kNoSpace) {
      return status;
    }
    if (steady_clock::now() >= until) {
      return status;
    }
    if (say_ && !said_.exchange(true)) {
      say_("waiting for disk space, at most " + FormatDuration(deadline_) +
           ": " + MessageOf(status));
    }
    if (stop_->WaitFor(kLookInterval)) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
  }
}

}  // namespace sstferry
