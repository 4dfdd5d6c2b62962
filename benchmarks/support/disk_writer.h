// Writes files and syncs them, and nothing else: what a refresh cannot do
// without.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "rocksdb/status.h"

namespace sstferry::bench {

// Writes 64 MiB after 64 MiB into a file in `directory`, with a sync behind
// each, on CPU that nobody else wants. Begins when made, ends when destroyed,
// which removes the file.
class DiskWriter {
 public:
  // 0 bytes: writes nothing.
  DiskWriter(const std::string& directory, uint64_t bytes_per_sec);
  ~DiskWriter();
  DiskWriter(const DiskWriter&) = delete;
  DiskWriter& operator=(const DiskWriter&) = delete;

  // Waits for the end.
  [[nodiscard]] rocksdb::Status Stop();

 private:
  [[nodiscard]] rocksdb::Status Write();
  [[nodiscard]] rocksdb::Status WriteOne();

  const std::string path_;
  const double bytes_per_sec_;
  std::atomic<bool> stop_{false};
  rocksdb::Status status_;  // of the thread until it is joined
  std::thread thread_;
};

}  // namespace sstferry::bench
