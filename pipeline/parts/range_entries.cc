#include "pipeline/parts/range_entries.h"

#include <algorithm>

#include "format/end_state.h"
#include "pipeline/parts/read_failure.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

uint64_t ReadaheadOf(uint64_t lanes, uint64_t sorted_runs) {
  constexpr uint64_t kAllBytes = 16u << 20;
  constexpr uint64_t kMinBytes = 64u << 10;
  constexpr uint64_t kMaxBytes = 1u << 20;
  const uint64_t streams =
      std::max<uint64_t>(1, lanes) * std::max<uint64_t>(1, sorted_runs);
  return std::clamp(kAllBytes / streams, kMinBytes, kMaxBytes);
}

RangeEntries::RangeEntries(rocksdb::DB* db,
                           rocksdb::ColumnFamilyHandle* family,
                           const KeyInterval& interval,
                           const RangeEntriesOptions& options)
    : db_(db), family_(family), interval_(interval), options_(options) {}

void RangeEntries::Start(const Slice* after) {
  if (options_.files == nullptr ||
      !MergedEntries::CanMerge(*options_.files, family_->GetComparator(),
                               interval_)) {
    Iterate(after);
    return;
  }
  const Status status = Merge(after);
  if (!status.ok()) {
    GiveUp(status, after);
  }
}

Status RangeEntries::Merge(const Slice* after) {
  TableReads reads;
  reads.file_system = db_->GetFileSystem();
  reads.order = family_->GetComparator();
  reads.interval = interval_;
  reads.readahead_bytes = options_.readahead_bytes;
  if (after != nullptr) {
    reads.interval.begin = after->ToString();
  }
  merged_ = std::make_unique<MergedEntries>(*options_.files, std::move(reads),
                                            options_.cancelled);
  const Status status = merged_->Open();
  const bool skips = status.ok() && after != nullptr && merged_->valid() &&
                     family_->GetComparator()->Compare(merged_->key(),
                                                       *after) == 0;
  return skips ? merged_->Next() : status;
}

void RangeEntries::Iterate(const Slice* after) {
  iterated_ = std::make_unique<IntervalReader>(
      db_, family_, interval_, options_.readahead_bytes, options_.cancelled);
  if (after == nullptr) {
    iterated_->SeekToBegin();
  } else {
    iterated_->SeekAfter(*after);
  }
}

void RangeEntries::GiveUp(const Status& status, const Slice* after) {
  const std::unique_ptr<MergedEntries> merged = std::move(merged_);
  if (!status.IsNotSupported()) {
    stopped_ = EndStateOf(status) == EndState::kCancelled
                   ? status
                   : WithoutState(status);
  } else if (merged->done() != nullptr) {
    const Slice done = *merged->done();
    Iterate(&done);
  } else {
    Iterate(after);
  }
}

void RangeEntries::Next() {
  if (merged_ == nullptr) {
    iterated_->Next();
    return;
  }
  const Status status = merged_->Next();
  if (!status.ok()) {
    GiveUp(status, nullptr);
  }
}

}  // namespace sstferry
