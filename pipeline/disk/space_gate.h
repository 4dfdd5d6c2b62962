// Makes lanes wait for disk space instead of filling a disk that others need.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Delays writes while the target's file system has too little free space.
// Threads: any.
class SpaceGate {
 public:
  // Keeps `reserve_bytes` free on the file system that holds `dir`. A lane
  // waits at most `deadline`. Calls `say`, if set, once: when the first lane
  // waits. Borrows file_system and stop.
  SpaceGate(rocksdb::FileSystem* file_system, std::string dir,
            uint64_t reserve_bytes, std::chrono::milliseconds deadline,
            StopSignal* stop,
            std::function<void(const std::string&)> say = nullptr);

  // Blocks until `bytes` may be written. Lanes that pass at the same time do
  // not see each other's bytes, so the reserve may fall short by one chunk per
  // lane. A file system that does not report its free space counts as having
  // enough.
  //   kNoSpace    the space was too small during all of `deadline`
  //   kCancelled  stopped
  [[nodiscard]] rocksdb::Status Pass(uint64_t bytes);

 private:
  rocksdb::FileSystem* const file_system_;
  const std::string dir_;
  const uint64_t reserve_bytes_;
  const std::chrono::milliseconds deadline_;
  StopSignal* const stop_;
  const std::function<void(const std::string&)> say_;
  std::atomic<bool> said_{false};
};

}  // namespace sstferry
