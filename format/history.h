// Compares the history of a database with the position of a target that has
// followed one. All users share this comparison: the source's reader of rounds,
// a standby that takes a cut, the log of an archive.
//
// Neither file numbers nor a MANIFEST alone identify a history: RocksDB writes
// the same bytes again when it opens the same closed files, and in every new
// database.
// So the history is the same only if three things are equal: the database's id,
// the MANIFEST up to the bytes judged last, and the newest WAL from its first
// byte on.
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/messages_follow.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class Standing : uint8_t {
  kSame,     // the database has everything that the target has
  kAhead,    // the target has more; the common part is equal
  kNotHeld,  // the target's WAL is gone: nothing can be compared
  kAnother,  // other bytes, or another database
};

// Result of looking up the first bytes of a file.
enum class FileBegin : uint8_t {
  kKnown,  // their digest is known
  kShort,  // the file is shorter, and may still grow
  kGone,   // the file was removed, or changed since it was read
  kNever,  // no file of this history is that long, or has this number
};

// The history of a database, as one of the users knows it. Threads: as the
// implementation says.
class History {
 public:
  virtual ~History() = default;
  virtual const std::string& database_id() const = 0;
  virtual uint64_t manifest_number() const = 0;
  // Find the XXH3-128 of the first `bytes` of the MANIFEST, or of a WAL.
  [[nodiscard]] virtual rocksdb::Status ManifestBegin(
      uint64_t bytes, FileBegin* begin, Digest128* digest) const = 0;
  [[nodiscard]] virtual rocksdb::Status WalBegin(uint64_t number,
                                                 uint64_t bytes,
                                                 FileBegin* begin,
                                                 Digest128* digest) const = 0;
  // Checks that tables have all of a removed WAL, by the first bytes of the
  // MANIFEST. Then equal MANIFEST bytes prove what the WAL contained.
  [[nodiscard]] virtual rocksdb::Status IsWalFlushed(uint64_t number,
                                                     uint64_t manifest_bytes,
                                                     bool* is_flushed) const = 0;
};

// Compares a target's position with a history. REQUIRES: the position is not
// empty.
[[nodiscard]] rocksdb::Status FindStanding(const FollowPosition& position,
                                           const History& history,
                                           Standing* standing);

}  // namespace sstferry
