// Reads and writes the file of --metrics-file, which other programs read at any
// time.
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

// Maximum size of a metrics file. The file of 4096 replicas has 20 MB.
inline constexpr size_t kMaxMetricsBytes = 64u << 20;

// Returns the text of the file; empty if it is missing, or not a regular file
// of at most kMaxMetricsBytes.
std::string ReadMetricsFile(const std::string& path);

// Replaces a file atomically, with mode 0644. kInternal: the file is unchanged;
// the message begins with `what`.
[[nodiscard]] rocksdb::Status WriteWholeFile(const std::string& what,
                                             const std::string& path,
                                             const std::string& text);

// Replaces the file of --metrics-file by WriteWholeFile(). Its mode lets
// node_exporter, which runs as another user, read it.
[[nodiscard]] rocksdb::Status WriteMetricsFile(const std::string& path,
                                               const std::string& text);

// Writes the file of a running command every 15 seconds.
//
// Threads: one of its own, which calls `text` and `log`.
class MetricsFileWriter {
 public:
  // Logs when the file cannot be written any more, and when it can be again.
  MetricsFileWriter(std::string path, std::function<std::string()> text,
                    LogFunction log);
  ~MetricsFileWriter();  // writes it once more

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
