// Describes certificates: their names, and why one was rejected. Only tls_*.cc
// include this header.
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

// Returns a BIO that reads `pem`, which must not change while it is read; null
// if memory is short.
BioPtr BioOf(const std::string& pem);

// Returns the subject and the names of a certificate.
PeerIdentity IdentityOf(X509* certificate);

// OpenSSL's reason for rejecting the peer's certificates. Texts are cut and
// escaped, because an unknown peer chose them.
struct VerifyFailure {
  int code = X509_V_OK;
  int depth = 0;            // 0: the peer's own certificate; above: a signer's
  std::string subject;
  std::string issuer;
  std::string names;        // "DNS:a.example, IP:192.0.2.7"
  std::string valid_from;   // "2026-11-21T08:00:00Z"
  std::string valid_until;
};
// A callback for SSL_CTX_set_verify(). Fills the VerifyFailure that was set
// with SSL_set_app_data().
int RememberVerifyFailure(int accepted, X509_STORE_CTX* store);

// Returns for example "the server's certificate (CN=x): expired on ...".
// `whose` is "server" or "client"; `expected_name` is the dialed name;
// `ca_file` has the trusted CAs.
std::string DescribeVerifyFailure(const VerifyFailure& failure,
                                  const std::string& whose,
                                  const std::string& expected_name,
                                  const std::string& ca_file);

// Explains an alert from the peer. Returns false if the alert is not about
// certificates.
bool DescribeAlert(int alert, const std::string& peer_role,
                   const std::string& own_role, const std::string& cert_file,
                   std::string* text);

// Describes a problem of the first certificate of a PEM text: "expired on ...",
// "is not valid before ...", or "expires on ..." if it expires within
// `warn_days`; otherwise "".
std::string ValidityProblem(const std::string& pem, int warn_days);

// Returns the expiry times of all certificates of a PEM text, in seconds since
// 1970, up to the first certificate that cannot be read.
std::vector<uint64_t> EndsIn(const std::string& pem);

}  // namespace sstferry
