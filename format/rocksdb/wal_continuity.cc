#include "format/rocksdb/wal_continuity.h"

#include <algorithm>
#include <iterator>

#include "format/end_state.h"
#include "format/rocksdb/blob_check.h"
#include "format/rocksdb/write_batch_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum number of excused sequence numbers. It is much larger than the number
// of Excuse() calls between two rounds.
constexpr size_t kMaxExcused = 1u << 16;
// Maximum number of holes. If there are more, the first two become one hole
// that spans both.
constexpr size_t kMaxHoles = 4096;

Status RefusedPolicy() {
  return MakeStatus(EndState::kRefused,
                    "WAL: expected transactions of the policy WriteCommitted, "
                    "found WritePrepared or WriteUnprepared, which cannot be "
                    "followed; a pull with --method clone can copy the "
                    "database");
}

}  // namespace

// Counts the sequence numbers that one batch consumes.
class WalContinuity::Handler : public BatchHandler {
 public:
  Handler(PreparedSections* prepared, uint64_t wal)
      : counter_(prepared, wal) {}

  uint64_t sequences() const { return counter_.sequences(); }
  bool takes_any() const { return counter_.takes_any(); }
  bool is_known() const { return counter_.is_known(); }
  // Returns how many numbers the batch consumed at least, if numbers were
  // counted for each batch instead of each entry. Returns 0 if the batch cannot
  // have been counted in this way, or if this gives no smaller number than
  // sequences().
  uint64_t least() const {
    const bool may_count_batches = run_ == 0 && batches_ > 0 && !is_of_2pc_;
    return may_count_batches && batches_ < sequences() ? batches_ : 0;
  }
  bool has_blob_index() const { return has_blob_index_; }

  Status OnEntry(BatchEntryKind kind, uint32_t, const Slice&,
                 const Slice& value) override {
    counter_.AddEntry();
    ++run_;
    ForEachBlobReference(
        TableTypeOf(kind), value,
        [this](const BlobReference&) { has_blob_index_ = true; });
    return Status::OK();
  }

  Status OnMarker(BatchMarker marker, const Slice& name) override {
    is_of_2pc_ |= marker != BatchMarker::kNoop;
    switch (marker) {
      case BatchMarker::kBeginPersistedPrepare:
      case BatchMarker::kBeginUnprepare:
        return RefusedPolicy();
      case BatchMarker::kNoop:
        batches_ += run_ > 0 ? 1 : 0;
        run_ = 0;
        break;
      default:
        break;
    }
    return counter_.AddMarker(marker, name);
  }

 private:
  SequenceCounter counter_;
  uint64_t batches_ = 0;  // runs of entries that end with a no-op marker
  uint64_t run_ = 0;      // entries after the last no-op marker
  bool is_of_2pc_ = false;
  bool has_blob_index_ = false;
};

Status WalContinuity::Add(uint64_t wal, const Slice& record, WalStep* step) {
  BatchHeader header;
  Handler handler(&prepared_, wal);
  RETURN_IF_ERROR(ReadWriteBatch(record, &header, &handler));
  const bool takes_any = handler.takes_any();
  while (takes_any && header.sequence > next_sequence_ &&
         excused_.erase(next_sequence_) > 0) {
    ++next_sequence_;
  }
  // The last batch may have consumed fewer numbers than it has entries. Only
  // the next record of the same WAL shows how many. Before a record of another
  // WAL, this record may be missing.
  const bool is_unsure = unsure_ != 0 && takes_any && wal != last_wal_;
  const bool continues =
      trusts_next_ || (trusts_unknown_ && next_sequence_ == 0) ||
      (next_sequence_ != 0 && !is_unsure &&
       (!takes_any || header.sequence == next_sequence_));
  *step = !continues                 ? WalStep::kGap
          : handler.has_blob_index() ? WalStep::kBlobIndex
                                     : WalStep::kContinues;
  if (!takes_any) {
    return Status::OK();
  }
  trusts_next_ = false;
  // See WalFacts::counts_batches().
  if (last_begin_ < header.sequence && header.sequence < last_end_) {
    return RefusedPolicy();
  }
  const uint64_t end = header.sequence + handler.sequences();
  if (last_end_ == 0) {
    // The first record: starts over from its sequence number. The last sequence
    // number of the MANIFEST may be higher, because it includes entries that
    // are only in tables.
    holes_.clear();
    AddHole(0, header.sequence);
    last_sequence_ = 0;
  } else if (!continues) {
    AddHole(unsure_ != 0          ? unsure_
            : next_sequence_ == 0 ? last_begin_
                                  : next_sequence_,
            header.sequence);
  }
  if (are_lost_) AddHole(header.sequence, end);
  last_begin_ = header.sequence;
  last_end_ = end;
  unsure_ = handler.least() == 0 ? 0 : header.sequence + handler.least();
  last_wal_ = wal;
  next_sequence_ = handler.is_known() ? end : 0;
  last_sequence_ = std::max(last_sequence_, end - 1);
  return Status::OK();
}

std::string WalContinuity::PreparedBefore(uint64_t wal) const {
  for (const auto& [name, prepared] : prepared_.by_name()) {
    if (prepared.wal < wal) {
      return name;
    }
  }
  return "";
}

void WalContinuity::Excuse(uint64_t sequence) {
  excused_.erase(excused_.begin(), excused_.lower_bound(next_sequence_));
  if (excused_.size() < kMaxExcused) {
    excused_.insert(sequence);
  }
}

void WalContinuity::SkipTo(uint64_t sequence) {
  AddHole(last_sequence_ + 1, sequence + 1);
  if (next_sequence_ != 0) {
    next_sequence_ = std::max(next_sequence_, sequence + 1);
  }
  last_sequence_ = std::max(last_sequence_, sequence);
}

void WalContinuity::BeginBehindCut(uint64_t sequence, bool has_all) {
  SkipTo(sequence);
  trusts_unknown_ = !has_all;
  trusts_next_ = next_sequence_ == 0 || unsure_ != 0;
}

void WalContinuity::AddHole(uint64_t begin, uint64_t end) {
  if (begin < end) {
    uint64_t& known = holes_[begin];
    known = std::max(known, end);
  }
  if (holes_.size() > kMaxHoles) {
    const auto second = std::next(holes_.begin());
    holes_.begin()->second = std::max(holes_.begin()->second, second->second);
    holes_.erase(second);
  }
}

bool WalContinuity::Covers(uint64_t first, uint64_t last) const {
  last = std::min(last, last_sequence_);
  if (unsure_ != 0 && unsure_ <= last && first < last_end_) {
    return false;
  }
  return std::none_of(holes_.begin(), holes_.end(), [&](const auto& hole) {
    return hole.first <= last && first < hole.second;
  });
}

}  // namespace sstferry
