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

// Facts that, together with its files, determine the contents of a family.
//
// Two options change what a reader sees in the same files, each with options of
// its own, such as the delimiter of StringAppend. Compaction filters, TTL and
// FIFO affect only the output of compactions and flushes, which are other
// files. Options of tables, memtables and levels change no entry.
struct FamilyEvidence {
  uint32_t family_id = 0;      // RocksDB's; a recreated family has another id
  std::string comparator;      // the whole text in OPTIONS
  std::string merge_operator;  // the same; empty: none
  // Entries of WALs are in memory, with unknown keys.
  bool in_memory = false;
  Digest128 wal;  // digest of all replayed WAL entries; zero: unknown
  // A number never used before, for files without identity.
  uint64_t nonce = 0;
};

// Computes the backing of intervals from a family's files, which it borrows.
class Backings {
 public:
  // `files`: all files of the family with their identities, sorted by smallest
  // key.
  Backings(const rocksdb::Comparator* order, const std::vector<FilePlan>* files,
           const FamilyEvidence& family);

  // Sets backing, flushed and wal of the record for its interval.
  void Fill(IntervalRecord* interval_record) const;

 private:
  // Returns, by index of `meeting`, how many other files overlap that file and
  // are read before it.
  std::vector<uint32_t> RanksOf(const std::vector<size_t>& meeting) const;

  const rocksdb::Comparator* const order_;
  const std::vector<FilePlan>* const files_;
  const FamilyEvidence family_;
  std::vector<size_t> furthest_;  // by index: file with the largest key so far
  std::vector<size_t> reach_;     // by index: first file that begins after it
};

// Neighbouring intervals with the same need.
struct PlanSegment {
  KeyInterval interval;
  PartNeed need = PartNeed::kSend;
  std::string reason;  // for `plan`
  // Interval records for the target to store. Empty if the parts of the segment
  // get their own records, or if the segment is an unchanged part of an
  // existing record. Neighbouring intervals that are looked up are one segment.
  std::vector<IntervalRecord> intervals;
};

// Returns the indexes [first, end) of the segments that hold keys of [smallest,
// largest]. REQUIRES: segments in order, without gaps.
struct SegmentSpan {
  size_t first = 0;
  size_t end = 0;
};
SegmentSpan SegmentsOf(const rocksdb::Comparator* order,
                       const std::vector<PlanSegment>& segments,
                       const rocksdb::Slice& smallest,
                       const rocksdb::Slice& largest);

// The known changes since the target's last refresh: all keys that may have
// changed, in intervals whose files at that time all still exist.
struct KnownChanges {
  const Backings* old_files = nullptr;  // files of that time that still exist
  bool knows_wal_keys = false;          // of the WAL entries of that time
  // Spans of new files with range deletions, which change more than listed
  // keys.
  std::vector<std::pair<std::string, std::string>> cleared;
};

struct IntervalComparison {
  const rocksdb::Comparator* order = nullptr;
  CompareMode compare = CompareMode::kFiles;
  KeyInterval selection;
  uint64_t sequence = 0;  // of the snapshot
  // The target has no entries of the family to compare.
  bool target_is_empty = false;
  const KnownChanges* changes = nullptr;  // null: unknown
};

// Cuts the selection into segments, in order. `known` are the interval records
// of one family; a record whose interval is empty or overlaps another one is
// ignored.
std::vector<PlanSegment> CompareIntervals(const IntervalComparison& how,
                                       const Backings& backings,
                                       std::vector<IntervalRecord> known);

}  // namespace sstferry
