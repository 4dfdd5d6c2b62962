// Builds the delta chunk of a range: the puts and deletions that make what the
// target holds there equal to the source's snapshot.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/read/group_index.h"
#include "pipeline/read/interval_reader.h"
#include "pipeline/source/chunk/chunk_builder.h"
#include "pipeline/source/chunk/key_lookup.h"
#include "pipeline/source/plan/changed_keys.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace sstferry {

class ChunkWriter;

// Ownership: borrows db, the family and the sink. Threads: one builder per
// lane, one range at a time.
class DeltaBuilder {
 public:
  DeltaBuilder(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const rocksdb::Options& chunk_options,
               const ChunkBuilderOptions& options, ChunkSink* sink);
  ~DeltaBuilder();

  // Sends one chunk with every difference between the entries of `spans` and
  // the target's `entries`, or none if there is no difference.
  // REQUIRES: both in key order, inside the range; each span has a begin. A key
  // of `entries` outside of the spans is not in the snapshot. `index` computes
  // digests.
  //   kRefused      an entry that cannot be moved, naming the key
  //   kCorrupt, kSourceError  reading failed; also the sink's own errors
  [[nodiscard]] rocksdb::Status BuildDifferences(
      const Range& range, const std::vector<KeyInterval>& spans,
      const std::vector<GroupEntry>& entries, GroupIndex* index);

  // Sends one chunk with what the snapshot holds of the keys [first, last) of
  // `keys`: its entry, or a deletion; none if there are no keys. REQUIRES:
  // `keys` has all keys that the added files hold inside the range.
  [[nodiscard]] rocksdb::Status BuildLookups(const Range& range,
                                             const LookupFiles& files,
                                             const ChangedKeys& keys,
                                             size_t first, size_t last);

 private:
  // Ends the merge of the target's entries before `key`; null: of all.
  [[nodiscard]] rocksdb::Status DeleteBefore(
      const rocksdb::Slice* key, const std::vector<GroupEntry>& entries);
  // REQUIRES: the reader is at the first entry of the span.
  [[nodiscard]] rocksdb::Status MergeSpan(
      const KeyInterval& span, const std::vector<GroupEntry>& entries,
      GroupIndex* index, IntervalReader* reader);
  [[nodiscard]] rocksdb::Status Put(EntryReader* reader);
  [[nodiscard]] rocksdb::Status Delete(const rocksdb::Slice& key);
  [[nodiscard]] rocksdb::Status Open(const rocksdb::Slice& first);
  [[nodiscard]] rocksdb::Status Finish();
  [[nodiscard]] rocksdb::Status Poll();

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const ChunkBuilderOptions options_;
  ChunkSink* const sink_;
  std::shared_ptr<rocksdb::FileSystem> file_system_;
  std::unique_ptr<rocksdb::Env> env_;
  rocksdb::Options chunk_options_;
  std::unique_ptr<ChunkWriter> writer_;  // null: no difference so far
  ChunkEnd chunk_;
  size_t next_ = 0;  // of the target's entries
  uint64_t steps_ = 0;
};

}  // namespace sstferry
