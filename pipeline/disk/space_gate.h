// Makes lanes wait for free disk space, so that a pull does not fill a disk
// that other users need.
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
  // Keeps `reserve_bytes` free on the file system that contains `dir`. Each
  // lane waits at most `deadline`. Calls `say`, if set, only once: when the
  // first lane begins to wait. Borrows file_system and stop.
  SpaceGate(rocksdb::FileSystem* file_system, std::string dir,
            uint64_t reserve_bytes, std::chrono::milliseconds deadline,
            StopSignal* stop,
            std::function<void(const std::string&)> say = nullptr);

  // Blocks until `bytes` may be written. If several lanes pass at the same
  // time, each lane ignores the bytes of the others. So the free space may fall
  // below the reserve by one chunk per lane. If the file system does not report
  // its free space, never blocks.
  //   kNoSpace    there was too little space during all of `deadline`
  //   kCancelled  `stop` was raised
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
