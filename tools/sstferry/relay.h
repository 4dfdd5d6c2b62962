// Copies the output of a child process that runs as another account to root's
// standard output and error. The child writes to pipes, not to root's terminal,
// because control sequences can make a terminal send text to root's shell as if
// root had typed it.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// A filter that makes text safe for root's terminal. It passes printable text,
// line ends, tabs and the control sequences that Console writes, such as
// colours. It replaces every other byte by '?'.
class TerminalText {
 public:
  // Returns the filtered `bytes`. If `bytes` end inside a control sequence or a
  // UTF-8 character, keeps this incomplete part for the next call.
  std::string Pass(const rocksdb::Slice& bytes);
  // Returns a '?' for each byte that the last Pass() has kept.
  std::string End();

 private:
  std::string pending_;
};

// Copies bytes from a pipe to a descriptor of this process. If the descriptor
// is a terminal, filters them with TerminalText.
//
// Threads: all members are called by one thread; another thread copies.
class OutputRelay {
 public:
  // Makes a pipe whose bytes are copied to `to`. Does not close `to`.
  [[nodiscard]] static rocksdb::Status Open(int to,
                                            std::unique_ptr<OutputRelay>* relay);
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  // Returns the end of the pipe to which the child writes.
  int pipe() const { return in_; }
  // Closes pipe() in this process and starts copying.
  void Begin();
  // Copies the bytes that are in the pipe now, and stops copying. Does not wait
  // for other processes that still have pipe() open. Returns false if some
  // bytes could not be written.
  bool Finish();

 private:
  // The object closes `in`, `out` and `end`.
  OutputRelay(int to, bool is_terminal, int in, int out, int end)
      : to_(to), is_terminal_(is_terminal), in_(in), out_(out), end_(end) {}
  void Copy();
  size_t CopyOnce(size_t most);
  void Write(const std::string& text);

  const int to_;
  const bool is_terminal_;
  int in_;         // -1 if closed
  int out_;        // -1 if closed
  const int end_;  // an eventfd that ends the thread
  TerminalText text_;
  bool failed_ = false;  // used by the thread until the join
  std::thread thread_;
};

}  // namespace sstferry
