// Builds the delta chunk of a part, or of a piece of a part. The chunk has the
// puts and deletions that make the target's entries equal to the source's
// entries.
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

// Describes a piece of a part in which the entries of the source and the target
// differ.
struct PieceDifference {
  KeyInterval interval;
  uint32_t ordinal = 0;  // the chunk's number in the part
  DeltaBasis basis = DeltaBasis::kEntries;
  // The intervals in which the source must read its entries, because they may
  // differ from the target's. Used only for kGroups and kSifted. Each interval
  // has a begin.
  std::vector<KeyInterval> spans;
  // Keys of the source outside of `spans`, in key order. They keep range
  // deletions from covering a key of the source: if the source has keys between
  // two entries of `entries`, at least one of these keys is listed.
  std::vector<std::string> between;
  // One value for each entry of the source in `spans`: true if the target has
  // an equal entry. Used only for kSifted.
  std::vector<bool> common;
  // Entries of the target in the interval, in key order. `basis` tells which
  // entries these are (see DeltaBasis).
  std::vector<GroupEntry> entries;
  uint32_t most_point_deletions = 0;  // see DeltaRequest
};

// Writes the differences of a piece as one chunk. Deletes the keys that only
// the target has. Such keys form a run if the source has no key between them. A
// range deletion deletes most keys of a long run:
//
//   target's keys    a  b  c  ...  y  z      deleted one by one:  a  z
//   source's keys  A                    B    range deletion:     [a, z)
//
// The range deletion begins and ends at keys of the run, so it affects no key
// outside of the run.
class DeltaBuilder {
 public:
  // Ownership: borrows db, the family and the sink.
  // Threads:   one builder per lane, one part at a time.
  DeltaBuilder(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const rocksdb::Options& chunk_options,
               const ChunkBuilderOptions& options, ChunkSink* sink);
  ~DeltaBuilder();

  // Sends one chunk with all differences of the piece. Sends no chunk if
  // nothing differs. Returns errors of the sink, or:
  //   kRefused      an entry cannot be sent; the message has the entry's key
  //   kCorrupt      reading failed (also kSourceError), or the request says
  //                 that the source has no entries in the piece, but it has
  //                 some
  [[nodiscard]] rocksdb::Status BuildDifferences(const Part& part,
                                                 const PieceDifference& piece,
                                                 EntryDigester* digester);

 private:
  // A run: the indexes [first, end) of target entries that the source does not
  // have.
  struct Run {
    size_t first = 0;
    size_t end = 0;
  };

  // Adds the target's entries before `key` to the run. Adds all remaining
  // entries if `key` is null.
  [[nodiscard]] rocksdb::Status DeleteBefore(const rocksdb::Slice* key,
                                             const PieceDifference& piece);
  // Writes the deletions of the run, and begins a new, empty run.
  [[nodiscard]] rocksdb::Status EndRun(const PieceDifference& piece);
  // Compares the entries of both sides in key order, up to the end of the span.
  // Writes a put for each entry of the source that the target does not have.
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
  std::unique_ptr<ChunkWriter> writer_;  // null until a difference is found
  ChunkEnd chunk_;
  size_t next_ = 0;     // index of the next target entry
  size_t between_ = 0;  // index into piece.between
  size_t read_ = 0;     // number of source entries read in spans
  Run run_;
  uint64_t steps_ = 0;
};

}  // namespace sstferry
