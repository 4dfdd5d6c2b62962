// Parts of the socket transports that dialers, listeners and connections share.
// Only the .cc files of these transports include this header.
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

// A file descriptor that becomes readable once and stays so. A poll(2) watches
// it beside its socket, so that a signal wakes every later poll, too.
// Threads: all members from any thread.
class WakeSignal {
 public:
  WakeSignal();
  ~WakeSignal();
  WakeSignal(const WakeSignal&) = delete;
  WakeSignal& operator=(const WakeSignal&) = delete;

  void Raise();
  bool raised() const { return raised_.load(); }
  // -1 when the process ran out of descriptors; poll(2) ignores that.
  int fd() const { return fd_; }

 private:
  const int fd_;
  std::atomic<bool> raised_{false};
};

// The address of one end of a TCP connection.
struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  int family() const { return bytes.ss_family; }
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// Appends the addresses of a host that getaddrinfo(3) finds with `flags`, each
// with the port, and returns what it returns; 0: there is at least one. Waits
// for the name server, unless the flags have AI_NUMERICHOST.
int FindAddresses(const std::string& host, uint16_t port, int flags,
                  std::vector<TcpAddress>* addresses);
// Returns "192.0.2.7:52114" or "[::1]:7420".
std::string AddressText(const TcpAddress& address);
// Describes an errno for the end of a sentence: "connection refused".
std::string ErrorText(int error_number);

enum class PollResult { kReady, kTimedOut, kWoken };
// Waits until `fd` has one of `events`, an error or a hang-up, `wake` (may be
// null) is raised, or `deadline` passes.
PollResult PollSocket(int fd, short events, const WakeSignal* wake,
                      WaitDeadline* deadline);

// Resolves a name to all of its addresses. Waits for the name server no longer
// than `deadline` and `wake` allow.
// kDeadPeer if the name does not resolve.
[[nodiscard]] rocksdb::Status Resolve(
    const HostPort& where, bool passive,
    const std::shared_ptr<WakeSignal>& wake, WaitDeadline* deadline,
    std::vector<TcpAddress>* addresses);

// Makes the Connection of a connected socket with that peer address.
using MakeConnection = std::function<std::unique_ptr<Connection>(
    Descriptor socket, const TcpAddress& peer)>;

std::unique_ptr<Connection> MakeTcpConnection(Descriptor socket,
                                              const TcpAddress& peer);

// Takes over a connected Unix socket. Its Handshake() returns `admitted`.
std::unique_ptr<Connection> MakeUnixConnection(
    Descriptor socket, std::string peer, std::optional<PeerIdentity> identity,
    const rocksdb::Status& admitted);

// Waits for a connection at the listening socket `fd`, which does not block,
// and takes it, in *socket, with its address. Waits while the machine lacks a
// resource. `address` is for messages.
//   Aborted    `wake` was raised
//   kInternal  the listening socket is broken
[[nodiscard]] rocksdb::Status AcceptSocket(int fd, const std::string& address,
                                           WakeSignal* wake, TcpAddress* peer,
                                           Descriptor* socket);

// As ListenTcp() and MakeTcpDialer(), with connections that `make` makes.
[[nodiscard]] rocksdb::Status ListenWith(const HostPort& where,
                                         const MakeConnection& make,
                                         std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeDialerWith(const HostPort& where,
                                       const MakeConnection& make);

}  // namespace sstferry
