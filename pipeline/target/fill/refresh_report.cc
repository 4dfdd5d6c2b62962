// What a refresh in place tells of itself.
#include "pipeline/base/last_transfer.h"
#include "pipeline/target/database/paced_compaction.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/fill/refresh_target.h"
#include "pipeline/target/pull/pull_reporter.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Level -> files of these families.
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

}  // namespace

void RefreshTarget::TakeLevels() {
  levels_ = LevelsOf(live_->db(), planned_);
  debt_bytes_ = CompactionDebt(live_->db(), planned_);
}

void RefreshTarget::Leave(const Summary& summary) {
  if (state_ == State::kMixed && live_ != nullptr) {
    // Best effort: the record of covers says it, too.
    WriteSummary(summary).PermitUncheckedError();
  }
}

Status RefreshTarget::WriteSummary(const Summary& summary) {
  return WriteDurably(context().disk.get(), dir_ + "/" + kLastTransferName,
                      SummaryToJson(summary, "pull") + "\n");
}

void RefreshTarget::FillSummary(Summary* summary) const {
  summary->mode = "refresh";
  summary->visibility = by_chunk() ? "chunk" : "all";
  summary->target = dir_;
  summary->state = state_ == State::kMixed      ? "mixed"
                   : state_ == State::kComplete ? "complete"
                                                : "";
  summary->sequence_old =
      record_.mixed ? record_.sequence_old : record_.sequence_new;
  summary->sequence_new = plan().opened.snapshot_sequence;
  summary->levels = levels_;
  summary->compaction_debt_bytes = debt_bytes_;
  summary->bytes_read = context().report->source_read_bytes() + read_bytes_;
  summary->bytes_written = state()->counters.sst_bytes +
                           (live_ != nullptr ? live_->written_bytes() : 0);
}

}  // namespace sstferry
