// What a connection is, whatever carries it: TCP, TLS over TCP, or two ends in
// one process; nothing above knows the difference.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

using Clock = std::chrono::steady_clock;

// How long one call may wait: at most `idle` without a byte of progress, and
// never past `until`. Where `progress` is set, a change of it while the call
// waits is progress, too: what a peer takes elsewhere.
struct WaitLimit {
  std::chrono::milliseconds idle{30'000};
  Clock::time_point until = Clock::time_point::max();
  const std::atomic<uint64_t>* progress = nullptr;

  static WaitLimit Within(std::chrono::milliseconds total) {
    return WaitLimit{total, Clock::now() + total};
  }
  static WaitLimit Forever() {
    return WaitLimit{std::chrono::milliseconds::max(),
                     Clock::time_point::max()};
  }
};

// Who the other side has proved to be: its certificate's subject and names.
struct PeerIdentity {
  // One line, as RFC 2253 has it: "CN=replica-2,O=Example".
  std::string subject;
  // Every common name and every DNS, IP, URI and e-mail name, as it stands in
  // the certificate; IP addresses as text.
  std::vector<std::string> names;
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// A byte stream in both directions.
//
// Threads: one thread may read while another writes; Close() may be called
//   from any thread at any time, more than once, and wakes both.
// Errors:  TimedOut  the limit passed (kDeadPeer)
//          Aborted   Close() was called on this side (kCancelled)
//          IOError   the peer reset or vanished, or its bytes were changed on
//                    the way and that was found (kDeadPeer)
//          kDenied   TLS: one side did not accept the other; says which one's
//                    certificate, or what was found in place of TLS
class Connection {
 public:
  virtual ~Connection() = default;

  // Proves both identities, where the transport does: TLS. Called once by each
  // side, before Read() and Write(); both must run at the same time.
  [[nodiscard]] virtual rocksdb::Status Handshake(const WaitLimit& limit) {
    return rocksdb::Status::OK();
  }
  // After Handshake(); null where the transport proves nothing.
  virtual const PeerIdentity* identity() const { return nullptr; }

  // Reads 1..capacity bytes; *bytes == 0 means the peer closed in order.
  // REQUIRES: capacity > 0.
  [[nodiscard]] virtual rocksdb::Status Read(char* buffer, size_t capacity,
                                             const WaitLimit& limit,
                                             size_t* bytes) = 0;

  // Writes all parts in order, gathered into as few system calls as possible.
  [[nodiscard]] virtual rocksdb::Status Write(const rocksdb::Slice* parts,
                                              size_t part_count,
                                              const WaitLimit& limit) = 0;

  virtual void Close() = 0;

  // The other side, for logs: "192.0.2.7:52114" or "in-process".
  virtual const std::string& peer() const = 0;
};

// Waits for connections. Accept() is for one thread; Close() for any.
class Listener {
 public:
  virtual ~Listener() = default;
  // Aborted after Close(). Handshake() is left to the caller, so that no peer
  // can keep others waiting.
  [[nodiscard]] virtual rocksdb::Status Accept(
      std::unique_ptr<Connection>* connection) = 0;
  virtual void Close() = 0;
  // "127.0.0.1:7420", with the port really bound.
  virtual const std::string& address() const = 0;
};

// Opens connections to one place, Handshake() not yet done. Any thread,
// several at once.
class Dialer {
 public:
  virtual ~Dialer() = default;
  // kDeadPeer  the host name does not resolve, refused, unreachable or no
  //            answer within `limit`
  [[nodiscard]] virtual rocksdb::Status Dial(
      const WaitLimit& limit, std::unique_ptr<Connection>* connection) = 0;
  // Makes current and later calls of Dial() return Aborted.
  virtual void Close() = 0;
  virtual const std::string& address() const = 0;
};

// "HOST[:PORT]", "[::1]:PORT"; port 0 only where allowed by the caller.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
inline constexpr uint16_t kDefaultPort = 7420;
// InvalidArgument: what is wrong with the text.
[[nodiscard]] rocksdb::Status ParseHostPort(const std::string& text,
                                            HostPort* out);
std::string ToString(const HostPort& host_port);  // brackets IPv6

// What limits per peer count by, from Connection::peer(): the address without
// its port, of IPv6 the first 64 bits, since a host has them all.
std::string PeerAddress(const std::string& peer);

// True for 127.0.0.0/8, ::1 and names that resolve only to those.
bool IsLoopback(const std::string& host);

[[nodiscard]] rocksdb::Status ListenTcp(const HostPort& where,
                                        std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeTcpDialer(const HostPort& where);

// What one side needs for TLS; all three or none.
struct TlsFiles {
  std::string cert;  // PEM: this side's certificate, then its intermediates
  std::string key;   // PEM: its private key, without a passphrase
  std::string ca;    // PEM: the certificates that may sign the other side's
  bool empty() const { return cert.empty() && key.empty() && ca.empty(); }
};
// TLS 1.3 only, both sides with certificates. The files are read once, here.
// The dialing side compares where.host with the DNS and IP names of the other
// side's certificate, never with its common name.
// kInternal: a file cannot be read or used; says which and why.
[[nodiscard]] rocksdb::Status ListenTls(const HostPort& where,
                                        const TlsFiles& files,
                                        std::unique_ptr<Listener>* listener);
[[nodiscard]] rocksdb::Status MakeTlsDialer(const HostPort& where,
                                            const TlsFiles& files,
                                            std::unique_ptr<Dialer>* dialer);
// What a person should know about files that work: a key that others can
// read, a certificate that has expired or is about to.
std::vector<std::string> TlsWarnings(const TlsFiles& files);

// Both ends in one process: what the dialer opens, the listener accepts.
// Each direction buffers at most `buffer_bytes`.
struct MemoryTransport {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Dialer> dialer;
};
MemoryTransport MakeMemoryTransport(size_t buffer_bytes = 1u << 20);

}  // namespace sstferry
