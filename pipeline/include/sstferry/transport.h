// Connections between source and target over TCP, TLS over TCP, a Unix socket,
// or within one process. Higher layers do not depend on the transport.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

using Clock = std::chrono::steady_clock;

// How long one side waits for the other.
struct Timeouts {
  // Limit for an address to answer, and for a handshake.
  std::chrono::milliseconds connect{10'000};
  // Limit for a peer that sends nothing, not even replies to pings. After this
  // time the connection counts as lost.
  std::chrono::milliseconds peer{10'000};
  // Limit for a peer that answers pings, but neither makes progress on a
  // request nor reads or sends data. After this time the transfer ends with
  // TOO_SLOW.
  std::chrono::milliseconds stall{120'000};
  // Limit for the source's first answer in this run, also for a resumed pull.
  // Not set: the smaller of 10 s and `retry`. 0: one attempt.
  std::optional<std::chrono::milliseconds> first_answer;
  // How long a lost connection is retried; progress restarts this time. 0: no
  // retries.
  std::chrono::milliseconds retry{600'000};

  std::chrono::milliseconds ping_interval() const { return peer / 2; }
};

// Returns the same limits, but for a connection without retries.
inline Timeouts TriedOnce(Timeouts timeouts) {
  timeouts.first_answer.reset();
  timeouts.retry = std::chrono::milliseconds(0);
  return timeouts;
}

// Limits how long one call waits: at most `idle` without a byte of progress,
// and never after `until`. `progress`, if set, counts bytes that the peer reads
// on other connections; a change during the call also counts as progress.
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

// Verified identity of the other side: the subject and names of its
// certificate; or, for a Unix socket, the peer's account ("uid 1000", without
// names).
struct PeerIdentity {
  // One line as in RFC 2253: "CN=replica-2,O=Example".
  std::string subject;
  // All common names and all DNS, IP, URI and e-mail names as written in the
  // certificate; IP addresses as text.
  std::vector<std::string> names;
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// A byte stream in both directions.
//
// Threads: one thread may read while another writes; Close() may be called from
// any thread at any time, repeatedly, and wakes both threads.
// Errors:  TimedOut  the limit passed (kDeadPeer)
//          Aborted   Close() was called on this side (kCancelled)
//          IOError   the peer reset the connection or disappeared, or TLS
//                    detected changed bytes (kDeadPeer)
//          kDenied   TLS: one side did not accept the other; the message shows
//                    the certificate, or what was received instead of TLS
class Connection {
 public:
  virtual ~Connection() = default;

  // Verifies the identities of both sides (TLS) or only of the dialing side
  // (Unix socket), if the transport can. Each side calls it once, before Read()
  // and Write(); both calls must run at the same time.
  [[nodiscard]] virtual rocksdb::Status Handshake(const WaitLimit& limit) {
    return rocksdb::Status::OK();
  }
  // Returns the verified identity. Valid after Handshake(). Null if the
  // transport verifies no identity. If not null, the connection can be used
  // even if Handshake() failed, to tell the peer that it may not connect.
  virtual const PeerIdentity* identity() const { return nullptr; }

  // Reads 1 to capacity bytes; *bytes == 0 means that the peer closed the
  // connection properly. REQUIRES: capacity > 0.
  [[nodiscard]] virtual rocksdb::Status Read(char* buffer, size_t capacity,
                                             const WaitLimit& limit,
                                             size_t* bytes) = 0;

  // Writes all parts in order, in as few system calls as possible.
  [[nodiscard]] virtual rocksdb::Status Write(const rocksdb::Slice* parts,
                                              size_t part_count,
                                              const WaitLimit& limit) = 0;

  virtual void Close() = 0;

  // Returns the other side, for logs: "192.0.2.7:52114", "uid 1000" or
  // "in-process".
  virtual const std::string& peer() const = 0;
  // Returns true if the other side is in this process.
  virtual bool is_in_process() const { return false; }
};

// Accepts connections. Accept() may be called from one thread, Close() from any
// thread.
class Listener {
 public:
  virtual ~Listener() = default;
  // Accepts a connection; returns Aborted after Close(). The caller runs
  // Handshake(), so that no peer can delay others.
  [[nodiscard]] virtual rocksdb::Status Accept(
      std::unique_ptr<Connection>* connection) = 0;
  virtual void Close() = 0;
  // Returns "127.0.0.1:7420", with the bound port, or
  // "unix:/run/app/serve.sock".
  virtual const std::string& address() const = 0;
};

// Opens connections to one address, without Handshake(). May be called from
// several threads at the same time.
class Dialer {
 public:
  virtual ~Dialer() = default;
  // Connects.
  //   kDeadPeer  the host name does not resolve, or the host is unreachable,
  //              refuses, or does not answer within `limit`
  [[nodiscard]] virtual rocksdb::Status Dial(
      const WaitLimit& limit, std::unique_ptr<Connection>* connection) = 0;
  // Makes current and later calls of Dial() return Aborted.
  virtual void Close() = 0;
  virtual const std::string& address() const = 0;
};

// "HOST[:PORT]" or "[::1]:PORT"; port 0 only if the caller allows it. For a
// Unix socket, "unix:/PATH"; then `host` is the path, which begins with '/',
// and `port` is unused.
struct HostPort {
  std::string host;
  uint16_t port = 0;
  bool is_unix() const { return host.starts_with('/'); }
};
// Prefix of a Unix socket's path. The path contains no ':', because ':' may
// separate it from a database name.
inline constexpr char kUnixScheme[] = "unix:";
inline constexpr uint16_t kDefaultPort = 7420;
// Parses an address. InvalidArgument: the message says what is wrong.
[[nodiscard]] rocksdb::Status ParseHostPort(const std::string& text,
                                            HostPort* out);
std::string ToString(const HostPort& host_port);  // brackets IPv6

// Returns a Connection::peer() address without its port, as the key for the
// limits per address. For IPv6, returns only the first 64 bits, because one
// host may use all addresses that share them.
std::string PeerAddress(const std::string& peer);

// Returns true for 127.0.0.0/8, ::1, names that resolve only to these
// addresses, and Unix socket paths.
bool IsLoopback(const std::string& host);

[[nodiscard]] rocksdb::Status ListenTcp(const HostPort& where,
                                        std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeTcpDialer(const HostPort& where);

// Listens on a Unix socket at `path`. Root, the effective user and the accounts
// `uids` may connect; Handshake() of any other peer returns kDenied.
//
// If `uids` has another account, the socket's mode lets everybody write,
// because a file mode cannot specify one account; otherwise it allows only the
// effective user. Replaces the socket of an ended process. The listener's
// destructor removes the socket, unless another socket has replaced it.
//   kRefused  an account other than root and the effective user may change a
//             name on the path; a process listens there; something else, or
//             another account's socket, is there; the path is too long
[[nodiscard]] rocksdb::Status ListenUnix(const std::string& path,
                                         const std::vector<uint32_t>& uids,
                                         std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeUnixDialer(const std::string& path);

// Shell commands. `ssh` runs in this machine's shell, followed by ssh's
// arguments; `remote` runs in the other machine's shell, followed by sstferry's
// arguments.
struct SshCommands {
  std::string ssh = "ssh";
  std::string remote = "sstferry";
};
// A database directory on a machine that ssh logs in to, and how to reach it.
struct SshPlace {
  std::string user;   // empty: the user that ssh chooses
  std::string host;   // or an alias from ssh's configuration
  uint16_t port = 0;  // 0: the port from ssh's configuration
  std::string directory;
  SshCommands commands;
  std::vector<std::string> serve_options;  // in addition to --stdio
};
// Checks the fields. InvalidArgument: the message says what ssh or a shell
// could misinterpret.
[[nodiscard]] rocksdb::Status CheckSshPlace(const SshPlace& place);
// Makes a dialer that connects through standard input and output of ssh, which
// runs `sstferry serve --stdio` on the other machine. All connections are
// channels of one stream. Dial() starts ssh if it is not running. On a
// terminal, Dial() waits beyond its limit while a person answers ssh's
// questions. Uses ssh's keys, agents and known hosts; ssh's messages go to
// standard error.
//   kRefused  CheckSshPlace() refuses the place, or the remote command is not
//             `serve --stdio`: the message says how ssh ended
std::unique_ptr<Dialer> MakeSshDialer(const SshPlace& place);
// Runs one sstferry command on this machine, with the standard input and output
// of this process. *exit_code: the command's exit code, or 255 if ssh failed.
[[nodiscard]] rocksdb::Status RunOverSsh(const SshPlace& place,
                                         const std::vector<std::string>& words,
                                         int* exit_code);
// Name of the database that `serve --stdio` serves.
inline constexpr char kStdioDatabase[] = "stdio";
// Takes over the stream's descriptors on the ssh server's side and accepts the
// connections in the stream. Accept() also returns Aborted after the stream has
// ended and its connections were closed; it waits at most 10 s for this. The
// stream ends when the other side ends it, or sends no byte for `silence_limit`
// (0: no limit).
[[nodiscard]] rocksdb::Status ListenStream(
    int in, int out, const std::string& peer,
    std::chrono::milliseconds silence_limit,
    std::unique_ptr<Listener>* listener);

// Files that one side needs for TLS: all three or none.
struct TlsFiles {
  std::string cert;  // PEM: this side's certificate, then its intermediates
  std::string key;   // PEM: its private key, without a passphrase
  std::string ca;    // PEM: CAs that may sign the other side's certificate
  bool empty() const { return cert.empty() && key.empty() && ca.empty(); }
};
// Listens with TLS 1.3 only and requires certificates on both sides. This call
// and MakeTlsDialer() read the files once. The dialing side compares where.host
// with the DNS and IP names of the other side's certificate, never with its
// common name.
//   kRefused  a file cannot be read or used; the message says which and why
[[nodiscard]] rocksdb::Status ListenTls(const HostPort& where,
                                        const TlsFiles& files,
                                        std::unique_ptr<Listener>* listener);
// Reads new files, or the same files again, for all connections accepted
// afterwards. On failure (kRefused) nothing changes. May be called from any
// thread, also after the listener was destroyed.
using ReloadTls = std::function<rocksdb::Status(const TlsFiles& files)>;
[[nodiscard]] rocksdb::Status ListenTls(const HostPort& where,
                                        const TlsFiles& files,
                                        std::unique_ptr<Listener>* listener,
                                        ReloadTls* reload);
[[nodiscard]] rocksdb::Status MakeTlsDialer(const HostPort& where,
                                            const TlsFiles& files,
                                            std::unique_ptr<Dialer>* dialer);
// Returns warnings about usable files: a key that others can read, or a
// certificate that has expired or expires soon.
std::vector<std::string> TlsWarnings(const TlsFiles& files);
// Times at which the certificates of TLS files expire, in seconds since 1970.
// 0: unknown.
struct CertificateEnds {
  uint64_t cert_seconds = 0;  // earliest in files.cert; then TLS fails
  uint64_t ca_seconds = 0;    // latest in files.ca, since old CAs may remain
};
CertificateEnds EndsOfCertificates(const TlsFiles& files);

inline constexpr uint32_t kDefaultCertificateDays = 825;
inline constexpr uint32_t kMaxCertificateDays = 3650;

// Makes a CA: dir/ca.pem, valid for ten years, and dir/ca.key, which only this
// account may read and which never leaves this machine. Makes `dir` if it is
// missing.
//   kRefused   one of the files exists
//   kInternal  a file could not be written
[[nodiscard]] rocksdb::Status MakeCertificateAuthority(const std::string& dir);

// Issues a certificate of the CA in `dir` for the DNS or IP names `hosts`:
// writes cert.pem, key.pem and ca.pem into the new directory dir/HOST, named
// after the first host. The certificate is valid for both sides, since a host
// may serve and pull. *files receives the paths, *until_seconds the expiry in
// seconds since 1970.
//   kRefused   no CA in `dir`, dir/HOST exists, or a name is not a host name
//   kInternal  a file could not be written
[[nodiscard]] rocksdb::Status IssueCertificate(
    const std::string& dir, const std::vector<std::string>& hosts,
    uint32_t days, TlsFiles* files, uint64_t* until_seconds);

// A transport within one process: the listener accepts the connections that the
// dialer opens. Each direction buffers at most `buffer_bytes`.
struct MemoryTransport {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Dialer> dialer;
};
MemoryTransport MakeMemoryTransport(size_t buffer_bytes = 1u << 20);

}  // namespace sstferry
