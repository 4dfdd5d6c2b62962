// Computes SHA-256 digests. Object stores check uploaded bytes with them.
#pragma once

#include <memory>
#include <string>

#include "format/digest.h"
#include "rocksdb/slice.h"

struct evp_md_ctx_st;

namespace sstferry {

// Computes a SHA-256. Threads: one.
class Sha256 {
 public:
  Sha256();
  void Update(const rocksdb::Slice& bytes);
  // Returns the digest of all added bytes. May be called once.
  Sha256Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

Sha256Digest Sha256Of(const rocksdb::Slice& bytes);
Sha256Digest HmacSha256(const rocksdb::Slice& key, const rocksdb::Slice& bytes);

// Returns the lower-case hex digits of a digest.
std::string ToHex(const Sha256Digest& digest);

}  // namespace sstferry
