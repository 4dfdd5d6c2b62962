// Asio's ssl::context loads the files. Its ssl::stream is not used: its
// synchronous calls wait without a limit, lose bytes on a non-blocking socket,
// and let no thread read while another writes.
#include "pipeline/wire/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ssl/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "format/end_state.h"
#include "pipeline/wire/tls_names.h"

namespace sstferry {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using rocksdb::Status;

// AES-128 first: it is safe enough, and the fastest.
constexpr char kCipherSuites[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
    "TLS_CHACHA20_POLY1305_SHA256";
// Limit of certificates of an unknown peer.
constexpr long kMaxChainBytes = 32 << 10;
constexpr int kMaxChainDepth = 8;
// Maximum of bytes read with one system call.
constexpr size_t kReadAheadBytes = 64u << 10;
constexpr int kWarnDays = 14;

Status Unusable(const char* option, const std::string& file,
                const std::string& why) {
  return MakeStatus(EndState::kRefused,
                    std::string(option) + " " + file + ": " + why);
}

Status CheckReadable(const char* option, const std::string& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return Unusable(option, file, "expected a file");
  }
  if (access(file.c_str(), R_OK) != 0) {
    return Unusable(option, file, strerror(errno));
  }
  return Status::OK();
}

std::string Reason(const error_code& error) {
  const char* const reason =
      error.category() == boost::asio::error::get_ssl_category()
          ? ERR_reason_error_string(static_cast<unsigned long>(error.value()))
          : nullptr;
  return reason != nullptr ? reason : error.message();
}

}  // namespace

TlsContext::TlsContext(const TlsFiles& files, TlsRole role)
    : files_(files),
      role_(role),
      context_(role == TlsRole::kServer ? ssl::context::tls_server
                                        : ssl::context::tls_client) {}

Status TlsContext::Load(const TlsFiles& files, TlsRole role,
                        std::shared_ptr<const TlsContext>* out) {
  try {
    std::shared_ptr<TlsContext> context(new TlsContext(files, role));
    context->SetPolicy();
    const Status status = context->LoadFiles();
    if (status.ok()) {
      *out = context;
    }
    return status;
  } catch (const std::exception& error) {  // OpenSSL could not be started
    return MakeStatus(EndState::kInternal,
                      std::string("TLS: ") + error.what());
  }
}

void TlsContext::SetPolicy() {
  SSL_CTX* const context = context_.native_handle();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, kCipherSuites);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS |
                                // Only what --tls-cert holds is shown.
                                SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_verify(context,
                     SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     RememberVerifyFailure);
  SSL_CTX_set_verify_depth(context, kMaxChainDepth);
  SSL_CTX_set_max_cert_list(context, kMaxChainBytes);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAheadBytes);
}

Status TlsContext::LoadFiles() {
  const std::pair<const char*, const std::string*> named[] = {
      {"--tls-cert", &files_.cert},
      {"--tls-key", &files_.key},
      {"--tls-ca", &files_.ca}};
  for (const auto& [option, file] : named) {
    const Status status = CheckReadable(option, *file);
    if (!status.ok()) {
      return status;
    }
  }
  error_code error;
  // Without this OpenSSL would ask on the terminal.
  bool encrypted = false;
  context_.set_password_callback(
      [&encrypted](size_t, ssl::context::password_purpose) {
        encrypted = true;
        return std::string();
      },
      error);
  context_.use_certificate_chain_file(files_.cert, error);
  if (error) {
    return Unusable("--tls-cert", files_.cert,
                    "expected PEM certificates: " + Reason(error));
  }
  context_.use_private_key_file(files_.key, ssl::context::pem, error);
  const bool mismatch =
      error && ERR_GET_REASON(static_cast<unsigned long>(error.value())) ==
                   X509_R_KEY_VALUES_MISMATCH;
  if (encrypted) {
    return Unusable("--tls-key", files_.key,
                    "expected a key without a passphrase; keep it in a file "
                    "that only its owner can read");
  }
  if (error && !mismatch) {
    return Unusable("--tls-key", files_.key,
                    "expected a PEM private key: " + Reason(error));
  }
  if (mismatch || SSL_CTX_check_private_key(context_.native_handle()) != 1) {
    return Unusable("--tls-key", files_.key,
                    "is not the key of --tls-cert " + files_.cert);
  }
  context_.load_verify_file(files_.ca, error);
  if (error) {
    return Unusable("--tls-ca", files_.ca,
                    "expected PEM certificates: " + Reason(error));
  }
  // The callback must not outlive `encrypted`.
  context_.set_password_callback(
      [](size_t, ssl::context::password_purpose) { return std::string(); },
      error);
  return Status::OK();
}

SSL* TlsContext::NewSession() const {
  // native_handle() is not const, and SSL_new() only reads and counts.
  return SSL_new(const_cast<ssl::context&>(context_).native_handle());
}

std::vector<std::string> TlsWarnings(const TlsFiles& files) {
  std::vector<std::string> warnings;
  struct stat info {};
  if (!files.key.empty() && stat(files.key.c_str(), &info) == 0 &&
      (info.st_mode & (S_IRWXO | S_IRGRP | S_IWGRP)) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof(mode), "%04o", info.st_mode & 07777u);
    warnings.push_back("--tls-key " + files.key +
                       ": others can read or change it (mode " + mode +
                       "); chmod 600 it");
  }
  const std::string validity =
      files.cert.empty() ? "" : ValidityProblem(files.cert, kWarnDays);
  if (!validity.empty()) {
    warnings.push_back("--tls-cert " + files.cert + ": " + validity);
  }
  return warnings;
}

}  // namespace sstferry
