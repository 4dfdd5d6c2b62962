#include "format/rocksdb/wal_facts.h"

#include <utility>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/rocksdb/blob_check.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Returns the approximate memory of a kept name, in bytes.
size_t NameBytes(const Slice& name) { return name.size() + 64; }

}  // namespace

// Collects the entries and markers of one batch.
class WalFacts::Handler : public BatchHandler {
 public:
  explicit Handler(WalFacts* facts) : facts_(facts) {}

  // Returns the number of entries that take a sequence number in this batch.
  // Entries of a write-committed section take their numbers at the commit.
  uint64_t sequences() const { return sequences_; }
  bool takes_any() const { return sequences_ > 0 || has_commit_; }

  Status OnEntry(BatchEntryKind kind, uint32_t family_id, const Slice& /*key*/,
                 const Slice& value) override {
    sequences_ += in_section_ ? 0 : 1;
    ++facts_->entries_;
    WalFamily& family = facts_->families_[family_id];
    if (facts_->families_.size() > kMaxFamilies) {
      return MakeStatus(EndState::kRefused,
                        "expected entries of at most " +
                            std::to_string(kMaxFamilies) +
                            " column families, found more; let the application "
                            "flush all its column families");
    }
    ++family.entries;
    family.has_merges |= kind == BatchEntryKind::kMerge;
    facts_->has_single_deletes_ |= kind == BatchEntryKind::kSingleDelete;
    if (kind == BatchEntryKind::kBlobIndex) {
      facts_->KeepBlobFile(value);
    }
    return Status::OK();
  }

  Status OnMarker(BatchMarker marker, const Slice& name) override {
    switch (marker) {
      case BatchMarker::kBeginPrepare:
        in_section_ = true;
        facts_->has_prepare_sections_ = true;
        break;
      case BatchMarker::kBeginUnprepare:
        in_unprepared_ = true;
        [[fallthrough]];
      case BatchMarker::kBeginPersistedPrepare:
        in_section_ = true;
        facts_->has_prepare_sections_ = true;
        facts_->counts_batches_ = true;
        break;
      case BatchMarker::kEndPrepare:
        in_section_ = false;
        facts_->prepares_twice_ |= facts_->prepared_.count(name.ToString()) > 0;
        return std::exchange(in_unprepared_, false) ? Status::OK()
                                                    : facts_->Open(name);
      case BatchMarker::kCommit:
      case BatchMarker::kCommitWithTimestamp:
        has_commit_ = true;
        [[fallthrough]];
      case BatchMarker::kRollback:
        facts_->Close(name);
        break;
      case BatchMarker::kNoop:
        break;
    }
    return Status::OK();
  }

 private:
  WalFacts* const facts_;
  uint64_t sequences_ = 0;
  bool has_commit_ = false;
  bool in_section_ = false;
  bool in_unprepared_ = false;
};

Status WalFacts::Add(uint64_t log_number, const Slice& record) {
  BatchHeader header;
  Handler handler(this);
  const Status s = ReadWriteBatch(record, &header, &handler);
  if (!s.ok()) {
    return WithContext(s, EndStateOf(s), "WAL " + std::to_string(log_number));
  }
  if (!std::exchange(has_batch_, true)) {
    first_sequence_ = header.sequence;
  } else if (last_sequence_ < header.sequence && header.sequence < last_end_) {
    counts_batches_ = true;
  }
  last_sequence_ = header.sequence;
  last_end_ = header.sequence + handler.sequences();
  if (handler.takes_any()) {
    newest_sequence_ = std::max(last_sequence_, last_end_ - 1);
  } else if (header.sequence > 0) {
    newest_sequence_ = header.sequence - 1;
  }
  return Status::OK();
}

void WalFacts::KeepBlobFile(const Slice& value) {
  BlobReference reference;
  const bool is_read = DecodeBlobReference(value, &reference);
  const bool is_kept = is_read && (blob_files_.size() < kMaxWalBlobFiles ||
                                   blob_files_.count(reference.file) > 0);
  blob_files_.insert(is_kept ? reference.file : 0);
}

Status WalFacts::Open(const Slice& name) {
  if (NameBytes(name) > kMaxPreparedNameBytes - name_bytes_) {
    return MakeStatus(EndState::kRefused,
                      "prepared transactions: expected names of at most " +
                          std::to_string(kMaxPreparedNameBytes) +
                          " bytes, found more; commit or roll back "
                          "some transactions");
  }
  if (prepared_.insert(name.ToString()).second) {
    name_bytes_ += NameBytes(name);
  }
  return Status::OK();
}

void WalFacts::Close(const Slice& name) {
  if (prepared_.erase(name.ToString()) > 0) {
    name_bytes_ -= NameBytes(name);
  }
}

}  // namespace sstferry
