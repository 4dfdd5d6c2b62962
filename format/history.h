// Tells whether a database is the one that a target has followed, and has all
// that the target has of it. There is one comparison, for whoever asks: the
// source's reader of rounds, a standby that takes a cut, the log of an archive.
//
// File numbers prove nothing, nor does a MANIFEST alone: RocksDB writes the same
// bytes again when it opens the same closed files, and for every new database.
// So the history is the same only if the database's id, the MANIFEST up to what
// was judged last, and the newest WAL from its first byte on are.
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/messages_follow.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class Standing : uint8_t {
  kSame,     // all that the target has is here
  kAhead,    // the target has more, of what is the same as far as it is here
  kNotHeld,  // its WAL is gone: nothing can be compared
  kAnother,  // it has other bytes, or is of another database
};

// Tells how the first bytes of a file are known.
enum class FileBegin : uint8_t {
  kKnown,  // their digest
  kShort,  // the file has fewer, and may yet grow
  kGone,   // the file is gone, or has other bytes since they were read
  kNever,  // no file of this history is so long, or has this number
};

// Threads: as its user says.
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
  // Finds whether the first bytes of the MANIFEST say that tables have all of a
  // WAL that is gone. Then the same bytes of the MANIFEST prove what it had.
  [[nodiscard]] virtual rocksdb::Status IsWalFlushed(uint64_t number,
                                                     uint64_t manifest_bytes,
                                                     bool* is_flushed) const = 0;
};

// Compares what a target has with a history. REQUIRES: it has something.
[[nodiscard]] rocksdb::Status FindStanding(const FollowPosition& position,
                                           const History& history,
                                           Standing* standing);

}  // namespace sstferry
