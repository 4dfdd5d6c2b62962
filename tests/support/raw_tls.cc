#include "tests/support/raw_tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace sstferry {
namespace {

// Throws on failure. REQUIRE is not possible: other threads than the test's use
// this.
void MustHold(bool holds, const char* what) {
  if (!holds) {
    throw std::runtime_error(what);
  }
}

}  // namespace

int ConnectRaw(const HostPort& where) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MustHold(fd >= 0, "no socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(where.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  MustHold(connect(fd, reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)) == 0,
           "no connection");
  return fd;
}

RawTls::RawTls(const HostPort& where, const RawTlsOptions& options)
    : fd_(ConnectRaw(where)), context_(SSL_CTX_new(TLS_client_method())) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL's own sockets raise it
  MustHold(context_ != nullptr, "no TLS context");
  SSL_CTX_set_max_proto_version(context_, options.max_version);
  if (!options.files.cert.empty()) {
    MustHold(SSL_CTX_use_certificate_chain_file(
                 context_, options.files.cert.c_str()) == 1,
             "no certificate");
    MustHold(SSL_CTX_use_PrivateKey_file(context_, options.files.key.c_str(),
                                         SSL_FILETYPE_PEM) == 1,
             "no key");
  }
  ssl_ = SSL_new(context_);
  MustHold(ssl_ != nullptr, "no TLS session");
  SSL_set_msg_callback(ssl_, Watch);
  SSL_set_msg_callback_arg(ssl_, this);
  SSL_set_fd(ssl_, fd_);
  shaken_ = SSL_connect(ssl_) == 1;
}

RawTls::~RawTls() {
  SSL_free(ssl_);
  SSL_CTX_free(context_);
  close(fd_);
}

uint64_t RawTls::ReadAll() {
  char buffer[16 << 10];
  uint64_t total = 0;
  for (;;) {
    const int got = SSL_read(ssl_, buffer, sizeof(buffer));
    if (got <= 0) {
      return total;
    }
    total += static_cast<uint64_t>(got);
  }
}

void RawTls::Watch(int is_write, int version, int content_type,
                   const void* data, size_t bytes, SSL* ssl, void* self) {
  auto* const raw = static_cast<RawTls*>(self);
  const auto* const text = static_cast<const unsigned char*>(data);
  if (is_write != 0 || bytes < 2) {
    return;
  }
  if (content_type == SSL3_RT_ALERT && text[1] != SSL_AD_CLOSE_NOTIFY) {
    raw->alert_ = text[1];
  }
  if (content_type == SSL3_RT_HANDSHAKE && text[0] == SSL3_MT_KEY_UPDATE) {
    ++raw->key_updates_;
  }
}

}  // namespace sstferry
