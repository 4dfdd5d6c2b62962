// Certificates in words: whose they are, and why one was not accepted. Only
// tls_*.cc include this.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "sstferry/transport.h"

namespace sstferry {

// The subject and the names of a certificate, as PeerIdentity has them.
PeerIdentity IdentityOf(X509* certificate);

// What OpenSSL found wrong with the other side's certificates. Texts are cut
// and escaped: they are a stranger's.
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
// "client"; `expected_name` is what was dialed; `ca_file` what had to sign.
std::string DescribeVerifyFailure(const VerifyFailure& failure,
                                  const std::string& whose,
                                  const std::string& expected_name,
                                  const std::string& ca_file);

// What the other side's TLS alert means for whoever gets it. False: it says
// nothing about identities.
bool DescribeAlert(int alert, const std::string& peer_role,
                   const std::string& own_role, const std::string& cert_file,
                   std::string* text);

// "expired on ...", "is not valid before ...", "expires on ..." when that is
// less than `warn_days` away; "" otherwise.
std::string ValidityProblem(const std::string& cert_file, int warn_days);

}  // namespace sstferry
