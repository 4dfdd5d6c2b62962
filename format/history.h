// Compares the history of a database with the position of a target that follows
// the database. Used by the source when it answers a follower, by a standby
// that takes a cut, and by the log of an archive.
//
// File numbers and the bytes of a MANIFEST do not identify a history. For
// example, all new databases have the same ones. Two copies of a closed
// database also have the same ones after each copy was opened. So two histories
// are equal only if three things are equal: the database's id, the MANIFEST up
// to the bytes that the source has checked, and the newest WAL from its first
// byte.
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/messages_follow.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class Standing : uint8_t {
  kSame,     // the database has everything that the target has
  kAhead,    // the target has more bytes of the MANIFEST or a WAL
  kNotHeld,  // the target's WAL was removed: no comparison is possible
  kAnother,  // other bytes, or another database
};

// Result of a search for the digest of a file's first bytes.
enum class FileBegin : uint8_t {
  kKnown,  // the digest is known
  kShort,  // the file has fewer bytes, but may still grow
  kGone,   // the file was removed, or changed since it was read
  kNever,  // no file of this history has this length or number
};

// The history of one database, as far as the caller of FindStanding() knows it.
// It consists of digests of the first bytes of the MANIFEST and of the WALs.
// Threads: as the derived class requires.
class History {
 public:
  virtual ~History() = default;
  virtual const std::string& database_id() const = 0;
  virtual uint64_t manifest_number() const = 0;
  // Sets *digest to the XXH3-128 of the first `bytes` bytes of the MANIFEST. If
  // this digest is unknown, sets *begin to the reason. WalBegin() does the same
  // for a WAL.
  [[nodiscard]] virtual rocksdb::Status ManifestBegin(
      uint64_t bytes, FileBegin* begin, Digest128* digest) const = 0;
  [[nodiscard]] virtual rocksdb::Status WalBegin(uint64_t number,
                                                 uint64_t bytes,
                                                 FileBegin* begin,
                                                 Digest128* digest) const = 0;
  // Checks if tables have all entries of a removed WAL, according to the first
  // `manifest_bytes` bytes of the MANIFEST. If so, a target with the same
  // MANIFEST bytes cannot have other entries in this WAL.
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
