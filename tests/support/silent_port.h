// A listening socket whose queue is full: connecting to it gets no answer.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "sstferry/transport.h"
#include "tests/support/catch.h"

namespace sstferry {

class SilentPort {
 public:
  SilentPort() {
    fds_.push_back(socket(AF_INET, SOCK_STREAM, 0));
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address_);
    auto* const raw = reinterpret_cast<sockaddr*>(&address_);
    REQUIRE(bind(fds_[0], raw, length) == 0);
    REQUIRE(listen(fds_[0], 0) == 0);
    REQUIRE(getsockname(fds_[0], raw, &length) == 0);
    bool full = false;
    while (!full && fds_.size() < 64) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      fds_.push_back(fd);
      connect(fd, raw, length);
      pollfd connected{fd, POLLOUT, 0};
      full = poll(&connected, 1, 100) == 0;
    }
    REQUIRE(full);
  }
  ~SilentPort() {
    for (const int fd : fds_) {
      close(fd);
    }
  }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;
  HostPort where() const { return {"127.0.0.1", ntohs(address_.sin_port)}; }

 private:
  std::vector<int> fds_;
  sockaddr_in address_{};
};

}  // namespace sstferry
