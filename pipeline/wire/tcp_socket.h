// Code that the dialers, listeners and connections of the socket transports
// share. Only the .cc files of these transports include this header.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/wire/wait_deadline.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Wakes threads that wait in poll(2). Its file descriptor becomes readable when
// Raise() is called, and stays readable. A thread that polls a socket together
// with this descriptor therefore wakes, now and at each later poll.
//
// Threads: all members from any thread.
class WakeSignal {
 public:
  WakeSignal();
  ~WakeSignal();
  WakeSignal(const WakeSignal&) = delete;
  WakeSignal& operator=(const WakeSignal&) = delete;

  void Raise();
  bool raised() const { return raised_.load(); }
  // Returns the file descriptor, or -1 if the process had no free descriptor.
  // poll(2) ignores -1.
  int fd() const { return fd_; }

 private:
  const int fd_;
  std::atomic<bool> raised_{false};
};

// The IP address and port of one side of a TCP connection.
struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  int family() const { return bytes.ss_family; }
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// Calls getaddrinfo(3) for `host` with `flags`, adds `port` to each address
// that was found, and appends the addresses to *addresses. Returns the result
// of getaddrinfo(3); 0 means that at least one address was appended. Waits for
// the name server, unless `flags` contains AI_NUMERICHOST.
int FindAddresses(const std::string& host, uint16_t port, int flags,
                  std::vector<TcpAddress>* addresses);
// Returns for example "192.0.2.7:52114" or "[::1]:7420".
std::string AddressText(const TcpAddress& address);
// Returns the text of an errno in small letters, for the end of a message:
// "connection refused".
std::string ErrorText(int error_number);

enum class PollResult { kReady, kTimedOut, kWoken };
// Blocks until one of these happens: `fd` has one of `events`, an error or a
// hang-up (kReady); `wake`, which may be null, is raised (kWoken); `deadline`
// passes (kTimedOut).
PollResult PollSocket(int fd, short events, const WakeSignal* wake,
                      WaitDeadline* deadline);

// Sets *addresses to all addresses of the host `where`. Stops waiting for the
// name server when `deadline` passes or `wake` is raised.
//   kDeadPeer  the name server does not know the host, or did not answer
[[nodiscard]] rocksdb::Status Resolve(
    const HostPort& where, bool passive,
    const std::shared_ptr<WakeSignal>& wake, WaitDeadline* deadline,
    std::vector<TcpAddress>* addresses);

// Makes a Connection from a connected socket. `peer` is the address of the
// other side.
using MakeConnection = std::function<std::unique_ptr<Connection>(
    Descriptor socket, const TcpAddress& peer)>;

std::unique_ptr<Connection> MakeTcpConnection(Descriptor socket,
                                              const TcpAddress& peer);

// Makes a connection that owns a connected Unix socket. Handshake() of this
// connection returns `admitted`, and identity() returns `identity`.
std::unique_ptr<Connection> MakeUnixConnection(
    Descriptor socket, std::string peer, std::optional<PeerIdentity> identity,
    const rocksdb::Status& admitted);

// Blocks until a peer connects to the listening, non-blocking socket `fd`. Sets
// *socket to the new connection and *peer to the peer's address. If the machine
// has too few resources, waits and tries again. `address` is for messages.
//   Aborted    `wake` was raised
//   kInternal  the listening socket is broken
[[nodiscard]] rocksdb::Status AcceptSocket(int fd, const std::string& address,
                                           WakeSignal* wake, TcpAddress* peer,
                                           Descriptor* socket);

// ListenWith() works like ListenTcp(), and MakeDialerWith() like
// MakeTcpDialer(). They make connections with `make`.
[[nodiscard]] rocksdb::Status ListenWith(const HostPort& where,
                                         const MakeConnection& make,
                                         std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeDialerWith(const HostPort& where,
                                       const MakeConnection& make);

}  // namespace sstferry
