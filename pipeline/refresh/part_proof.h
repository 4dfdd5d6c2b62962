// Proves that a part which both sides compared will be the source's.
//
// Which entries a delta puts and deletes is decided by many steps: groups,
// marks, pieces, messages, runs of deletions. A mistake in any of them would
// leave a replica that nobody finds to be wrong. So none of them is believed.
// While both sides read the part, each adds up a digest of every entry that it
// reads; the source says its sum and its count. From the bytes of each chunk
// that came of the part, once they were checked, the target then computes what
// ingesting them makes of the entries that it read:
//
//   read at the target    a1 b1 c1 d1      sum of a1, b1, c1, d1
//   chunk                 put b2           - b1 + b2
//                         delete [c, d]    - c1 - d1
//   source                a1 b2            = sum of a1, b2
//
// The part is proven if sum and count are the source's. One that is not is
// compared once more from its first piece, and all entries are told; if that
// does not prove it either, the refresh fails.
//
// "Read" is what this side read then. What an application writes meanwhile is
// not: see RefreshTarget::Finish().
#pragma once

#include <string>

#include "pipeline/refresh/entry_digest.h"
#include "pipeline/refresh/group_index.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// A delta chunk in staging whose bytes were checked.
struct CheckedDelta {
  rocksdb::FileSystem* file_system = nullptr;
  std::string path;
  const rocksdb::Comparator* order = nullptr;  // the family's
};

// Memory: none but that of what it is given. Threads: one.
class PartProof {
 public:
  // Sets what the source has of the whole part.
  void SetSource(const EntrySums& source) { source_ = source; }
  // Adds what this side read of a piece.
  void AddRead(const EntrySums& piece) { here_.Add(piece); }

  // Computes what ingesting the chunk of a piece makes of it. `index` has all
  // entries of the piece: those under the keys that the chunk puts or deletes,
  // and inside of its range deletions, are gone. Keys are alike where the
  // family's order says so, whatever their bytes.
  //   kCorrupt  it cannot be read
  [[nodiscard]] rocksdb::Status TakeChunk(const CheckedDelta& chunk,
                                          const GroupIndex& index,
                                          EntryDigester* digester);
  // Does so for the chunk of a piece in which the source has nothing, and of
  // which no index has all entries: if it puts nothing, and its deletions reach
  // from `first` to `last`, the keys that this side has there, nothing is left
  // of the piece, which is the whole part.
  [[nodiscard]] rocksdb::Status TakeClearing(const CheckedDelta& chunk,
                                             const std::string& first,
                                             const std::string& last);

  bool holds() const { return here_ == source_; }
  const EntrySums& source() const { return source_; }
  // Returns what this side will have, as far as it is known.
  const EntrySums& here() const { return here_; }

 private:
  EntrySums source_;
  EntrySums here_;
};

}  // namespace sstferry
