// A connected socket, TCP or Unix, that any thread may close while others wait
// on it. Used by plain and encrypted connections.
#pragma once

#include <sys/uio.h>

#include <mutex>
#include <string>

#include "pipeline/wire/wait_deadline.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// A non-blocking connected socket. Reads and writes are tried first; Wait()
// calls poll(2) only if the kernel has no data, or no room.
//
// Threads: Close(), closed() and peer(): any, at any time. All other members:
//   only while the caller has an Inside whose entered() is true.
class ConnectedSocket {
 public:
  // Makes the socket non-blocking. On a TCP socket, also sets TCP_NODELAY and
  // keepalive. `peer`: name of the other side, for logs.
  ConnectedSocket(Descriptor socket, std::string peer);
  ~ConnectedSocket() { Close(); }
  ConnectedSocket(const ConnectedSocket&) = delete;
  ConnectedSocket& operator=(const ConnectedSocket&) = delete;

  // Keeps the descriptor open during one call.
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

  // Returns the number of bytes read. 0 without an error: the peer has closed.
  // *error: an errno, or 0; EAGAIN if there is no data yet.
  size_t ReadSome(char* buffer, size_t capacity, int* error);
  // Writes the first `count` parts; returns the number of bytes written.
  // *error: an errno, or 0; EAGAIN if there is no room. `more`: the caller
  // writes more bytes immediately.
  size_t WriteSome(const iovec* parts, size_t count, bool more, int* error);
  // Reads bytes and leaves them in the socket.
  size_t Peek(char* buffer, size_t capacity);

  // Blocks until one of the poll(2) `events` has occurred, or an error that the
  // next call will return (OK in both cases). Otherwise returns the status for
  // the caller to return.
  [[nodiscard]] rocksdb::Status Wait(short events, const char* action,
                                     WaitDeadline* deadline);
  // Blocks until there is room to write, or until the peer has closed its side,
  // and then sets *peer_ended. Without this check, the wait might never end: a
  // peer that has closed one direction no longer reads, and its full receive
  // window may stay full.
  [[nodiscard]] rocksdb::Status WaitToWrite(WaitDeadline* deadline,
                                            bool* peer_ended);
  // Returns the status of a failed call.
  [[nodiscard]] rocksdb::Status Failed(const char* action, int error);
  [[nodiscard]] rocksdb::Status ClosedStatus() const;

  // Wakes all waiting threads, and signals the end of the data to the peer.
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
