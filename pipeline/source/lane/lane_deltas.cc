#include "pipeline/source/lane/lane_deltas.h"

#include <iterator>

#include "format/limits.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/read/range_entries.h"
#include "pipeline/source/chunk/read_failure.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Ranges whose groups a target may have been told before it asks for a delta.
constexpr size_t kIndexesKept = 3;
// What a target has in one range: keys, digests and their overhead.
constexpr uint64_t kMaxAskedBytes =
    kMaxIndexKeyBytes + 64 * kMaxIndexEntries;

Status Wrong(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "delta request: " + what);
}

// RocksDB's writers take the empty key only alone; in bytewise order it has a
// range of its own.
bool MayHoldEmptyKey(const Range& range, const rocksdb::Comparator* order) {
  return order != rocksdb::BytewiseComparator() &&
         Holds(range.interval, order, "");
}

}  // namespace

Status LaneDeltas::FindRange(uint32_t range_id, const Range** range) const {
  if (range_id >= transfer_->ranges().size() ||
      transfer_->ranges()[range_id].need != RangeNeed::kCompare) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a range to compare, found range " +
                          std::to_string(range_id));
  }
  *range = &transfer_->ranges()[range_id];
  return Status::OK();
}

Status LaneDeltas::Index(const GroupRequest& request,
                         const std::function<bool()>& cancelled,
                         GroupReply* reply) {
  const Range* range = nullptr;
  Status status = FindRange(request.range_id, &range);
  if (status.ok() && request.group_entries == 0) {
    status = Wrong("expected groups of at least 1 entry");
  }
  if (!status.ok()) {
    return status;
  }
  const TransferFamily& family = transfer_->families()[range->family];
  auto index = std::make_unique<GroupIndex>(transfer_->id(),
                                            request.group_entries,
                                            GroupIndex::Keep::kFirstKeys);
  RangeEntriesOptions options;
  options.readahead_bytes = family.readahead_bytes;
  options.files = family.files_to_merge();
  options.cancelled = cancelled;
  RangeEntries reader(transfer_->db(), family.handle, range->interval, options);
  reader.SeekToBegin();
  status = ReadFailure(IndexEntries(&reader, cancelled, index.get()),
                       "compare");
  reply->entries = index->entries();
  reply->key_value_bytes = index->key_value_bytes();
  reply->content = index->content();
  reply->takes_delta =
      family.takes_delta && index->has_groups() &&
      !MayHoldEmptyKey(*range, family.handle->GetComparator());
  if (reply->takes_delta) {
    reply->groups = index->groups();
    indexes_.emplace_back(range->id, std::move(index));
  }
  if (indexes_.size() > kIndexesKept) {
    indexes_.pop_front();
  }
  return status;
}

const GroupIndex* LaneDeltas::FindIndex(uint32_t range_id) const {
  for (auto it = indexes_.rbegin(); it != indexes_.rend(); ++it) {
    if (it->first == range_id) {
      return it->second.get();
    }
  }
  return nullptr;
}

Status LaneDeltas::Add(DeltaRequest request) {
  const Range* range = nullptr;
  Status status = FindRange(request.range_id, &range);
  if (!status.ok()) {
    return status;
  }
  if (asked_.complete || asked_.range_id != request.range_id ||
      !request.groups.empty()) {
    asked_ = DeltaRequest();  // a first message
    asked_.range_id = request.range_id;
    asked_.groups = std::move(request.groups);
    asked_bytes_ = 0;
  }
  for (GroupEntry& entry : request.entries) {
    asked_bytes_ += entry.key.size() + 64;
    asked_.entries.push_back(std::move(entry));
  }
  asked_.complete = request.complete;
  return asked_bytes_ <= kMaxAskedBytes
             ? Status::OK()
             : MakeStatus(EndState::kDenied,
                          "delta request: expected at most " +
                              std::to_string(kMaxAskedBytes) +
                              " bytes, found more");
}

// Neighbouring groups become one span.
Status LaneDeltas::SpansOf(const Range& range, const GroupIndex& index,
                           std::vector<KeyInterval>* spans) const {
  size_t next = 0;  // the group behind the last span
  for (const uint32_t group : asked_.groups) {
    if (group >= index.groups().size() || (!spans->empty() && group < next)) {
      return Wrong("expected ascending groups below " +
                   std::to_string(index.groups().size()) + ", found " +
                   std::to_string(group));
    }
    if (spans->empty() || group != next) {
      spans->push_back({index.key(group).ToString(), std::nullopt});
    }
    next = group + 1;
    spans->back().end = next < index.groups().size()
                            ? std::optional(index.key(next).ToString())
                            : range.interval.end;
  }
  return Status::OK();
}

Status LaneDeltas::Build(const Range& range,
                         const ChunkBuilderOptions& options, ChunkSink* sink) {
  const GroupIndex* const index = FindIndex(range.id);
  if (index == nullptr) {
    return Wrong("expected one for a range whose groups were asked for, found "
                 "range " + std::to_string(range.id));
  }
  std::vector<KeyInterval> spans;
  const Status status = SpansOf(range, *index, &spans);
  if (!status.ok()) {
    return status;
  }
  const TransferFamily& family = transfer_->families()[range.family];
  GroupIndex digests(transfer_->id(), 1, GroupIndex::Keep::kFirstKeys);
  DeltaBuilder builder(transfer_->db(), family.handle, family.delta_options,
                       options, sink);
  const Status built =
      builder.BuildDifferences(range, spans, asked_.entries, &digests);
  asked_ = DeltaRequest();
  return built;
}

}  // namespace sstferry
