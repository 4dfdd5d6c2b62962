// Lets lanes wait for disk space instead of filling a disk that others need.
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

// Threads: any.
class SpaceGate {
 public:
  // Keeps reserve_bytes of the file system free that holds `dir`. `say`, if
  // set, is told once that somebody waits. Borrows file system and stop.
  SpaceGate(rocksdb::FileSystem* file_system, std::string dir,
            uint64_t reserve_bytes, std::chrono::milliseconds patience,
            StopSignal* stop,
            std::function<void(const std::string&)> say = nullptr);

  // Waits until so many bytes may be written. Lanes that pass at the same time
  // do not know of each other: they may leave less, by a chunk of each.
  //   kNoSpace    there was not enough for as long as the patience
  //   kCancelled  stopped
  // A file system that cannot tell (NotSupported) has enough.
  [[nodiscard]] rocksdb::Status Pass(uint64_t bytes);

 private:
  rocksdb::FileSystem* const file_system_;
  const std::string dir_;
  const uint64_t reserve_bytes_;
  const std::chrono::milliseconds patience_;
  StopSignal* const stop_;
  const std::function<void(const std::string&)> say_;
  std::atomic<bool> said_{false};
};

}  // namespace sstferry
