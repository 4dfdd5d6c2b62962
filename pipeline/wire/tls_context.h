// The settings and files that a TLS listener or dialer loads once and that all
// its connections share. Only tls_*.cc include this header.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "sstferry/transport.h"

namespace sstferry {

enum class TlsRole { kServer, kClient };

// TLS settings of one role. Threads: any; constant after Load().
class TlsContext {
 public:
  // Loads the files. Allows only TLS 1.3, without resumed sessions. The peer
  // must have a certificate that is signed by a CA in files.ca. kRefused: a
  // file cannot be used; the message names the file and the reason.
  [[nodiscard]] static rocksdb::Status Load(
      const TlsFiles& files, TlsRole role,
      std::shared_ptr<const TlsContext>* out);

  TlsRole role() const { return role_; }
  const TlsFiles& files() const { return files_; }
  // Makes a session with these settings; null if memory is short.
  SSL* NewSession() const;

 private:
  TlsContext(const TlsFiles& files, TlsRole role, SSL_CTX* context)
      : files_(files), role_(role), context_(context, SSL_CTX_free) {}
  [[nodiscard]] rocksdb::Status LoadFiles();
  void SetPolicy();

  const TlsFiles files_;
  const TlsRole role_;
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
};

}  // namespace sstferry
