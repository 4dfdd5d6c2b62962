// Reads and writes the metrics file, that is, the file of --metrics-file.
// Programs such as node_exporter may read the file at any time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Maximum size of a metrics file. A file with the metrics of 4096 replicas has
// about 20 MB.
inline constexpr size_t kMaxMetricsBytes = 64u << 20;

// Returns the content of the file. Returns "" if the file cannot be read, is
// not a regular file, or is larger than kMaxMetricsBytes.
std::string ReadMetricsFile(const std::string& path);

// Replaces the content of the file `path` atomically, and sets its mode to
// 0644. On failure returns kInternal with a message that begins with `what`,
// and the file is unchanged.
[[nodiscard]] rocksdb::Status WriteWholeFile(const std::string& what,
                                             const std::string& path,
                                             const std::string& text);

// Writes the metrics file with WriteWholeFile(). Because its mode is 0644,
// node_exporter can read the file as another user.
[[nodiscard]] rocksdb::Status WriteMetricsFile(const std::string& path,
                                               const std::string& text);

// Writes the metrics file every 15 seconds while a command runs.
//
// Threads: a thread of this object calls `text` and `log`.
class MetricsFileWriter {
 public:
  // Logs the first failure to write the file, and the first success after it.
  MetricsFileWriter(std::string path, std::function<std::string()> text,
                    LogFunction log);
  ~MetricsFileWriter();  // writes the file for the last time

 private:
  void Run();
  void Write();

  const std::string path_;
  const std::function<std::string()> text_;
  const LogFunction log_;
  bool failing_ = false;  // used by thread_ until the join
  std::mutex mu_;
  std::condition_variable changed_;
  bool stopped_ = false;  // guarded by mu_
  std::thread thread_;
};

}  // namespace sstferry
