#include "pipeline/wire/connected_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "pipeline/wire/tcp_socket.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// With these settings, the kernel detects within about a minute that the peer
// has disappeared, even if a call has no time limit.
constexpr int kKeepaliveIdleSeconds = 30;
constexpr int kKeepaliveIntervalSeconds = 10;
constexpr int kKeepaliveProbes = 3;

// Maximum number of unread bytes that are read and discarded before a socket is
// closed. If unread bytes remained, close() would reset the connection, and the
// peer could lose the last frames that it has not read yet.
constexpr size_t kMaxDrainBytes = 8u << 20;

// If the round-trip time is shorter than kNearMicros, the send queue is limited
// to kNearQueueBytes. A small queue is enough, because such a peer receives
// sent bytes at once. A kernel with a queue of megabytes could send all of them
// in one step on this CPU when an acknowledgement arrives. An application that
// waits for the CPU would then lose most of a millisecond.
constexpr uint32_t kNearMicros = 500;
constexpr int kNearQueueBytes = 128 << 10;

// Maximum bytes of one system call. A kernel without preemption copies all
// bytes of a call while threads of higher priority wait. Copying 1 MiB and
// delivering it through the loopback interface takes most of a millisecond.
constexpr size_t kMostBytesAtOnce = 64u << 10;
constexpr size_t kMostParts = 8;

}  // namespace

ConnectedSocket::ConnectedSocket(Descriptor socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {
  // Ignores errors: a Unix socket does not have the options of TCP.
  const int fd = socket_.get();
  const int on = 1;
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(int));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveIdleSeconds,
             sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepaliveIntervalSeconds,
             sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepaliveProbes, sizeof(int));
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
      info.tcpi_rtt > 0 && info.tcpi_rtt < kNearMicros) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kNearQueueBytes, sizeof(int));
  }
}

ConnectedSocket::Inside::Inside(ConnectedSocket* socket) : socket_(socket) {
  std::lock_guard<std::mutex> lock(socket_->mu_);
  entered_ = !socket_->closed_;
  socket_->calls_inside_ += entered_ ? 1 : 0;
}

ConnectedSocket::Inside::~Inside() {
  std::lock_guard<std::mutex> lock(socket_->mu_);
  socket_->calls_inside_ -= entered_ ? 1 : 0;
  socket_->ReleaseIfUnused();
}

size_t ConnectedSocket::ReadSome(char* buffer, size_t capacity, int* error) {
  ssize_t got = -1;
  do {
    got = recv(socket_.get(), buffer, std::min(capacity, kMostBytesAtOnce),
               MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  *error = got < 0 ? errno : 0;
  return got < 0 ? 0 : static_cast<size_t>(got);
}

size_t ConnectedSocket::WriteSome(const iovec* parts, size_t count, bool more,
                                  int* error) {
  std::array<iovec, kMostParts> now;
  size_t used = 0;
  for (size_t left = kMostBytesAtOnce;
       used < std::min(count, now.size()) && left > 0; ++used) {
    now[used] = parts[used];
    now[used].iov_len = std::min(now[used].iov_len, left);
    left -= now[used].iov_len;
  }
  msghdr message{};
  message.msg_iov = now.data();
  message.msg_iovlen = used;
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket_.get(), &message,
                   MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
  } while (sent < 0 && errno == EINTR);
  *error = sent < 0 ? errno : 0;
  return sent < 0 ? 0 : static_cast<size_t>(sent);
}

size_t ConnectedSocket::Peek(char* buffer, size_t capacity) {
  const ssize_t got = recv(socket_.get(), buffer, capacity,
                           MSG_PEEK | MSG_DONTWAIT);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

Status ConnectedSocket::Wait(short events, const char* action,
                             WaitDeadline* deadline) {
  const PollResult result =
      PollSocket(socket_.get(), events, nullptr, deadline);
  if (result == PollResult::kTimedOut) {
    return closed() ? ClosedStatus()
                    : deadline->Timeout("peer " + peer_ + ": " + action);
  }
  return Status::OK();
}

Status ConnectedSocket::WaitToWrite(WaitDeadline* deadline, bool* peer_ended) {
  constexpr short kEvents = POLLOUT | POLLRDHUP;
  const Status status = Wait(kEvents, "write", deadline);
  pollfd now = {socket_.get(), kEvents, 0};
  *peer_ended = status.ok() && poll(&now, 1, 0) > 0 &&
                (now.revents & POLLRDHUP) != 0 &&
                (now.revents & POLLOUT) == 0;
  return status;
}

Status ConnectedSocket::Failed(const char* action, int error) {
  if (closed()) {
    return ClosedStatus();
  }
  return PeerGone("peer " + peer_ + ": " + action + ": " + ErrorText(error));
}

Status ConnectedSocket::ClosedStatus() const {
  return ClosedHere("peer " + peer_);
}

void ConnectedSocket::Close() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!closed_) {
    closed_ = true;
    shutdown(socket_.get(), SHUT_RDWR);
  }
  ReleaseIfUnused();
}

bool ConnectedSocket::closed() {
  std::lock_guard<std::mutex> lock(mu_);
  return closed_;
}

void ConnectedSocket::ReleaseIfUnused() {
  if (!closed_ || calls_inside_ > 0 || !socket_.is_open()) {
    return;
  }
  char unread[16 << 10];
  for (size_t drained = 0; drained < kMaxDrainBytes;) {
    const ssize_t got =
        recv(socket_.get(), unread, sizeof(unread), MSG_DONTWAIT);
    if (got <= 0) {
      break;
    }
    drained += static_cast<size_t>(got);
  }
  socket_ = Descriptor();
}

}  // namespace sstferry
