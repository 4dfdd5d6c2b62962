#include "format/rocksdb/batch_sequences.h"

#include <utility>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Returns the approximate memory of a kept name, in bytes.
size_t NameBytes(const Slice& name) { return name.size() + 64; }

}  // namespace

Status PreparedSections::Open(const Slice& name,
                              const PreparedSection& section) {
  if (NameBytes(name) > kMaxPreparedNameBytes - name_bytes_) {
    return MakeStatus(EndState::kRefused,
                      "prepared transactions: expected names of at most " +
                          std::to_string(kMaxPreparedNameBytes) +
                          " bytes, found more; commit or roll back "
                          "some transactions");
  }
  if (by_name_.insert_or_assign(name.ToString(), section).second) {
    name_bytes_ += NameBytes(name);
  }
  return Status::OK();
}

std::optional<PreparedSection> PreparedSections::Close(const Slice& name) {
  const auto found = by_name_.find(name.ToString());
  if (found == by_name_.end()) {
    return std::nullopt;
  }
  const PreparedSection section = found->second;
  name_bytes_ -= NameBytes(name);
  by_name_.erase(found);
  return section;
}

void PreparedSections::CloseBefore(uint64_t wal) {
  for (auto prepared = by_name_.begin(); prepared != by_name_.end();) {
    if (prepared->second.wal < wal) {
      name_bytes_ -= NameBytes(prepared->first);
      prepared = by_name_.erase(prepared);
    } else {
      ++prepared;
    }
  }
}

Status SequenceCounter::AddMarker(BatchMarker marker, const Slice& name) {
  switch (marker) {
    case BatchMarker::kBeginPrepare:
    case BatchMarker::kBeginPersistedPrepare:
    case BatchMarker::kBeginUnprepare:
      in_section_ = true;
      is_unprepared_ = marker == BatchMarker::kBeginUnprepare;
      section_entries_ = 0;
      break;
    case BatchMarker::kEndPrepare:
      in_section_ = false;
      return std::exchange(is_unprepared_, false)
                 ? Status::OK()
                 : prepared_->Open(name, {section_entries_, wal_});
    case BatchMarker::kCommit:
    case BatchMarker::kCommitWithTimestamp: {
      const std::optional<PreparedSection> section = prepared_->Close(name);
      sequences_ += section.has_value() ? section->entries : 0;
      is_known_ = is_known_ && section.has_value();
      break;
    }
    case BatchMarker::kRollback:
      prepared_->Close(name);
      break;
    case BatchMarker::kNoop:
      break;
  }
  return Status::OK();
}

}  // namespace sstferry
