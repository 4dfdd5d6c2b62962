#include "pipeline/wire/tls_context.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "format/end_state.h"
#include "pipeline/wire/tls_names.h"
#include "sstferry/options.h"
#include "sstferry/own_file.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// The first cipher suite is preferred. AES-128 is safe enough, and is the
// fastest.
constexpr char kCipherSuites[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
    "TLS_CHACHA20_POLY1305_SHA256";
// Limits for the certificates that a peer sends. The peer is still unknown
// then.
constexpr long kMaxChainBytes = 32 << 10;
constexpr int kMaxChainDepth = 8;
// Maximum number of bytes that OpenSSL reads from the socket at once.
constexpr size_t kReadAheadBytes = 64u << 10;
constexpr int kWarnDays = 14;
constexpr uint64_t kSecondsADay = 86'400;

Status Unusable(const char* option, const std::string& file,
                const std::string& why) {
  return MakeStatus(EndState::kRefused,
                    std::string(option) + " " + file + ": " + why);
}

// Reads the file of an option. OpenSSL itself opens no file.
Status ReadFile(const char* option, const std::string& file,
               std::string* text) {
  const Status status = ReadOwn(file, kAnyAccount, text);
  return status.ok() ? status
                     : MakeStatus(EndState::kRefused,
                                  std::string(option) + " " +
                                      MessageOf(status));
}

// Returns OpenSSL's reason for its last failed call.
std::string Reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : "unknown reason";
}

// OpenSSL calls this function if a key has a passphrase. Returns no passphrase,
// and sets the bool `encrypted`. Without this function, OpenSSL would ask for
// the passphrase at the terminal.
int GiveNoPassphrase(char*, int, int, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return 0;
}

// Reads a private key from a PEM text. Returns null if the text has no usable
// key. If the key has a passphrase, also sets *encrypted.
KeyPtr ReadKey(const std::string& text, bool* encrypted) {
  const BioPtr bio = BioOf(text);
  return KeyPtr(bio == nullptr
                    ? nullptr
                    : PEM_read_bio_PrivateKey(bio.get(), nullptr,
                                              GiveNoPassphrase, encrypted));
}

// Reads the next certificate. Returns null at the end of the text, and also if
// the next certificate is invalid. IsAtEnd() then returns true only at the end.
X509Ptr ReadCertificate(BIO* bio) {
  bool encrypted = false;
  return X509Ptr(
      PEM_read_bio_X509_AUX(bio, nullptr, GiveNoPassphrase, &encrypted));
}

// Returns true if the last ReadCertificate() failed because there was no
// further certificate, and then clears that error.
bool IsAtEnd() {
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM &&
                      ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (at_end) {
    ERR_clear_error();
  }
  return at_end;
}

// Sets the certificates of this side from a PEM text, as
// SSL_CTX_use_certificate_chain_file() does from a file.
bool UseCertificateChain(SSL_CTX* context, const std::string& text) {
  const BioPtr bio = BioOf(text);
  const X509Ptr own = bio == nullptr ? nullptr : ReadCertificate(bio.get());
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1 ||
      SSL_CTX_clear_chain_certs(context) != 1) {
    return false;
  }
  while (X509Ptr next = ReadCertificate(bio.get())) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) != 1) {
      return false;
    }
    next.release();  // `context` owns the certificate now
  }
  return IsAtEnd();
}

// Adds all certificates of a PEM text to the trusted CAs. Returns false if the
// text has no certificate or an invalid one.
bool TrustAll(SSL_CTX* context, const std::string& text) {
  const BioPtr bio = BioOf(text);
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  bool any = false;
  while (bio != nullptr) {
    const X509Ptr next = ReadCertificate(bio.get());
    if (next == nullptr) {
      return any && IsAtEnd();
    }
    if (X509_STORE_add_cert(store, next.get()) != 1) {
      return false;
    }
    any = true;
  }
  return false;
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
                                // Send only the certificates of --tls-cert.
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
  std::string cert;
  std::string key;
  std::string ca;
  RETURN_IF_ERROR(ReadFile("--tls-cert", files_.cert, &cert));
  RETURN_IF_ERROR(ReadFile("--tls-key", files_.key, &key));
  RETURN_IF_ERROR(ReadFile("--tls-ca", files_.ca, &ca));
  SSL_CTX* const context = context_.get();
  if (!UseCertificateChain(context, cert)) {
    const std::string reason = Reason();
    // Checks whether the file contains a private key. OpenSSL only reports that
    // it contains no certificate.
    bool encrypted = false;
    const bool holds_key = ReadKey(cert, &encrypted) != nullptr;
    ERR_clear_error();
    return Unusable("--tls-cert", files_.cert,
                    holds_key ? "expected PEM certificates, found a private "
                                "key; are --tls-cert and --tls-key exchanged?"
                              : "expected PEM certificates: " + reason);
  }
  bool encrypted = false;
  const KeyPtr private_key = ReadKey(key, &encrypted);
  OPENSSL_cleanse(key.data(), key.size());
  if (encrypted) {
    return Unusable("--tls-key", files_.key,
                    "expected a key without a passphrase; keep it in a file "
                    "that only its owner can read");
  }
  const bool loaded =
      private_key != nullptr &&
      SSL_CTX_use_PrivateKey(context, private_key.get()) == 1;
  const bool mismatch =
      !loaded &&
      ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
  if (!loaded && !mismatch) {
    return Unusable("--tls-key", files_.key,
                    "expected a PEM private key: " + Reason());
  }
  if (mismatch || SSL_CTX_check_private_key(context) != 1) {
    return Unusable("--tls-key", files_.key,
                    "is not the key of --tls-cert " + files_.cert +
                        "; the first certificate there must be that of the "
                        "key");
  }
  return TrustAll(context, ca)
             ? Status::OK()
             : Unusable("--tls-ca", files_.ca,
                        "expected PEM certificates: " + Reason());
}

SSL* TlsContext::NewSession() const { return SSL_new(context_.get()); }

namespace {

// Returns the text of a file. Returns an empty text if the file cannot be read;
// LoadFiles() reports that error.
std::string PemTextOf(const std::string& file) {
  std::string text;
  ReadOwn(file, kAnyAccount, &text).PermitUncheckedError();
  return text;
}

}  // namespace

CertificateEnds EndsOfCertificates(const TlsFiles& files) {
  CertificateEnds ends;
  if (!files.cert.empty()) {
    const std::vector<uint64_t> chain = EndsIn(PemTextOf(files.cert));
    const auto first = std::min_element(chain.begin(), chain.end());
    ends.cert_seconds = first == chain.end() ? 0 : *first;
  }
  if (!files.ca.empty()) {
    const std::vector<uint64_t> trusted = EndsIn(PemTextOf(files.ca));
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
      files.cert.empty() ? ""
                         : ValidityProblem(PemTextOf(files.cert), kWarnDays);
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
