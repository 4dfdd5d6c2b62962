// Fills in the report of a refresh in place.
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/durable.h"
#include "pipeline/refresh/refresh_target.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Returns the number of files in each level of these families.
std::map<int, uint64_t> LevelsOf(rocksdb::DB* db,
                                 const std::vector<FamilyHandle>& families) {
  std::map<int, uint64_t> levels;
  for (const FamilyHandle& family : families) {
    rocksdb::ColumnFamilyMetaData metadata;
    db->GetColumnFamilyMetaData(family.handle, &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      if (!level.files.empty()) {
        levels[level.level] += level.files.size();
      }
    }
  }
  return levels;
}

// Returns RocksDB's estimate of the bytes that compactions must rewrite.
uint64_t CompactionDebt(rocksdb::DB* db,
                        const std::vector<FamilyHandle>& families) {
  uint64_t sum = 0;
  for (const FamilyHandle& family : families) {
    uint64_t bytes = 0;
    if (db->GetIntProperty(
            family.handle,
            rocksdb::DB::Properties::kEstimatePendingCompactionBytes,
            &bytes)) {
      sum += bytes;
    }
  }
  return sum;
}

}  // namespace

void RefreshTarget::TakeLevels() {
  levels_ = LevelsOf(live_->db(), planned_);
  debt_bytes_ = CompactionDebt(live_->db(), planned_);
}

Status RefreshTarget::WriteSummary(const Summary& summary) {
  return WriteDurably(disk(), dir_ + "/" + kLastTransferName,
                      LastTransferText(summary, held_, holds_more_, last_));
}

void RefreshTarget::FillSummary(Summary* summary) const {
  summary->mode = PullModeName(PullMode::kRefresh);
  summary->target = dir_;
  summary->state = is_complete_ ? "complete" : "";
  summary->sequence_old = last_.snapshot_sequence.value_or(0);
  summary->sequence_new = plan().opened.snapshot_sequence;
  summary->bytes_read += read_bytes_;
  FillLevels(summary);
}

void RefreshTarget::FillLevels(Summary* summary) const {
  summary->levels = levels_;
  summary->compaction_debt_bytes = debt_bytes_;
  summary->bytes_written = lanes()->counters.sst_bytes +
                           (live_ != nullptr ? live_->written_bytes() : 0);
}

}  // namespace sstferry
