#include "pipeline/pull/journal_state.h"

#include <unistd.h>

#include <algorithm>

#include "format/limits.h"
#include "pipeline/base/file_source.h"

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

// Adds the records of a journal to a state, in file order.
class Reader {
 public:
  explicit Reader(JournalState* state) : state_(state) {}

  bool head_is_whole() const { return has_plan_; }

  Status Add(const JournalRecord& record) {
    if (state_->complete && record.type != JournalRecordType::kIngested &&
        record.type != JournalRecordType::kTargetFiles &&
        record.type != JournalRecordType::kTransfer) {
      return Contradiction(record, "expected no such record after Complete");
    }
    switch (record.type) {
      case JournalRecordType::kTransfer:
        return AddTransfer(record);
      case JournalRecordType::kPlan:
        return AddToPlan(record);
      case JournalRecordType::kIngested:
        return AddIngested(record);
      case JournalRecordType::kTargetFiles:
        return AddTargetFiles(record);
      case JournalRecordType::kChunk:
        return AddChunk(record);
      case JournalRecordType::kPartDone:
        return AddPartDone(record);
      case JournalRecordType::kComplete:
        return AddComplete(record);
    }
    return Contradiction(record, "unknown type");
  }

 private:
  // Adds a kTransfer record. The first such record begins the transfer. Each
  // later one contains the command line of a run that resumed the transfer.
  Status AddTransfer(const JournalRecord& record) {
    JournalTransfer head;
    RETURN_IF_ERROR(Decode(record.payload, &head));
    JournalTransfer same = head;
    same.command_line = state_->head.command_line;
    if (has_transfer_ && (!head_is_whole() || same != state_->head)) {
      return Contradiction(record, "expected the same transfer as in the first "
                                   "record, and a complete plan before it");
    }
    has_transfer_ = true;
    state_->head = std::move(head);
    return Status::OK();
  }

  Status AddToPlan(const JournalRecord& record) {
    JournalPlan message;
    RETURN_IF_ERROR(Decode(record.payload, &message));
    if (!has_transfer_ || has_plan_) {
      return Contradiction(record, "out of order");
    }
    const Status status = decoder_.Add(message.type, message.payload);
    if (!status.ok()) {
      return Contradiction(record, MessageOf(status));
    }
    if (decoder_.is_complete()) {
      has_plan_ = true;
      state_->plan = decoder_.TakePlan();
      const size_t parts = state_->plan.parts.size();
      state_->chunks.resize(parts);
      state_->ingested.resize(parts);
      state_->whole.resize(parts);
    }
    return status;
  }

  Status AddIngested(const JournalRecord& record) {
    JournalIngested ingested;
    RETURN_IF_ERROR(Decode(record.payload, &ingested));
    RETURN_IF_ERROR(CheckPart(record, ingested.part_id));
    std::vector<bool>& of_part = state_->ingested[ingested.part_id];
    if (ingested.ordinal >= of_part.size()) {
      return Contradiction(record, "names a chunk that has no record");
    }
    of_part[ingested.ordinal] = true;
    return Status::OK();
  }

  Status AddTargetFiles(const JournalRecord& record) {
    if (!head_is_whole()) {
      return Contradiction(record, "out of order");
    }
    state_->target_files.emplace();
    return Decode(record.payload, &*state_->target_files);
  }

  Status CheckPart(const JournalRecord& record, uint32_t id) const {
    return head_is_whole() && id < state_->plan.parts.size()
               ? Status::OK()
               : Contradiction(record, "names a part that is not in the plan");
  }

  Status AddChunk(const JournalRecord& record) {
    JournalChunk chunk;
    RETURN_IF_ERROR(Decode(record.payload, &chunk));
    const uint32_t id = chunk.chunk.part_id;
    RETURN_IF_ERROR(CheckPart(record, id));
    std::vector<JournalChunk>& chunks = state_->chunks[id];
    const uint32_t ordinal = chunk.chunk.ordinal;
    if (ordinal > chunks.size()) {
      return Contradiction(record,
                           "expected chunk " + std::to_string(chunks.size()) +
                               " of part " + std::to_string(id) +
                               " or an earlier chunk, found " +
                               std::to_string(ordinal));
    }
    chunks.resize(ordinal);
    chunks.push_back(std::move(chunk));
    state_->ingested[id].resize(ordinal);
    state_->ingested[id].push_back(false);
    state_->whole[id] = false;
    return Status::OK();
  }

  Status AddPartDone(const JournalRecord& record) {
    JournalPartDone done;
    RETURN_IF_ERROR(Decode(record.payload, &done));
    RETURN_IF_ERROR(CheckPart(record, done.part_id));
    if (!(done.totals == state_->ReceivedTotals(done.part_id))) {
      return Contradiction(record, "its totals differ from those of the "
                                   "chunks of part " +
                                       std::to_string(done.part_id));
    }
    state_->whole[done.part_id] = true;
    return Status::OK();
  }

  Status AddComplete(const JournalRecord& record) {
    JournalComplete complete;
    Status status = Decode(record.payload, &complete);
    if (status.ok() &&
        (!head_is_whole() ||
         std::count(state_->whole.begin(), state_->whole.end(), false) != 0 ||
         !(complete.totals == state_->ReceivedTotals()))) {
      status =
          Contradiction(record, "its totals differ from those of the parts");
    }
    state_->complete = status.ok();
    return status;
  }

  JournalState* const state_;
  PlanDecoder decoder_;
  bool has_transfer_ = false;
  bool has_plan_ = false;
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

Totals JournalState::ReceivedTotals(uint32_t part_id) const {
  return TotalsOf(chunks[part_id]);
}

Totals JournalState::ReceivedTotals() const {
  Totals totals;
  for (const std::vector<JournalChunk>& of_part : chunks) {
    totals += TotalsOf(of_part);
  }
  return totals;
}

uint64_t JournalState::planned_bytes_done() const {
  uint64_t sum = 0;
  for (const Part& part : plan.parts) {
    sum += whole[part.id] ? part.bytes
                             : std::min(part.bytes,
                                        ReceivedTotals(part.id).sst_bytes);
  }
  return sum;
}

Status ParseJournalState(const Slice& journal, JournalState* state) {
  *state = JournalState();
  RETURN_IF_ERROR(CheckJournalMagic(journal));
  Reader reader(state);
  state->bytes = kJournalMagicBytes;
  Status status;
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
             : Status::Incomplete("journal: its head is incomplete");
}

Status ReadJournalState(rocksdb::FileSystem* file_system,
                        const std::string& path, JournalState* state) {
  if (file_system->FileExists(path, IOOptions(), nullptr).IsNotFound()) {
    return Status::NotFound(path);
  }
  std::string journal;
  uid_t owner = 0;
  const Status read = ReadForeignFile(file_system, path, kMaxJournalBytes,
                                      &journal, EndState::kInternal, &owner);
  if (!read.ok()) {
    return WithContext(read, EndStateOf(read), "read " + path);
  }
  const Status status = ParseJournalState(journal, state);
  if (owner != 0 && owner != geteuid()) {
    state->head.command_line.clear();
  }
  return status.IsIncomplete() ? status
                               : WithContext(status, EndStateOf(status), path);
}

}  // namespace sstferry
