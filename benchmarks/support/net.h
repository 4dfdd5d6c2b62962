// Blocking TCP for the benchmark programs. No deadlines: the harness kills
// programs that take too long.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/status.h"

namespace sstferry::bench {

// Owns one socket.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  int fd() const { return fd_; }

  // IOError if the connection breaks; ReceiveAll() also if it ends too early.
  [[nodiscard]] rocksdb::Status SendAll(const void* data, size_t bytes);
  [[nodiscard]] rocksdb::Status ReceiveAll(void* data, size_t bytes);

 private:
  int fd_ = -1;
};

// `host_port` is for example "127.0.0.1:0" (IPv4 only). Listen() prints
// "listening on HOST:PORT" on standard output once connections are accepted.
[[nodiscard]] rocksdb::Status Listen(const std::string& host_port,
                                     Socket* listener);
[[nodiscard]] rocksdb::Status Accept(const Socket& listener, Socket* peer);
[[nodiscard]] rocksdb::Status Connect(const std::string& host_port,
                                      Socket* peer);

// Returns IOError with `what` and errno's text.
[[nodiscard]] rocksdb::Status ErrnoStatus(const std::string& what);

}  // namespace sstferry::bench
