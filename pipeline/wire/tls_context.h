// The TLS settings of a listener or dialer. They are loaded from files once,
// and all connections of the listener or dialer share them. Only tls_*.cc
// include this header.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "sstferry/transport.h"

namespace sstferry {

enum class TlsRole { kServer, kClient };

// TLS settings of a server or a client.
//
// Threads: any. The object is constant after Load().
class TlsContext {
 public:
  // Loads the files and makes the settings. They allow only TLS 1.3 and no
  // resumed sessions. The peer must have a certificate that a CA in files.ca
  // has signed.
  //   kRefused  a file cannot be used; the message names it and the reason
  [[nodiscard]] static rocksdb::Status Load(
      const TlsFiles& files, TlsRole role,
      std::shared_ptr<const TlsContext>* out);

  TlsRole role() const { return role_; }
  const TlsFiles& files() const { return files_; }
  // Makes a TLS session with these settings. Returns null if there is no
  // memory.
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
