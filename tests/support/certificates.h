// Certificates for tests, made by OpenSSL's library when they are needed.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "sstferry/transport.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {

struct CertificateSpec {
  std::string common_name;
  std::vector<std::string> alt_names{};  // "DNS:localhost", "IP:127.0.0.1"
  long valid_from_seconds = -3600;     // from now
  long valid_until_seconds = 30 * 86400;
  std::string usage{};  // "serverAuth", "clientAuth"; empty: any
};

// A CA that signs certificates. All its files are in `directory`.
class TestCa {
 public:
  TestCa(const std::string& directory, const std::string& name);
  // Issues a certificate with a new key; `ca` of the result is this CA's file.
  TlsFiles Issue(const CertificateSpec& spec) const;
  const std::string& file() const { return file_; }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;
  Certificate Make(const CertificateSpec& spec, EVP_PKEY* key,
                   bool is_ca) const;

  const std::string directory_;
  const std::string file_;
  Key key_;
  Certificate certificate_;
};

// Writes the same private key, encrypted with a passphrase.
void WriteEncryptedKey(const std::string& key_file,
                       const std::string& encrypted_file);

// A CA, a valid server certificate for 127.0.0.1 and localhost, and a valid
// client certificate. GoodPki() makes them once, for all tests of a program.
struct TestPki {
  ScratchDir directory;
  TestCa ca{directory.path(), "Test CA"};
  TlsFiles server = ca.Issue(
      {"source", {"DNS:localhost", "IP:127.0.0.1"}, -3600, 30 * 86400,
       "serverAuth"});
  TlsFiles client = ca.Issue(
      {"target", {"DNS:target.example"}, -3600, 30 * 86400, "clientAuth"});
};
const TestPki& GoodPki();

}  // namespace sstferry
