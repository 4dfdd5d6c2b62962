// Writes files and syncs them, and does nothing else: the disk use that a
// refresh cannot avoid.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "rocksdb/status.h"

namespace sstferry::bench {

// Writes pieces of 64 MiB into a file in `directory`, with a sync after each,
// on CPU that no other process wants. The constructor starts it; the destructor
// stops it and removes the file.
class DiskWriter {
 public:
  // 0 bytes: writes nothing.
  DiskWriter(const std::string& directory, uint64_t bytes_per_sec);
  ~DiskWriter();
  DiskWriter(const DiskWriter&) = delete;
  DiskWriter& operator=(const DiskWriter&) = delete;

  // Stops and joins the thread. Returns its status.
  [[nodiscard]] rocksdb::Status Stop();

 private:
  [[nodiscard]] rocksdb::Status Write();
  [[nodiscard]] rocksdb::Status WriteOne();

  const std::string path_;
  const double bytes_per_sec_;
  std::atomic<bool> stop_{false};
  rocksdb::Status status_;  // used by the thread until it is joined
  std::thread thread_;
};

}  // namespace sstferry::bench
