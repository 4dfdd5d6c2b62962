// Standard output and error of a process of another account, which gets pipes
// in their place: a terminal obeys what is written to it, and answers as if
// somebody typed.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Lets through what may go to a terminal of root's: text, line ends, and the
// few sequences that Console writes. Everything else becomes '?'.
class TerminalText {
 public:
  // Returns what is known to be whole of `bytes` and of what came before.
  std::string Pass(const rocksdb::Slice& bytes);
  // Returns the rest, which nothing completes any more.
  std::string End();

 private:
  std::string pending_;
};

// Copies what is written into a pipe to a descriptor of this process, through
// TerminalText if that is a terminal.
// Threads: one calls; one more copies.
class OutputRelay {
 public:
  // `to` stays the caller's.
  [[nodiscard]] static rocksdb::Status Open(int to,
                                            std::unique_ptr<OutputRelay>* relay);
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  int pipe() const { return in_; }  // the child's end
  // Closes the child's end here and begins to copy.
  void Begin();
  // Copies what lies in the pipe, whoever has its other end still. Returns
  // false if not all that came could be written.
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
  int out_;        // -1: closed, and the same of in_
  const int end_;  // an eventfd
  TerminalText text_;
  bool failed_ = false;  // of the thread, until it is joined
  std::thread thread_;
};

}  // namespace sstferry
