// Seals data in a bucket that is not trusted. The files of a set and the
// payloads of a log are encrypted; the set's record and the log's heads are
// authenticated. Both use one key that the store never receives. The byte
// layout: format/FORMAT.md, "Archive".
//
// The store still learns what a listing shows: how many files of which sizes
// there are, and which are reused. It also learns what a record or a head
// contains besides digests: names of column families, host, label, notes, ids,
// times. It can lose or withhold a set, or the end of a log; it cannot change
// or forge one.
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

// A key that seals sets and log segments.
//
// Threads: any; immutable.
class SealKey {
 public:
  using Bytes = std::array<uint8_t, 32>;

  explicit SealKey(const Bytes& bytes);
  // Reads a key file: 64 hex digits, and an optional newline.
  //   kRefused  not a key file, or accounts other than this one and root can
  //             read or change it
  [[nodiscard]] static rocksdb::Status Read(const std::string& path,
                                            std::shared_ptr<SealKey>* key);

  const SealKeyId& id() const { return id_; }
  // Turns the record of a set whose files are sealed with this key into a
  // sealed set's record.
  void Seal(ArchiveSet* set) const;
  // Reverses Seal() of a record: its unit digests become those of the plain
  // files.
  //   kCorrupt  the record is not sealed with this key, or was changed
  [[nodiscard]] rocksdb::Status Unseal(ArchiveSet* set) const;
  // Seals a segment of a log: replaces *payload by the object's bytes, and
  // completes the head, in which only the payload's digest was missing.
  void Seal(LogHead* head, std::string* payload) const;
  // Checks that Seal() made the head. Returns kCorrupt as Unseal() does.
  [[nodiscard]] rocksdb::Status Check(const LogHead& head) const;

 private:
  friend class ChunkSealer;
  // Derives the key for the use that `label` names.
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
  // Appends a sealed chunk and its tag.
  void Seal(uint64_t number, const rocksdb::Slice& plain, std::string* out);
  // Decrypts a chunk. kCorrupt: it is not what Seal() made for that number.
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
// Parses a head. Returns false for other bytes.
[[nodiscard]] bool ParseSealHead(const rocksdb::Slice& head, SealKeyId* id,
                                 SealSalt* salt);

// Returns the sealed object of a file; the file is sealed while the object is
// read. The pieces are those of the sealed object; the unit digests are those
// of the plain file. If a chunk is read again, its bytes must be the same: two
// plain texts must never be encrypted with the same key and chunk number.
std::unique_ptr<SetFile> SealFileOf(const SealKey& key, const SealSalt& salt,
                                    const std::string& object_key,
                                    const CloneFile& file, uint64_t unit_bytes,
                                    std::unique_ptr<SetFile> plain);

// Sealed bytes in an object: a file, or the payload of a segment.
struct SealedObject {
  std::string key;
  SealSalt salt{};
  uint64_t bytes = 0;               // before sealing
  uint64_t begin = kSealHeadBytes;  // offset of the first chunk in the object
};
SealedObject SealedObjectOf(const ArchivedFile& file);

// Passes a range of a sealed object's plain bytes to `sink`. kDamaged: the
// object differs from what was sealed.
StoreResult GetSealed(ObjectStore* store, const SealKey& key,
                      const SealedObject& object, uint64_t offset,
                      uint64_t bytes, const ObjectSink& sink);

}  // namespace sstferry
