#include "tests/support/certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>

#include "tests/support/catch.h"

namespace sstferry {
namespace {

std::atomic<long> g_serial{1};

FILE* OpenPrivate(const std::string& path) {
  FILE* const file = fopen(path.c_str(), "w");
  REQUIRE(file != nullptr);
  REQUIRE(fchmod(fileno(file), 0600) == 0);
  return file;
}

void WriteCertificate(const std::string& path, X509* certificate) {
  FILE* const file = OpenPrivate(path);
  REQUIRE(PEM_write_X509(file, certificate) == 1);
  fclose(file);
}

void WriteKey(const std::string& path, EVP_PKEY* key, const char* passphrase) {
  FILE* const file = OpenPrivate(path);
  REQUIRE(PEM_write_PrivateKey(
              file, key, passphrase != nullptr ? EVP_aes_256_cbc() : nullptr,
              nullptr, 0, nullptr, const_cast<char*>(passphrase)) == 1);
  fclose(file);
}

void AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  REQUIRE(extension != nullptr);
  REQUIRE(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TestCa::TestCa(const std::string& directory, const std::string& name)
    : directory_(directory),
      file_(directory + "/ca-" + std::to_string(g_serial++) + ".pem"),
      key_(EVP_EC_gen("P-256")) {
  REQUIRE(key_ != nullptr);
  CertificateSpec spec;
  spec.common_name = name;
  certificate_ = Make(spec, key_.get(), true);
  WriteCertificate(file_, certificate_.get());
}

TestCa::Certificate TestCa::Make(const CertificateSpec& spec, EVP_PKEY* key,
                                 bool is_ca) const {
  Certificate made(X509_new());
  X509* const x = made.get();
  REQUIRE(x != nullptr);
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), g_serial++);
  X509_gmtime_adj(X509_getm_notBefore(x), spec.valid_from_seconds);
  X509_gmtime_adj(X509_getm_notAfter(x), spec.valid_until_seconds);
  X509_set_pubkey(x, key);
  X509_NAME* const subject = X509_get_subject_name(x);
  REQUIRE(X509_NAME_add_entry_by_txt(
              subject, "CN", MBSTRING_UTF8,
              reinterpret_cast<const unsigned char*>(spec.common_name.data()),
              static_cast<int>(spec.common_name.size()), -1, 0) == 1);
  X509_set_issuer_name(
      x, is_ca ? subject : X509_get_subject_name(certificate_.get()));
  AddExtension(x, NID_basic_constraints,
               is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (is_ca) {
    AddExtension(x, NID_key_usage, "critical,keyCertSign");
  }
  if (!spec.usage.empty()) {
    AddExtension(x, NID_ext_key_usage, spec.usage);
  }
  std::string names;
  for (const std::string& name : spec.alt_names) {
    names += (names.empty() ? "" : ",") + name;
  }
  if (!names.empty()) {
    AddExtension(x, NID_subject_alt_name, names);
  }
  REQUIRE(X509_sign(x, key_.get(), EVP_sha256()) > 0);
  return made;
}

TlsFiles TestCa::Issue(const CertificateSpec& spec) const {
  const std::string stem =
      directory_ + "/" + std::to_string(g_serial++) + "-";
  const Key key(EVP_EC_gen("P-256"));
  REQUIRE(key != nullptr);
  const Certificate certificate = Make(spec, key.get(), false);
  const TlsFiles files{stem + "cert.pem", stem + "key.pem", file_};
  WriteCertificate(files.cert, certificate.get());
  WriteKey(files.key, key.get(), nullptr);
  return files;
}

void WriteEncryptedKey(const std::string& key_file,
                       const std::string& encrypted_file) {
  FILE* const file = fopen(key_file.c_str(), "r");
  REQUIRE(file != nullptr);
  EVP_PKEY* const key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  fclose(file);
  REQUIRE(key != nullptr);
  WriteKey(encrypted_file, key, "secret");
  EVP_PKEY_free(key);
}

const TestPki& GoodPki() {
  static const TestPki pki;
  return pki;
}

}  // namespace sstferry
