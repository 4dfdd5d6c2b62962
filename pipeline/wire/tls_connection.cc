// TLS over a ConnectedSocket. Only one thread at a time may use an OpenSSL
// session. Each call of OpenSSL is therefore short and made under a lock.
// Threads that wait for the socket do not hold the lock.
#include "pipeline/wire/tls_connection.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <array>
#include <cstring>
#include <mutex>
#include <vector>

#include "format/end_state.h"
#include "format/frame.h"
#include "format/messages.h"
#include "pipeline/wire/connected_socket.h"
#include "pipeline/wire/tcp_socket.h"
#include "pipeline/wire/tls_bio.h"
#include "pipeline/wire/tls_names.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum number of bytes that one TLS record carries.
constexpr size_t kRecordBytes = 16u << 10;
constexpr size_t kFrameMagicBytes = 4;

// Cuts the parts of a write into pieces that each fill one TLS record. Copies
// bytes only if a part has less than a record left.
class RecordCutter {
 public:
  RecordCutter(const Slice* parts, size_t count, std::vector<char>* scratch)
      : part_(parts), end_(parts + count), scratch_(scratch) {
    SkipEmpty();
    Cut();
  }

  // Returns the current piece, which is valid until Advance(). Returns an empty
  // piece after the last one.
  const Slice& piece() const { return piece_; }
  bool is_last() const { return part_ == end_; }

  void Advance(size_t bytes) {
    piece_.remove_prefix(bytes);
    if (piece_.empty()) {
      Cut();
    }
  }

 private:
  size_t left() const { return part_->size() - offset_; }

  void Cut() {
    piece_ = Slice();
    if (part_ != end_ && left() >= kRecordBytes) {
      piece_ = Slice(part_->data() + offset_, kRecordBytes);
      Take(kRecordBytes);
      return;
    }
    scratch_->resize(kRecordBytes);
    size_t used = 0;
    while (part_ != end_ && used < kRecordBytes) {
      const size_t bytes = std::min(left(), kRecordBytes - used);
      memcpy(scratch_->data() + used, part_->data() + offset_, bytes);
      used += bytes;
      Take(bytes);
    }
    piece_ = Slice(scratch_->data(), used);
  }

  void Take(size_t bytes) {
    offset_ += bytes;
    SkipEmpty();
  }

  void SkipEmpty() {
    while (part_ != end_ && left() == 0) {
      ++part_;
      offset_ = 0;
    }
  }

  const Slice* part_;
  const Slice* const end_;
  std::vector<char>* const scratch_;
  size_t offset_ = 0;
  Slice piece_;
};

// Returns true if `host` is an IPv4 or IPv6 address, and false if it is a name.
bool IsIpAddress(const std::string& host) {
  in6_addr unused;
  return inet_pton(AF_INET, host.c_str(), &unused) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &unused) == 1;
}

class TlsConnection final : public Connection {
 public:
  TlsConnection(Descriptor socket, const TcpAddress& peer,
                std::shared_ptr<const TlsContext> context,
                const std::string& expected_name, uint64_t rekey_after_bytes);
  ~TlsConnection() override;

  Status Handshake(const WaitLimit& limit) override;
  const PeerIdentity* identity() const override {
    return shaken_ ? &identity_ : nullptr;
  }
  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes) override;
  Status Write(const Slice* parts, size_t part_count,
               const WaitLimit& limit) override;
  void Close() override;
  const std::string& peer() const override { return socket_.peer(); }

 private:
  bool is_server() const { return context_->role() == TlsRole::kServer; }
  [[nodiscard]] Status ExpectName();
  [[nodiscard]] Status LookForPlainPeer(WaitDeadline* deadline);
  [[nodiscard]] Status ReadRecords(char* buffer, size_t capacity,
                                   size_t* bytes, short* wait_for);
  [[nodiscard]] Status WriteRecord(const Slice& piece, bool is_last,
                                   size_t* written, short* wait_for);
  // REQUIRES: the caller of any of the following functions has locked mu_.
  [[nodiscard]] Status Usable() const;
  void BeginCall();
  // Interprets the `result` of an OpenSSL call. If OpenSSL must wait for the
  // socket, returns OK and sets *wait_for to the event of poll(2). If the call
  // failed, returns the failure.
  [[nodiscard]] Status AfterCall(const char* action, int result,
                                 short* wait_for);
  [[nodiscard]] Status ExplainFailure(const char* action);
  [[nodiscard]] Status ExplainReason(const char* action,
                                     unsigned long error) const;
  [[nodiscard]] Status AlertBehind(const Status& write_failure);

  ConnectedSocket socket_;
  const std::shared_ptr<const TlsContext> context_;
  const std::string expected_name_;
  const std::string where_;
  const char* const own_role_;
  const char* const peer_role_;
  const uint64_t rekey_after_bytes_;
  // Handshake() sets both members before any other call runs.
  bool shaken_ = false;
  PeerIdentity identity_;
  std::vector<char> scratch_;  // used only by the writing thread

  std::mutex mu_;
  SSL* ssl_ = nullptr;  // under mu_, as are all members below
  SocketIo io_;
  VerifyFailure verify_failure_;
  Status failure_;        // not OK: the session cannot be used
  Status write_failure_;  // not OK: writing failed; reading still works
  uint64_t bytes_since_rekey_ = 0;
  bool peer_ended_ = false;
  bool closing_ = false;
};

TlsConnection::TlsConnection(Descriptor socket, const TcpAddress& peer,
                             std::shared_ptr<const TlsContext> context,
                             const std::string& expected_name,
                             uint64_t rekey_after_bytes)
    : socket_(std::move(socket), AddressText(peer)),
      context_(std::move(context)),
      expected_name_(expected_name),
      where_("TLS with peer " + socket_.peer() + ": "),
      own_role_(is_server() ? "server" : "client"),
      peer_role_(is_server() ? "client" : "server"),
      rekey_after_bytes_(rekey_after_bytes) {
  io_.socket = &socket_;
  ERR_clear_error();
  ssl_ = context_->NewSession();
  BIO* const bio = ssl_ == nullptr ? nullptr : NewSocketBio(&io_);
  if (bio == nullptr) {
    failure_ = MakeStatus(EndState::kInternal, where_ + "no memory");
    return;
  }
  SSL_set_bio(ssl_, bio, bio);  // ssl_ owns the BIO now
  SSL_set_app_data(ssl_, &verify_failure_);
  if (is_server()) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
    failure_ = ExpectName();
  }
}

TlsConnection::~TlsConnection() {
  Close();
  SSL_free(ssl_);
}

Status TlsConnection::ExpectName() {
  // Removes the interface from an address such as "fe80::1%eth0": addresses in
  // certificates have no interface.
  const std::string address =
      expected_name_.substr(0, expected_name_.find('%'));
  bool accepted = false;
  if (IsIpAddress(address)) {
    accepted = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_),
                                             address.c_str()) == 1;
  } else {
    SSL_set_hostflags(ssl_, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    accepted = SSL_set1_host(ssl_, expected_name_.c_str()) == 1 &&
               SSL_set_tlsext_host_name(ssl_, expected_name_.c_str()) == 1;
  }
  return accepted ? Status::OK()
                  : MakeStatus(EndState::kInternal,
                               where_ + "cannot compare the certificate with "
                                        "the name " + expected_name_);
}

Status TlsConnection::Handshake(const WaitLimit& limit) {
  const ConnectedSocket::Inside inside(&socket_);
  if (!inside.entered()) {
    return socket_.ClosedStatus();
  }
  WaitDeadline deadline(limit);
  Status status = is_server() ? LookForPlainPeer(&deadline) : Status::OK();
  while (status.ok()) {
    short wait_for = 0;
    {
      std::lock_guard<std::mutex> lock(mu_);
      status = Usable();
      if (!status.ok()) {
        break;
      }
      BeginCall();
      const int result = SSL_do_handshake(ssl_);
      status = AfterCall("TLS handshake", result, &wait_for);
      if (status.ok() && wait_for == 0 && result <= 0) {
        status = PeerGone(where_ + "the peer ended the handshake");
      } else if (status.ok() && wait_for == 0) {
        X509* const certificate = SSL_get0_peer_certificate(ssl_);
        identity_ = IdentityOf(certificate);
        shaken_ = true;
        return Status::OK();
      }
    }
    if (status.ok()) {
      status = socket_.Wait(wait_for, "TLS handshake", &deadline);
    }
  }
  return status;
}

// Checks whether the client uses sstferry's protocol without TLS. If so, sends
// it an End frame that explains the failure. OpenSSL would close the connection
// without an explanation.
Status TlsConnection::LookForPlainPeer(WaitDeadline* deadline) {
  RETURN_IF_ERROR(socket_.Wait(POLLIN, "TLS handshake", deadline));
  End end;
  end.state = EndState::kDenied;
  end.message =
      "this source speaks TLS only: give --tls DIR, or --tls-cert, --tls-key "
      "and --tls-ca";
  end.where = "source";
  std::string payload;
  Encode(end, &payload);
  std::array<char, kFrameHeaderBytes> header;
  const Slice part(payload);
  EncodeFrameHeader(FrameType::kEnd, 0, &part, 1, header.data(), nullptr);
  std::array<char, kFrameMagicBytes> first{};
  const size_t got = socket_.Peek(first.data(), first.size());
  if (got < first.size() ||
      memcmp(first.data(), header.data(), first.size()) != 0) {
    return Status::OK();
  }
  const std::array<iovec, 2> frame = {
      iovec{header.data(), header.size()},
      iovec{payload.data(), payload.size()}};
  int ignored = 0;
  socket_.WriteSome(frame.data(), frame.size(), /*more=*/false, &ignored);
  std::lock_guard<std::mutex> lock(mu_);
  failure_ = MakeStatus(EndState::kDenied,
                        where_ + "expected a TLS handshake, found a plain "
                                 "sstferry connection");
  return failure_;
}

Status TlsConnection::Read(char* buffer, size_t capacity,
                           const WaitLimit& limit, size_t* bytes) {
  *bytes = 0;
  const ConnectedSocket::Inside inside(&socket_);
  if (!inside.entered()) {
    return socket_.ClosedStatus();
  }
  WaitDeadline deadline(limit);
  for (;;) {
    short wait_for = 0;
    RETURN_IF_ERROR(ReadRecords(buffer, capacity, bytes, &wait_for));
    if (wait_for == 0) {
      return Status::OK();
    }
    RETURN_IF_ERROR(socket_.Wait(wait_for, "read", &deadline));
  }
}

// Reads all records that have arrived and fit into the buffer.
Status TlsConnection::ReadRecords(char* buffer, size_t capacity, size_t* bytes,
                                  short* wait_for) {
  std::lock_guard<std::mutex> lock(mu_);
  Status status = Usable();
  while (status.ok() && !peer_ended_ && *bytes < capacity) {
    size_t got = 0;
    BeginCall();
    const int result =
        SSL_read_ex(ssl_, buffer + *bytes, capacity - *bytes, &got);
    *bytes += got;
    status = AfterCall("read", result, wait_for);
    if (*wait_for != 0) {
      break;
    }
  }
  if (*bytes > 0) {
    // Returns the bytes that were read. If the last call failed, the next
    // Read() returns the failure.
    *wait_for = 0;
    return Status::OK();
  }
  return status;
}

Status TlsConnection::Write(const Slice* parts, size_t part_count,
                            const WaitLimit& limit) {
  const ConnectedSocket::Inside inside(&socket_);
  if (!inside.entered()) {
    return socket_.ClosedStatus();
  }
  WaitDeadline deadline(limit);
  RecordCutter cutter(parts, part_count, &scratch_);
  while (!cutter.piece().empty()) {
    short wait_for = 0;
    size_t written = 0;
    RETURN_IF_ERROR(
        WriteRecord(cutter.piece(), cutter.is_last(), &written, &wait_for));
    if (wait_for == 0) {
      cutter.Advance(written);
      deadline.Progress();
      continue;
    }
    bool peer_ended = false;
    const Status status = wait_for == POLLOUT
                              ? socket_.WaitToWrite(&deadline, &peer_ended)
                              : socket_.Wait(wait_for, "write", &deadline);
    if (peer_ended) {
      std::lock_guard<std::mutex> lock(mu_);
      return AlertBehind(
          PeerGone(where_ + "write: the peer closed the connection"));
    }
    if (!status.ok()) {
      // Makes later writes fail: OpenSSL has kept a part of the record, and
      // accepts only the same bytes again.
      std::lock_guard<std::mutex> lock(mu_);
      write_failure_ = PeerGone(where_ + "an earlier write was interrupted");
      return status;
    }
  }
  return Status::OK();
}

Status TlsConnection::WriteRecord(const Slice& piece, bool is_last,
                                  size_t* written, short* wait_for) {
  std::lock_guard<std::mutex> lock(mu_);
  Status status = Usable();
  if (!status.ok() || !write_failure_.ok()) {
    return status.ok() ? write_failure_ : status;
  }
  BeginCall();
  if (bytes_since_rekey_ >= rekey_after_bytes_) {
    // Asks OpenSSL to change the key before the next record.
    SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
    bytes_since_rekey_ = 0;
    ERR_clear_error();
  }
  io_.more_follows = !is_last;
  const int result = SSL_write_ex(ssl_, piece.data(), piece.size(), written);
  io_.more_follows = false;
  bytes_since_rekey_ += *written;
  const bool socket_failed = io_.error != 0;
  status = AfterCall("write", result, wait_for);
  if (!status.ok() && socket_failed) {
    status = AlertBehind(status);
  }
  return status.ok() && *wait_for == 0 && result <= 0
             ? PeerGone(where_ + "write: the peer closed the connection")
             : status;
}

// Called after a failed write. A server that rejects a client sends an alert
// and closes the connection, possibly while the client writes. If such an alert
// has arrived, returns it, because it explains more than the failed write.
Status TlsConnection::AlertBehind(const Status& write_failure) {
  failure_ = Status::OK();
  char byte = 0;
  size_t got = 0;
  short ignored = 0;
  BeginCall();
  const int result = SSL_peek_ex(ssl_, &byte, 1, &got);
  const Status behind = AfterCall("write", result, &ignored);
  const bool says_more = !behind.ok() && io_.error == 0 && !io_.ended;
  write_failure_ = says_more ? behind : write_failure;
  failure_ = says_more ? behind : Status::OK();
  return write_failure_;
}

void TlsConnection::Close() {
  {
    const ConnectedSocket::Inside inside(&socket_);
    std::lock_guard<std::mutex> lock(mu_);
    if (inside.entered() && !closing_ && shaken_ && failure_.ok()) {
      // Tells the peer that the stream is complete. If there is no room for
      // this message, the peer sees a truncated stream.
      BeginCall();
      SSL_shutdown(ssl_);
      ERR_clear_error();
    }
    closing_ = true;
  }
  socket_.Close();
}

Status TlsConnection::Usable() const {
  return closing_ ? socket_.ClosedStatus() : failure_;
}

void TlsConnection::BeginCall() {
  ERR_clear_error();
  io_.error = 0;
  io_.ended = false;
}

Status TlsConnection::AfterCall(const char* action, int result,
                                short* wait_for) {
  if (result > 0) {
    return Status::OK();
  }
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      *wait_for = POLLIN;
      return Status::OK();
    case SSL_ERROR_WANT_WRITE:
      *wait_for = POLLOUT;
      return Status::OK();
    case SSL_ERROR_ZERO_RETURN:
      if (io_.error == 0) {
        peer_ended_ = true;
        return Status::OK();
      }
      break;
    default:
      break;
  }
  failure_ = ExplainFailure(action);
  ERR_clear_error();
  return failure_;
}

Status TlsConnection::ExplainFailure(const char* action) {
  if (closing_ || socket_.closed()) {
    return socket_.ClosedStatus();
  }
  if (verify_failure_.code != X509_V_OK) {
    return MakeStatus(
        EndState::kDenied,
        where_ + DescribeVerifyFailure(verify_failure_, peer_role_,
                                       expected_name_, context_->files().ca));
  }
  if (io_.error != 0) {
    return socket_.Failed(action, io_.error);
  }
  if (io_.ended) {
    return PeerGone("peer " + peer() + ": " + action + ": " +
                    (shaken_ ? "the connection was cut"
                             : "the peer closed the connection"));
  }
  return ExplainReason(action, ERR_peek_error());
}

Status TlsConnection::ExplainReason(const char* action,
                                    unsigned long error) const {
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET) {
    const int alert = reason - SSL_AD_REASON_OFFSET;
    std::string text;
    if (DescribeAlert(alert, peer_role_, own_role_, context_->files().cert,
                      &text)) {
      return MakeStatus(EndState::kDenied, where_ + text);
    }
    return PeerGone(where_ + action + ": the " + peer_role_ +
                    " gave up: " + SSL_alert_desc_string_long(alert));
  }
  const char* const words = ERR_reason_error_string(error);
  const std::string found = words != nullptr ? words : "unknown error";
  if (shaken_) {
    // Bytes were changed on the way. This session cannot continue, but a new
    // connection may work.
    return PeerGone(where_ + action + ": bytes were changed on the way: " +
                    found);
  }
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    return MakeStatus(EndState::kDenied,
                      where_ + "the client showed no certificate");
  }
  if (reason == SSL_R_UNSUPPORTED_PROTOCOL ||
      reason == SSL_R_WRONG_SSL_VERSION) {
    return MakeStatus(EndState::kDenied,
                      where_ + "expected TLS 1.3, found an older version");
  }
  return MakeStatus(EndState::kDenied,
                    where_ + "expected a TLS 1.3 handshake, found something "
                             "else (" + found + ")" +
                        (is_server() ? ""
                                     : "; was the source started with "
                                       "--tls-cert, --tls-key and --tls-ca?"));
}

}  // namespace

std::unique_ptr<Connection> MakeTlsConnection(
    Descriptor socket, const TcpAddress& peer,
    std::shared_ptr<const TlsContext> context,
    const std::string& expected_name, uint64_t rekey_after_bytes) {
  return std::make_unique<TlsConnection>(std::move(socket), peer,
                                         std::move(context), expected_name,
                                         rekey_after_bytes);
}

}  // namespace sstferry
