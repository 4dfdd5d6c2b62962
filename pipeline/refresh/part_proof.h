// Proves that a part which both sides compared will equal the source's.
//
// The puts and deletions of a delta result from many steps: groups, marks,
// pieces, messages, runs of deletions. A bug in any step could leave a wrong
// replica unnoticed, so no step is trusted. While both sides read the part,
// each sums up the digests of the entries that it reads; the source sends its
// sum and count. From the checked bytes of the received chunks, the target then
// computes the sum and count that its entries will have after the ingestion:
//
//   read at the target    a1 b1 c1 d1      sum of a1, b1, c1, d1
//   chunk                 put b2           - b1 + b2
//                         delete [c, d]    - c1 - d1
//   source                a1 b2            = sum of a1, b2
//
// The part is proven if sum and count equal the source's. Otherwise the part is
// compared once more from its first piece, and the target sends all its
// entries. If that does not prove the part either, the refresh fails.
//
// Entries that an application writes after the read are not covered: see
// RefreshTarget::CheckUnwritten().
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

  // Updates here() to the result of ingesting the chunk of a piece. `index` has
  // all of this side's entries of the piece. Removes the entries whose keys the
  // chunk puts, deletes, or covers by range deletions, and adds the chunk's
  // puts. Compares keys by the family's comparator, not by their bytes.
  //   kCorrupt  the chunk cannot be read
  [[nodiscard]] rocksdb::Status TakeChunk(const CheckedDelta& chunk,
                                          const GroupIndex& index,
                                          EntryDigester* digester);
  // Does the same without an index, for a part in which the source has no
  // entries. `first` and `last` are the first and last key of this side in the
  // part. If the chunk puts nothing, and its deletions cover `first` to `last`,
  // no entries are left.
  [[nodiscard]] rocksdb::Status TakeClearing(const CheckedDelta& chunk,
                                             const std::string& first,
                                             const std::string& last);

  bool holds() const { return here_ == source_; }
  const EntrySums& source() const { return source_; }
  // Returns the sums that this side will have after the ingestion of the chunks
  // so far.
  const EntrySums& here() const { return here_; }

 private:
  EntrySums source_;
  EntrySums here_;
};

}  // namespace sstferry
