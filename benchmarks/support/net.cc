#include "benchmarks/support/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sstferry::bench {

using rocksdb::Status;

namespace {

Status ParseAddress(const std::string& host_port, sockaddr_in* address) {
  std::memset(address, 0, sizeof(*address));
  address->sin_family = AF_INET;
  const size_t colon = host_port.rfind(':');
  if (colon == std::string::npos ||
      inet_pton(AF_INET, host_port.substr(0, colon).c_str(),
                &address->sin_addr) != 1) {
    return Status::InvalidArgument("expected IPV4:PORT, found " + host_port);
  }
  address->sin_port = htons(
      static_cast<uint16_t>(std::atoi(host_port.c_str() + colon + 1)));
  return Status::OK();
}

Status SetNoDelay(int fd) {
  const int one = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0) {
    return ErrnoStatus("TCP_NODELAY");
  }
  return Status::OK();
}

}  // namespace

Status ErrnoStatus(const std::string& what) {
  return Status::IOError(what, std::strerror(errno));
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Status Socket::SendAll(const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd_, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return ErrnoStatus("send");
    next += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return Status::OK();
}

Status Socket::ReceiveAll(void* data, size_t bytes) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(fd_, next, bytes, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus("recv");
    if (got == 0) return Status::IOError("recv", "the peer closed early");
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return Status::OK();
}

Status Listen(const std::string& host_port, Socket* listener) {
  sockaddr_in address;
  Status s = ParseAddress(host_port, &address);
  if (!s.ok()) return s;
  *listener = Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (setsockopt(listener->fd(), SOL_SOCKET, SO_REUSEADDR, &one,
                 sizeof(one)) != 0 ||
      bind(listener->fd(), generic, length) != 0 ||
      listen(listener->fd(), 64) != 0 ||
      getsockname(listener->fd(), generic, &length) != 0) {
    return ErrnoStatus("listen on " + host_port);
  }
  char host[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &address.sin_addr, host, sizeof(host));
  std::printf("listening on %s:%u\n", host, ntohs(address.sin_port));
  std::fflush(stdout);
  return Status::OK();
}

Status Accept(const Socket& listener, Socket* peer) {
  int fd = -1;
  do {
    fd = accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return ErrnoStatus("accept");
  *peer = Socket(fd);
  return SetNoDelay(fd);
}

Status Connect(const std::string& host_port, Socket* peer) {
  sockaddr_in address;
  Status s = ParseAddress(host_port, &address);
  if (!s.ok()) return s;
  *peer = Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(peer->fd(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0) {
    return ErrnoStatus("connect to " + host_port);
  }
  return SetNoDelay(peer->fd());
}

}  // namespace sstferry::bench
