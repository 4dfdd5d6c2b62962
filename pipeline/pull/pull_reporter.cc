#include "pipeline/pull/pull_reporter.h"

#include <algorithm>
#include <map>

#include "pipeline/base/duration.h"
#include "pipeline/base/rocksdb_compat.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

namespace {

// Returns the note about a source whose WALs are empty. An idle application
// that uses the WAL also causes the note, because from outside it looks like an
// application that writes without the WAL.
std::string UnloggedNote(uint64_t seconds) {
  const std::string ago = FormatDuration(std::chrono::seconds(seconds));
  return "an application has the source open, and its WALs are empty: if it "
         "writes without the WAL, this copy is as of its last flush, at "
         "least " + ago + " before the snapshot, and does not contain later "
         "writes";
}

}  // namespace

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

PullReporter::PullReporter(const PullOptions* options, bool plans,
                           const Plan* plan, const LaneShared* lanes,
                           const SourceLink* link)
    : options_(options),
      plans_(plans),
      plan_(plan),
      lanes_(lanes),
      link_(link),
      started_(steady_clock::now()),
      started_at_(NowRfc3339()) {}

void PullReporter::Log(LogLevel level, const std::string& text) const {
  if (options_->log) {
    options_->log(level, text);
  }
}

void PullReporter::Note(const std::string& note) {
  notes_.push_back(note);
  Log(LogLevel::kInfo, "note: " + note);
}

void PullReporter::NoteDetail(const std::string& note) {
  notes_.push_back(note);
  Log(LogLevel::kDebug, "note: " + note);
}

void PullReporter::Say(const std::string& note) {
  notes_.push_back(note);
  Log(LogLevel::kWarning, note);
}

void PullReporter::SetPhase(const char* phase) {
  std::lock_guard<std::mutex> lock(mu_);
  phase_ = phase;
}

void PullReporter::SetPublished() {
  std::lock_guard<std::mutex> lock(mu_);
  published_ = true;
}

bool PullReporter::published() const {
  std::lock_guard<std::mutex> lock(mu_);
  return published_;
}

Progress PullReporter::progress() const {
  Progress progress;
  {
    std::lock_guard<std::mutex> lock(mu_);
    progress.phase = phase_;
    progress.finished = published_;
  }
  progress.waiting_for = link_->waiting_for();
  progress.lanes = link_->lanes();
  if (plans_) {
    progress.seconds = SecondsSince(started_);
    return progress;  // a plan transfers nothing
  }
  // With a verification, count each byte twice: the verification reads as much
  // data again.
  progress.planned_bytes =
      planned_bytes_ * (expects_verify_ ? 2 : 1);
  const PullCounters& counters = lanes_->counters;
  progress.done_bytes = counters.planned_bytes_done + verified_bytes_;
  progress.entries = counters.entries;
  progress.seconds = SecondsSince(started_);
  progress.stages = Stages();
  return progress;
}

ProgressStages PullReporter::Stages() const {
  const PullCounters& ours = lanes_->counters;
  const Stats theirs = link_->stats();
  const uint64_t receive = ours.stages.micros(Stage::kReceive);
  ProgressStages stages;
  stages.source_work = theirs.read_build_micros + theirs.send_wait_micros -
                       std::min(theirs.send_wait_micros,
                                theirs.send_blocked_micros);
  stages.source_blocked = theirs.send_blocked_micros;
  stages.target_blocked = std::min<uint64_t>(ours.receive_blocked_micros,
                                             receive);
  stages.target_paced = std::min<uint64_t>(
      ours.paced_micros, receive - stages.target_blocked);
  stages.target_cpu = receive - stages.target_blocked - stages.target_paced +
                      ours.stages.micros(Stage::kCheck);
  stages.target_disk = ours.stages.micros(Stage::kStageWrite) +
                       ours.stages.micros(Stage::kIngest) +
                       ours.stages.micros(Stage::kSync);
  return stages;
}

uint64_t PullReporter::source_read_bytes() const {
  return std::max(source_stats_.read_bytes,
                  link_->stats().read_bytes);
}

void PullReporter::SetSpace(uint64_t needed_bytes, uint64_t free_bytes) {
  needed_bytes_ = needed_bytes;
  free_bytes_ = free_bytes;
}

void PullReporter::SetOtherFiles(uint64_t files, uint64_t bytes) {
  other_files_ = files;
  other_files_bytes_ = bytes;
}

void PullReporter::FillSummary(Summary* summary) const {
  const PullOptions& options = *options_;
  const Plan& plan = *plan_;
  summary->started_at = started_at_;
  summary->finished_at = NowRfc3339();
  summary->source = options.source.ToString();
  summary->target = options.target_dir;
  summary->selection = options.selection;
  summary->target_versions.software = SoftwareVersion();
  summary->target_versions.rocksdb = RocksDbVersion();
  FillSource(summary);
  summary->parts = plan.parts.size();
  summary->lanes = plan.opened.lanes;
  FillCounters(summary);
  summary->method = "ingest";
  summary->method_reason = method_reason_;
  summary->for_rocksdb = plan.opened.application;
  summary->opens_since = plan.opened.opens_since;
  summary->opens_because = plan.opened.opens_because;
  summary->verified = verified_;
  summary->needed_bytes = needed_bytes_;
  summary->free_bytes = free_bytes_;
  summary->other_files = other_files_;
  summary->other_files_bytes = other_files_bytes_;
  summary->state = published() ? "complete" : "";
  summary->peak_rss_bytes = PeakRssBytes();
  summary->notes = plan.opened.notes;
  if (summary->last_flush_seconds_before.has_value()) {
    summary->notes.push_back(
        UnloggedNote(*summary->last_flush_seconds_before));
  }
  summary->notes.insert(summary->notes.end(), notes_.begin(), notes_.end());
  summary->seconds = SecondsSince(started_);
  FillParts(summary);
  FillStages(summary);
}

void PullReporter::FillSource(Summary* summary) const {
  const Plan& plan = *plan_;
  if (link_->session() != nullptr) {
    const HelloAck& source = link_->session()->source();
    summary->source_versions.software = source.software;
    summary->source_versions.rocksdb = source.rocksdb_version;
  }
  summary->wire_bytes = link_->wire_bytes();
  if (!plan.families.empty()) {
    summary->transfer_id = ToHex(plan.opened.transfer_id);
  }
  summary->source_database_id = plan.opened.source_database_id;
  summary->snapshot_sequence = plan.opened.snapshot_sequence;
  summary->snapshot_taken_seconds = plan.opened.taken_seconds;
  const uint64_t since = plan.opened.unlogged_since_seconds;
  if (since != 0 && since <= plan.opened.taken_seconds) {
    summary->last_flush_seconds_before = plan.opened.taken_seconds - since;
  }
  for (const Family& family : plan.families) {
    summary->column_families.push_back(family.description.name);
  }
}

void PullReporter::FillCounters(Summary* summary) const {
  const LaneShared& state = *lanes_;
  const PullCounters& counters = state.counters;
  const Totals& received = received_;
  {
    std::lock_guard<std::mutex> lock(state.mu);
    static_cast<LaneCounts&>(*summary) = state;
  }
  summary->chunks = summary->chunks_built + summary->chunks_delta +
                    summary->chunks_cloned;
  summary->chunks_resumed = received.chunks;
  summary->sst_bytes_resumed = received.sst_bytes;
  summary->key_value_bytes_resumed = received.key_value_bytes;
  summary->entries = received.entries + counters.entries;
  summary->key_value_bytes =
      received.key_value_bytes + counters.key_value_bytes;
  summary->sst_bytes = received.sst_bytes + counters.sst_bytes;
  summary->bytes_read = source_read_bytes();
  summary->bytes_written = counters.sst_bytes;
  summary->compressed_frames = counters.compressed_frames;
  summary->compressed_bytes_before = counters.decompressed_bytes;
  summary->compressed_bytes_after = counters.compressed_bytes;
  summary->retries = state.retries;
}

void PullReporter::FillParts(Summary* summary) const {
  const LaneShared& state = *lanes_;
  const std::vector<Part>& parts = plan_->parts;
  std::lock_guard<std::mutex> lock(state.mu);
  for (const ReceivedPart& part : state.ended) {
    const PartNeed need = parts[part.part_id].need;
    // A clone receives each unit as one chunk, so a unit without a chunk was
    // reused.
    const bool skipped = part.totals.chunks == 0 &&
                         (state.clone != nullptr ||
                          need != PartNeed::kSend);
    summary->parts_unchanged += skipped ? 1 : 0;
    summary->parts_sent += skipped ? 0 : 1;
    summary->bytes_skipped +=
        skipped ? parts[part.part_id].bytes : 0;
  }
  summary->parts_compared = state.parts_compared;
  summary->parts_left = parts.size() - state.ended.size();
}

void PullReporter::FillStages(Summary* summary) const {
  const Plan& plan = *plan_;
  const double lanes = std::max(1u, plan.opened.lanes) * 1e6;
  const StageTotals& ours = lanes_->counters.stages;
  std::map<std::string, double>& target = summary->target_stage_seconds;
  target["receive"] = ours.micros(Stage::kReceive) / lanes;
  target["stage_write"] = ours.micros(Stage::kStageWrite) / lanes;
  target["check"] = ours.micros(Stage::kCheck) / lanes;
  target["ingest"] = ours.micros(Stage::kIngest) / lanes;
  target["sync"] =
      ours.micros(Stage::kSync) / lanes + seconds(TimedStep::kSync);
  target["verify"] = seconds(TimedStep::kVerify);
  target["swap"] = seconds(TimedStep::kSwap);
  target["delete"] = seconds(TimedStep::kDelete);
  std::map<std::string, double>& source = summary->source_stage_seconds;
  const Stats& theirs = source_stats_;
  source["snapshot"] = plan.opened.snapshot_micros / 1e6;
  source["plan"] = plan.opened.plan_micros / 1e6;
  source["read_build"] = theirs.read_build_micros / lanes;
  source["send_wait"] = theirs.send_wait_micros / lanes;
  source["held_cpu"] = theirs.held_cpu_micros / lanes;
  source["held_io"] = theirs.held_io_micros / lanes;
  source["held_latency"] = theirs.held_latency_micros / lanes;
  // Count the rest of the wall clock time as idle: lanes had nothing to do, or
  // did not run.
  for (std::map<std::string, double>* side : {&target, &source}) {
    double sum = 0;
    for (const auto& stage : *side) {
      sum += stage.second;
    }
    (*side)["idle"] = std::max(0.0, summary->seconds - sum);
  }
}

}  // namespace sstferry
