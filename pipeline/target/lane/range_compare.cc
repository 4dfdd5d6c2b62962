#include "pipeline/target/lane/range_compare.h"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "format/coding.h"
#include "format/digest.h"
#include "format/message/for_each_batch.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// A digest has 16 bytes.
constexpr uint64_t kGroupBytes = 1700;
constexpr uint64_t kFirstGroupEntries = 8;
constexpr uint64_t kMostGroupEntries = 256;
// Where all groups differ, and from this share of them on in ranges of at least
// so many, whole entries cost less than the digests that would save some.
constexpr size_t kLeastGroups = 64;
constexpr double kMostDifferent = 0.98;

// Groups to find by their digests. A source may send any digests: places depend
// on a number that it does not know, so that it cannot crowd them.
class GroupSet {
 public:
  GroupSet(const std::vector<Digest128>& groups, uint64_t secret)
      : groups_(groups), secret_(secret) {
    // At most half of the places are taken.
    places_.resize(std::bit_ceil(2 * groups.size() + 1), kNone);
    for (uint32_t i = 0; i < groups.size(); ++i) {
      places_[PlaceOf(groups[i])] = i;
    }
  }
  bool Holds(const Digest128& group) const {
    return places_[PlaceOf(group)] != kNone;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Its own place, or the empty one where it would be put.
  size_t PlaceOf(const Digest128& group) const {
    const size_t mask = places_.size() - 1;
    char bytes[16];
    EncodeFixed64(bytes, group.low);
    EncodeFixed64(bytes + 8, group.high);
    size_t place = Digest64(rocksdb::Slice(bytes, sizeof(bytes)), secret_) &
                   mask;
    while (places_[place] != kNone && !(groups_[places_[place]] == group)) {
      place = (place + 1) & mask;
    }
    return place;
  }

  const std::vector<Digest128>& groups_;
  const uint64_t secret_;
  std::vector<uint32_t> places_;
};

// Indexes of the groups of `mine` that `other` lacks.
std::vector<size_t> Missing(const std::vector<Digest128>& mine,
                            const std::vector<Digest128>& other,
                            uint64_t secret) {
  const GroupSet others(other, secret);
  std::vector<size_t> missing;
  for (size_t i = 0; i < mine.size(); ++i) {
    if (!others.Holds(mine[i])) {
      missing.push_back(i);
    }
  }
  return missing;
}

}  // namespace

uint32_t RangeCompare::ChooseGroupEntries(const PullState& state,
                                          uint32_t range_id) {
  const Range& range = (*state.ranges)[range_id];
  std::lock_guard<std::mutex> lock(state.mu);
  const Totals& compared = state.family_compared[range.family];
  const uint64_t wanted =
      compared.sst_bytes == 0
          ? kFirstGroupEntries
          : kGroupBytes * compared.entries / compared.sst_bytes;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(wanted, 1, kMostGroupEntries));
}

Status RangeCompare::Ask(const PullState& state, const Range& range,
                         uint32_t group_entries, const WaitLimit& limit,
                         Channel* channel) {
  if (state.takes_delta) {
    GroupRequest request;
    request.range_id = range.id;
    request.group_entries = group_entries;
    return channel->SendMessage(FrameType::kGroupRequest, request, limit);
  }
  DigestRequest request;
  request.family = range.family;
  request.interval = range.interval;
  return channel->SendMessage(FrameType::kDigestRequest, request, limit);
}

Status RangeCompare::AskForDelta(const std::vector<DeltaRequest>& delta,
                                 const WaitLimit& limit, Channel* channel) {
  Status status;
  for (const DeltaRequest& one : delta) {
    if (status.ok()) {
      status = channel->SendMessage(FrameType::kDeltaRequest, one, limit);
    }
  }
  return status;
}

Status RangeCompare::Read() {
  if (!state_->takes_delta) {
    DigestReply ours;
    const Status status = state_->digest(*range_, &ours);
    ours_ = ours;
    return status;
  }
  index_.emplace(state_->transfer_id, group_entries_,
                 GroupIndex::Keep::kEntries);
  const Status status = state_->index(*range_, &*index_);
  std::lock_guard<std::mutex> lock(state_->mu);
  Totals& compared = state_->family_compared[range_->family];
  compared.entries += index_->entries();
  compared.sst_bytes += range_->estimated_bytes;
  return status;
}

Status RangeCompare::TakeReply(const Slice& payload, CompareResult* result,
                               std::vector<DeltaRequest>* delta) {
  if (!state_->takes_delta) {
    DigestReply theirs;
    const Status status = theirs.DecodeFrom(payload);
    *result = ours_->entries == theirs.entries &&
                      ours_->content == theirs.content
                  ? CompareResult::kEqual
                  : CompareResult::kReplace;
    return status;
  }
  GroupReply theirs;
  const Status status = theirs.DecodeFrom(payload);
  if (status.ok()) {
    *result = CompareGroups(theirs, delta);
  }
  return status;
}

CompareResult RangeCompare::CompareGroups(
    const GroupReply& theirs, std::vector<DeltaRequest>* delta) const {
  if (index_->entries() == theirs.entries &&
      index_->content() == theirs.content) {
    return CompareResult::kEqual;
  }
  if (!theirs.takes_delta || !index_->has_groups()) {
    return CompareResult::kReplace;
  }
  const uint64_t secret = std::random_device()();
  const std::vector<size_t> here =
      Missing(index_->groups(), theirs.groups, secret);
  const std::vector<size_t> there =
      Missing(theirs.groups, index_->groups(), secret);
  const size_t groups = index_->groups().size();
  const bool all = groups != 0 && here.size() == groups;
  if (all || (groups >= kLeastGroups &&
              static_cast<double>(here.size()) >
                  kMostDifferent * static_cast<double>(groups))) {
    return CompareResult::kReplace;
  }
  delta->emplace_back();
  delta->back().groups.assign(there.begin(), there.end());
  ForEachBatch(EntriesOf(here), [&](std::vector<GroupEntry> batch) {
    delta->emplace_back();
    delta->back().entries = std::move(batch);
    return Status::OK();
  }).PermitUncheckedError();
  for (DeltaRequest& one : *delta) {
    one.range_id = range_->id;
  }
  delta->back().complete = true;
  return CompareResult::kDelta;
}

std::vector<GroupEntry> RangeCompare::EntriesOf(
    const std::vector<size_t>& groups) const {
  std::vector<GroupEntry> entries;
  for (const size_t group : groups) {
    for (size_t i = index_->GroupBegin(group); i < index_->GroupEnd(group);
         ++i) {
      entries.push_back({index_->key(i).ToString(), index_->digest(i)});
    }
  }
  return entries;
}

}  // namespace sstferry
