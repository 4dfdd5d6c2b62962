// Makes a CA and the certificates of its hosts.
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "format/end_state.h"
#include "pipeline/base/this_machine.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr uint32_t kAuthorityDays = 3650;
constexpr long kSecondsPerDay = 24 * 60 * 60;
// A certificate is valid from an hour before it is made, because the clocks of
// hosts differ.
constexpr long kBeginsEarlierSeconds = 60 * 60;
constexpr size_t kSerialBytes = 16;
constexpr size_t kMaxDnsNameBytes = 253;
constexpr size_t kMaxPemBytes = 64u << 10;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509_EXTENSION* extension) const {
    X509_EXTENSION_free(extension);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using Bio = std::unique_ptr<BIO, Free>;
using Extension = std::unique_ptr<X509_EXTENSION, Free>;

Status NotMade(const std::string& what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return MakeStatus(EndState::kInternal,
                    "make " + what + ": " +
                        (reason != nullptr ? reason : "unknown reason"));
}

// Writes a new file. Fails if the path exists, even as a symbolic link.
Status WriteNew(const std::string& path, const std::string& text, mode_t mode) {
  const Descriptor file = OpenPath(path, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (!file.is_open()) {
    return MakeStatus(
        errno == EEXIST ? EndState::kRefused : EndState::kInternal,
        path + ": " +
            (errno == EEXIST ? "already exists, and is not replaced"
                             : strerror(errno)));
  }
  const ssize_t written = write(file.get(), text.data(), text.size());
  return written == static_cast<ssize_t>(text.size()) &&
                 fchmod(file.get(), mode) == 0 && fsync(file.get()) == 0
             ? Status::OK()
             : MakeStatus(EndState::kInternal,
                          "write " + path + ": " + strerror(errno));
}

Status ReadPem(const std::string& path, std::string* text) {
  const Descriptor file = OpenPath(path, O_RDONLY);
  text->resize(kMaxPemBytes);
  const ssize_t bytes =
      file.is_open() ? read(file.get(), text->data(), text->size()) : -1;
  if (bytes < 0) {
    return MakeStatus(
        EndState::kRefused,
        path + ": " + strerror(errno) + ", but a CA is needed",
        "sstferry cert init " +
            ShellWord(path.substr(0, path.rfind('/'))));
  }
  text->resize(static_cast<size_t>(bytes));
  return Status::OK();
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(bytes)};
}

std::string PemOf(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(bio.get(), certificate) == 1 ? TextOf(bio.get())
                                                         : "";
}

std::string PemOf(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr,
                                  nullptr) == 1
             ? TextOf(bio.get())
             : "";
}

bool AddExtension(X509* certificate, X509* issuer, int kind,
                  const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Gives a certificate a random serial number. Two CAs with the same name then
// use different numbers.
bool SetSerial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return false;
  }
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
  BIGNUM* const number =
      BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr);
  const bool set =
      number != nullptr &&
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

// Makes an unsigned certificate for `key` with the fields that CAs and hosts
// share.
Certificate Begin(const std::string& name, uint32_t days, EVP_PKEY* key) {
  Certificate made(X509_new());
  X509* const x = made.get();
  X509_NAME* const subject = x == nullptr ? nullptr : X509_get_subject_name(x);
  const bool done =
      subject != nullptr && X509_set_version(x, X509_VERSION_3) == 1 &&
      SetSerial(x) &&
      X509_gmtime_adj(X509_getm_notBefore(x), -kBeginsEarlierSeconds) !=
          nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(x),
                      kSecondsPerDay * static_cast<long>(days)) != nullptr &&
      X509_set_pubkey(x, key) == 1 &&
      X509_NAME_add_entry_by_txt(
          subject, "CN", MBSTRING_UTF8,
          reinterpret_cast<const unsigned char*>(name.data()),
          static_cast<int>(name.size()), -1, 0) == 1;
  return done ? std::move(made) : nullptr;
}

// Returns a name for a new CA, so that messages can distinguish several CAs.
// The name has at most 64 characters, the limit for a common name.
std::string AuthorityName() {
  constexpr size_t kMaxHostBytes = 28;
  return "sstferry CA of " + HostName().substr(0, kMaxHostBytes) + " " +
         Rfc3339(static_cast<uint64_t>(std::time(nullptr)));
}

bool IsIp(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// Checks the name of a host. It becomes the name of a directory, and a part of
// a list that commas separate.
Status CheckHost(const std::string& host) {
  constexpr char kAllowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  const bool is_name = !host.empty() && host.size() <= kMaxDnsNameBytes &&
                       host.find_first_not_of(kAllowed) == std::string::npos &&
                       host[0] != '.' && host[0] != '-';
  return is_name || IsIp(host)
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "host: expected a DNS name or an IP address, found "
                          "\"" +
                              host + "\"");
}

}  // namespace

Status MakeCertificateAuthority(const std::string& dir) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return MakeStatus(EndState::kInternal,
                      "make " + dir + ": " + strerror(errno));
  }
  const Key key(EVP_EC_gen("P-256"));
  const Certificate ca = key != nullptr
                             ? Begin(AuthorityName(), kAuthorityDays, key.get())
                             : nullptr;
  X509* const x = ca.get();
  const bool made =
      x != nullptr && X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
      AddExtension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(x, x, NID_subject_key_identifier, "hash") &&
      X509_sign(x, key.get(), EVP_sha256()) > 0;
  if (!made) {
    return NotMade("a CA");
  }
  // Writes the key first. If the certificate existed without its key, the CA
  // would look complete.
  RETURN_IF_ERROR(WriteNew(dir + "/ca.key", PemOf(key.get()), 0600));
  return WriteNew(dir + "/ca.pem", PemOf(x), 0644);
}

Status IssueCertificate(const std::string& dir,
                        const std::vector<std::string>& hosts, uint32_t days,
                        TlsFiles* files, uint64_t* until_seconds) {
  std::string names;
  for (const std::string& host : hosts) {
    RETURN_IF_ERROR(CheckHost(host));
    names += (names.empty() ? "" : ",") +
             std::string(IsIp(host) ? "IP:" : "DNS:") + host;
  }
  if (hosts.empty()) {
    return CheckHost("");
  }
  std::string ca_pem;
  std::string key_pem;
  RETURN_IF_ERROR(ReadPem(dir + "/ca.pem", &ca_pem));
  RETURN_IF_ERROR(ReadPem(dir + "/ca.key", &key_pem));
  const Bio ca_bio(
      BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size())));
  const Bio key_bio(
      BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const Certificate ca(
      PEM_read_bio_X509(ca_bio.get(), nullptr, nullptr, nullptr));
  // The empty passphrase keeps OpenSSL from asking for a passphrase at the
  // terminal.
  char none[] = "";
  const Key ca_key(
      PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, none));
  if (ca == nullptr || ca_key == nullptr ||
      X509_check_private_key(ca.get(), ca_key.get()) != 1) {
    return MakeStatus(EndState::kRefused,
                      dir +
                          ": expected ca.pem and its ca.key, found files "
                          "that do not belong together");
  }
  const Key key(EVP_EC_gen("P-256"));
  const Certificate made =
      key != nullptr ? Begin(hosts[0], days, key.get()) : nullptr;
  X509* const x = made.get();
  const bool issued =
      x != nullptr &&
      X509_set_issuer_name(x, X509_get_subject_name(ca.get())) == 1 &&
      AddExtension(x, ca.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(x, ca.get(), NID_key_usage, "critical,digitalSignature") &&
      AddExtension(x, ca.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
      AddExtension(x, ca.get(), NID_subject_alt_name, names) &&
      AddExtension(x, ca.get(), NID_authority_key_identifier, "keyid") &&
      X509_sign(x, ca_key.get(), EVP_sha256()) > 0;
  std::tm until{};
  if (!issued || ASN1_TIME_to_tm(X509_get0_notAfter(x), &until) != 1) {
    return NotMade("a certificate for " + hosts[0]);
  }
  const std::string out = dir + "/" + hosts[0];
  if (mkdir(out.c_str(), 0700) != 0) {
    return MakeStatus(
        errno == EEXIST ? EndState::kRefused : EndState::kInternal,
        out + ": " + strerror(errno) +
            (errno == EEXIST ? "; move it away to issue another one" : ""));
  }
  *files = {out + "/cert.pem", out + "/key.pem", out + "/ca.pem"};
  *until_seconds = static_cast<uint64_t>(timegm(&until));
  RETURN_IF_ERROR(WriteNew(files->key, PemOf(key.get()), 0600));
  RETURN_IF_ERROR(WriteNew(files->ca, ca_pem, 0644));
  return WriteNew(files->cert, PemOf(x), 0644);
}

}  // namespace sstferry
