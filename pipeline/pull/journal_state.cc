#include "pipeline/pull/journal_state.h"

#include <algorithm>

#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

Status Contradiction(const JournalRecord& record, const std::string& what) {
  return MakeStatus(EndState::kCorrupt,
                    std::string("journal record ") +
                        JournalRecordTypeName(record.type) + ": " + what +
                        ", offset " + std::to_string(record.offset));
}

// Adds the records of a journal to a state, in their order in the file.
class Reader {
 public:
  explicit Reader(JournalState* state) : state_(state) {}

  bool head_is_whole() const {
    return has_opened_ &&
           state_->families.size() == state_->opened.family_count &&
           files_are_whole() &&
           state_->ranges.size() == state_->head.range_count;
  }

  Status Add(const JournalRecord& record) {
    if (state_->complete && record.type != JournalRecordType::kIngested &&
        record.type != JournalRecordType::kTargetFiles) {
      return Contradiction(record, "expected none after Complete");
    }
    switch (record.type) {
      case JournalRecordType::kTransfer:
      case JournalRecordType::kOpened:
      case JournalRecordType::kFamily:
      case JournalRecordType::kRange:
        return AddToHead(record);
      case JournalRecordType::kCovers:
        return AddCovers(record);
      case JournalRecordType::kSourceRecordPart:
        return AddSourceRecord(record);
      case JournalRecordType::kCloneSet:
        return AddCloneSet(record);
      case JournalRecordType::kCloneFiles:
        return AddCloneFiles(record);
      case JournalRecordType::kIngested:
        return AddIngested(record);
      case JournalRecordType::kTargetFiles:
        return AddTargetFiles(record);
      case JournalRecordType::kChunk:
        return AddChunk(record);
      case JournalRecordType::kRangeDone:
        return AddRangeDone(record);
      case JournalRecordType::kComplete:
        return AddComplete(record);
    }
    return Contradiction(record, "expected a known type");
  }

 private:
  // The type that the next record of the head must have.
  JournalRecordType Expected() const {
    return !has_transfer_ ? JournalRecordType::kTransfer
           : !has_opened_ ? JournalRecordType::kOpened
           : state_->families.size() < state_->opened.family_count
               ? JournalRecordType::kFamily
               : JournalRecordType::kRange;
  }

  Status AddToHead(const JournalRecord& record) {
    if (record.type != Expected() || head_is_whole()) {
      return Contradiction(record, "out of order");
    }
    Status status;
    switch (record.type) {
      case JournalRecordType::kTransfer:
        has_transfer_ = true;
        return state_->head.DecodeFrom(record.payload);
      case JournalRecordType::kOpened:
        has_opened_ = true;
        return state_->opened.DecodeFrom(record.payload);
      case JournalRecordType::kFamily: {
        Family family;
        status = family.DecodeFrom(record.payload);
        if (status.ok() && family.index != state_->families.size()) {
          status = Contradiction(record, "out of order");
        }
        state_->families.push_back(std::move(family));
        return status;
      }
      default: {
        JournalRange range;
        status = range.DecodeFrom(record.payload);
        if (status.ok() && (range.range.id != state_->ranges.size() ||
                            range.range.family >= state_->families.size())) {
          status = Contradiction(record, "out of order");
        }
        state_->ranges.push_back(std::move(range.range));
        state_->chunks.emplace_back();
        state_->ingested.emplace_back();
        state_->whole.push_back(state_->ranges.back().need ==
                                RangeNeed::kUnchanged);
        return status;
      }
    }
  }

  bool files_are_whole() const {
    return !state_->clone.has_value() ||
           state_->clone->files.size() == state_->clone->set.file_count;
  }

  Status AddCloneSet(const JournalRecord& record) {
    if (Expected() != JournalRecordType::kRange || !state_->ranges.empty() ||
        state_->clone.has_value()) {
      return Contradiction(record, "out of turn");
    }
    return state_->clone.emplace().set.DecodeFrom(record.payload);
  }

  Status AddCloneFiles(const JournalRecord& record) {
    CloneFiles batch;
    const Status status = batch.DecodeFrom(record.payload);
    if (!status.ok()) {
      return status;
    }
    if (!state_->clone.has_value() || !state_->ranges.empty() ||
        batch.files.size() > state_->clone->set.file_count -
                                 state_->clone->files.size()) {
      return Contradiction(record, "too many, or out of turn");
    }
    std::vector<CloneFile>& files = state_->clone->files;
    files.insert(files.end(), batch.files.begin(), batch.files.end());
    return Status::OK();
  }

  Status AddCovers(const JournalRecord& record) {
    if (Expected() != JournalRecordType::kRange || !state_->ranges.empty()) {
      return Contradiction(record, "out of order");
    }
    Covers batch;
    const Status status = batch.DecodeFrom(record.payload);
    for (Cover& cover : batch.covers) {
      if (cover.family >= state_->families.size() ||
          state_->covers.size() >= kMaxRanges) {
        return Contradiction(record, "too many, or an unknown column family");
      }
      state_->covers.push_back(std::move(cover));
    }
    return status;
  }

  Status AddSourceRecord(const JournalRecord& record) {
    if (Expected() != JournalRecordType::kRange || !state_->ranges.empty()) {
      return Contradiction(record, "out of order");
    }
    SourceRecordPart part;
    const Status status = part.DecodeFrom(record.payload);
    state_->source_record += part.bytes;
    return status;
  }

  Status AddIngested(const JournalRecord& record) {
    JournalIngested ingested;
    Status status = ingested.DecodeFrom(record.payload);
    status = status.ok() ? CheckRange(record, ingested.range_id) : status;
    if (!status.ok()) {
      return status;
    }
    std::vector<bool>& of_range = state_->ingested[ingested.range_id];
    if (ingested.ordinal >= of_range.size()) {
      return Contradiction(record, "names a chunk that has no record");
    }
    of_range[ingested.ordinal] = true;
    return status;
  }

  Status AddTargetFiles(const JournalRecord& record) {
    if (!head_is_whole()) {
      return Contradiction(record, "out of order");
    }
    state_->target_files.emplace();
    return state_->target_files->DecodeFrom(record.payload);
  }

  Status CheckRange(const JournalRecord& record, uint32_t id) const {
    return head_is_whole() && id < state_->ranges.size()
               ? Status::OK()
               : Contradiction(record, "names a range that is not in the plan");
  }

  Status AddChunk(const JournalRecord& record) {
    JournalChunk chunk;
    Status status = chunk.DecodeFrom(record.payload);
    const uint32_t id = chunk.chunk.range_id;
    status = status.ok() ? CheckRange(record, id) : status;
    if (!status.ok()) {
      return status;
    }
    std::vector<JournalChunk>& chunks = state_->chunks[id];
    const uint32_t ordinal = chunk.chunk.ordinal;
    if (ordinal > chunks.size()) {
      return Contradiction(record,
                           "expected chunk " + std::to_string(chunks.size()) +
                               " of range " + std::to_string(id) +
                               " or one before it, found " +
                               std::to_string(ordinal));
    }
    chunks.resize(ordinal);
    chunks.push_back(std::move(chunk));
    state_->ingested[id].resize(ordinal);
    state_->ingested[id].push_back(false);
    state_->whole[id] = false;
    return Status::OK();
  }

  Status AddRangeDone(const JournalRecord& record) {
    JournalRangeDone done;
    Status status = done.DecodeFrom(record.payload);
    status = status.ok() ? CheckRange(record, done.range_id) : status;
    if (status.ok() &&
        !(done.totals == state_->HeldTotals(done.range_id))) {
      status = Contradiction(record, "its totals differ from the chunks of "
                                     "range " + std::to_string(done.range_id));
    }
    if (status.ok()) {
      state_->whole[done.range_id] = true;
    }
    return status;
  }

  Status AddComplete(const JournalRecord& record) {
    JournalComplete complete;
    Status status = complete.DecodeFrom(record.payload);
    if (status.ok() &&
        (!head_is_whole() ||
         std::count(state_->whole.begin(), state_->whole.end(), false) != 0 ||
         !(complete.totals == state_->HeldTotals()))) {
      status = Contradiction(record, "its totals differ from the ranges");
    }
    state_->complete = status.ok();
    return status;
  }

  JournalState* const state_;
  bool has_transfer_ = false;
  bool has_opened_ = false;
};

}  // namespace

Totals TotalsOf(const std::vector<JournalChunk>& chunks) {
  Totals totals;
  for (const JournalChunk& chunk : chunks) {
    totals.chunks++;
    totals.entries += chunk.chunk.entries;
    totals.key_value_bytes += chunk.chunk.key_bytes + chunk.chunk.value_bytes;
    totals.sst_bytes += chunk.chunk.file_bytes;
  }
  return totals;
}

Totals JournalState::HeldTotals(uint32_t range_id) const {
  return TotalsOf(chunks[range_id]);
}

Totals JournalState::HeldTotals() const {
  Totals totals;
  for (const std::vector<JournalChunk>& of_range : chunks) {
    totals += TotalsOf(of_range);
  }
  return totals;
}

uint64_t JournalState::planned_bytes() const {
  uint64_t sum = 0;
  for (const Range& range : ranges) {
    sum += range.estimated_bytes;
  }
  return sum;
}

uint64_t JournalState::planned_bytes_done() const {
  uint64_t sum = 0;
  for (const Range& range : ranges) {
    sum += whole[range.id] ? range.estimated_bytes
                             : std::min(range.estimated_bytes,
                                        HeldTotals(range.id).sst_bytes);
  }
  return sum;
}

Status ParseJournalState(const Slice& journal, JournalState* state) {
  *state = JournalState();
  Status status = CheckJournalMagic(journal);
  if (!status.ok()) {
    return status;
  }
  Reader reader(state);
  state->bytes = kJournalMagicBytes;
  while (true) {
    JournalRecord record;
    status = ReadJournalRecord(journal, state->bytes, &record);
    if (!status.ok()) {
      break;
    }
    status = reader.Add(record);
    if (!status.ok()) {
      return WithContext(status, EndState::kCorrupt, "journal");
    }
    state->bytes += record.total_bytes;
  }
  state->torn = status.IsIncomplete();
  if (!status.IsNotFound() && !state->torn) {
    return status;
  }
  return reader.head_is_whole()
             ? Status::OK()
             : Status::Incomplete("journal: its head is not whole");
}

Status ReadJournalState(rocksdb::FileSystem* file_system,
                        const std::string& path, JournalState* state) {
  uint64_t bytes = 0;
  rocksdb::IOStatus found =
      file_system->FileExists(path, IOOptions(), nullptr);
  if (found.IsNotFound()) {
    return Status::NotFound(path);
  }
  if (found.ok()) {
    found = file_system->GetFileSize(path, IOOptions(), &bytes, nullptr);
  }
  if (found.ok() && bytes > kMaxJournalBytes) {
    return MakeStatus(EndState::kCorrupt,
                      path + ": expected at most " +
                          std::to_string(kMaxJournalBytes) +
                          " bytes, found " + std::to_string(bytes));
  }
  std::string journal;
  if (found.ok()) {
    found = rocksdb::ReadFileToString(file_system, path, &journal);
  }
  if (!found.ok()) {
    return WithContext(found, EndState::kInternal, "read " + path);
  }
  const Status status = ParseJournalState(journal, state);
  return status.IsIncomplete() ? status
                               : WithContext(status, EndStateOf(status), path);
}

}  // namespace sstferry
