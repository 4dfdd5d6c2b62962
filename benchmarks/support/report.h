// The result of a benchmark program: one JSON object on one line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry::bench {

// Measures the seconds since its construction, by the steady clock.
class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

// Collects members in the order in which they are added.
class Report {
 public:
  void Add(const std::string& key, uint64_t value);
  void Add(const std::string& key, double value);
  void Add(const std::string& key, bool value);
  void Add(const std::string& key, const std::string& value);
  // Adds a value that is already JSON (an array or object).
  void AddRaw(const std::string& key, const std::string& json);

  // Adds "status" and this process's peak RSS (VmHWM), and prints the object as
  // the last line of standard output. Returns main()'s exit code.
  [[nodiscard]] int Finish(const rocksdb::Status& status);

 private:
  std::vector<std::string> members_;
};

// Returns the text as a JSON string with quotes.
std::string JsonText(const std::string& text);

}  // namespace sstferry::bench
