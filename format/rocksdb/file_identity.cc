#include "format/rocksdb/file_identity.h"

#include "format/coding.h"
#include "format/xxh.h"

namespace sstferry {
namespace {

// First byte of the digested text. Identities of different kinds have different
// first bytes, so they differ.
enum class Known : uint8_t {
  kUniqueId = 1,
  kOrigin = 2,
  kBlob = 3,
  kDescription = 4,
};

void PutDigest(std::string* out, const Digest128& digest) {
  PutFixed64(out, digest.low);
  PutFixed64(out, digest.high);
}

// A session id consists of two numbers in base 36. The second number has 12
// digits and 62 bits. Both numbers together have 128 bits.
constexpr size_t kLowDigits = 12;
constexpr int kLowBits = 62;
constexpr uint64_t kLowMask = (uint64_t{1} << kLowBits) - 1;

// Parses at most 12 base-36 digits. Returns false for other text.
bool ParseDigits(const std::string& digits, uint64_t* value) {
  *value = 0;
  for (const char c : digits) {
    const bool is_letter = c >= 'A' && c <= 'Z';
    if (!is_letter && (c < '0' || c > '9')) {
      return false;
    }
    *value = *value * 36 + static_cast<uint64_t>(is_letter ? c - 'A' + 10
                                                           : c - '0');
  }
  return !digits.empty() && digits.size() <= kLowDigits;
}

// Computes the unique id as RocksDB does (table/unique_id.cc): one half is the
// low half of the session id, unchanged; the other half combines the session
// id's high half and the hashed database id with the file number.
bool UniqueIdOf(const TableOrigin& origin, Digest128* id) {
  const std::string& session = origin.session_id;
  if (session.size() <= kLowDigits || origin.database_id.empty() ||
      origin.number == 0) {
    return false;
  }
  const size_t split = session.size() - kLowDigits;
  uint64_t first = 0;
  uint64_t second = 0;
  if (!ParseDigits(session.substr(0, split), &first) ||
      !ParseDigits(session.substr(split), &second)) {
    return false;
  }
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(origin.database_id.data(),
                            origin.database_id.size(), first >> 2);
  id->high = (second & kLowMask) | (first << kLowBits);
  id->low = hash.high64 ^ origin.number;
  return true;
}

bool FindIdentity(const std::map<uint64_t, Digest128>& identities,
                  uint64_t number, Digest128* identity) {
  const auto found = identities.find(number);
  *identity = found == identities.end() ? Digest128() : found->second;
  return !(*identity == Digest128());
}

}  // namespace

Digest128 TableIdentity(const ManifestFile& file, const TableOrigin& origin,
                        bool* is_weak) {
  std::string text;
  *is_weak = false;
  if (file.has_unique_id) {
    PutFixed8(&text, static_cast<uint8_t>(Known::kUniqueId));
    PutDigest(&text, file.unique_id);
  } else if (!origin.session_id.empty() && origin.number != 0) {
    PutFixed8(&text, static_cast<uint8_t>(Known::kOrigin));
    PutBytes(&text, origin.database_id);
    PutBytes(&text, origin.session_id);
    PutFixed64(&text, origin.number);
  } else {
    *is_weak = true;
    PutFixed8(&text, static_cast<uint8_t>(Known::kDescription));
    // A newer RocksDB that opens the database writes the name of a function
    // even if there is no checksum. So the name is used only with a checksum.
    PutBytes(&text, file.checksum.empty() ? "" : file.checksum_function);
    PutBytes(&text, file.checksum);
    PutDigest(&text, origin.properties);
    PutBytes(&text, file.smallest);
    PutBytes(&text, file.largest);
  }
  PutFixed64(&text, file.bytes);
  PutFixed64(&text, file.smallest_sequence);
  PutFixed64(&text, file.largest_sequence);
  PutFixed64(&text, file.creation_time);
  return DigestOf(text);
}

bool MayBeFile(const ManifestFile& file, const TableOrigin& origin) {
  Digest128 id;
  return !file.has_unique_id || !UniqueIdOf(origin, &id) ||
         id == file.unique_id;
}

Digest128 BlobIdentity(const ManifestBlobFile& file, uint64_t modified_ns,
                       bool* is_weak) {
  constexpr uint64_t kSecond = 1'000'000'000;
  *is_weak = modified_ns != 0 && modified_ns % kSecond == 0;
  if (modified_ns == 0) {
    return Digest128();
  }
  std::string text;
  PutFixed8(&text, static_cast<uint8_t>(Known::kBlob));
  PutFixed64(&text, file.number);
  PutFixed64(&text, file.total_count);
  PutFixed64(&text, file.total_bytes);
  PutFixed64(&text, modified_ns);
  return DigestOf(text);
}

bool AddContent(const ManifestState& state,
                const std::map<uint64_t, Digest128>& identities,
                Digest128Stream* content) {
  bool all_known = true;
  Digest128 identity;
  std::string text;
  for (const auto& [id, family] : state.families) {
    text.clear();
    PutFixed32(&text, id);
    PutBytes(&text, family.name);
    PutBytes(&text, family.comparator);
    PutFixed8(&text, family.persists_timestamps ? 1 : 0);
    PutBytes(&text, family.full_history_ts_low);
    PutFixed64(&text, family.files.size());
    PutFixed64(&text, family.blobs.size());
    for (const auto& [number, file] : family.files) {
      all_known &= FindIdentity(identities, number, &identity);
      PutFixed64(&text, number);
      PutFixed32(&text, static_cast<uint32_t>(file.level));
      PutFixed64(&text, file.epoch);
      PutDigest(&text, identity);
    }
    for (const auto& [number, blob] : family.blobs) {
      all_known &= FindIdentity(identities, number, &identity);
      PutFixed64(&text, number);
      PutFixed64(&text, blob.garbage_count);
      PutFixed64(&text, blob.garbage_bytes);
      PutDigest(&text, identity);
    }
    content->Add(text);
  }
  return all_known;
}

}  // namespace sstferry
