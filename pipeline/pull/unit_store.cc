#include "pipeline/pull/unit_store.h"

#include "format/end_state.h"
#include "pipeline/disk/durable.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// A sync is due after this number of bytes or this number of units.
constexpr uint64_t kSyncBytes = 256u << 20;
constexpr uint32_t kSyncUnits = 512;

}  // namespace

Status UnitStore::Add(StagedChunk chunk, StageClock* clock) {
  const Status recorded =
      journal_->Append(JournalRecordType::kChunk, chunk.record);
  bool due = false;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (status_.ok()) status_ = recorded;
    RETURN_IF_ERROR(status_);
    if (stopped_) {
      return MakeStatus(EndState::kCancelled, "clone: stopped on request");
    }
    unsynced_files_.insert(chunk.path);
    has_unsynced_ = true;
    unsynced_bytes_ += chunk.record.chunk.file_bytes;
    due = ++unsynced_ >= kSyncUnits || unsynced_bytes_ >= kSyncBytes;
  }
  // If another lane is syncing now, the next sync includes this unit.
  std::unique_lock<std::mutex> one(sync_mu_, std::defer_lock);
  if (!due || !sync_ || !one.try_lock()) {
    return Status::OK();
  }
  StageScope scope(clock, Stage::kSync);
  return SyncUnits();
}

Status UnitStore::Flush(StageClock* clock) {
  if (!sync_) {
    return Status::OK();
  }
  StageScope scope(clock, Stage::kSync);
  std::lock_guard<std::mutex> one(sync_mu_);
  return SyncUnits();
}

Status UnitStore::AddRecorded(const std::vector<StagedChunk>& chunks,
                              StageClock*) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const StagedChunk& chunk : chunks) {
    unsynced_files_.insert(chunk.path);
    has_unsynced_ = true;
  }
  return status_;
}

Status UnitStore::EndPart(const JournalPartDone& done) {
  const Status status = journal_->Append(JournalRecordType::kPartDone, done);
  std::lock_guard<std::mutex> lock(mu_);
  has_unsynced_ = true;
  return status;
}

void UnitStore::Stop() {
  std::lock_guard<std::mutex> lock(mu_);
  stopped_ = true;
}

// Syncs all units since the last sync. Only this lane waits; other lanes
// continue to receive.
Status UnitStore::SyncUnits() {
  std::set<std::string> files;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (!status_.ok() || !has_unsynced_) {
      return status_;
    }
    files.swap(unsynced_files_);
    unsynced_ = 0;
    unsynced_bytes_ = 0;
    has_unsynced_ = false;
  }
  FaultPoint("UnitStore:Recorded");
  Status status =
      SyncAll(file_system_, files, {layout_->db_dir(), layout_->staging_dir()});
  FaultPoint("UnitStore:NamesSynced");
  if (status.ok()) status = journal_->Sync();
  FaultPoint("UnitStore:RecordsSynced");
  std::lock_guard<std::mutex> lock(mu_);
  if (status_.ok()) status_ = status;
  return status_;
}

}  // namespace sstferry
