// Seals data for a bucket that is not trusted: encrypts the files of sets and
// the payloads of logs, and authenticates the records of sets and the heads of
// logs. All of this uses one key, which the store never receives.
// format/FORMAT.md defines the bytes in its section "Archive".
//
// The store still learns what a listing shows: the number and the sizes of the
// files, and which files are reused. It also learns the content of a record or
// a head except digests: names of column families, host, label, notes, ids and
// times. The store can lose or withhold a set, or the end of a log. It cannot
// change or forge a set or a log.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/archive_log.h"
#include "format/archive_set.h"
#include "pipeline/archive/set_source.h"
#include "pipeline/archive/store.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

struct evp_cipher_ctx_st;

namespace sstferry {

// A key that seals sets and the segments of logs.
//
// Threads: any; immutable.
class SealKey {
 public:
  using Bytes = std::array<uint8_t, 32>;

  explicit SealKey(const Bytes& bytes);
  // Reads a key file, which contains 64 hex digits and an optional newline.
  //   kRefused  the file is no key file, or accounts other than this account
  //             and root can read or change it
  [[nodiscard]] static rocksdb::Status Read(const std::string& path,
                                            std::shared_ptr<SealKey>* key);

  const SealKeyId& id() const { return id_; }
  // Seals the record of a set. REQUIRES: the files of the set are sealed with
  // this key.
  void Seal(ArchiveSet* set) const;
  // Reverses Seal(): checks the record, and decrypts its unit digests, which
  // are those of the plain files.
  //   kRefused  the record is not sealed with this key
  //   kCorrupt  the record was changed after it was sealed
  [[nodiscard]] rocksdb::Status Unseal(ArchiveSet* set) const;
  // Seals a segment of a log. Replaces *payload by the encrypted payload, and
  // completes *head. REQUIRES: *head is complete except for the digest of the
  // payload.
  void Seal(LogHead* head, std::string* payload) const;
  // Checks that Seal() with this key made the head. Returns kCorrupt if it did
  // not.
  [[nodiscard]] rocksdb::Status Check(const LogHead& head) const;

 private:
  friend class ChunkSealer;
  // Derives another key for the use that `label` and `of` name.
  Sha256Digest Derive(const char* label, const std::string& of) const;
  void CryptUnits(ArchivedFile* file, bool encrypt) const;
  Sha256Digest SealOf(LogHead head) const;

  const Bytes bytes_;
  SealKeyId id_{};
};

// Encrypts and decrypts the chunks of one object. Threads: one.
class ChunkSealer {
 public:
  ChunkSealer(const SealKey& key, const SealSalt& salt,
              const std::string& object_key, uint64_t file_bytes);
  // Encrypts a chunk, and appends it and its tag to *out.
  void Seal(uint64_t number, const rocksdb::Slice& plain, std::string* out);
  // Decrypts the chunk with this number. kCorrupt: Seal() did not make `sealed`
  // for this number.
  [[nodiscard]] rocksdb::Status Unseal(uint64_t number,
                                       const rocksdb::Slice& sealed,
                                       std::string* plain);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  const Sha256Digest key_;
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
};

SealSalt RandomSealSalt();
std::string SealHead(const SealKeyId& id, const SealSalt& salt);
// Parses the head of a sealed object. Returns false if the bytes are no such
// head.
[[nodiscard]] bool ParseSealHead(const rocksdb::Slice& head, SealKeyId* id,
                                 SealSalt* salt);

// Returns the sealed object of a file, and seals the file while the object is
// read. The digests of pieces are those of the sealed object, but the unit
// digests are those of the plain file. If the bytes of a chunk changed before
// the chunk is read again, the read fails: two plain texts must never be
// encrypted with the same key and chunk number.
std::unique_ptr<SetFile> SealFileOf(const SealKey& key, const SealSalt& salt,
                                    const std::string& object_key,
                                    const CloneFile& file, uint64_t unit_bytes,
                                    std::unique_ptr<SetFile> plain);

// The sealed bytes in an object: a file of a set, or the payload of a segment.
struct SealedObject {
  std::string key;
  SealSalt salt{};
  uint64_t bytes = 0;               // size before sealing
  uint64_t begin = kSealHeadBytes;  // offset of the first chunk in the object
};
SealedObject SealedObjectOf(const ArchivedFile& file);

// Decrypts a range of a sealed object, and passes the plain bytes to `sink`.
// kDamaged: the object is not what was sealed.
StoreResult GetSealed(ObjectStore* store, const SealKey& key,
                      const SealedObject& object, uint64_t offset,
                      uint64_t bytes, const ObjectSink& sink);

}  // namespace sstferry
