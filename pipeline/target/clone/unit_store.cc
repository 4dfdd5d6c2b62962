#include "pipeline/target/clone/unit_store.h"

#include "format/end_state.h"
#include "pipeline/target/disk/durable.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// A sync is shared by units of so many bytes, or by so many units.
constexpr uint64_t kSyncBytes = 256u << 20;
constexpr uint32_t kSyncUnits = 32;

}  // namespace

Status UnitStore::Add(StagedChunk chunk, StageClock* clock) {
  const Status recorded =
      journal_->Append(JournalRecordType::kChunk, chunk.record);
  bool due = false;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (status_.ok()) status_ = recorded;
    if (!status_.ok()) {
      return status_;
    }
    if (stopped_) {
      return MakeStatus(EndState::kCancelled, "clone: stopped on request");
    }
    unsynced_bytes_ += chunk.record.chunk.file_bytes;
    due = ++unsynced_ >= kSyncUnits || unsynced_bytes_ >= kSyncBytes;
    if (due) {
      unsynced_ = 0;
      unsynced_bytes_ = 0;
    }
  }
  return due ? Sync(clock) : Status::OK();
}

Status UnitStore::Flush(StageClock* clock) { return Sync(clock); }

Status UnitStore::EndRange(const JournalRangeDone& done) {
  return journal_->Append(JournalRecordType::kRangeDone, done);
}

void UnitStore::Stop() {
  std::lock_guard<std::mutex> lock(mu_);
  stopped_ = true;
}

Status UnitStore::Sync(StageClock* clock) {
  if (!sync_) {
    return Status::OK();
  }
  StageScope scope(clock, Stage::kSync);
  FaultPoint("UnitStore:Recorded");
  Status status = SyncDirectory(file_system_, layout_->db_dir());
  if (status.ok()) {
    status = SyncDirectory(file_system_, layout_->staging_dir());
  }
  FaultPoint("UnitStore:NamesSynced");
  if (status.ok()) status = journal_->Sync();
  FaultPoint("UnitStore:RecordsSynced");
  std::lock_guard<std::mutex> lock(mu_);
  if (status_.ok()) status_ = status;
  return status_;
}

}  // namespace sstferry
