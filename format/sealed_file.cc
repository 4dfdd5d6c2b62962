#include "format/sealed_file.h"

#include <cstring>

#include "format/coding.h"
#include "format/digest.h"
#include "format/end_state.h"
#include "format/hex.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kSealOffset = 16;

uint64_t DigestOf(const char* header, const Slice& payload) {
  return Digest64(payload, Digest64(Slice(header, kSealOffset)));
}

}  // namespace

void SealFile(const char* magic, const Slice& payload, std::string* out) {
  std::string header(magic, 8);
  PutFixed32(&header, static_cast<uint32_t>(payload.size()));
  PutFixed32(&header, 0);
  PutFixed64(&header, DigestOf(header.data(), payload));
  out->append(header);
  out->append(payload.data(), payload.size());
}

Status UnsealFile(const char* name, const char* magic,
                  uint64_t max_payload_bytes, const Slice& file,
                  Slice* payload) {
  const auto bad = [name](const std::string& what) {
    return MakeStatus(EndState::kCorrupt, std::string(name) + ": " + what);
  };
  if (file.size() < kSealedHeaderBytes) {
    return bad("expected at least " + std::to_string(kSealedHeaderBytes) +
               " bytes, found " + std::to_string(file.size()));
  }
  if (memcmp(file.data(), magic, 8) != 0) {
    return bad("magic: expected " + std::string(magic, 8) + ", found " +
               ToHex(Slice(file.data(), 8)));
  }
  const uint32_t payload_bytes = DecodeFixed32(file.data() + 8);
  if (payload_bytes > max_payload_bytes ||
      payload_bytes != file.size() - kSealedHeaderBytes) {
    return bad("payload_bytes: expected " +
               std::to_string(file.size() - kSealedHeaderBytes) + ", found " +
               std::to_string(payload_bytes));
  }
  if (DecodeFixed32(file.data() + 12) != 0) {
    return bad("reserved: expected 0, found another value");
  }
  *payload = Slice(file.data() + kSealedHeaderBytes, payload_bytes);
  if (DecodeFixed64(file.data() + kSealOffset) !=
      DigestOf(file.data(), *payload)) {
    return bad("digest: expected the digest of the payload, found another one");
  }
  return Status::OK();
}

}  // namespace sstferry
