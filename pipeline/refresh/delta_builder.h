// Builds the delta chunk of a part, or of a piece of it: the puts and deletions
// that make the target's contents there equal to the source's snapshot.
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
  uint32_t ordinal = 0;  // of its chunk
  DeltaBasis basis = DeltaBasis::kEntries;
  // Intervals in which the source's entries may differ (kGroups and kSifted
  // only); each has a begin.
  std::vector<KeyInterval> spans;
  // Keys of the source outside of `spans`, in the same order. If the source has
  // keys between two of `entries`, at least one of them is listed here.
  std::vector<std::string> between;
  // For each entry of the source in `spans`: true if the target has it (kSifted
  // only).
  std::vector<bool> common;
  // Entries of the target, according to the basis; in key order, inside the
  // interval.
  std::vector<GroupEntry> entries;
  uint32_t most_point_deletions = 0;  // as in a DeltaRequest
};

// Writes the differences of a piece as one chunk. Neighbouring keys of the
// target between which the source has none are deleted together; many of them
// become one range deletion:
//
//   target's keys    a  b  c  ...  y  z      deleted one by one:  a  z
//   source's keys  A                    B    range deletion:     [a, z)
//
// Both bounds are keys that the target has and that the delta deletes, so
// nothing outside of the target's keys is affected.
class DeltaBuilder {
 public:
  // Ownership: borrows db, the family and the sink.
  // Threads:   one builder per lane, one part at a time.
  DeltaBuilder(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const rocksdb::Options& chunk_options,
               const ChunkBuilderOptions& options, ChunkSink* sink);
  ~DeltaBuilder();

  // Sends one chunk with every difference, or none if there is no difference.
  // Also returns the sink's errors.
  //   kRefused      an entry that cannot be moved, naming the key
  //   kCorrupt      the source has entries where the target claims that it has
  //                 none; also, as kSourceError: reading failed
  [[nodiscard]] rocksdb::Status BuildDifferences(const Part& part,
                                                 const PieceDifference& piece,
                                                 EntryDigester* digester);

 private:
  // Neighbouring entries of the target that the source does not have: [first,
  // end).
  struct Run {
    size_t first = 0;
    size_t end = 0;
  };

  // Deletes the target's entries before `key`; null: all remaining ones.
  [[nodiscard]] rocksdb::Status DeleteBefore(const rocksdb::Slice* key,
                                             const PieceDifference& piece);
  // Writes the run, because the source has the next key, or no key follows.
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
  size_t next_ = 0;     // index of the target's entries
  size_t between_ = 0;  // index of PieceDifference::between
  size_t read_ = 0;     // number of the source's entries read in spans
  Run run_;
  uint64_t steps_ = 0;
};

}  // namespace sstferry
