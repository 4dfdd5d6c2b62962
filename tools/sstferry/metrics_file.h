// The file of --metrics-file, which other programs read at any time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// The text of an earlier file; empty if there is none, or if it is no plain
// file of at most a megabyte.
std::string ReadMetricsFile(const std::string& path);

// Replaces the file as a whole, with mode 0644: node_exporter is another user.
// kInternal: it stays as it was.
[[nodiscard]] rocksdb::Status WriteMetricsFile(const std::string& path,
                                               const std::string& text);

// The file of a command that runs on: written every 15 seconds.
//
// Threads: one of its own, which calls `text` and `log`.
class MetricsFileWriter {
 public:
  // Logs when the file can no longer be written, and when it can again.
  MetricsFileWriter(std::string path, std::function<std::string()> text,
                    LogFunction log);
  ~MetricsFileWriter();  // writes it once more

 private:
  void Run();
  void Write();

  const std::string path_;
  const std::function<std::string()> text_;
  const LogFunction log_;
  bool failing_ = false;  // thread_'s, and the destructor's after it
  std::mutex mu_;
  std::condition_variable changed_;
  bool stopped_ = false;  // under mu_
  std::thread thread_;
};

}  // namespace sstferry
