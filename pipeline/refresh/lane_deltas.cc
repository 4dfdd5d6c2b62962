#include "pipeline/refresh/lane_deltas.h"

#include <algorithm>

#include "format/coding.h"
#include "format/limits.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/parts/range_entries.h"
#include "pipeline/parts/read_failure.h"
#include "pipeline/refresh/common_marks.h"
#include "pipeline/refresh/next_place.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Maximum number of parts whose group digests are kept in memory. They are
// needed when the target requests a delta.
constexpr size_t kIndexesKept = 3;
// Number of entries between two polls of `cancelled`.
constexpr uint64_t kSiftLookInterval = 64;
// Maximum memory for the entries that a target lists in the delta request of
// one part: keys, digests and overhead, in bytes.
constexpr uint64_t kMaxAskedBytes =
    kMaxIndexKeyBytes + 64 * kMaxIndexEntries;

Status Wrong(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "delta request: " + what);
}

}  // namespace

Status GroupDeltas::Index(const Part& part, const GroupRequest& request,
                          const std::function<bool()>& cancelled,
                          GroupReply* reply) {
  if (request.group_entries == 0) {
    return Wrong("expected groups of at least 1 entry, found 0");
  }
  const TransferFamily& family = source_->family(part);
  EntryDigester digester(salt_);
  EntrySums sums;
  std::optional<GroupIndex> index(std::in_place, salt_, request.group_entries,
                                  GroupIndex::Keep::kFirstKeys);
  RangeEntriesOptions options;
  options.readahead_bytes = family.readahead_bytes;
  options.files = family.files_to_merge();
  options.cancelled = cancelled;
  RangeEntries reader(source_->db(), family.handle, part.interval, options);
  reader.SeekToBegin();
  const Status status =
      ReadFailure(IndexAll(&reader, &digester, cancelled, &sums,
                           &reply->key_value_bytes, &index),
                  "compare");
  reply->entries = sums.entries;
  reply->content = sums.sum;
  // Forget an earlier reply for this part, which may have had other groups.
  std::erase_if(told_, [&part](const Told& one) {
    return one.part_id == part.id;
  });
  if (index) {
    reply->groups = index->groups();
    told_.push_back(
        {part.id, std::make_unique<GroupIndex>(std::move(*index)), {}, {}});
  }
  if (told_.size() > kIndexesKept) {
    told_.pop_front();
  }
  return status;
}

GroupDeltas::Told* GroupDeltas::FindTold(uint32_t part_id) {
  const auto told =
      std::find_if(told_.begin(), told_.end(), [part_id](const Told& one) {
        return one.part_id == part_id;
      });
  return told == told_.end() ? nullptr : &*told;
}

Status GroupDeltas::ReadSpans(const Part& part,
                              const std::vector<KeyInterval>& spans,
                              const std::function<bool()>& cancelled,
                              std::vector<Digest128>* digests,
                              bool* fit) const {
  rocksdb::ColumnFamilyHandle* const family = source_->family(part).handle;
  const rocksdb::Comparator* const order = family->GetComparator();
  EntryDigester digester(salt_);
  // Do not read ahead: the reader skips the data between the spans.
  IntervalReader reader(source_->db(), family, part.interval,
                        /*readahead_bytes=*/0, cancelled);
  NextPlace place(order, &reader);
  std::string scratch;
  *fit = true;
  for (const KeyInterval& span : spans) {
    place.MoveTo(*span.begin);
    for (; *fit && reader.Valid() &&
           !(span.end.has_value() &&
             order->Compare(reader.key(), *span.end) >= 0);
         reader.Next()) {
      bool entity = false;
      const rocksdb::Slice value = reader.DigestValue(&scratch, &entity);
      digests->push_back(digester.DigestOfEntry(reader.key(), value, entity));
      *fit = digests->size() <= TuningOfComparisons().marks;
      if (digests->size() % kSiftLookInterval == 0 && cancelled &&
          cancelled()) {
        return MakeStatus(EndState::kCancelled, "compare: stopped on request");
      }
    }
  }
  return ReadFailure(reader.status(), "compare");
}

Status GroupDeltas::Sift(const Part& part, const SiftRequest& request,
                         const std::function<bool()>& cancelled,
                         SiftReply* reply) {
  Told* const told = FindTold(part.id);
  if (told == nullptr || request.marks.size() % kMarkBytes != 0) {
    return Wrong("expected marks for a part whose groups were requested, found "
                 "part " + std::to_string(part.id));
  }
  PieceDifference piece;
  piece.interval = part.interval;
  RETURN_IF_ERROR(TakeGroups(*told->index, request.groups, &piece));
  std::vector<Digest128> here;
  bool fit = false;
  RETURN_IF_ERROR(ReadSpans(part, piece.spans, cancelled, &here, &fit));
  if (!fit) {
    return Status::OK();  // the target will refuse an empty digest
  }
  std::vector<uint32_t> ours;
  for (const Digest128& digest : here) {
    ours.push_back(MarkOf(digest));
  }
  std::vector<uint32_t> theirs;
  for (size_t i = 0; i < request.marks.size(); i += kMarkBytes) {
    char mark[4] = {};
    std::copy_n(request.marks.data() + i, kMarkBytes, mark);
    theirs.push_back(DecodeFixed32(mark));
  }
  told->sifted = request.groups;
  told->common.assign(here.size(), false);
  Digest128Stream common;
  uint32_t next = 0;
  for (const auto& [mine, other] : FindCommonMarks(ours, theirs)) {
    told->common[mine] = true;
    AddDigest(here[mine], &common);
    for (; next < other; ++next) {
      reply->others.push_back(next);
    }
    ++next;
  }
  for (; next < theirs.size(); ++next) {
    reply->others.push_back(next);
  }
  reply->common = common.Finish();
  if (IsPlanted(CompareFault::kSiftedAway)) {
    const auto lacking =
        std::find(told->common.begin(), told->common.end(), false);
    if (lacking != told->common.end()) {
      *lacking = true;
    }
  }
  return Status::OK();
}

Status GroupDeltas::Add(const Part& part, DeltaRequest request) {
  if (!request.begins &&
      (asked_.complete || asked_.part_id != request.part_id)) {
    return Wrong("expected its first message, found a later one");
  }
  std::vector<GroupEntry> entries = std::move(request.entries);
  const bool complete = request.complete;
  if (request.begins) {
    asked_ = std::move(request);
    asked_.entries.clear();
    asked_bytes_ = 0;
  }
  const rocksdb::Comparator* const order =
      source_->family(part).handle->GetComparator();
  std::string before;  // the previous key in this message
  for (GroupEntry& entry : entries) {
    if (!PutBackShared(before, &entry)) {
      return Wrong("expected a key that repeats at most " +
                   std::to_string(before.size()) +
                   " bytes of the previous key, found " +
                   std::to_string(entry.shared_bytes));
    }
    before = entry.key;
    asked_bytes_ += entry.key.size() + 64;
    if (!asked_.entries.empty() &&
        order->Compare(asked_.entries.back().key, entry.key) >= 0) {
      return Wrong("expected entries in key order, found another order");
    }
    asked_.entries.push_back(std::move(entry));
  }
  asked_.complete = complete;
  return asked_bytes_ <= kMaxAskedBytes
             ? Status::OK()
             : MakeStatus(EndState::kDenied,
                          "delta request: expected at most " +
                              std::to_string(kMaxAskedBytes) +
                              " bytes, found more");
}

// Makes one span of a sequence of consecutive groups.
Status GroupDeltas::TakeGroups(const GroupIndex& index,
                               const std::vector<uint32_t>& groups,
                               PieceDifference* piece) {
  size_t next = 0;  // the group after the last span
  for (const uint32_t group : groups) {
    if (group >= index.groups().size() ||
        (!piece->spans.empty() && group < next)) {
      return Wrong("expected ascending groups below " +
                   std::to_string(index.groups().size()) + ", found " +
                   std::to_string(group));
    }
    if (piece->spans.empty() || group != next) {
      piece->spans.push_back({index.key(group).ToString(), std::nullopt});
    }
    for (; next < group; ++next) {
      piece->between.push_back(index.key(next).ToString());
    }
    next = group + 1;
    piece->spans.back().end = next < index.groups().size()
                                 ? std::optional(index.key(next).ToString())
                                 : piece->interval.end;
  }
  for (; next < index.groups().size(); ++next) {
    piece->between.push_back(index.key(next).ToString());
  }
  return Status::OK();
}

Status GroupDeltas::Build(const Part& part, const ChunkBuilderOptions& options,
                          ChunkSink* sink) {
  const TransferFamily& family = source_->family(part);
  PieceDifference piece;
  if (asked_.received.chunks > kMaxChunkOrdinal) {
    return Wrong("expected at most " + std::to_string(kMaxChunkOrdinal) +
                 " received chunks, found " +
                 std::to_string(asked_.received.chunks));
  }
  piece.interval = asked_.interval;
  piece.ordinal = static_cast<uint32_t>(asked_.received.chunks);
  piece.basis = asked_.basis;
  piece.most_point_deletions = asked_.most_point_deletions;
  Status status;
  const bool sifted = piece.basis == DeltaBasis::kSifted;
  if (sifted || piece.basis == DeltaBasis::kGroups) {
    Told* const told = FindTold(part.id);
    if (told == nullptr || !(piece.interval == part.interval)) {
      return Wrong("expected a part whose groups were requested, found part " +
                   std::to_string(part.id));
    }
    status = TakeGroups(*told->index, sifted ? told->sifted : asked_.groups,
                        &piece);
    if (sifted) {
      piece.common = std::move(told->common);
    }
  } else if (!IsInside(piece.interval, part.interval,
                       family.handle->GetComparator())) {
    status = Wrong("expected a piece of part " + std::to_string(part.id) +
                   ", found an interval outside of it");
  }
  RETURN_IF_ERROR(status);
  piece.entries = std::move(asked_.entries);
  asked_ = DeltaRequest();
  EntryDigester digester(salt_);
  DeltaBuilder builder(source_->db(), family.handle,
                       source_->delta_options(part), options, sink);
  return builder.BuildDifferences(part, piece, &digester);
}

}  // namespace sstferry
