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

// How long one side of a connection waits for the other.
struct Timeouts {
  // Time limit to connect to an address, and for a handshake.
  std::chrono::milliseconds connect{10'000};
  // Limit for a peer that sends nothing, not even replies to pings. After this
  // time the connection counts as lost.
  std::chrono::milliseconds peer{10'000};
  // Limit for a peer that answers pings, but neither makes progress on a
  // request nor reads or sends data. After this time the transfer ends with
  // TOO_SLOW.
  std::chrono::milliseconds stall{120'000};
  // Limit for the source's first answer in this run, also if the run resumes a
  // pull. 0: one attempt. Not set: uses 10 s, or `retry` if that is shorter.
  std::optional<std::chrono::milliseconds> first_answer;
  // How long a lost connection is retried. Progress of the transfer restarts
  // this time. 0: no retries.
  std::chrono::milliseconds retry{600'000};

  std::chrono::milliseconds ping_interval() const { return peer / 2; }
};

// Returns `timeouts` without retries.
inline Timeouts TriedOnce(Timeouts timeouts) {
  timeouts.first_answer.reset();
  timeouts.retry = std::chrono::milliseconds(0);
  return timeouts;
}

// Limits how long one call waits. The call fails if no byte has moved for the
// time `idle`, or at the time `until`. If `progress` is set, it counts bytes
// that the peer reads on other connections. A change of this count during the
// call is also progress.
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

// Verified identity of the other side. Over TLS, it is the subject and the
// names of the other side's certificate. Over a Unix socket, it is the peer's
// account ("uid 1000"), without names.
struct PeerIdentity {
  // One line as in RFC 2253: "CN=replica-2,O=Example".
  std::string subject;
  // All common names and all DNS, IP, URI and e-mail names of the certificate,
  // as written there. IP addresses are converted to text.
  std::vector<std::string> names;
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// A byte stream in both directions.
//
// Threads: one thread may read while another writes. Close() may be called from
// any thread at any time, also repeatedly. It wakes both threads.
// Errors:
//   TimedOut  the limit passed (kDeadPeer)
//   Aborted   Close() was called on this side (kCancelled)
//   IOError   the peer reset the connection or disappeared, or TLS
//             detected changed bytes (kDeadPeer)
//   kDenied   TLS: one side did not accept the other; the message shows
//             the certificate, or what was received instead of TLS
class Connection {
 public:
  virtual ~Connection() = default;

  // Verifies identities, if the transport can: over TLS both sides', over a
  // Unix socket only the dialing side's. Each side calls it once, before Read()
  // and Write(). Both sides must call it at the same time.
  [[nodiscard]] virtual rocksdb::Status Handshake(const WaitLimit& limit) {
    return rocksdb::Status::OK();
  }
  // Returns the other side's verified identity, after Handshake(). Returns null
  // if the transport verifies no identity. If the result is not null after
  // Handshake() has failed, the connection can still be used to tell the peer
  // that it may not connect.
  virtual const PeerIdentity* identity() const { return nullptr; }

  // Reads at least 1 and at most `capacity` bytes. *bytes == 0 means that the
  // peer closed the connection in an orderly way. REQUIRES: capacity > 0.
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
  // Accepts a connection. Returns Aborted after Close(). Does not run
  // Handshake(), so that a slow peer does not delay other connections; the
  // caller must run it.
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
  // Opens a connection.
  //   kDeadPeer  the host name does not resolve, or the host is unreachable,
  //              refuses, or does not answer within `limit`
  [[nodiscard]] virtual rocksdb::Status Dial(
      const WaitLimit& limit, std::unique_ptr<Connection>* connection) = 0;
  // Makes current and later calls of Dial() return Aborted.
  virtual void Close() = 0;
  virtual const std::string& address() const = 0;
};

// An address: "HOST[:PORT]" or "[::1]:PORT". Port 0 is valid only if the caller
// of ParseHostPort() allows it. For a Unix socket, the address is "unix:/PATH",
// `host` is the path, which begins with '/', and `port` is not used.
struct HostPort {
  std::string host;
  uint16_t port = 0;
  bool is_unix() const { return host.starts_with('/'); }
};
// Prefix of the address of a Unix socket. The path after it must not contain
// ':', because ':' may separate the path from a database name.
inline constexpr char kUnixScheme[] = "unix:";
inline constexpr uint16_t kDefaultPort = 7420;
// Parses an address. Returns InvalidArgument with the reason for other text.
[[nodiscard]] rocksdb::Status ParseHostPort(const std::string& text,
                                            HostPort* out);
// Formats the address. Puts an IPv6 address in brackets.
std::string ToString(const HostPort& host_port);

// Returns the address that Connection::peer() returned, without its port.
// Limits per address use it as key. Of an IPv6 address, returns only the first
// 64 bits, because one host may use all addresses with the same 64 bits.
std::string PeerAddress(const std::string& peer);

// Returns true for addresses of this machine: 127.0.0.0/8, ::1, names that
// resolve only to these addresses, and paths of Unix sockets.
bool IsLoopback(const std::string& host);

[[nodiscard]] rocksdb::Status ListenTcp(const HostPort& where,
                                        std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeTcpDialer(const HostPort& where);

// Listens on a Unix socket at `path`. Root, the effective user and the accounts
// in `uids` may connect. For any other peer, Handshake() returns kDenied.
//
// The socket's file mode allows only the effective user to write. If `uids` has
// another account, the mode allows everybody, because a mode cannot name single
// accounts. A socket that an ended process left at `path` is replaced. The
// listener's destructor removes the socket, unless another socket has replaced
// it.
//   kRefused  an account other than root and the effective user may change a
//             name on the path; a process listens there; something else, or
//             another account's socket, is there; the path is too long
[[nodiscard]] rocksdb::Status ListenUnix(const std::string& path,
                                         const std::vector<uint32_t>& uids,
                                         std::unique_ptr<Listener>* listener);
std::unique_ptr<Dialer> MakeUnixDialer(const std::string& path);

// Two parts of shell commands. This machine's shell runs `ssh`, followed by
// ssh's arguments. The other machine's shell runs `remote`, followed by
// sstferry's arguments.
struct SshCommands {
  std::string ssh = "ssh";
  std::string remote = "sstferry";
};
// A database directory on a machine to which ssh can log in, and options for
// ssh.
struct SshPlace {
  // Empty: ssh chooses the user.
  std::string user;
  // Host name, or an alias in ssh's configuration.
  std::string host;
  // 0: ssh's configuration chooses the port.
  uint16_t port = 0;
  std::string directory;
  SshCommands commands;
  // Options for `sstferry serve` on that machine, in addition to --stdio.
  std::vector<std::string> serve_options;
};
// Checks that ssh and a shell cannot misinterpret a field. Returns
// InvalidArgument with the reason if they could.
[[nodiscard]] rocksdb::Status CheckSshPlace(const SshPlace& place);
// Makes a dialer that connects through the standard input and output of ssh.
// ssh runs `sstferry serve --stdio` on the other machine, and all connections
// are channels of one stream. If ssh is not running, Dial() starts it. On a
// terminal, Dial() may wait longer than its limit while a person answers ssh's
// questions. ssh uses its own keys, agents and known hosts, and its messages go
// to standard error.
//   kRefused  CheckSshPlace() refuses the place, or the remote command is not
//             `serve --stdio`: the message says how ssh ended
std::unique_ptr<Dialer> MakeSshDialer(const SshPlace& place);
// Runs one sstferry command on the machine of `place`. The command uses the
// standard input and output of this process. *exit_code is the command's exit
// code, or 255 if ssh failed.
[[nodiscard]] rocksdb::Status RunOverSsh(const SshPlace& place,
                                         const std::vector<std::string>& words,
                                         int* exit_code);
// Name of the database that `serve --stdio` serves.
inline constexpr char kStdioDatabase[] = "stdio";
// Makes a listener for the connections that MakeSshDialer() opens in one
// stream, on the other machine. Takes ownership of the descriptors `in` and
// `out`. The stream ends when the other side ends it, or when the other side
// sends no byte for `silence_limit` (0: no limit). After this, Accept() waits
// at most 10 s until all connections are closed, and returns Aborted. Accept()
// also returns Aborted after Close().
[[nodiscard]] rocksdb::Status ListenStream(
    int in, int out, const std::string& peer,
    std::chrono::milliseconds silence_limit,
    std::unique_ptr<Listener>* listener);

// PEM files that one side needs for TLS. All three must be set, or none.
struct TlsFiles {
  // This side's certificate, followed by its intermediate certificates.
  std::string cert;
  // This side's private key, without a passphrase.
  std::string key;
  // CAs that may sign the other side's certificate.
  std::string ca;
  bool empty() const { return cert.empty() && key.empty() && ca.empty(); }
};
// Listens with TLS 1.3 and requires certificates of both sides. ListenTls() and
// MakeTlsDialer() read the files only once. The dialing side compares
// where.host with the DNS and IP names in the other side's certificate, but not
// with its common name.
//   kRefused  a file cannot be read or used; the message says which and why
[[nodiscard]] rocksdb::Status ListenTls(const HostPort& where,
                                        const TlsFiles& files,
                                        std::unique_ptr<Listener>* listener);
// Reads certificates and keys again, from the same or other files. Connections
// that are accepted afterwards use them. On failure, returns kRefused and
// changes nothing. May be called from any thread, even after the listener was
// destroyed.
using ReloadTls = std::function<rocksdb::Status(const TlsFiles& files)>;
[[nodiscard]] rocksdb::Status ListenTls(const HostPort& where,
                                        const TlsFiles& files,
                                        std::unique_ptr<Listener>* listener,
                                        ReloadTls* reload);
[[nodiscard]] rocksdb::Status MakeTlsDialer(const HostPort& where,
                                            const TlsFiles& files,
                                            std::unique_ptr<Dialer>* dialer);
// Returns warnings about problems of the files for which TLS does not reject
// them, for example that other accounts can read a key, or that a certificate
// expires soon.
std::vector<std::string> TlsWarnings(const TlsFiles& files);
// Times at which the certificates in TlsFiles expire, in seconds since 1970. 0:
// unknown.
struct CertificateEnds {
  // Earliest expiry of a certificate in files.cert. TLS fails after this time.
  uint64_t cert_seconds = 0;
  // Latest expiry of a CA in files.ca. Old CAs may remain in the file.
  uint64_t ca_seconds = 0;
};
CertificateEnds EndsOfCertificates(const TlsFiles& files);

inline constexpr uint32_t kDefaultCertificateDays = 825;
inline constexpr uint32_t kMaxCertificateDays = 3650;

// Makes a CA. Writes dir/ca.pem, which is valid for ten years, and dir/ca.key.
// Only this account may read the key, and the key stays on this machine.
// Creates `dir` if it is missing.
//   kRefused   one of the files exists
//   kInternal  a file could not be written
[[nodiscard]] rocksdb::Status MakeCertificateAuthority(const std::string& dir);

// Issues a certificate for the DNS or IP names `hosts`, signed by the CA in
// `dir`. Writes cert.pem, key.pem and ca.pem into the new directory dir/HOST,
// where HOST is the first name. Both a serving and a pulling side can use the
// certificate. *files receives the paths, and *until_seconds the expiry in
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
