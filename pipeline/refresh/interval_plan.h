// Finds the intervals that changed since a target's last refresh: compares the
// target's interval records with the files that back the intervals now.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/file_plan.h"
#include "rocksdb/comparator.h"

namespace sstferry {

// Facts, beside its files, that determine the contents of a family.
//
// Two options change what a reader sees of the same files, each with
// options of its own, such as the delimiter of StringAppend. Compaction
// filters, TTL and FIFO change what compactions and flushes leave, which are
// other files. Options of tables, memtables and levels change no entry.
struct FamilyEvidence {
  uint32_t family_id = 0;      // RocksDB's; a recreated family has another
  std::string comparator;      // the whole text in OPTIONS
  std::string merge_operator;  // the same; empty: none
  // Entries of WALs are in memory, with unknown keys.
  bool in_memory = false;
  Digest128 wal;  // of all replayed WAL entries; zero: not known
  // A number never used before, for files without identity.
  uint64_t nonce = 0;
};

// Computes the backing of intervals from a family's files. Borrows the files.
class Backings {
 public:
  // `files`: all files of the family with their identities, sorted by their
  // smallest keys.
  Backings(const rocksdb::Comparator* order, const std::vector<FilePlan>* files,
           const FamilyEvidence& family);

  // Sets backing, flushed and wal of the record for its interval.
  void Fill(IntervalRecord* interval_record) const;

 private:
  // Returns, by index of `meeting`, how many others overlap that file and are
  // read before it.
  std::vector<uint32_t> RanksOf(const std::vector<size_t>& meeting) const;

  const rocksdb::Comparator* const order_;
  const std::vector<FilePlan>* const files_;
  const FamilyEvidence family_;
  std::vector<size_t> furthest_;  // by index: file with the largest key so far
  std::vector<size_t> reach_;     // by index: first file that begins behind it
};

// Neighbouring intervals with the same need.
struct PlanSegment {
  KeyInterval interval;
  PartNeed need = PartNeed::kSend;
  std::string reason;  // for `plan`
  // Interval records for the target to store. None if the parts of the segment
  // get their own, or if the segment is an unchanged part of an existing
  // record.
  // Neighbouring intervals that are looked up are one segment.
  std::vector<IntervalRecord> intervals;
};

// Returns the indexes of the segments that hold keys of [smallest, largest]:
// from `first` up to, but not including, `end`. REQUIRES: segments in order,
// without gaps.
struct SegmentSpan {
  size_t first = 0;
  size_t end = 0;
};
SegmentSpan SegmentsOf(const rocksdb::Comparator* order,
                       const std::vector<PlanSegment>& segments,
                       const rocksdb::Slice& smallest,
                       const rocksdb::Slice& largest);

// Tells what is known of the changes since the target's last refresh: all keys
// that may have changed, in intervals whose files of then are all live still.
struct KnownChanges {
  const Backings* old_files = nullptr;  // those of then that are live still
  bool knows_wal_keys = false;          // of the entries of WALs of then
  // Spans of new files with range deletions, which change more than keys.
  std::vector<std::pair<std::string, std::string>> cleared;
};

struct IntervalComparison {
  const rocksdb::Comparator* order = nullptr;
  CompareMode compare = CompareMode::kFiles;
  KeyInterval selection;
  uint64_t sequence = 0;  // the snapshot's
  // The target has nothing of the family that could be compared.
  bool target_is_empty = false;
  const KnownChanges* changes = nullptr;  // null: not known
};

// Cuts the selection into segments, in order. `known` are the interval records
// of one family; a record whose interval is empty or overlaps another one
// counts as unknown.
std::vector<PlanSegment> CompareIntervals(const IntervalComparison& how,
                                       const Backings& backings,
                                       std::vector<IntervalRecord> known);

}  // namespace sstferry
