// What changed since a target was refreshed last: the covers that it remembers,
// compared with the files that back their intervals now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/source/plan/carry_rules.h"
#include "rocksdb/comparator.h"

namespace sstferry {

// What tells, beside its files, what a family holds.
struct FamilyEvidence {
  uint32_t family_id = 0;      // RocksDB's: one made anew gets another
  std::string merge_operator;  // by which reads are resolved; empty: none
  // Entries of WALs lie in memory, and nobody knows over which keys.
  bool in_memory = false;
  Digest128 wal;  // of all that was replayed; zero: not known
  // A number nobody used before, for files that have no identity.
  uint64_t nonce = 0;
};

// Tells what backs an interval. Borrows the files.
class Backings {
 public:
  // `files`: all of the family's, sorted by their smallest keys, with their
  // identities.
  Backings(const rocksdb::Comparator* order, const std::vector<FilePlan>* files,
           const FamilyEvidence& family);

  // Sets cover->backing, flushed and wal of cover->interval.
  void Fill(Cover* cover) const;

 private:
  // By index of `meeting`: how many others overlap it and are read before it.
  std::vector<uint32_t> RanksOf(const std::vector<size_t>& meeting) const;

  const rocksdb::Comparator* const order_;
  const std::vector<FilePlan>* const files_;
  const FamilyEvidence family_;
  std::vector<size_t> furthest_;  // by index: up to it, the largest key's file
  std::vector<size_t> reach_;     // by index: the first that begins behind it
};

// Neighbouring intervals with the same need.
struct PlanSegment {
  KeyInterval interval;
  RangeNeed need = RangeNeed::kSend;
  std::string reason;  // for `plan`
  // What to remember of it; none where its ranges say, or where it is unchanged
  // and only a part of what was remembered.
  std::optional<Cover> cover;
};

// The segments, by index, that hold keys of [smallest, largest]: from `first`
// up to, but not, `end`. REQUIRES: segments in order, without gaps.
struct SegmentSpan {
  size_t first = 0;
  size_t end = 0;
};
SegmentSpan SegmentsOf(const rocksdb::Comparator* order,
                       const std::vector<PlanSegment>& segments,
                       const rocksdb::Slice& smallest,
                       const rocksdb::Slice& largest);

struct CoverComparison {
  const rocksdb::Comparator* order = nullptr;
  CompareMode compare = CompareMode::kFiles;
  KeyInterval selection;
  uint64_t sequence = 0;  // of the snapshot
  // The target's family holds nothing: there is nothing to compare.
  bool target_is_empty = false;
};

// Cuts the selection into segments, in order. `known` are the covers of one
// family; what is no interval or overlaps another of them counts as unknown.
std::vector<PlanSegment> CompareCovers(const CoverComparison& how,
                                       const Backings& backings,
                                       std::vector<Cover> known);

}  // namespace sstferry
