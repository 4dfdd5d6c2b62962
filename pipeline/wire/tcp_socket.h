// Code that is shared by the dialers, listeners and connections of the socket
// transports. Only the .cc files of these transports include this header.
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

// A file descriptor that becomes readable once and stays readable. poll(2)
// watches it together with a socket, so that the signal wakes this and every
// later poll. Threads: all members from any thread.
class WakeSignal {
 public:
  WakeSignal();
  ~WakeSignal();
  WakeSignal(const WakeSignal&) = delete;
  WakeSignal& operator=(const WakeSignal&) = delete;

  void Raise();
  bool raised() const { return raised_.load(); }
  // Returns the descriptor; -1 if the process has no free descriptor, which
  // poll(2) ignores.
  int fd() const { return fd_; }

 private:
  const int fd_;
  std::atomic<bool> raised_{false};
};

// The address of one side of a TCP connection.
struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  int family() const { return bytes.ss_family; }
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// Appends the addresses that getaddrinfo(3) finds for a host with `flags`, each
// with the port. Returns the result of getaddrinfo(3); 0: there is at least one
// address. Waits for the name server, unless the flags have AI_NUMERICHOST.
int FindAddresses(const std::string& host, uint16_t port, int flags,
                  std::vector<TcpAddress>* addresses);
// Returns "192.0.2.7:52114" or "[::1]:7420".
std::string AddressText(const TcpAddress& address);
// Returns the text of an errno as the end of a sentence: "connection refused".
std::string ErrorText(int error_number);

enum class PollResult { kReady, kTimedOut, kWoken };
// Blocks until `fd` has one of `events`, an error or a hang-up, `wake` (may be
// null) is raised, or `deadline` passes.
PollResult PollSocket(int fd, short events, const WakeSignal* wake,
                      WaitDeadline* deadline);

// Resolves a name to all of its addresses. Waits for the name server no longer
// than `deadline` and `wake` allow. kDeadPeer: the name does not resolve.
[[nodiscard]] rocksdb::Status Resolve(
    const HostPort& where, bool passive,
    const std::shared_ptr<WakeSignal>& wake, WaitDeadline* deadline,
    std::vector<TcpAddress>* addresses);

// Makes the Connection for a connected socket; `peer` is the other side.
using MakeConnection = std::function<std::unique_ptr<Connection>(
    Descriptor socket, const TcpAddress& peer)>;

std::unique_ptr<Connection> MakeTcpConnection(Descriptor socket,
                                              const TcpAddress& peer);

// Makes a connection that owns a connected Unix socket. Its Handshake() returns
// `admitted`, its identity() is `identity`.
std::unique_ptr<Connection> MakeUnixConnection(
    Descriptor socket, std::string peer, std::optional<PeerIdentity> identity,
    const rocksdb::Status& admitted);

// Blocks until the non-blocking listening socket `fd` has a connection, and
// accepts it: *socket, with the address *peer. Keeps waiting while the machine
// has too few resources. `address` is for messages.
//   Aborted    `wake` was raised
//   kInternal  the listening socket is broken
[[nodiscard]] rocksdb::Status AcceptSocket(int fd, const std::string& address,
                                           WakeSignal* wake, TcpAddress* peer,
                                           Descriptor* socket);

// Work like ListenTcp() and MakeTcpDialer(), but `make` makes the connections.
[[nodiscard]] rocksdb::Status ListenWith(const HostPort& where,
                                         const MakeConnection& make,
                                         std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeDialerWith(const HostPort& where,
                                       const MakeConnection& make);

}  // namespace sstferry
