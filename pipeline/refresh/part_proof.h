// Proves that a part of the target will equal the source's part after a
// refresh.
//
// A delta chunk is the result of many steps: groups, marks, pieces, messages,
// runs of deletions. A bug in any step could leave a wrong replica unnoticed,
// so this proof trusts no step. While each side reads the part, it counts its
// entries and adds up their digests. The source sends its count and sum. The
// target then computes the count and sum that its own entries will have after
// the ingestion. It uses the bytes of the received chunks for this:
//
//   read at the target    a1 b1 c1 d1      sum of a1, b1, c1, d1
//   chunk                 put b2           - b1 + b2
//                         delete [c, d]    - c1 - d1
//   source                a1 b2            = sum of a1, b2
//
// The part is proven if count and sum equal the source's. Otherwise both sides
// compare the part once more, and the target sends all its entries. If the part
// is still not proven, the refresh fails.
//
// The proof does not cover entries that an application writes after the target
// has read the part: see RefreshTarget::CheckUnwritten().
#pragma once

#include <string>

#include "pipeline/refresh/entry_digest.h"
#include "pipeline/refresh/group_index.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// A received delta chunk. Its bytes were checked.
struct CheckedDelta {
  rocksdb::FileSystem* file_system = nullptr;
  std::string path;
  const rocksdb::Comparator* order = nullptr;  // of the family
};

// The proof of one part.
//
// Memory:  only the memory of its arguments.
// Threads: one.
class PartProof {
 public:
  // Sets the count and sum of the source's entries in the whole part.
  void SetSource(const EntrySums& source) { source_ = source; }
  // Adds the count and sum of the target's entries in a piece.
  void AddRead(const EntrySums& piece) { here_.Add(piece); }

  // Computes the effect of a piece's chunk on here(). `index` has all entries
  // of the target in the piece. Removes an entry if the chunk puts or deletes
  // its key, or has a range deletion that covers its key. Adds the entries that
  // the chunk puts. Compares keys with the family's comparator, which may treat
  // different bytes as equal keys.
  //   kCorrupt  the chunk cannot be read
  [[nodiscard]] rocksdb::Status TakeChunk(const CheckedDelta& chunk,
                                          const GroupIndex& index,
                                          EntryDigester* digester);
  // Computes the effect of a chunk that deletes all entries of the part,
  // because the source has none. Needs no index. `first` and `last` are the
  // target's first and last key in the part. Sets here() to 0 entries if the
  // chunk puts nothing and deletes all keys from `first` to `last`.
  [[nodiscard]] rocksdb::Status TakeClearing(const CheckedDelta& chunk,
                                             const std::string& first,
                                             const std::string& last);

  bool holds() const { return here_ == source_; }
  const EntrySums& source() const { return source_; }
  // Returns the count and sum that the target's entries will have after all
  // chunks so far are ingested.
  const EntrySums& here() const { return here_; }

 private:
  EntrySums source_;
  EntrySums here_;
};

}  // namespace sstferry
