#include "format/rocksdb/wal_facts.h"

#include "format/end_state.h"
#include "format/limits.h"
#include "format/rocksdb/blob_check.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

// Collects the entries and markers of one batch.
class WalFacts::Handler : public BatchHandler {
 public:
  Handler(WalFacts* facts, uint64_t wal)
      : facts_(facts), counter_(&facts->prepared_, wal) {}

  uint64_t sequences() const { return counter_.sequences(); }
  bool takes_any() const { return counter_.takes_any(); }

  Status OnEntry(BatchEntryKind kind, uint32_t family_id, const Slice& /*key*/,
                 const Slice& value) override {
    counter_.AddEntry();
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
    facts_->has_entities_ |= kind == BatchEntryKind::kEntity;
    facts_->has_timed_puts_ |= kind == BatchEntryKind::kTimedPut;
    ForEachBlobReference(
        TableTypeOf(kind), value, [this, kind](const BlobReference& reference) {
          facts_->KeepBlobFile(reference.file);
          facts_->has_blob_columns_ |= kind == BatchEntryKind::kEntity;
        });
    facts_->prepares_entities_ |=
        counter_.in_section() && (kind == BatchEntryKind::kEntity ||
                                  kind == BatchEntryKind::kBlobIndex);
    return Status::OK();
  }

  Status OnMarker(BatchMarker marker, const Slice& name) override {
    switch (marker) {
      case BatchMarker::kBeginPrepare:
        facts_->has_prepare_sections_ = true;
        break;
      case BatchMarker::kBeginUnprepare:
      case BatchMarker::kBeginPersistedPrepare:
        facts_->has_prepare_sections_ = true;
        facts_->counts_batches_ = true;
        break;
      case BatchMarker::kEndPrepare:
        facts_->prepares_twice_ |=
            facts_->prepared_.by_name().count(name.ToString()) > 0;
        break;
      default:
        break;
    }
    return counter_.AddMarker(marker, name);
  }

 private:
  WalFacts* const facts_;
  SequenceCounter counter_;
};

Status WalFacts::Add(uint64_t log_number, const Slice& record) {
  BatchHeader header;
  Handler handler(this, log_number);
  const Status s = ReadWriteBatch(record, &header, &handler);
  if (!s.ok()) {
    return WithContext(s, EndStateOf(s), "WAL " + std::to_string(log_number));
  }
  if (last_sequence_ < header.sequence && header.sequence < last_end_) {
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

void WalFacts::KeepBlobFile(uint64_t number) {
  const bool is_kept = blob_files_.size() < kMaxWalBlobFiles ||
                       blob_files_.count(number) > 0;
  blob_files_.insert(is_kept ? number : 0);
}

void WalFacts::AddNeeds(Needs* needs) const {
  if (has_entities_) {
    needs->Add(kReadsEntities, "wide-column entities in WALs");
  }
  if (has_timed_puts_) {
    needs->Add(kReadsTimedPuts, "entries of TimedPut in WALs");
  }
  if (has_blob_columns_) {
    needs->Add(kReadsBlobColumns,
               "wide-column entities with columns in blob files");
  }
  if (prepares_entities_) {
    needs->Add(kReadsPreparedEntities,
               "prepared transactions with wide-column entities");
  }
}

std::set<std::string> WalFacts::prepared() const {
  std::set<std::string> names;
  for (const auto& [name, section] : prepared_.by_name()) {
    names.insert(name);
  }
  return names;
}

}  // namespace sstferry
