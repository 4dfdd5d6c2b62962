#include "pipeline/wire/connected_socket.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "pipeline/wire/tcp_socket.h"

namespace sstferry {
namespace {

using boost::asio::ip::tcp;
using StreamSocket = boost::asio::generic::stream_protocol::socket;
using rocksdb::Status;

// Keepalive finds a vanished peer after about a minute, even if no caller waits
// with a limit.
constexpr int kKeepaliveIdleSeconds = 30;
constexpr int kKeepaliveIntervalSeconds = 10;
constexpr int kKeepaliveProbes = 3;

// Maximum of unread bytes to discard when closing: closing a socket with unread
// bytes resets the connection, and the reset discards the last frames that
// the peer has not read.
constexpr size_t kMaxDrainBytes = 8u << 20;

}  // namespace

ConnectedSocket::ConnectedSocket(StreamSocket socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {
  // A failure of these does not fail the connection. A Unix socket has none.
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(StreamSocket::keep_alive(true), ignored);
  const int fd = socket_.native_handle();
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveIdleSeconds,
             sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepaliveIntervalSeconds,
             sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepaliveProbes, sizeof(int));
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

size_t ConnectedSocket::WriteSomeOfMore(const char* data, size_t bytes,
                                        boost::system::error_code* error) {
  for (;;) {
    const ssize_t sent = send(socket_.native_handle(), data, bytes,
                              MSG_MORE | MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    *error = sent < 0 ? ErrnoCode(errno) : boost::system::error_code();
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
}

size_t ConnectedSocket::Peek(char* buffer, size_t capacity) {
  const ssize_t got = recv(socket_.native_handle(), buffer, capacity,
                           MSG_PEEK | MSG_DONTWAIT);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

Status ConnectedSocket::Wait(short events, const char* action,
                             WaitDeadline* deadline) {
  const PollResult result =
      PollSocket(socket_.native_handle(), events, nullptr, deadline);
  if (result == PollResult::kTimedOut) {
    return closed() ? ClosedStatus()
                    : deadline->Timeout("peer " + peer_ + ": " + action);
  }
  return Status::OK();
}

Status ConnectedSocket::WaitToWrite(WaitDeadline* deadline, bool* peer_ended) {
  constexpr short kEvents = POLLOUT | POLLRDHUP;
  const Status status = Wait(kEvents, "write", deadline);
  pollfd now = {socket_.native_handle(), kEvents, 0};
  *peer_ended = status.ok() && poll(&now, 1, 0) > 0 &&
                (now.revents & POLLRDHUP) != 0 &&
                (now.revents & POLLOUT) == 0;
  return status;
}

Status ConnectedSocket::Failed(const char* action,
                               const boost::system::error_code& error) {
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
    shutdown(socket_.native_handle(), SHUT_RDWR);
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
        recv(socket_.native_handle(), unread, sizeof(unread), MSG_DONTWAIT);
    if (got <= 0) {
      break;
    }
    drained += static_cast<size_t>(got);
  }
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace sstferry
