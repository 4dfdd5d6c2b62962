// A connected TCP or Unix socket. Any thread may close it while other threads
// wait for it. Plain and encrypted connections use it.
#pragma once

#include <sys/uio.h>

#include <mutex>
#include <string>

#include "pipeline/wire/wait_deadline.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// A connected socket in non-blocking mode. Callers first try to read or write.
// They call Wait(), which uses poll(2), only if the kernel has no data or no
// room.
//
// Threads: Close(), closed() and peer() may be called from any thread at any
//   time. A caller of any other member needs an Inside object whose entered()
//   returned true.
class ConnectedSocket {
 public:
  // Makes the socket non-blocking. If it is a TCP socket, also sets TCP_NODELAY
  // and keepalive. `peer` is the name of the other side in logs.
  ConnectedSocket(Descriptor socket, std::string peer);
  ~ConnectedSocket() { Close(); }
  ConnectedSocket(const ConnectedSocket&) = delete;
  ConnectedSocket& operator=(const ConnectedSocket&) = delete;

  // While an Inside exists whose entered() is true, Close() leaves the
  // descriptor open, so that a call can still use it.
  class Inside {
   public:
    explicit Inside(ConnectedSocket* socket);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    // Returns false if Close() was called before this object was made.
    bool entered() const { return entered_; }

   private:
    ConnectedSocket* const socket_;
    bool entered_;
  };

  // Reads at most `capacity` bytes and returns their number. Sets *error to an
  // errno, or to 0. Returns 0 with EAGAIN if no data has arrived yet, and 0
  // without an error if the peer has closed the connection.
  size_t ReadSome(char* buffer, size_t capacity, int* error);
  // Writes bytes of the first `count` parts, as many as the kernel accepts at
  // once, and returns their number. Sets *error to an errno, or to 0; EAGAIN
  // means that there is no room. `more` tells the kernel that the caller will
  // write more bytes immediately.
  size_t WriteSome(const iovec* parts, size_t count, bool more, int* error);
  // Copies received bytes into the buffer without removing them from the
  // socket.
  size_t Peek(char* buffer, size_t capacity);

  // Blocks until poll(2) reports one of `events` or an error of the socket, and
  // returns OK in both cases; the next read or write then returns the error. If
  // the deadline passes first, returns the status that the caller must return.
  [[nodiscard]] rocksdb::Status Wait(short events, const char* action,
                                     WaitDeadline* deadline);
  // Blocks until there is room to write. Also returns if the peer has closed
  // its side and there is no room, and then sets *peer_ended. Otherwise the
  // wait might never end: such a peer may never read again, and then its
  // receive window stays full.
  [[nodiscard]] rocksdb::Status WaitToWrite(WaitDeadline* deadline,
                                            bool* peer_ended);
  // Returns the status for a call that failed with the errno `error`.
  [[nodiscard]] rocksdb::Status Failed(const char* action, int error);
  [[nodiscard]] rocksdb::Status ClosedStatus() const;

  // Wakes all waiting threads. The peer then reads the end of the data.
  void Close();
  bool closed();
  const std::string& peer() const { return peer_; }

 private:
  void ReleaseIfUnused();  // REQUIRES: mu_ is locked

  Descriptor socket_;
  const std::string peer_;

  std::mutex mu_;
  int calls_inside_ = 0;  // under mu_
  bool closed_ = false;   // under mu_
};

}  // namespace sstferry
