// The series of one line a second that plots are made from.
#pragma once

#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Writes a CSV: a head, then what `sample` returns, once a second and once at
// Stop(). Threads: Start() and Stop() from one; sample runs on a thread of its
// own.
class Timeline {
 public:
  // `columns` names what `sample` returns, after the leading `seconds`.
  Timeline(std::string path, std::vector<std::string> columns,
           std::function<std::vector<uint64_t>()> sample);
  ~Timeline();

  [[nodiscard]] rocksdb::Status Start();
  [[nodiscard]] rocksdb::Status Stop();

 private:
  void WriteLine(double seconds);

  const std::string path_;
  const std::vector<std::string> columns_;
  const std::function<std::vector<uint64_t>()> sample_;
  std::ofstream out_;
  std::thread thread_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;  // under mu_
};

}  // namespace sstferry
