// Builds the delta chunk of a part, or of a piece of a part: puts and deletions
// that make the target's entries there equal to the source's snapshot.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/chunk_builder.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/refresh/entry_digest.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace sstferry {

class ChunkWriter;

// Facts from both sides about a piece of a part whose entries differ.
struct PieceDifference {
  KeyInterval interval;
  uint32_t ordinal = 0;  // the chunk's number in the part
  DeltaBasis basis = DeltaBasis::kEntries;
  // Intervals in which the source's entries may differ (kGroups and kSifted
  // only); each has a begin.
  std::vector<KeyInterval> spans;
  // Source keys outside of `spans`, in key order. If the source has such keys
  // between two of `entries`, at least one of them is listed, so that no range
  // deletion covers a source key.
  std::vector<std::string> between;
  // For each source entry in `spans`: true if the target has an equal entry
  // (kSifted only).
  std::vector<bool> common;
  // Target entries in the interval, in key order. `basis` determines which of
  // them.
  std::vector<GroupEntry> entries;
  uint32_t most_point_deletions = 0;  // as in a DeltaRequest
};

// Writes the differences of a piece as one chunk. Consecutive target keys
// without a source key between them form a run. A long run is deleted by a
// range deletion:
//
//   target's keys    a  b  c  ...  y  z      deleted one by one:  a  z
//   source's keys  A                    B    range deletion:     [a, z)
//
// Both bounds are target keys that the delta deletes, so no key outside of the
// run is affected.
class DeltaBuilder {
 public:
  // Ownership: borrows db, the family and the sink.
  // Threads:   one builder per lane, one part at a time.
  DeltaBuilder(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const rocksdb::Options& chunk_options,
               const ChunkBuilderOptions& options, ChunkSink* sink);
  ~DeltaBuilder();

  // Sends one chunk with all differences, or no chunk if nothing differs. Also
  // returns the sink's errors.
  //   kRefused      an entry cannot be sent; the message has its key
  //   kCorrupt      reading failed (also kSourceError); or the source has
  //                 entries, although the target's request says that the source
  //                 has none
  [[nodiscard]] rocksdb::Status BuildDifferences(const Part& part,
                                                 const PieceDifference& piece,
                                                 EntryDigester* digester);

 private:
  // Consecutive target entries that the source does not have: indexes [first,
  // end).
  struct Run {
    size_t first = 0;
    size_t end = 0;
  };

  // Adds the target's entries before `key` to the run, which will be deleted.
  // Null: all remaining entries.
  [[nodiscard]] rocksdb::Status DeleteBefore(const rocksdb::Slice* key,
                                             const PieceDifference& piece);
  // Ends the run, and writes its deletions.
  [[nodiscard]] rocksdb::Status EndRun(const PieceDifference& piece);
  // Merges entries of both sides up to the end of the span.
  [[nodiscard]] rocksdb::Status MergeSpan(const KeyInterval& span,
                                          const PieceDifference& piece,
                                          EntryDigester* digester,
                                          EntryReader* reader);
  [[nodiscard]] rocksdb::Status MergeSpans(const PieceDifference& piece,
                                           EntryDigester* digester);
  [[nodiscard]] rocksdb::Status MergeAll(const PieceDifference& piece,
                                         EntryDigester* digester);
  [[nodiscard]] rocksdb::Status Put(EntryReader* reader);
  [[nodiscard]] rocksdb::Status Delete(const rocksdb::Slice& key);
  [[nodiscard]] rocksdb::Status DeleteRange(const rocksdb::Slice& first,
                                            const rocksdb::Slice& last);
  [[nodiscard]] rocksdb::Status Open(const rocksdb::Slice& first);
  [[nodiscard]] rocksdb::Status Finish();
  [[nodiscard]] rocksdb::Status Poll();

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const ChunkBuilderOptions options_;
  ChunkSink* const sink_;
  const rocksdb::Options chunk_options_;
  std::unique_ptr<ChunkWriter> writer_;  // null: no difference so far
  ChunkEnd chunk_;
  size_t next_ = 0;     // index of the next target entry
  size_t between_ = 0;  // index of the next key of `between`
  size_t read_ = 0;     // number of source entries read in spans
  Run run_;
  uint64_t steps_ = 0;
};

}  // namespace sstferry
