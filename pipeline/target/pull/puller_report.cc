// What a Puller tells of itself: progress, timeline, summary.
#include <algorithm>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/target/pull/puller.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

double Puller::SecondsSince(steady_clock::time_point start) const {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

void Puller::SetPhase(const char* phase) {
  std::lock_guard<std::mutex> lock(mu_);
  phase_ = phase;
}

Progress Puller::progress() const {
  Progress progress;
  {
    std::lock_guard<std::mutex> lock(mu_);
    progress.phase = phase_;
    progress.finished = published_;
  }
  progress.waiting_for = link_.waiting_for();
  progress.lanes = link_.lanes();
  // A verify reads as much again: it is the second half of the way.
  progress.planned_bytes = planned_bytes_ * (options_.verify ? 2 : 1);
  progress.done_bytes = state_.counters.planned_bytes_done + verified_bytes_;
  progress.entries = state_.counters.entries;
  progress.seconds = SecondsSince(started_);
  return progress;
}

std::vector<uint64_t> Puller::TimelineSample() const {
  const PullCounters& ours = state_.counters;
  const Stats theirs = link_.session()->stats();
  return {ours.entries,
          ours.key_value_bytes,
          ours.sst_bytes,
          ours.stages.micros(Stage::kReceive),
          ours.stages.micros(Stage::kStageWrite),
          ours.stages.micros(Stage::kCheck),
          ours.stages.micros(Stage::kIngest),
          ours.stages.micros(Stage::kSync),
          theirs.entries,
          theirs.key_value_bytes,
          theirs.sst_bytes,
          theirs.read_build_micros,
          theirs.send_wait_micros,
          theirs.idle_micros,
          theirs.queued_bytes};
}

void Puller::FillStages(Summary* summary) const {
  const double lanes = std::max(1u, plan_.opened.lanes) * 1e6;
  const StageTotals& ours = state_.counters.stages;
  std::map<std::string, double>& target = summary->target_stage_seconds;
  target["receive"] = ours.micros(Stage::kReceive) / lanes;
  target["stage_write"] = ours.micros(Stage::kStageWrite) / lanes;
  target["check"] = ours.micros(Stage::kCheck) / lanes;
  target["ingest"] = ours.micros(Stage::kIngest) / lanes;
  target["sync"] = ours.micros(Stage::kSync) / lanes + sync_seconds_;
  target["verify"] = verify_seconds_;
  target["swap"] = swap_seconds_;
  target["delete"] = delete_seconds_;
  std::map<std::string, double>& source = summary->source_stage_seconds;
  const Stats& theirs = finish_theirs_.stats;
  source["snapshot"] = plan_.opened.snapshot_micros / 1e6;
  source["plan"] = plan_.opened.plan_micros / 1e6;
  source["read_build"] = theirs.read_build_micros / lanes;
  source["send_wait"] = theirs.send_wait_micros / lanes;
  // What is left of the wall clock: the lanes had no work, or were not there.
  for (std::map<std::string, double>* side : {&target, &source}) {
    double sum = 0;
    for (const auto& stage : *side) {
      sum += stage.second;
    }
    (*side)["idle"] = std::max(0.0, summary->seconds - sum);
  }
}

void Puller::FillRefresh(Summary* summary) const {
  summary->mode = is_swap() ? "refresh" : "seed";
  if (is_swap()) {
    summary->visibility = "swap";
    summary->sequence_old = sequence_old_;
    summary->sequence_new = plan_.opened.snapshot_sequence;
    summary->outage_seconds = outage_seconds_;
  }
}

void Puller::FillSummary(Summary* summary) const {
  summary->started_at = started_at_;
  summary->finished_at = NowRfc3339();
  FillRefresh(summary);
  summary->source = options_.source.ToString();
  summary->target = options_.target_dir;
  summary->selection = options_.selection;
  summary->target_versions.software = SoftwareVersion();
  summary->target_versions.rocksdb = RocksDbVersion();
  if (link_.session() != nullptr) {
    summary->source_versions.software = link_.session()->source().software;
    summary->source_versions.rocksdb = link_.session()->source().rocksdb_version;
  }
  if (!plan_.families.empty()) {
    summary->transfer_id = ToHex(plan_.opened.transfer_id);
  }
  summary->source_database_id = plan_.opened.source_database_id;
  summary->snapshot_sequence = plan_.opened.snapshot_sequence;
  summary->snapshot_taken_seconds = plan_.opened.taken_seconds;
  for (const Family& family : plan_.families) {
    summary->column_families.push_back(family.description.name);
  }
  summary->ranges = plan_.ranges.size();
  summary->wire_bytes = link_.wire_bytes();
  const PullCounters& counters = state_.counters;
  summary->chunks_built = state_.chunks_built;
  summary->chunks_carried = state_.chunks_carried;
  summary->chunks_unchecked = state_.chunks_unchecked;
  summary->sst_bytes_carried = state_.sst_bytes_carried;
  summary->chunks = summary->chunks_built + summary->chunks_carried;
  summary->chunks_resumed = held_.chunks;
  summary->sst_bytes_resumed = held_.sst_bytes;
  summary->key_value_bytes_resumed = held_.key_value_bytes;
  summary->entries = held_.entries + counters.entries;
  summary->key_value_bytes = held_.key_value_bytes + counters.key_value_bytes;
  summary->sst_bytes = held_.sst_bytes + counters.sst_bytes;
  summary->compressed_frames = counters.compressed_frames;
  summary->compressed_bytes_before = counters.decompressed_bytes;
  summary->compressed_bytes_after = counters.compressed_bytes;
  summary->ingest_calls =
      ingestor_ != nullptr ? ingestor_->ingest_calls() : 0;
  summary->lanes = plan_.opened.lanes;
  summary->retries = state_.retries;
  summary->verified = verified_;
  summary->state = published_ ? "complete" : "";
  summary->peak_rss_bytes = PeakRssBytes();
  summary->notes = plan_.opened.notes;
  summary->notes.insert(summary->notes.end(), notes_.begin(), notes_.end());
  summary->seconds = SecondsSince(started_);
  FillRanges(summary);
  target_->FillSummary(summary);
  FillStages(summary);
}

void Puller::FillRanges(Summary* summary) const {
  std::lock_guard<std::mutex> lock(state_.mu);
  for (const HeldRange& range : state_.ended) {
    const bool skipped =
        range.totals.chunks == 0 &&
        plan_.ranges[range.range_id].need != RangeNeed::kSend;
    summary->ranges_unchanged += skipped ? 1 : 0;
    summary->ranges_sent += skipped ? 0 : 1;
    summary->bytes_skipped +=
        skipped ? plan_.ranges[range.range_id].estimated_bytes : 0;
  }
  summary->ranges_compared = state_.ranges_compared;
  summary->ranges_left = plan_.ranges.size() - state_.ended.size();
  if (ingestor_ != nullptr) {
    summary->write_blocked_micros = ingestor_->CallMicros();
    summary->ingested_levels = ingestor_->IngestedLevels();
  }
}

}  // namespace sstferry
