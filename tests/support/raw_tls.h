// A TLS client that uses OpenSSL directly: it may have no certificate or an old
// version, and counts the bytes that it receives.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <string>

#include "sstferry/transport.h"

namespace sstferry {

struct RawTlsOptions {
  TlsFiles files;  // empty cert and key: sends none; server is not checked
  int max_version = TLS1_3_VERSION;
};

// Threads: one.
class RawTls {
 public:
  // Connects and shakes hands; blocking, with a time limit on the socket.
  RawTls(const HostPort& where, const RawTlsOptions& options);
  ~RawTls();
  RawTls(const RawTls&) = delete;
  RawTls& operator=(const RawTls&) = delete;

  bool shaken() const { return shaken_; }
  // Reads until the other side closes or fails. Returns the number of bytes.
  uint64_t ReadAll();
  // Returns the alert that the other side sent; -1: none.
  int alert() const { return alert_; }
  int key_updates() const { return key_updates_; }

 private:
  static void Watch(int is_write, int version, int content_type,
                    const void* data, size_t bytes, SSL* ssl, void* self);

  int fd_ = -1;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  bool shaken_ = false;
  int alert_ = -1;
  int key_updates_ = 0;
};

// Returns a blocking TCP socket that is connected to a loopback port, with a
// time limit. The caller closes it.
int ConnectRaw(const HostPort& where);

}  // namespace sstferry
