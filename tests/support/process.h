// Runs and watches a process: the real binary, or a case of this test program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sstferry {

// A process. Threads: one; internal threads collect the output.
class Process {
 public:
  // Starts the process. `environment` is added to this process's environment.
  explicit Process(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment = {});
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int number);
  // Waits for the end. Returns the exit code, or 128 + the signal that killed
  // the process; -1 if it still runs after `limit`.
  int Wait(std::chrono::milliseconds limit = std::chrono::seconds(60));
  // Block until the output (or the error output) contains `text`. Return false
  // if the process closes that output first, or after `limit`.
  bool WaitForOut(const std::string& text,
                  std::chrono::seconds limit = std::chrono::seconds(60));
  bool WaitForErr(const std::string& text,
                  std::chrono::seconds limit = std::chrono::seconds(60));
  // Blocks until `path` is a directory with an entry, or a file with bytes.
  // Returns false if the process ends first, or after a minute.
  bool WaitForBytesIn(const std::string& path);
  // Return the output so far; complete after Wait().
  std::string out() const;
  std::string err() const;
  pid_t pid() const { return pid_; }

 private:
  struct Stream {
    int fd = -1;
    std::string text;
    bool closed = false;
    std::thread reader;
  };
  void Read(Stream* stream);
  bool WaitFor(const Stream& stream, const std::string& text,
               std::chrono::seconds limit);

  pid_t pid_ = -1;
  int exit_code_ = -1;
  bool reaped_ = false;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  Stream streams_[2];  // text and closed under mu_
};

// Returns the words that run the tool under test with `arguments`.
std::vector<std::string> Sstferry(std::vector<std::string> arguments);
// Runs the tool to its end, which must be `code`; returns its output.
std::string OutputOf(const std::vector<std::string>& arguments, int code = 0);
// Returns the words that run one case of this program.
std::vector<std::string> CaseOfThisProgram(const std::string& name);

}  // namespace sstferry
