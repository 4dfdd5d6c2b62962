// Proves that a part which both sides compared will equal the source's.
//
// The puts and deletions of a delta result from many steps: groups, marks,
// pieces, messages, runs of deletions. A mistake in any of them would leave a
// wrong replica unnoticed. So none of them is trusted. While both sides read
// the part, each sums up a digest of every entry that it reads; the source
// sends its sum and its count. From the checked bytes of each received chunk of
// the part, the target then computes the result of ingesting them over the
// entries that it read:
//
//   read at the target    a1 b1 c1 d1      sum of a1, b1, c1, d1
//   chunk                 put b2           - b1 + b2
//                         delete [c, d]    - c1 - d1
//   source                a1 b2            = sum of a1, b2
//
// The part is proven if sum and count equal the source's. Otherwise it is
// compared once more from its first piece, with all entries sent; if that does
// not prove it either, the refresh fails.
//
// Entries that an application writes after the read are not covered: see
// RefreshTarget::Finish().
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

// The proof of one part.
//
// Memory:  only that of its arguments.
// Threads: one.
class PartProof {
 public:
  // Sets the source's sums for the whole part.
  void SetSource(const EntrySums& source) { source_ = source; }
  // Adds this side's sums for a piece.
  void AddRead(const EntrySums& piece) { here_.Add(piece); }

  // Computes the result of ingesting the chunk of a piece. `index` has all
  // entries of the piece: those with keys that the chunk puts or deletes, and
  // those in its range deletions, are removed. Keys are equal if the family's
  // comparator says so, whatever their bytes.
  //   kCorrupt  the chunk cannot be read
  [[nodiscard]] rocksdb::Status TakeChunk(const CheckedDelta& chunk,
                                          const GroupIndex& index,
                                          EntryDigester* digester);
  // Does the same for a piece that is the whole part, in which the source has
  // nothing, and of which no index has all entries: if the chunk puts nothing,
  // and its deletions cover `first` to `last`, this side's outermost keys
  // there, then nothing is left of it.
  [[nodiscard]] rocksdb::Status TakeClearing(const CheckedDelta& chunk,
                                             const std::string& first,
                                             const std::string& last);

  bool holds() const { return here_ == source_; }
  const EntrySums& source() const { return source_; }
  // Returns the sums that this side will have, as far as known.
  const EntrySums& here() const { return here_; }

 private:
  EntrySums source_;
  EntrySums here_;
};

}  // namespace sstferry
