#include "pipeline/refresh/group_compare.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <utility>

#include "format/coding.h"
#include "format/digest.h"
#include "format/end_state.h"
#include "format/for_each_batch.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Desired bytes of entries in one group. A group's digest of 16 bytes is 0.3 %
// of that. Larger groups need fewer digests if nothing has changed, but more
// marks if something has changed.
constexpr uint64_t kGroupBytes = 5000;
constexpr uint64_t kFirstGroupEntries = 16;
// Minimum mean number of entries in the differing groups for which marks are
// sent first. With smaller groups, marks would save little.
constexpr size_t kFewOfGroup = 4;
constexpr uint64_t kMostGroupEntries = 256;
// If at least 49 of 50 groups differ, the target sends all its entries. The
// source then reads the part sequentially.
constexpr size_t kManyOf = 50;

// A hash set of group digests. Its hash has a secret seed, so that a hostile
// source cannot send digests that collide in the set.
class GroupSet {
 public:
  GroupSet(const std::vector<Digest128>& groups, uint64_t secret)
      : groups_(groups), secret_(secret) {
    // Use at most half of the slots, so that searches are short.
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

  // Returns the slot that contains the group, or the empty slot in which to
  // insert it.
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

// Returns the indexes of the groups in `mine` that are not in `other`.
std::vector<size_t> Missing(const std::vector<Digest128>& mine,
                            const std::vector<Digest128>& other,
                            uint64_t secret) {
  const GroupSet others(other, secret);
  std::vector<size_t> missing;
  for (size_t i = 0; i < mine.size(); ++i) {
    if (!others.Holds(mine[i]) &&
        !IsPlanted(CompareFault::kGroupTakenForEqual)) {
      missing.push_back(i);
    }
  }
  return missing;
}

}  // namespace

void GroupComparer::BeginPlan(std::vector<std::string> families,
                              uint32_t most_point_deletions) {
  most_point_deletions_ = most_point_deletions;
  names_ = std::move(families);
  std::lock_guard<std::mutex> lock(mu_);
  compared_.assign(names_.size(), Totals());
}

uint32_t GroupComparer::ChooseGroupEntries(const Part& part) const {
  std::lock_guard<std::mutex> lock(mu_);
  const Totals& compared = compared_[part.family];
  const uint64_t wanted =
      compared.sst_bytes == 0
          ? kFirstGroupEntries
          : kGroupBytes * compared.entries / compared.sst_bytes;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(wanted, 1, kMostGroupEntries));
}

std::unique_ptr<PartComparison> GroupComparer::Begin(const Part& part,
                                                     uint32_t group_entries,
                                                     HowToTell how) {
  return std::make_unique<GroupCompare>(this, &part, group_entries, how);
}

void GroupComparer::Count(const Part& part, uint64_t entries) {
  std::lock_guard<std::mutex> lock(mu_);
  compared_[part.family].entries += entries;
  compared_[part.family].sst_bytes += part.bytes;
}

Status GroupCompare::Read() {
  const bool is_first = !rest_ && !index_;
  if (rest_) {
    piece_.begin = std::move(rest_);
    rest_.reset();
  }
  read_ = EntrySums();
  index_.emplace(comparer_->lanes().transfer_id, group_entries_,
                 GroupIndex::Keep::kEntries);
  RETURN_IF_ERROR(comparer_->Index(*part_, piece_, &digester_, &read_,
                                   &*index_, &rest_));
  proof_.AddRead(read_);
  if (is_first && !rest_) {
    comparer_->Count(*part_, read_.entries);
  }
  return Status::OK();
}

Status GroupCompare::Compare(const GroupReply* reply,
                             std::optional<SiftRequest>* sift,
                             std::vector<DeltaRequest>* delta) {
  if (reply != nullptr) {
    const EntrySums source{reply->entries, reply->content};
    proof_.SetSource(source);
    if (!rest_ && read_ == source) {
      return Status::OK();
    }
  }
  if (reply == nullptr || how_ == HowToTell::kEverything) {
    TellAllEntries(delta);
    return Status::OK();
  }
  // If the source has no entries in the part, the delta deletes all entries of
  // the target. The source needs only the first and the last key for that.
  if (reply->entries == 0 && comparer_->most_point_deletions() != 0 &&
      read_.entries > comparer_->most_point_deletions()) {
    return TellOutermost(delta);
  }
  if (rest_ || reply->groups.empty()) {
    TellAllEntries(delta);
    return Status::OK();
  }
  const uint64_t secret = std::random_device()();
  const std::vector<size_t> here =
      Missing(index_->groups(), reply->groups, secret);
  if (here.size() * kManyOf >= index_->groups().size() * (kManyOf - 1)) {
    TellAllEntries(delta);
    return Status::OK();
  }
  const std::vector<size_t> there =
      Missing(reply->groups, index_->groups(), secret);
  here_ = EntriesOf(here);
  there_.assign(there.begin(), there.end());
  const CompareTuning& tuning = TuningOfComparisons();
  if (here_.size() >= tuning.few_entries && here_.size() <= tuning.marks &&
      here_.size() >= kFewOfGroup * here.size()) {
    sift->emplace();
    (*sift)->part_id = part_->id;
    (*sift)->groups = there_;
    for (const size_t entry : here_) {
      char mark[4];
      EncodeFixed32(mark, MarkOf(index_->digest(entry)));
      (*sift)->marks.append(mark, kMarkBytes);
    }
    return Status::OK();
  }
  TellGroups(delta);
  return Status::OK();
}

void GroupCompare::TellGroups(std::vector<DeltaRequest>* delta) const {
  *delta = FirstMessage(DeltaBasis::kGroups);
  delta->front().groups = there_;
  TellEntries(here_, delta);
}

// Sends the entries whose marks the source does not have. The marks of the
// other entries match, but two different entries may have equal marks. So this
// function compares one digest of all other entries with the source's digest.
// If the digests differ, it sends all entries of the groups.
void GroupCompare::TakeSifted(const SiftReply& reply,
                              std::vector<DeltaRequest>* delta) {
  std::vector<size_t> others;
  Digest128Stream common;
  for (size_t i = 0; i < here_.size(); ++i) {
    if (others.size() < reply.others.size() &&
        reply.others[others.size()] == i) {
      others.push_back(here_[i]);
    } else {
      AddDigest(index_->digest(here_[i]), &common);
    }
  }
  if (others.size() != reply.others.size() ||
      !(common.Finish() == reply.common)) {
    TellGroups(delta);
    return;
  }
  if (!others.empty() && IsPlanted(CompareFault::kMarkBelieved)) {
    others.pop_back();
  }
  *delta = FirstMessage(DeltaBasis::kSifted);
  TellEntries(others, delta);
}

std::vector<DeltaRequest> GroupCompare::FirstMessage(DeltaBasis basis) const {
  std::vector<DeltaRequest> delta(1);
  DeltaRequest& first = delta.front();
  first.part_id = part_->id;
  first.begins = true;
  first.received = comparer_->lanes().starts[part_->id].received;
  first.interval = piece_;
  first.basis = basis;
  first.most_point_deletions = comparer_->most_point_deletions();
  return delta;
}

// Sends only the target's first and last key. The source has no entries in the
// part, so the delta deletes everything between these keys.
Status GroupCompare::TellOutermost(std::vector<DeltaRequest>* delta) {
  clears_ = true;
  rest_.reset();
  std::optional<std::string> first;
  std::optional<std::string> last;
  const Status status =
      comparer_->FindOutermost(*part_, piece_, &first, &last);
  *delta = FirstMessage(DeltaBasis::kOutermost);
  for (const std::optional<std::string>& key : {first, last}) {
    if (key && (delta->front().entries.empty() || first != last)) {
      delta->front().entries.push_back({*key, Digest128()});
    }
  }
  delta->front().complete = true;
  return status;
}

void GroupCompare::TellAllEntries(std::vector<DeltaRequest>* delta) const {
  std::vector<size_t> groups(index_->groups().size());
  std::iota(groups.begin(), groups.end(), size_t{0});
  *delta = FirstMessage(DeltaBasis::kEntries);
  if (rest_) {
    delta->front().interval.end = rest_;
  }
  TellEntries(EntriesOf(groups), delta);
}

Status GroupCompare::TakeChunk(const StagedChunk& chunk) {
  const LaneShared& lanes = comparer_->lanes();
  const CheckedDelta delta{lanes.file_system, chunk.path,
                           lanes.families[part_->family].comparator};
  if (!clears_) {
    return proof_.TakeChunk(delta, *index_, &digester_);
  }
  std::optional<std::string> first;
  std::optional<std::string> last;
  RETURN_IF_ERROR(comparer_->FindOutermost(*part_, piece_, &first, &last));
  return first && last ? proof_.TakeClearing(delta, *first, *last)
                       : Status::OK();
}

Status GroupCompare::Prove() const {
  if (proof_.holds()) {
    return Status::OK();
  }
  const EntrySums& source = proof_.source();
  const EntrySums& here = proof_.here();
  return MakeStatus(
      EndState::kInternal,
      "part " + std::to_string(part_->id) + " of column family '" +
          comparer_->name_of(part_->family) + "': expected the source's " +
          std::to_string(source.entries) + " entries with the sum " +
          ToHex(source.sum) + " after its delta, found " +
          std::to_string(here.entries) + " with the sum " + ToHex(here.sum));
}

std::vector<size_t> GroupCompare::EntriesOf(
    const std::vector<size_t>& groups) const {
  std::vector<size_t> entries;
  for (const size_t group : groups) {
    for (size_t i = index_->GroupBegin(group); i < index_->GroupEnd(group);
         ++i) {
      entries.push_back(i);
    }
  }
  return entries;
}

void GroupCompare::TellEntries(const std::vector<size_t>& told,
                               std::vector<DeltaRequest>* delta) const {
  std::vector<GroupEntry> entries;
  for (const size_t entry : told) {
    entries.push_back({index_->key(entry).ToString(), index_->digest(entry)});
  }
  const auto tell = [&](std::vector<GroupEntry> batch) {
    if (IsPlanted(CompareFault::kEntryNotTold)) {
      batch.pop_back();
    }
    for (size_t i = batch.size(); i > 1; --i) {
      LeaveOutShared(batch[i - 2].key, &batch[i - 1]);
    }
    delta->emplace_back();
    delta->back().part_id = part_->id;
    delta->back().entries = std::move(batch);
  };
  const size_t most = TuningOfComparisons().message_bytes;
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    for (size_t bytes = 0; end < entries.size(); ++end) {
      bytes += EncodedBytes(entries[end]);
      if (end > begin && bytes > most) {
        break;
      }
    }
    tell({entries.begin() + static_cast<std::ptrdiff_t>(begin),
          entries.begin() + static_cast<std::ptrdiff_t>(end)});
  }
  delta->back().complete = true;
}

}  // namespace sstferry
