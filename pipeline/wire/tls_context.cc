#include "pipeline/wire/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "format/end_state.h"
#include "pipeline/wire/tls_names.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

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
constexpr uint64_t kSecondsADay = 86'400;

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

// Returns why OpenSSL's last call failed.
std::string Reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : "no reason is known";
}

// Called for a key with a passphrase; without it OpenSSL would ask on the
// terminal. Sets the bool that `encrypted` points to.
int GiveNoPassphrase(char*, int, int, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return 0;
}

}  // namespace

Status TlsContext::Load(const TlsFiles& files, TlsRole role,
                        std::shared_ptr<const TlsContext>* out) {
  ERR_clear_error();
  SSL_CTX* const made = SSL_CTX_new(
      role == TlsRole::kServer ? TLS_server_method() : TLS_client_method());
  if (made == nullptr) {
    return MakeStatus(EndState::kInternal, "TLS: " + Reason());
  }
  const std::shared_ptr<TlsContext> context(new TlsContext(files, role, made));
  context->SetPolicy();
  const Status status = context->LoadFiles();
  if (status.ok()) {
    *out = context;
  }
  ERR_clear_error();
  return status;
}

void TlsContext::SetPolicy() {
  SSL_CTX* const context = context_.get();
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
    RETURN_IF_ERROR(CheckReadable(option, *file));
  }
  SSL_CTX* const context = context_.get();
  bool encrypted = false;  // nobody is asked for a passphrase
  SSL_CTX_set_default_passwd_cb(context, GiveNoPassphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context, &encrypted);
  if (SSL_CTX_use_certificate_chain_file(context, files_.cert.c_str()) != 1) {
    const std::string reason = Reason();
    // A file of keys alone is a PEM file without a certificate.
    const bool holds_key =
        SSL_CTX_use_PrivateKey_file(context, files_.cert.c_str(),
                                    SSL_FILETYPE_PEM) == 1;
    ERR_clear_error();
    return Unusable("--tls-cert", files_.cert,
                    holds_key ? "expected PEM certificates, found a private "
                                "key; are --tls-cert and --tls-key exchanged?"
                              : "expected PEM certificates: " + reason);
  }
  const bool loaded = SSL_CTX_use_PrivateKey_file(context, files_.key.c_str(),
                                                  SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  SSL_CTX_set_default_passwd_cb(context, nullptr);
  const bool mismatch =
      !loaded &&
      ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
  if (encrypted) {
    return Unusable("--tls-key", files_.key,
                    "expected a key without a passphrase; keep it in a file "
                    "that only its owner can read");
  }
  if (!loaded && !mismatch) {
    return Unusable("--tls-key", files_.key,
                    "expected a PEM private key: " + Reason());
  }
  if (mismatch || SSL_CTX_check_private_key(context) != 1) {
    return Unusable("--tls-key", files_.key,
                    "is not the key of --tls-cert " + files_.cert);
  }
  if (SSL_CTX_load_verify_locations(context, files_.ca.c_str(), nullptr) !=
      1) {
    return Unusable("--tls-ca", files_.ca,
                    "expected PEM certificates: " + Reason());
  }
  return Status::OK();
}

SSL* TlsContext::NewSession() const { return SSL_new(context_.get()); }

CertificateEnds EndsOfCertificates(const TlsFiles& files) {
  CertificateEnds ends;
  if (!files.cert.empty()) {
    const std::vector<uint64_t> chain = EndsIn(files.cert);
    const auto first = std::min_element(chain.begin(), chain.end());
    ends.cert_seconds = first == chain.end() ? 0 : *first;
  }
  if (!files.ca.empty()) {
    const std::vector<uint64_t> trusted = EndsIn(files.ca);
    const auto last = std::max_element(trusted.begin(), trusted.end());
    ends.ca_seconds = last == trusted.end() ? 0 : *last;
  }
  return ends;
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
  const uint64_t ca_end = EndsOfCertificates(files).ca_seconds;
  const auto now = static_cast<uint64_t>(std::time(nullptr));
  if (ca_end != 0 && ca_end < now + kWarnDays * kSecondsADay) {
    warnings.push_back("--tls-ca " + files.ca + ": " +
                       (ca_end < now ? "expired on " : "expires on ") +
                       Rfc3339(ca_end));
  }
  return warnings;
}

}  // namespace sstferry
