#include "pipeline/refresh/interval_plan.h"

#include <algorithm>

#include "format/coding.h"
#include "pipeline/base/key_interval.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;

using Bound = std::optional<std::string>;

// Compares begins: an unset one is before all others.
bool BeginsBefore(const Comparator* order, const Bound& a, const Bound& b) {
  return b.has_value() && (!a.has_value() || order->Compare(*a, *b) < 0);
}
// Compares ends: an unset one is after all others.
bool EndsBefore(const Comparator* order, const Bound& a, const Bound& b) {
  return a.has_value() && (!b.has_value() || order->Compare(*a, *b) < 0);
}
// Returns true if an interval that ends at `end` is completely before one that
// begins at `begin`.
bool LiesBefore(const Comparator* order, const Bound& end,
                const Bound& begin) {
  return end.has_value() && begin.has_value() &&
         order->Compare(*end, *begin) <= 0;
}

bool IsInterval(const Comparator* order, const KeyInterval& interval) {
  return !interval.begin.has_value() || !interval.end.has_value() ||
         order->Compare(*interval.begin, *interval.end) < 0;
}

// Sorts the interval records and removes overlapping ones.
void Sort(const Comparator* order, std::vector<IntervalRecord>* intervals) {
  std::erase_if(*intervals, [order](const IntervalRecord& interval_record) {
    return !IsInterval(order, interval_record.interval);
  });
  std::sort(intervals->begin(), intervals->end(),
            [order](const IntervalRecord& a, const IntervalRecord& b) {
              return BeginsBefore(order, a.interval.begin, b.interval.begin);
            });
  std::vector<IntervalRecord> kept;
  for (IntervalRecord& interval_record : *intervals) {
    if (kept.empty() || LiesBefore(order, kept.back().interval.end,
                                   interval_record.interval.begin)) {
      kept.push_back(std::move(interval_record));
    }
  }
  *intervals = std::move(kept);
}

struct Judgement {
  PartNeed need;
  std::string reason;
};

bool SameWal(const IntervalRecord& then, const IntervalRecord& now) {
  const bool same_log = then.wal == now.wal && !(now.wal == Digest128());
  return then.flushed == now.flushed && (!now.flushed || same_log);
}

// Returns true if the keys of all possible changes in the interval are known.
bool IsKnown(const IntervalComparison& how, const IntervalRecord& then) {
  if (how.changes == nullptr ||
      (then.flushed && !how.changes->knows_wal_keys)) {
    return false;
  }
  for (const auto& [smallest, largest] : how.changes->cleared) {
    if (MeetsSpan(then.interval, how.order, smallest, largest)) {
      return false;
    }
  }
  IntervalRecord old = then;
  how.changes->old_files->Fill(&old);
  return old.backing == then.backing;
}

constexpr char kTargetChanged[] = "the target was written to or compacted";

Judgement Judge(const IntervalComparison& how, const IntervalRecord& then,
                const IntervalRecord& now) {
  const bool same_files = then.backing == now.backing;
  if (how.compare == CompareMode::kDigest) {
    return {PartNeed::kCompare,
            same_files ? "requested by digest" : "backed by other files"};
  }
  const bool unlike = !same_files || !SameWal(then, now);
  const bool known = unlike && IsKnown(how, then);
  if (known && !then.doubted) {
    return {PartNeed::kLookup, "keys of new files and of the WAL"};
  }
  if (known || (then.doubted && !unlike)) {
    return {PartNeed::kCompare, kTargetChanged};
  }
  if (!same_files) {
    return {PartNeed::kCompare, "backed by other files"};
  }
  if (!SameWal(then, now)) {
    return {PartNeed::kCompare, "the WAL has entries in the interval"};
  }
  return {PartNeed::kUnchanged,
          "unchanged since sequence " + std::to_string(then.sequence)};
}

// Returns the segment for an interval without an interval record.
PlanSegment Unknown(const IntervalComparison& how, const Bound& begin,
                    const Bound& end) {
  PlanSegment segment;
  segment.interval = {begin, end};
  segment.need =
      how.target_is_empty ? PartNeed::kSend : PartNeed::kCompare;
  segment.reason = "no interval record";
  return segment;
}

// Collects segments, and joins neighbouring ones that are to be sent or looked
// up.
class Segments {
 public:
  explicit Segments(const Comparator* order) : order_(order) {}

  void Add(PlanSegment segment) {
    if (!IsInterval(order_, segment.interval)) {
      return;
    }
    if (segments_.empty() || segment.need != segments_.back().need ||
        !MayJoin(segment)) {
      segments_.push_back(std::move(segment));
      return;
    }
    PlanSegment& last = segments_.back();
    last.interval.end = segment.interval.end;
    last.intervals.insert(last.intervals.end(), segment.intervals.begin(),
                       segment.intervals.end());
  }
  std::vector<PlanSegment> Take() { return std::move(segments_); }

 private:
  // Parts of a record that a selection cuts get records of their own.
  bool MayJoin(const PlanSegment& segment) const {
    return segment.need == PartNeed::kSend ||
           (segment.need == PartNeed::kLookup && !segment.intervals.empty() &&
            !segments_.back().intervals.empty());
  }

  const Comparator* const order_;
  std::vector<PlanSegment> segments_;
};

}  // namespace

Backings::Backings(const Comparator* order, const std::vector<FilePlan>* files,
                   const FamilyEvidence& family)
    : order_(order), files_(files), family_(family) {
  for (size_t i = 0; i < files->size(); ++i) {
    const bool further =
        i == 0 || order->Compare((*files)[i].largest,
                                 (*files)[furthest_.back()].largest) > 0;
    furthest_.push_back(further ? i : furthest_.back());
  }
  for (const FilePlan& file : *files) {
    const auto behind = std::partition_point(
        files->begin(), files->end(), [&](const FilePlan& other) {
          return order->Compare(other.smallest, file.largest) <= 0;
        });
    reach_.push_back(static_cast<size_t>(behind - files->begin()));
  }
}

// Two files that overlap an interval and each other also overlap inside the
// interval, so keys outside do not affect a rank. The overlaps and the ranks
// determine an acyclic order of the files. Moving a file to another level
// without rewriting it changes none of them.
std::vector<uint32_t> Backings::RanksOf(
    const std::vector<size_t>& meeting) const {
  std::vector<uint32_t> ranks(meeting.size(), 0);
  std::vector<size_t> open;  // positions in `meeting`
  for (size_t k = 0; k < meeting.size(); ++k) {
    const size_t file = meeting[k];
    std::erase_if(open, [&](size_t other) {
      return reach_[meeting[other]] <= file;
    });
    for (const size_t other : open) {
      const uint64_t theirs = (*files_)[meeting[other]].depth;
      const uint64_t ours = (*files_)[file].depth;
      ranks[k] += theirs < ours ? 1 : 0;
      ranks[other] += ours < theirs ? 1 : 0;
    }
    open.push_back(k);
  }
  return ranks;
}

void Backings::Fill(IntervalRecord* interval_record) const {
  const KeyInterval& interval = interval_record->interval;
  // All files before that one end before the interval.
  const auto first = std::partition_point(
      furthest_.begin(), furthest_.end(), [&](size_t furthest) {
        return !BeginsAtOrBefore(interval, order_,
                                 (*files_)[furthest].largest);
      });
  std::vector<size_t> meeting;
  interval_record->flushed = family_.in_memory;
  for (size_t i = static_cast<size_t>(first - furthest_.begin());
       i < files_->size() &&
       EndsAfter(interval, order_, (*files_)[i].smallest);
       ++i) {
    const FilePlan& file = (*files_)[i];
    if (!MeetsSpan(interval, order_, file.smallest, file.largest)) {
      continue;
    }
    if (file.flushed_by_snapshot) {
      interval_record->flushed = true;
    } else {
      meeting.push_back(i);
    }
  }
  const std::vector<uint32_t> ranks = RanksOf(meeting);
  std::vector<std::string> shown;  // sorted, so file numbers do not matter
  for (size_t k = 0; k < meeting.size(); ++k) {
    const FilePlan& file = (*files_)[meeting[k]];
    std::string text;
    PutBytes(&text, file.identity);
    PutFixed64(&text, file.identity.empty() ? family_.nonce : 0);
    PutFixed64(&text, file.bytes);
    PutFixed64(&text, file.smallest_sequence);
    PutFixed64(&text, file.largest_sequence);
    PutFixed32(&text, ranks[k]);
    shown.push_back(std::move(text));
  }
  std::sort(shown.begin(), shown.end());
  std::string all;
  PutFixed32(&all, family_.family_id);
  PutBytes(&all, family_.comparator);
  PutBytes(&all, family_.merge_operator);
  for (const std::string& text : shown) {
    PutBytes(&all, text);
  }
  interval_record->backing = DigestOf(all);
  interval_record->wal = interval_record->flushed ? family_.wal : Digest128();
}

SegmentSpan SegmentsOf(const Comparator* order,
                       const std::vector<PlanSegment>& segments,
                       const rocksdb::Slice& smallest,
                       const rocksdb::Slice& largest) {
  const auto first = std::partition_point(
      segments.begin(), segments.end(), [&](const PlanSegment& segment) {
        return !EndsAfter(segment.interval, order, smallest);
      });
  const auto end = std::partition_point(
      first, segments.end(), [&](const PlanSegment& segment) {
        return BeginsAtOrBefore(segment.interval, order, largest);
      });
  return {static_cast<size_t>(first - segments.begin()),
          static_cast<size_t>(end - segments.begin())};
}

std::vector<PlanSegment> CompareIntervals(const IntervalComparison& how,
                                       const Backings& backings,
                                       std::vector<IntervalRecord> known) {
  const Comparator* const order = how.order;
  Sort(order, &known);
  Segments segments(order);
  Bound at = how.selection.begin;
  const Bound& end = how.selection.end;
  bool open = true;  // some of the selection remains after `at`
  for (const IntervalRecord& then : known) {
    if (LiesBefore(order, then.interval.end, at) ||
        LiesBefore(order, end, then.interval.begin)) {
      continue;
    }
    if (BeginsBefore(order, at, then.interval.begin)) {
      segments.Add(Unknown(how, at, then.interval.begin));
      at = then.interval.begin;
    }
    IntervalRecord now = then;
    now.sequence = how.sequence;
    now.doubted = false;
    backings.Fill(&now);
    Judgement judged = Judge(how, then, now);
    const bool whole = at == then.interval.begin &&
                       !EndsBefore(order, end, then.interval.end);
    PlanSegment segment;
    segment.interval.begin = at;
    segment.interval.end = whole ? then.interval.end : end;
    if (!whole && EndsBefore(order, then.interval.end, end)) {
      segment.interval.end = then.interval.end;
    }
    segment.need = judged.need;
    segment.reason = std::move(judged.reason);
    if (whole) {
      segment.intervals.push_back(std::move(now));
    }
    at = segment.interval.end;
    segments.Add(std::move(segment));
    open = at.has_value() && !(end.has_value() && *at == *end);
    if (!open) {
      break;
    }
  }
  if (open) {
    segments.Add(Unknown(how, at, end));
  }
  return segments.Take();
}

}  // namespace sstferry
