// A TLS client that is not ours: without a certificate, with an old version,
// counting what it is sent.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <string>

#include "sstferry/transport.h"

namespace sstferry {

struct RawTlsOptions {
  TlsFiles files;  // cert and key empty: shows none; the server is not checked
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
  // Until the other side closes or fails; how many bytes came.
  uint64_t ReadAll();
  // The alert that the other side sent; -1: none.
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

// A blocking TCP socket connected to a loopback port, with a time limit; the
// caller closes it.
int ConnectRaw(const HostPort& where);

}  // namespace sstferry
