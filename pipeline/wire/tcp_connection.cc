// A connected TCP socket: non-blocking calls first, poll(2) only when the
// kernel has nothing to give or no room.
#include <boost/asio/buffer.hpp>

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "pipeline/wire/tcp_socket.h"

namespace sstferry {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using rocksdb::Slice;
using rocksdb::Status;

// Parts handed to one system call.
constexpr size_t kMaxGather = 64;

// A peer that vanished without a word is found after about a minute even where
// nobody waits with a limit.
constexpr int kKeepaliveIdleSeconds = 30;
constexpr int kKeepaliveIntervalSeconds = 10;
constexpr int kKeepaliveProbes = 3;

// Unread bytes thrown away when closing, at most: closing a socket that holds
// unread bytes resets the connection, and a reset destroys our last words
// before the peer has read them.
constexpr size_t kMaxDrainBytes = 8u << 20;

// A view of the first `count` buffers, as Asio wants a gather list.
struct GatherList {
  const asio::const_buffer* first;
  size_t count;
  const asio::const_buffer* begin() const { return first; }
  const asio::const_buffer* end() const { return first + count; }
  using value_type = asio::const_buffer;
  using const_iterator = const asio::const_buffer*;
};

// Where a gathered write stands.
class Gatherer {
 public:
  Gatherer(const Slice* parts, size_t count) : parts_(parts), count_(count) {}

  // The next buffers to write; none when all is written.
  GatherList Next() {
    size_t used = 0;
    for (size_t i = at_; i < count_ && used < kMaxGather; ++i) {
      const size_t skip = i == at_ ? offset_ : 0;
      if (parts_[i].size() > skip) {
        buffers_[used++] = asio::const_buffer(parts_[i].data() + skip,
                                              parts_[i].size() - skip);
      }
    }
    return {buffers_.data(), used};
  }

  void Advance(size_t bytes) {
    while (at_ < count_ && bytes >= parts_[at_].size() - offset_) {
      bytes -= parts_[at_].size() - offset_;
      ++at_;
      offset_ = 0;
    }
    offset_ += bytes;
  }

 private:
  const Slice* const parts_;
  const size_t count_;
  size_t at_ = 0;
  size_t offset_ = 0;
  std::array<asio::const_buffer, kMaxGather> buffers_;
};

class TcpConnection final : public Connection {
 public:
  TcpConnection(tcp::socket socket, const tcp::endpoint& peer)
      : socket_(std::move(socket)), peer_(EndpointText(peer)) {
    // None of these is worth failing a connection for.
    boost::system::error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.set_option(tcp::socket::keep_alive(true), ignored);
    const int fd = socket_.native_handle();
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveIdleSeconds,
               sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepaliveIntervalSeconds,
               sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepaliveProbes, sizeof(int));
  }
  ~TcpConnection() override { CloseSocket(); }

  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes) override;
  Status Write(const Slice* parts, size_t part_count,
               const WaitLimit& limit) override;
  void Close() override { CloseSocket(); }
  const std::string& peer() const override { return peer_; }

 private:
  // Keeps the descriptor open while one call is inside.
  class Inside {
   public:
    explicit Inside(TcpConnection* connection) : connection_(connection) {
      std::lock_guard<std::mutex> lock(connection_->mu_);
      entered_ = !connection_->closed_;
      connection_->calls_inside_ += entered_ ? 1 : 0;
    }
    ~Inside() {
      std::lock_guard<std::mutex> lock(connection_->mu_);
      connection_->calls_inside_ -= entered_ ? 1 : 0;
      connection_->ReleaseIfUnused();
    }
    bool entered() const { return entered_; }

   private:
    TcpConnection* const connection_;
    bool entered_;
  };

  void CloseSocket();
  void ReleaseIfUnused();  // under mu_
  bool closed() {
    std::lock_guard<std::mutex> lock(mu_);
    return closed_;
  }
  // OK when the socket is ready; otherwise what to return.
  Status Wait(short events, const char* action, Patience* patience);
  Status Failed(const char* action, const boost::system::error_code& error);

  tcp::socket socket_;
  const std::string peer_;

  std::mutex mu_;
  int calls_inside_ = 0;
  bool closed_ = false;
};

Status TcpConnection::Read(char* buffer, size_t capacity,
                           const WaitLimit& limit, size_t* bytes) {
  *bytes = 0;
  const Inside inside(this);
  if (!inside.entered()) {
    return ClosedHere("peer " + peer_);
  }
  Patience patience(limit);
  for (;;) {
    boost::system::error_code error;
    *bytes = socket_.read_some(asio::buffer(buffer, capacity), error);
    if (!error) {
      return Status::OK();
    }
    if (error == asio::error::eof && !closed()) {
      return Status::OK();
    }
    if (error != asio::error::would_block) {
      return Failed("read", error);
    }
    const Status waited = Wait(POLLIN, "read", &patience);
    if (!waited.ok()) {
      return waited;
    }
  }
}

Status TcpConnection::Write(const Slice* parts, size_t part_count,
                            const WaitLimit& limit) {
  const Inside inside(this);
  if (!inside.entered()) {
    return ClosedHere("peer " + peer_);
  }
  Patience patience(limit);
  Gatherer gatherer(parts, part_count);
  for (;;) {
    const GatherList list = gatherer.Next();
    if (list.count == 0) {
      return Status::OK();
    }
    boost::system::error_code error;
    const size_t written = socket_.write_some(list, error);
    if (!error) {
      gatherer.Advance(written);
      patience.Progress();
      continue;
    }
    if (error != asio::error::would_block) {
      return Failed("write", error);
    }
    const Status waited = Wait(POLLOUT, "write", &patience);
    if (!waited.ok()) {
      return waited;
    }
  }
}

Status TcpConnection::Wait(short events, const char* action,
                           Patience* patience) {
  const PollResult result =
      PollSocket(socket_.native_handle(), events, nullptr, patience);
  if (result == PollResult::kTimedOut) {
    return closed() ? ClosedHere("peer " + peer_)
                    : patience->Timeout("peer " + peer_ + ": " + action);
  }
  return Status::OK();
}

Status TcpConnection::Failed(const char* action,
                             const boost::system::error_code& error) {
  if (closed()) {
    return ClosedHere("peer " + peer_);
  }
  return PeerGone("peer " + peer_ + ": " + action + ": " + ErrorText(error));
}

void TcpConnection::CloseSocket() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!closed_) {
    closed_ = true;
    // Wakes the calls inside and tells the peer that no more will come.
    shutdown(socket_.native_handle(), SHUT_RDWR);
  }
  ReleaseIfUnused();
}

void TcpConnection::ReleaseIfUnused() {
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

}  // namespace

std::unique_ptr<Connection> MakeTcpConnection(tcp::socket socket,
                                              const tcp::endpoint& peer) {
  return std::make_unique<TcpConnection>(std::move(socket), peer);
}

}  // namespace sstferry
