// Seals what a bucket that is not trusted holds: the files of a set and the
// payloads of a log are encrypted, and the set's record and the log's heads are
// authenticated, by one key that the store never sees. The bytes:
// format/FORMAT.md, "Archive".
//
// The store still learns what a list shows (how many files of which sizes, and
// which are used again), and what a record or a head says besides digests: names
// of column families, host, label, notes, ids, times. It can lose or withhold a
// set, or the end of a log; it cannot change one, or make one.
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

// Threads: any; constant.
class SealKey {
 public:
  using Bytes = std::array<uint8_t, 32>;

  explicit SealKey(const Bytes& bytes);
  // Reads a key file: 64 hex digits, and perhaps a newline.
  //   kRefused  it is none, or accounts other than this one and root can read
  //             or change it
  [[nodiscard]] static rocksdb::Status Read(const std::string& path,
                                            std::shared_ptr<SealKey>* key);

  const SealKeyId& id() const { return id_; }
  // Makes the record of a set, whose files are sealed with this key, one of a
  // sealed set.
  void Seal(ArchiveSet* set) const;
  // Takes a record apart that Seal() made, so that its units are those of plain
  // files.
  //   kCorrupt  it is not sealed with this key, or was changed
  [[nodiscard]] rocksdb::Status Unseal(ArchiveSet* set) const;
  // Seals a segment of a log: its payload, of which the object's bytes become
  // *payload, and its head, which is whole but for the payload's digest.
  void Seal(LogHead* head, std::string* payload) const;
  // Checks that Seal() made the head. kCorrupt, as Unseal().
  [[nodiscard]] rocksdb::Status Check(const LogHead& head) const;

 private:
  friend class ChunkSealer;
  // The key for one use, which `label` names.
  Sha256Digest Derive(const char* label, const std::string& of) const;
  void CryptUnits(ArchivedFile* file, bool encrypt) const;
  Sha256Digest SealOf(LogHead head) const;

  const Bytes bytes_;
  SealKeyId id_{};
};

// Encrypts and decrypts chunks of one object. Threads: one.
class ChunkSealer {
 public:
  ChunkSealer(const SealKey& key, const SealSalt& salt,
              const std::string& object_key, uint64_t file_bytes);
  // Appends a sealed chunk, and its tag.
  void Seal(uint64_t number, const rocksdb::Slice& plain, std::string* out);
  // kCorrupt: it is not what Seal() made of the chunk of that number.
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
// Returns false for bytes that are none of a head.
[[nodiscard]] bool ParseSealHead(const rocksdb::Slice& head, SealKeyId* id,
                                 SealSalt* salt);

// The object of a file, sealed as it is read. Its pieces are those of the
// object; the digests of units are of the file. A chunk that is read once more
// must be the same as before, so that nothing else is ever encrypted in its
// place.
std::unique_ptr<SetFile> SealFileOf(const SealKey& key, const SealSalt& salt,
                                    const std::string& object_key,
                                    const CloneFile& file, uint64_t unit_bytes,
                                    std::unique_ptr<SetFile> plain);

// Sealed bytes in an object: a file, or the payload of a segment.
struct SealedObject {
  std::string key;
  SealSalt salt{};
  uint64_t bytes = 0;               // that were sealed
  uint64_t begin = kSealHeadBytes;  // of the first chunk, in the object
};
SealedObject SealedObjectOf(const ArchivedFile& file);

// Gives a range of what was sealed to `sink`, out of its object. kDamaged: it is
// not what was sealed.
StoreResult GetSealed(ObjectStore* store, const SealKey& key,
                      const SealedObject& object, uint64_t offset,
                      uint64_t bytes, const ObjectSink& sink);

}  // namespace sstferry
