// Opening TCP connections: the listening and the dialing side.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/tcp_socket.h"

namespace sstferry {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using rocksdb::Status;

// As long as the system allows: with a full one, a peer's attempt waits for its
// kernel to repeat it, after one second, then two, while a flood is at the
// door.
constexpr int kBacklog = SOMAXCONN;
// Pause before the next accept if the machine lacks a resource.
constexpr std::chrono::milliseconds kShortagePause{100};

// Errors of accept(2) that concern one peer or a temporary shortage, not the
// listener.
bool AcceptMayRetry(int error) {
  switch (error) {
    case ECONNABORTED:
    case EINTR:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENOPROTOOPT:
    case ENONET:
    case EOPNOTSUPP:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return true;
    default:
      return false;
  }
}

class TcpListener final : public Listener {
 public:
  TcpListener(tcp::acceptor acceptor, std::string address, MakeConnection make)
      : acceptor_(std::move(acceptor)),
        address_(std::move(address)),
        make_(std::move(make)) {}

  Status Accept(std::unique_ptr<Connection>* connection) override;
  void Close() override { wake_.Raise(); }
  const std::string& address() const override { return address_; }

 private:
  tcp::acceptor acceptor_;
  const std::string address_;
  const MakeConnection make_;
  WakeSignal wake_;
};

Status TcpListener::Accept(std::unique_ptr<Connection>* connection) {
  sockaddr_storage address;
  int fd = -1;
  const Status status = AcceptSocket(acceptor_.native_handle(), address_,
                                     &wake_, &address, &fd);
  if (status.ok()) {
    tcp::endpoint peer;
    std::memcpy(peer.data(), &address,
                std::min(sizeof(address), peer.capacity()));
    *connection =
        make_(tcp::socket(SocketContext(), peer.protocol(), fd), peer);
  }
  return status;
}

boost::system::error_code OpenAcceptor(const tcp::endpoint& endpoint,
                                       tcp::acceptor* acceptor) {
  boost::system::error_code error;
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(kBacklog, error);
  if (!error) acceptor->non_blocking(true, error);
  return error;
}

class TcpDialer final : public Dialer {
 public:
  TcpDialer(const HostPort& where, MakeConnection make)
      : where_(where), address_(ToString(where)), make_(std::move(make)) {}

  Status Dial(const WaitLimit& limit,
              std::unique_ptr<Connection>* connection) override;
  void Close() override { wake_->Raise(); }
  const std::string& address() const override { return address_; }

 private:
  Status Connect(const tcp::endpoint& endpoint, WaitDeadline* deadline,
                 std::unique_ptr<Connection>* connection) const;
  std::string Where(const tcp::endpoint& endpoint) const;
  Status Failed(const tcp::endpoint& endpoint,
                const boost::system::error_code& error) const;

  const HostPort where_;
  const std::string address_;
  const MakeConnection make_;
  const std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
};

Status TcpDialer::Dial(const WaitLimit& limit,
                       std::unique_ptr<Connection>* connection) {
  WaitDeadline resolving(limit);
  std::vector<tcp::endpoint> endpoints;
  Status status = Resolve(where_, false, wake_, &resolving, &endpoints);
  for (size_t i = 0; status.ok() && i < endpoints.size(); ++i) {
    // A silent address must not use up the time of those after it.
    WaitLimit share = limit;
    const auto addresses_left = static_cast<int64_t>(endpoints.size() - i);
    share.idle = limit.idle / addresses_left;
    if (limit.until != Clock::time_point::max()) {
      const Clock::time_point now = Clock::now();
      share.until = now + (limit.until - now) / addresses_left;
    }
    WaitDeadline deadline(share);
    const Status connected = Connect(endpoints[i], &deadline, connection);
    if (connected.ok() || connected.IsAborted() || addresses_left == 1) {
      return connected;
    }
  }
  return status;
}

Status TcpDialer::Connect(const tcp::endpoint& endpoint, WaitDeadline* deadline,
                          std::unique_ptr<Connection>* connection) const {
  if (wake_->raised()) {
    return ClosedHere("connect " + Where(endpoint));
  }
  tcp::socket socket(SocketContext());
  boost::system::error_code error;
  socket.open(endpoint.protocol(), error);
  if (!error) socket.non_blocking(true, error);
  if (error) {
    return Failed(endpoint, error);
  }
  // Asio's own connect() would wait without a limit.
  const int fd = socket.native_handle();
  if (connect(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) !=
      0) {
    if (errno != EINPROGRESS && errno != EINTR) {
      return Failed(endpoint, ErrnoCode(errno));
    }
    const PollResult result = PollSocket(fd, POLLOUT, wake_.get(), deadline);
    if (result == PollResult::kWoken) {
      return ClosedHere("connect " + Where(endpoint));
    }
    if (result == PollResult::kTimedOut) {
      return MakeStatus(EndState::kDeadPeer, "connect " + Where(endpoint) +
                                                 ": no answer in time");
    }
    int failure = 0;
    socklen_t length = sizeof(failure);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length);
    if (failure != 0) {
      return Failed(endpoint, ErrnoCode(failure));
    }
  }
  // On a free local port TCP may connect a socket to itself.
  if (socket.local_endpoint(error) == endpoint) {
    return Failed(endpoint, ErrnoCode(ECONNREFUSED));
  }
  *connection = make_(std::move(socket), endpoint);
  return Status::OK();
}

std::string TcpDialer::Where(const tcp::endpoint& endpoint) const {
  const std::string text = EndpointText(endpoint);
  return text == address_ ? address_ : address_ + " (" + text + ")";
}

Status TcpDialer::Failed(const tcp::endpoint& endpoint,
                         const boost::system::error_code& error) const {
  std::string text = "connect " + Where(endpoint) + ": " + ErrorText(error);
  if (error == asio::error::connection_refused) {
    text += "; is `sstferry serve` running there?";
  }
  return PeerGone(text);
}

}  // namespace

Status AcceptSocket(int fd, const std::string& address, WakeSignal* wake,
                    sockaddr_storage* peer, int* socket) {
  for (;;) {
    WaitDeadline forever(WaitLimit::Forever());
    if (PollSocket(fd, POLLIN, wake, &forever) == PollResult::kWoken) {
      return ClosedHere("accept on " + address);
    }
    socklen_t length = sizeof(*peer);
    *socket = accept4(fd, reinterpret_cast<sockaddr*>(peer), &length,
                      SOCK_CLOEXEC);
    char first = 0;
    if (*socket >= 0 && recv(*socket, &first, sizeof(first),
                             MSG_PEEK | MSG_DONTWAIT) != 0) {
      return Status::OK();
    }
    if (*socket >= 0) {
      // It has closed while it waited: a flood's is not worth a thread, behind
      // which honest peers would wait.
      close(*socket);
      continue;
    }
    const int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) {
      continue;
    }
    if (!AcceptMayRetry(error)) {
      return MakeStatus(EndState::kInternal,
                        "accept on " + address + ": " +
                            ErrorText(ErrnoCode(error)));
    }
    WaitDeadline pause(WaitLimit::Within(kShortagePause));
    if (PollSocket(-1, 0, wake, &pause) == PollResult::kWoken) {
      return ClosedHere("accept on " + address);
    }
  }
}

Status ListenWith(const HostPort& where, const MakeConnection& make,
                  std::unique_ptr<Listener>* listener) {
  WaitDeadline forever(WaitLimit::Forever());
  std::vector<tcp::endpoint> endpoints;
  const Status resolved =
      Resolve(where, true, nullptr, &forever, &endpoints);
  if (!resolved.ok()) {
    return MakeStatus(EndState::kRefused,
                      "listen on " + ToString(where) + ": " +
                          MessageOf(resolved));
  }
  boost::system::error_code error;
  for (const tcp::endpoint& endpoint : endpoints) {
    tcp::acceptor acceptor(SocketContext());
    error = OpenAcceptor(endpoint, &acceptor);
    if (!error) {
      const tcp::endpoint bound = acceptor.local_endpoint(error);
      if (!error) {
        *listener = std::make_unique<TcpListener>(
            std::move(acceptor), EndpointText(bound), make);
        return Status::OK();
      }
    }
  }
  std::string text = "listen on " + ToString(where) + ": " + ErrorText(error);
  if (error == asio::error::address_in_use) {
    text += "; is another `sstferry serve` running there?";
  }
  return MakeStatus(EndState::kRefused, text);
}

std::unique_ptr<Dialer> MakeDialerWith(const HostPort& where,
                                       const MakeConnection& make) {
  return std::make_unique<TcpDialer>(where, make);
}

Status ListenTcp(const HostPort& where, std::unique_ptr<Listener>* listener) {
  return ListenWith(where, MakeTcpConnection, listener);
}

std::unique_ptr<Dialer> MakeTcpDialer(const HostPort& where) {
  return MakeDialerWith(where, MakeTcpConnection);
}

}  // namespace sstferry
