// Another process, watched: the real binary, or a case of this test program.
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

// Threads: one, but for what collects the output.
class Process {
 public:
  // Started at once; `environment` comes on top of this process's.
  explicit Process(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment = {});
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int number);
  // The exit code; 128 + the signal that killed it; -1 when it still runs
  // after `limit`.
  int Wait(std::chrono::milliseconds limit = std::chrono::seconds(60));
  // Blocks until that text stands in the output (or the error output); false
  // when the process closed it without, or after `limit`.
  bool WaitForOut(const std::string& text,
                  std::chrono::seconds limit = std::chrono::seconds(30));
  bool WaitForErr(const std::string& text,
                  std::chrono::seconds limit = std::chrono::seconds(30));
  // Blocks until `directory` exists and has an entry; false when the process
  // ended without, or after a minute.
  bool WaitForEntryIn(const std::string& directory);
  // Complete after Wait().
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

// The tool under test with `arguments`.
std::vector<std::string> Sstferry(std::vector<std::string> arguments);
// Runs the tool to its end, which must be `code`; returns its output.
std::string OutputOf(const std::vector<std::string>& arguments, int code = 0);
// One case of this program.
std::vector<std::string> CaseOfThisProgram(const std::string& name);

}  // namespace sstferry
