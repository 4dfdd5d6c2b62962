// Describes certificates: their names, and why one was not accepted. Only
// tls_*.cc include this.
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

// Reads `pem`, which must stay as it is; null if memory is short.
BioPtr BioOf(const std::string& pem);

// Returns the subject and the names of a certificate.
PeerIdentity IdentityOf(X509* certificate);

// OpenSSL's objection to the other side's certificates. Texts are cut and
// escaped, because an unknown peer wrote them.
struct VerifyFailure {
  int code = X509_V_OK;
  int depth = 0;            // 0: its own certificate; above: one that signed
  std::string subject;
  std::string issuer;
  std::string names;        // "DNS:a.example, IP:192.0.2.7"
  std::string valid_from;   // "2026-11-21T08:00:00Z"
  std::string valid_until;
};
// For SSL_CTX_set_verify(): fills the VerifyFailure that SSL_set_app_data()
// has set.
int RememberVerifyFailure(int accepted, X509_STORE_CTX* store);

// "the server's certificate (CN=x): expired on ...". `whose` is "server" or
// "client"; `expected_name` is the dialed name; `ca_file` the trusted CAs.
std::string DescribeVerifyFailure(const VerifyFailure& failure,
                                  const std::string& whose,
                                  const std::string& expected_name,
                                  const std::string& ca_file);

// Explains an alert of the other side. Returns false if it says nothing about
// identities.
bool DescribeAlert(int alert, const std::string& peer_role,
                   const std::string& own_role, const std::string& cert_file,
                   std::string* text);

// Returns "expired on ...", "is not valid before ...", or "expires on ..." if
// the first certificate of a PEM text ends in less than `warn_days`; ""
// otherwise.
std::string ValidityProblem(const std::string& pem, int warn_days);

// Returns the ends of all certificates of a PEM text, in seconds since 1970, up
// to the first one that cannot be read.
std::vector<uint64_t> EndsIn(const std::string& pem);

}  // namespace sstferry
