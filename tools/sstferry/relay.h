// Relays standard output and error of a process of another account through
// pipes. Without this, the process could write control sequences to root's
// terminal, which executes them, and may answer them as if somebody typed.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Passes only what may be written to root's terminal: text, line ends, and the
// few sequences that Console writes. Everything else becomes '?'.
class TerminalText {
 public:
  // Returns the complete sequences in earlier, pending bytes and `bytes`. Keeps
  // an incomplete one at the end pending.
  std::string Pass(const rocksdb::Slice& bytes);
  // Returns a '?' for each pending byte.
  std::string End();

 private:
  std::string pending_;
};

// Copies from a pipe to a descriptor of this process, through TerminalText if
// the descriptor is a terminal.
//
// Threads: one caller, and one thread that copies.
class OutputRelay {
 public:
  // The caller still owns `to`.
  [[nodiscard]] static rocksdb::Status Open(int to,
                                            std::unique_ptr<OutputRelay>* relay);
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  int pipe() const { return in_; }  // the child's end
  // Closes the child's end in this process and starts copying.
  void Begin();
  // Copies the bytes that are in the pipe now, and stops copying, even if
  // another process still has the other end of the pipe open. Returns false if
  // any bytes could not be written.
  bool Finish();

 private:
  // Owns `in`, `out` and `end`.
  OutputRelay(int to, bool is_terminal, int in, int out, int end)
      : to_(to), is_terminal_(is_terminal), in_(in), out_(out), end_(end) {}
  void Copy();
  size_t CopyOnce(size_t most);
  void Write(const std::string& text);

  const int to_;
  const bool is_terminal_;
  int in_;
  int out_;        // -1: closed, as for in_
  const int end_;  // an eventfd
  TerminalText text_;
  bool failed_ = false;  // used by the thread until the join
  std::thread thread_;
};

}  // namespace sstferry
