#include "pipeline/wire/tls_names.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <memory>

namespace sstferry {
namespace {

// Maximum number of bytes of a name in log lines. An unknown peer chooses the
// name.
constexpr size_t kMaxTextBytes = 200;

using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;

std::string Cut(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 ||
        static_cast<unsigned char>(c) > 0x7e) {
      c = '?';
    }
  }
  if (text.size() > kMaxTextBytes) {
    text = text.substr(0, kMaxTextBytes) + "...";
  }
  return text;
}

// Returns a name in RFC 2253 form, with control characters and non-ASCII
// characters escaped.
std::string NameText(const X509_NAME* name) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (name == nullptr || bio == nullptr ||
      X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) {
    return "";
  }
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &data);
  return bytes > 0 ? std::string(data, static_cast<size_t>(bytes)) : "";
}

std::string TimeText(const ASN1_TIME* time) {
  tm parts{};
  std::array<char, 40> text{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1 ||
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts) ==
          0) {
    return "an unreadable time";
  }
  return text.data();
}

std::string StringBytes(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int bytes = ASN1_STRING_length(address);
  if ((bytes != 4 && bytes != 16) ||
      inet_ntop(bytes == 4 ? AF_INET : AF_INET6,
                ASN1_STRING_get0_data(address), text.data(),
                text.size()) == nullptr) {
    return "";
  }
  return text.data();
}

struct AltName {
  const char* kind;  // for example "DNS"
  std::string text;
};

std::vector<AltName> AltNames(const X509* certificate) {
  std::vector<AltName> found;
  const NamesPtr names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
      certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get());
       ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    switch (name->type) {
      case GEN_DNS:
        found.push_back({"DNS", StringBytes(name->d.dNSName)});
        break;
      case GEN_URI:
        found.push_back(
            {"URI", StringBytes(name->d.uniformResourceIdentifier)});
        break;
      case GEN_EMAIL:
        found.push_back({"email", StringBytes(name->d.rfc822Name)});
        break;
      case GEN_IPADD:
        found.push_back({"IP", AddressText(name->d.iPAddress)});
        break;
      default:
        break;
    }
  }
  return found;
}

// Returns the hosts for which a server's certificate is valid.
std::string HostNames(const X509* certificate) {
  std::string text;
  for (const AltName& name : AltNames(certificate)) {
    const std::string kind = name.kind;
    if (kind == "DNS" || kind == "IP") {
      text += (text.empty() ? "" : ", ") + kind + ":" + name.text;
    }
  }
  return Cut(text);
}

bool IsUnknownSigner(int code) {
  switch (code) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
    case X509_V_ERR_INVALID_CA:
      return true;
    default:
      return false;
  }
}

}  // namespace

BioPtr BioOf(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

PeerIdentity IdentityOf(X509* certificate) {
  PeerIdentity identity;
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  identity.subject = Cut(NameText(subject));
  int at = -1;
  while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0) {
    unsigned char* utf8 = nullptr;
    const int bytes = ASN1_STRING_to_UTF8(
        &utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (bytes > 0) {
      identity.names.emplace_back(reinterpret_cast<char*>(utf8),
                                  static_cast<size_t>(bytes));
    }
    OPENSSL_free(utf8);
  }
  for (AltName& name : AltNames(certificate)) {
    identity.names.push_back(std::move(name.text));
  }
  return identity;
}

int RememberVerifyFailure(int accepted, X509_STORE_CTX* store) {
  if (accepted == 1) {
    return 1;
  }
  const auto* const ssl = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(
      store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const failure = static_cast<VerifyFailure*>(SSL_get_app_data(ssl));
  if (failure == nullptr || failure->code != X509_V_OK) {
    return 0;
  }
  failure->code = X509_STORE_CTX_get_error(store);
  failure->depth = X509_STORE_CTX_get_error_depth(store);
  const X509* const certificate = X509_STORE_CTX_get_current_cert(store);
  if (certificate != nullptr) {
    failure->subject = Cut(NameText(X509_get_subject_name(certificate)));
    failure->issuer = Cut(NameText(X509_get_issuer_name(certificate)));
    failure->names = HostNames(certificate);
    failure->valid_from = TimeText(X509_get0_notBefore(certificate));
    failure->valid_until = TimeText(X509_get0_notAfter(certificate));
  }
  return 0;
}

std::string DescribeVerifyFailure(const VerifyFailure& failure,
                                  const std::string& whose,
                                  const std::string& expected_name,
                                  const std::string& ca_file) {
  const std::string text =
      (failure.depth == 0 ? "the " + whose + "'s certificate ("
                          : "a certificate that signed the " + whose +
                                "'s (") +
      failure.subject + ") ";
  if (IsUnknownSigner(failure.code)) {
    return text + "is not signed by a CA of --tls-ca " + ca_file +
           ": found issuer " + failure.issuer;
  }
  switch (failure.code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return text + "expired on " + failure.valid_until;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return text + "is not valid before " + failure.valid_from +
             "; are both clocks right?";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return text + "is for another name: expected " + expected_name +
             ", found " +
             (failure.names.empty() ? "no DNS or IP name" : failure.names);
    case X509_V_ERR_INVALID_PURPOSE:
      return text + "may not be used by a " + whose +
             " (its extended key usage)";
    default:
      return text + "is not accepted: " +
             X509_verify_cert_error_string(failure.code);
  }
}

bool DescribeAlert(int alert, const std::string& peer_role,
                   const std::string& own_role, const std::string& cert_file,
                   std::string* text) {
  const std::string refused = "the " + peer_role + " did not accept this " +
                              own_role + "'s certificate (--tls-cert " +
                              cert_file + "): ";
  switch (alert) {
    case SSL_AD_UNKNOWN_CA:
      *text = refused + "it does not trust the CA that signed it";
      return true;
    case SSL_AD_DECRYPT_ERROR:
      *text = refused +
              "its signature is wrong; was it signed by another CA of "
              "the same name?";
      return true;
    case SSL_AD_CERTIFICATE_EXPIRED:
      *text = refused + "it has expired";
      return true;
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
      *text = refused + "it may not be used by a " + own_role +
              ", which needs " +
              (own_role == "client" ? "clientAuth" : "serverAuth") +
              " in its extended key usage; sstferry cert issue makes "
              "certificates for both sides";
      return true;
    case SSL_AD_BAD_CERTIFICATE:
      *text = refused + (own_role == "server"
                             ? "bad certificate; does it name the host that "
                               "was dialed?"
                             : "bad certificate");
      return true;
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
      *text = refused + SSL_alert_desc_string_long(alert);
      return true;
    case SSL_AD_PROTOCOL_VERSION:
    case SSL_AD_HANDSHAKE_FAILURE:
      *text = "the " + peer_role + " cannot agree on TLS 1.3 with this side: " +
              SSL_alert_desc_string_long(alert);
      return true;
    default:
      return false;
  }
}

std::vector<uint64_t> EndsIn(const std::string& pem) {
  std::vector<uint64_t> ends;
  const BioPtr bio = BioOf(pem);
  while (bio != nullptr) {
    const X509Ptr certificate(
        PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) {
      break;
    }
    std::tm until{};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &until) == 1) {
      ends.push_back(static_cast<uint64_t>(
          std::max<time_t>(timegm(&until), 0)));
    }
  }
  ERR_clear_error();
  return ends;
}

std::string ValidityProblem(const std::string& pem, int warn_days) {
  const BioPtr bio = BioOf(pem);
  const X509Ptr certificate(
      bio == nullptr ? nullptr
                     : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    ERR_clear_error();
    return "";
  }
  const ASN1_TIME* const from = X509_get0_notBefore(certificate.get());
  const ASN1_TIME* const until = X509_get0_notAfter(certificate.get());
  if (X509_cmp_current_time(from) > 0) {
    return "is not valid before " + TimeText(from);
  }
  if (X509_cmp_current_time(until) < 0) {
    return "expired on " + TimeText(until);
  }
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, until) == 1 &&
      days < warn_days) {
    return "expires on " + TimeText(until);
  }
  return "";
}

}  // namespace sstferry
