// Listens for TCP connections and dials them.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/tcp_socket.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// The largest backlog that the system allows. If a flood of connections fills
// the backlog, the kernel of a peer repeats its attempt only after one second,
// and then after two seconds.
constexpr int kBacklog = SOMAXCONN;
// Maximum number of addresses in a message. A host may have many addresses.
constexpr size_t kMaxShownAddresses = 4;
// If the machine has too few resources for a connection, the listener waits
// this time before it tries again.
constexpr std::chrono::milliseconds kShortagePause{100};

// Returns true if accept(2) failed because of one peer, or because the machine
// has too few resources now. The listener still works then.
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
  RETURN_IF_ERROR(
      AcceptSocket(socket_.get(), address_, &wake_, &peer, &socket));
  *connection = make_(std::move(socket), peer);
  return Status::OK();
}

// Makes a listening socket. Returns 0 or an errno.
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

// Returns the local address of a socket.
TcpAddress OwnAddress(const Descriptor& socket) {
  TcpAddress address;
  address.size = sizeof(address.bytes);
  if (getsockname(socket.get(), address.get(), &address.size) != 0) {
    address.size = 0;
  }
  return address;
}

// An address to which no connection could be made, and the errno. ETIMEDOUT
// means that there was no answer in time.
struct FailedAddress {
  TcpAddress address;
  int error = 0;
};

std::string WhyFailed(int error) {
  return error == ETIMEDOUT ? "no answer in time" : ErrorText(error);
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
  // Connects to `address`. Returns 0 and sets *connection, or returns an errno.
  // ECANCELED means that Close() was called.
  int Connect(const TcpAddress& address, WaitDeadline* deadline,
              std::unique_ptr<Connection>* connection) const;
  std::string Where(const TcpAddress& address) const;
  Status Failed(const std::vector<FailedAddress>& failed) const;

  const HostPort where_;
  const std::string address_;
  const MakeConnection make_;
  const std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
};

Status TcpDialer::Dial(const WaitLimit& limit,
                       std::unique_ptr<Connection>* connection) {
  WaitDeadline resolving(limit);
  std::vector<TcpAddress> addresses;
  RETURN_IF_ERROR(Resolve(where_, false, wake_, &resolving, &addresses));
  std::vector<FailedAddress> failed;
  for (size_t i = 0; i < addresses.size(); ++i) {
    // Each address gets an equal share of the remaining time. An address that
    // does not answer therefore leaves time for the next addresses.
    WaitLimit share = limit;
    const auto addresses_left = static_cast<int64_t>(addresses.size() - i);
    share.idle = limit.idle / addresses_left;
    if (limit.until != Clock::time_point::max()) {
      const Clock::time_point now = Clock::now();
      share.until = now + (limit.until - now) / addresses_left;
    }
    WaitDeadline deadline(share);
    const int error = Connect(addresses[i], &deadline, connection);
    if (error == 0) {
      return Status::OK();
    }
    if (error == ECANCELED) {
      return ClosedHere("connect " + Where(addresses[i]));
    }
    failed.push_back({addresses[i], error});
  }
  return Failed(failed);
}

int TcpDialer::Connect(const TcpAddress& address, WaitDeadline* deadline,
                       std::unique_ptr<Connection>* connection) const {
  if (wake_->raised()) {
    return ECANCELED;
  }
  Descriptor made(socket(address.family(),
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open()) {
    return errno;
  }
  if (connect(made.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) {
      return errno;
    }
    const PollResult result =
        PollSocket(made.get(), POLLOUT, wake_.get(), deadline);
    if (result != PollResult::kReady) {
      return result == PollResult::kWoken ? ECANCELED : ETIMEDOUT;
    }
    int failure = 0;
    socklen_t length = sizeof(failure);
    getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &failure, &length);
    if (failure != 0) {
      return failure;
    }
  }
  // Linux may connect a socket to itself if the dialed port is a free local
  // port. Treat this as a refused connection.
  if (AddressText(OwnAddress(made)) == AddressText(address)) {
    return ECONNREFUSED;
  }
  *connection = make_(std::move(made), address);
  return 0;
}

std::string TcpDialer::Where(const TcpAddress& address) const {
  const std::string text = AddressText(address);
  return text == address_ ? address_ : address_ + " (" + text + ")";
}

// Makes the error message for a failed Dial(). Names each address with its
// error, because the addresses may fail for different reasons:
// "192.0.2.7:7420: no route to host, [2001:db8::7]:7420: connection refused".
Status TcpDialer::Failed(const std::vector<FailedAddress>& failed) const {
  std::string text = "connect ";
  if (failed.size() == 1) {
    text += Where(failed[0].address) + ": " + WhyFailed(failed[0].error);
  } else {
    text += address_ + ": none of its " + std::to_string(failed.size()) +
            " addresses accepts: ";
    const size_t shown = std::min(failed.size(), kMaxShownAddresses);
    for (size_t i = 0; i < shown; ++i) {
      text += (i == 0 ? "" : ", ") + AddressText(failed[i].address) + ": " +
              WhyFailed(failed[i].error);
    }
    if (failed.size() > shown) {
      text += ", and " + std::to_string(failed.size() - shown) + " more";
    }
  }
  const auto any = [&failed](int error) {
    return std::any_of(failed.begin(), failed.end(),
                       [error](const FailedAddress& one) {
                         return one.error == error;
                       });
  };
  if (any(ECONNREFUSED)) {
    text += "; is `sstferry serve` running there";
    text += IsLoopback(where_.host)
                ? "?"
                : ", with --listen at this address (default: only 127.0.0.1)?";
  } else if (any(ETIMEDOUT)) {
    text += "; is the host up, and does a firewall let the port through?";
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
      // The peer closed the connection before it was accepted. During a flood,
      // a thread for each such connection would delay honest peers.
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
