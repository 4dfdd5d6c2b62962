// Compares the history of a database with the position of a target that follows
// it. The source's reader of rounds, a standby that takes a cut, and the log of
// an archive all use this comparison.
//
// File numbers and the bytes of a MANIFEST alone do not identify a history: all
// new databases have the same ones, and so have two copies of one closed
// database after each was opened. So two histories are equal only if three
// things are equal: the database's id, the MANIFEST up to the bytes that the
// source has checked, and the newest WAL from its first byte.
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/messages_follow.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class Standing : uint8_t {
  kSame,     // the database has everything that the target has
  kAhead,    // the target has more; the common records are equal
  kNotHeld,  // the target's WAL was removed: no comparison is possible
  kAnother,  // other bytes, or another database
};

// Result of looking up the first bytes of a file.
enum class FileBegin : uint8_t {
  kKnown,  // their digest is known
  kShort,  // the file is shorter than this, and may still grow
  kGone,   // the file was removed, or changed since it was read
  kNever,  // no file of this history has this length or number
};

// The history of one database, as far as the caller of FindStanding() knows it:
// digests of the first bytes of its MANIFEST and WALs. Threads: as the derived
// class requires.
class History {
 public:
  virtual ~History() = default;
  virtual const std::string& database_id() const = 0;
  virtual uint64_t manifest_number() const = 0;
  // Finds the XXH3-128 of the first `bytes` bytes of the MANIFEST. WalBegin()
  // does the same for a WAL.
  [[nodiscard]] virtual rocksdb::Status ManifestBegin(
      uint64_t bytes, FileBegin* begin, Digest128* digest) const = 0;
  [[nodiscard]] virtual rocksdb::Status WalBegin(uint64_t number,
                                                 uint64_t bytes,
                                                 FileBegin* begin,
                                                 Digest128* digest) const = 0;
  // Checks if, according to the first `manifest_bytes` bytes of the MANIFEST,
  // tables have all entries of a removed WAL. If so, a target with the same
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
