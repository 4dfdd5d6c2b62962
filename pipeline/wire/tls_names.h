// Describes certificates: the names in them, and why OpenSSL rejected one. Only
// tls_*.cc include this header.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sstferry/transport.h"

namespace sstferry {

template <auto kFree>
struct Freer {
  template <typename Object>
  void operator()(Object* object) const {
    kFree(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

// Returns a BIO (OpenSSL's byte stream) that reads the text `pem`. The text
// must outlive the BIO. Returns null if there is no memory.
BioPtr BioOf(const std::string& pem);

// Returns the subject of a certificate, and its common and alternative names.
PeerIdentity IdentityOf(X509* certificate);

// The reason why OpenSSL rejected a certificate of the peer. Long texts are cut
// and control characters are escaped, because an unknown peer chose the texts.
struct VerifyFailure {
  int code = X509_V_OK;
  int depth = 0;            // 0: the peer's certificate; 1 and up: its CAs
  std::string subject;
  std::string issuer;
  std::string names;        // "DNS:a.example, IP:192.0.2.7"
  std::string valid_from;   // "2026-11-21T08:00:00Z"
  std::string valid_until;
};
// The function for SSL_CTX_set_verify(). If OpenSSL rejects a certificate,
// fills the VerifyFailure that was passed to SSL_set_app_data().
int RememberVerifyFailure(int accepted, X509_STORE_CTX* store);

// Describes why a certificate was rejected, for example "the server's
// certificate (CN=x) expired on 2026-11-21T08:00:00Z". `whose` is "server" or
// "client". `expected_name` is the dialed host. `ca_file` is the file with the
// trusted CAs.
std::string DescribeVerifyFailure(const VerifyFailure& failure,
                                  const std::string& whose,
                                  const std::string& expected_name,
                                  const std::string& ca_file);

// Explains an alert that the peer has sent. Returns false if the alert is
// neither about certificates nor about the version of TLS.
bool DescribeAlert(int alert, const std::string& peer_role,
                   const std::string& own_role, const std::string& cert_file,
                   std::string* text);

// Describes a problem with the first certificate of a PEM text: "expired on
// ...", "is not valid before ...", or "expires on ..." if it will expire within
// `warn_days` days. Returns "" if there is no problem.
std::string ValidityProblem(const std::string& pem, int warn_days);

// Returns the times at which the certificates of a PEM text expire, in seconds
// since 1970. Stops at the first certificate that cannot be read.
std::vector<uint64_t> EndsIn(const std::string& pem);

}  // namespace sstferry
