#include "pipeline/target/fill/repair_target.h"

#include "pipeline/target/memory/listed_ranges.h"
#include "pipeline/target/pull/pull_reporter.h"

namespace sstferry {

using rocksdb::Status;

Status RepairTarget::CheckJudged() {
  if (record() == nullptr || record()->mixed) {
    return MakeStatus(EndState::kRefused,
                      "target " + dir() +
                          ": expected a complete replica to repair, found one "
                          "that a refresh replaced in part; run that refresh "
                          "again first");
  }
  return SortRanges(options().ranges, judged().families, &listed_);
}

Status RepairTarget::CheckAsLeft(const JournalState& journal, bool* as_left) {
  if (!IsPlanOf(listed_, journal)) {
    return MakeStatus(EndState::kRefused,
                      context().workspace->dir() +
                          " holds an unfinished repair of other ranges; "
                          "--restart discards it and starts over");
  }
  return RefreshTarget::CheckAsLeft(journal, as_left);
}

void RepairTarget::Describe(TargetMemory* memory) const {
  RefreshTarget::Describe(memory);
  TellRanges(listed_, memory);
}

Status RepairTarget::MakeRecord(const JournalState* journal,
                                CoverFile* covers) {
  return RecordRepair(plan(), db(), planned(), judged(), journal, covers);
}

// What the source left at the last whole transfer is of the same records.
Status RepairTarget::WriteRecord() {
  context().report->Note(
      "only the listed ranges (" + std::to_string(listed_.size()) +
      ") were compared and made equal; the rest of the target was not looked "
      "at, and stays at sequence " +
      std::to_string(record()->sequence_new));
  return WriteCovers(context().disk.get(), dir(), covers());
}

void RepairTarget::FillSummary(Summary* summary) const {
  RefreshTarget::FillSummary(summary);
  if (summary->state == "complete") {
    summary->state = "repaired";
  }
  if (record() != nullptr) {
    summary->sequence_old = record()->sequence_new;
    summary->sequence_new = record()->sequence_new;
  }
}

}  // namespace sstferry
