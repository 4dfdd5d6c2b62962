#include "pipeline/base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

namespace sstferry {
namespace {

// Aborts if an OpenSSL call failed, which happens only if memory runs out.
void MustWork(bool worked) {
  if (!worked) {
    std::abort();
  }
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  MustWork(context_ != nullptr &&
           EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Update(const rocksdb::Slice& bytes) {
  MustWork(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  MustWork(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  return digest;
}

Sha256Digest Sha256Of(const rocksdb::Slice& bytes) {
  Sha256 sha256;
  sha256.Update(bytes);
  return sha256.Finish();
}

Sha256Digest HmacSha256(const rocksdb::Slice& key,
                        const rocksdb::Slice& bytes) {
  Sha256Digest digest;
  MustWork(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                reinterpret_cast<const unsigned char*>(bytes.data()),
                bytes.size(), digest.data(), nullptr) != nullptr);
  return digest;
}


std::string ToHex(const Sha256Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace sstferry
