// Opens TCP connections: the listening and the dialing side.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/tcp_socket.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// As long as the system allows. With a full backlog, a peer's attempt waits
// until its kernel repeats it, after one second, then two, while a flood of
// connections lasts.
constexpr int kBacklog = SOMAXCONN;
// Pause before the next accept if the machine has too few resources.
constexpr std::chrono::milliseconds kShortagePause{100};

// Returns true for errors of accept(2) that concern one peer or a temporary
// shortage, not the listener.
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
  TcpListener(Descriptor socket, std::string address, MakeConnection make)
      : socket_(std::move(socket)),
        address_(std::move(address)),
        make_(std::move(make)) {}

  Status Accept(std::unique_ptr<Connection>* connection) override;
  void Close() override { wake_.Raise(); }
  const std::string& address() const override { return address_; }

 private:
  const Descriptor socket_;
  const std::string address_;
  const MakeConnection make_;
  WakeSignal wake_;
};

Status TcpListener::Accept(std::unique_ptr<Connection>* connection) {
  TcpAddress peer;
  Descriptor socket;
  const Status status =
      AcceptSocket(socket_.get(), address_, &wake_, &peer, &socket);
  if (status.ok()) {
    *connection = make_(std::move(socket), peer);
  }
  return status;
}

// Returns 0 or an errno.
int OpenListening(const TcpAddress& address, Descriptor* socket_out) {
  const int on = 1;
  Descriptor made(socket(address.family(),
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open() ||
      setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(made.get(), address.get(), address.size) != 0 ||
      listen(made.get(), kBacklog) != 0) {
    return errno;
  }
  *socket_out = std::move(made);
  return 0;
}

// Returns the socket's own address.
TcpAddress OwnAddress(const Descriptor& socket) {
  TcpAddress address;
  address.size = sizeof(address.bytes);
  if (getsockname(socket.get(), address.get(), &address.size) != 0) {
    address.size = 0;
  }
  return address;
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
  Status Connect(const TcpAddress& address, WaitDeadline* deadline,
                 std::unique_ptr<Connection>* connection) const;
  std::string Where(const TcpAddress& address) const;
  Status Failed(const TcpAddress& address,
                int error) const;

  const HostPort where_;
  const std::string address_;
  const MakeConnection make_;
  const std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
};

Status TcpDialer::Dial(const WaitLimit& limit,
                       std::unique_ptr<Connection>* connection) {
  WaitDeadline resolving(limit);
  std::vector<TcpAddress> addresses;
  Status status = Resolve(where_, false, wake_, &resolving, &addresses);
  for (size_t i = 0; status.ok() && i < addresses.size(); ++i) {
    // A silent address must not use up the time of the later addresses.
    WaitLimit share = limit;
    const auto addresses_left = static_cast<int64_t>(addresses.size() - i);
    share.idle = limit.idle / addresses_left;
    if (limit.until != Clock::time_point::max()) {
      const Clock::time_point now = Clock::now();
      share.until = now + (limit.until - now) / addresses_left;
    }
    WaitDeadline deadline(share);
    const Status connected = Connect(addresses[i], &deadline, connection);
    if (connected.ok() || connected.IsAborted() || addresses_left == 1) {
      return connected;
    }
  }
  return status;
}

Status TcpDialer::Connect(const TcpAddress& address, WaitDeadline* deadline,
                          std::unique_ptr<Connection>* connection) const {
  if (wake_->raised()) {
    return ClosedHere("connect " + Where(address));
  }
  Descriptor made(socket(address.family(),
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open()) {
    return Failed(address, errno);
  }
  if (connect(made.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) {
      return Failed(address, errno);
    }
    const PollResult result =
        PollSocket(made.get(), POLLOUT, wake_.get(), deadline);
    if (result == PollResult::kWoken) {
      return ClosedHere("connect " + Where(address));
    }
    if (result == PollResult::kTimedOut) {
      return MakeStatus(EndState::kDeadPeer, "connect " + Where(address) +
                                                 ": no answer in time; is "
                                                 "the host up, and does a "
                                                 "firewall let the port "
                                                 "through?");
    }
    int failure = 0;
    socklen_t length = sizeof(failure);
    getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &failure, &length);
    if (failure != 0) {
      return Failed(address, failure);
    }
  }
  // TCP may connect a socket to itself, if the dialed port is a free local one.
  if (AddressText(OwnAddress(made)) == AddressText(address)) {
    return Failed(address, ECONNREFUSED);
  }
  *connection = make_(std::move(made), address);
  return Status::OK();
}

std::string TcpDialer::Where(const TcpAddress& address) const {
  const std::string text = AddressText(address);
  return text == address_ ? address_ : address_ + " (" + text + ")";
}

Status TcpDialer::Failed(const TcpAddress& address,
                         int error) const {
  std::string text = "connect " + Where(address) + ": " + ErrorText(error);
  if (error == ECONNREFUSED) {
    text += "; is `sstferry serve` running there?";
    if (!IsLoopback(where_.host)) {
      text +=
          " It listens at 127.0.0.1 alone unless --listen names another "
          "address";
    }
  }
  return PeerGone(text);
}

}  // namespace

Status AcceptSocket(int fd, const std::string& address, WakeSignal* wake,
                    TcpAddress* peer, Descriptor* socket) {
  for (;;) {
    WaitDeadline forever(WaitLimit::Forever());
    if (PollSocket(fd, POLLIN, wake, &forever) == PollResult::kWoken) {
      return ClosedHere("accept on " + address);
    }
    peer->size = sizeof(peer->bytes);
    *socket = Descriptor(accept4(fd, peer->get(), &peer->size, SOCK_CLOEXEC));
    const int error = errno;
    char first = 0;
    if (socket->is_open() && recv(socket->get(), &first, sizeof(first),
                                  MSG_PEEK | MSG_DONTWAIT) != 0) {
      return Status::OK();
    }
    if (socket->is_open()) {
      // The peer closed while it waited. During a flood, a thread for each such
      // connection would delay honest peers.
      *socket = Descriptor();
      continue;
    }
    if (error == EAGAIN || error == EWOULDBLOCK) {
      continue;
    }
    if (!AcceptMayRetry(error)) {
      return MakeStatus(EndState::kInternal,
                        "accept on " + address + ": " +
                            ErrorText(error));
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
  std::vector<TcpAddress> addresses;
  const Status resolved =
      Resolve(where, true, nullptr, &forever, &addresses);
  if (!resolved.ok()) {
    return MakeStatus(EndState::kRefused,
                      "listen on " + ToString(where) + ": " +
                          MessageOf(resolved));
  }
  int error = 0;
  for (const TcpAddress& address : addresses) {
    Descriptor listening;
    error = OpenListening(address, &listening);
    if (error == 0) {
      const std::string bound = AddressText(OwnAddress(listening));
      *listener = std::make_unique<TcpListener>(std::move(listening), bound,
                                                make);
      return Status::OK();
    }
  }
  std::string text = "listen on " + ToString(where) + ": " + ErrorText(error);
  if (error == EADDRINUSE) {
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
