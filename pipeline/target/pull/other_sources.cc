#include "pipeline/target/pull/other_sources.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "format/end_state.h"
#include "pipeline/target/clone/unit_map.h"
#include "pipeline/target/disk/target_directories.h"
#include "pipeline/target/lane/lane_client.h"
#include "pipeline/target/pull/pull_reporter.h"
#include "pipeline/target/pull/pull_target.h"
#include "pipeline/target/session/backoff.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// A source whose bytes are damaged on the way so often, without a unit in
// between, is not tried again.
constexpr int kDamagedVisits = 5;
// For a source to agree that all has come.
constexpr std::chrono::milliseconds kLastWordsLimit{3'000};

// Whether a source that ended a visit so may be of use later.
bool MayComeBack(EndState state) {
  switch (state) {
    case EndState::kDeadPeer:
    case EndState::kCancelled:  // it shuts down
    case EndState::kBusy:
    case EndState::kTooSlow:
    case EndState::kSnapshotGone:
    case EndState::kCorrupt:  // on the way, or its lanes say so
      return true;
    default:
      return false;
  }
}

}  // namespace

struct OtherSources::Visitor {
  OtherSource source;
  std::string url;
  LaneSource lanes;
  UnitMap units;
  std::optional<TransferId> transfer;  // the last one
  std::atomic<bool> is_wrong{false};   // it sent bytes that are not so
  std::thread thread;
  // Under mu_:
  FirstFailure* failure = nullptr;  // of the visit at hand
  SourceLink* link = nullptr;       // the same
  bool is_sending = false;
  bool is_leaving = false;  // the visit at hand went well
  std::string note;
  std::string state = "unused";
  uint64_t wire_bytes = 0;
};

OtherSources::OtherSources(const PullContext* context,
                           PullCompression* compression,
                           std::vector<OtherSource> sources)
    : context_(context), compression_(compression) {
  for (OtherSource& source : sources) {
    auto visitor = std::make_unique<Visitor>();
    visitor->url = source.address.ToString();
    visitor->source = std::move(source);
    visitor->lanes.index =
        kFirstSource + 1 + static_cast<uint32_t>(visitors_.size());
    visitors_.push_back(std::move(visitor));
  }
}

OtherSources::~OtherSources() { Stop(); }

void OtherSources::Start(uint32_t witness_lane) {
  witness_ = std::make_unique<UnitWitness>(context_, witness_lane);
  for (const std::unique_ptr<Visitor>& visitor : visitors_) {
    visitor->thread = std::thread([this, raw = visitor.get()] { Run(raw); });
  }
}

void OtherSources::Close() {
  stop_.Stop();
  std::lock_guard<std::mutex> lock(mu_);
  closed_ = true;
  for (const std::unique_ptr<Visitor>& visitor : visitors_) {
    if (visitor->failure != nullptr) {
      visitor->failure->Set(
          MakeStatus(EndState::kCancelled, "the pull has ended"), "target");
    }
  }
}

void OtherSources::Stop() {
  stop_.Stop();
  if (!context_->failure->failed()) {
    std::unique_lock<std::mutex> lock(mu_);
    visited_.wait_for(lock, kLastWordsLimit, [this] {
      for (const std::unique_ptr<Visitor>& visitor : visitors_) {
        if (visitor->is_sending || visitor->is_leaving) return false;
      }
      return true;
    });
  }
  Close();
  for (const std::unique_ptr<Visitor>& visitor : visitors_) {
    if (visitor->thread.joinable()) {
      visitor->thread.join();
    }
    if (!visitor->note.empty()) {
      context_->report->Note(std::exchange(visitor->note, ""));
    }
  }
}

void OtherSources::Run(Visitor* visitor) {
  BackoffOptions options;
  options.give_up_after = std::chrono::hours(24 * 365);
  Backoff backoff(options);
  std::string told;
  int damaged = 0;
  while (!stop_.stopped()) {
    const uint64_t chunks = visitor->lanes.chunks;
    bool again = false;
    const Status status = Visit(visitor, &again);
    if (status.ok() || stop_.stopped()) {
      return;
    }
    if (visitor->lanes.chunks != chunks) {
      backoff.Succeeded();
      damaged = 0;
      told.clear();
    }
    damaged += EndStateOf(status) == EndState::kCorrupt ? 1 : 0;
    again = again && !visitor->is_wrong && damaged < kDamagedVisits;
    const std::string what =
        "source " + visitor->url + ": " + EndStateName(EndStateOf(status)) +
        ": " + MessageOf(status);
    if (!again) {
      SetState(visitor, "refused");
      Say(visitor, what + (visitor->is_wrong
                               ? ": these bytes are not kept, and it is not "
                                 "used any more"
                               : ": it is not used any more"));
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (visitor->state == "unused") visitor->state = "unreachable";
    }
    if (what != told) {
      context_->report->Log(LogLevel::kWarning,
                            what + ": it is tried again");
    }
    told = what;
    std::chrono::milliseconds wait{0};
    if (!backoff.Next(&wait) || stop_.WaitFor(wait)) {
      return;
    }
  }
}

SourceLinkOptions OtherSources::LinkOptions() const {
  const PullOptions& asked = *context_->options;
  SourceLinkOptions options;
  options.connect_timeout = asked.connect_timeout;
  options.peer_timeout = asked.peer_timeout;
  options.stall_timeout = asked.stall_timeout;
  options.log = asked.log;
  options.on_stats = [this, on = false](const Stats&) mutable {
    std::optional<Compress> compress;
    if (compression_->is_on() != on) {
      on = !on;
      compress.emplace().on = on;
    }
    return compress;
  };
  return options;
}

Status OtherSources::Visit(Visitor* visitor, bool* again) {
  std::unique_ptr<Dialer> dialer;
  Status status = visitor->source.make_dialer(&dialer);
  if (!status.ok()) {
    return status;
  }
  SourceLink* link_of_failure = nullptr;
  FirstFailure failure([&link_of_failure] { link_of_failure->Close(); });
  SourceLink link(dialer.get(), LinkOptions(), &failure);
  link_of_failure = &link;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (closed_) {
      return MakeStatus(EndState::kCancelled, "the pull has ended");
    }
    visitor->failure = &failure;
    visitor->link = &link;
  }
  SourcePlan plan;
  status = Open(visitor, &link, &plan);
  if (status.ok()) {
    status = Fetch(visitor, &link, plan, again);
  } else {
    *again = MayComeBack(EndStateOf(status));
  }
  Leave(&link, plan, status);
  std::lock_guard<std::mutex> lock(mu_);
  visitor->wire_bytes += link.wire_bytes();
  visitor->failure = nullptr;
  visitor->link = nullptr;
  visitor->is_leaving = false;
  visited_.notify_all();
  return status;
}

Status OtherSources::Open(Visitor* visitor, SourceLink* link,
                          SourcePlan* plan) {
  const PullOptions& options = *context_->options;
  Status status = link->Connect();
  if (!status.ok()) {
    return status;
  }
  SourceSession* const session = link->session();
  const uint64_t features = session->source().features;
  if ((features & kFeatureClone) == 0) {
    return MakeStatus(EndState::kIncompatible,
                      "expected a source that can be cloned, found " +
                          session->source().software);
  }
  OpenRequest request = MakeOpenRequest(
      options, visitor->source.address.name, Purpose::kPull);
  request.chunk_bytes = context_->state->chunk_bytes;
  request.compression = compression_->ChooseFor(features);
  request.compression_level = options.compression_level;
  if (visitor->transfer.has_value()) {
    request.snapshot_use = SnapshotUse::kInstead;
    request.held_transfer = *visitor->transfer;
  } else if (options.latest_snapshot && (features & kFeatureShare) != 0) {
    request.snapshot_use = SnapshotUse::kLatest;
  }
  status = session->Open(request, plan);
  if (status.ok()) {
    visitor->transfer = plan->opened.transfer_id;
    PullOptions from_it = options;
    from_it.source = visitor->source.address;
    status = CheckApartFromPlaces(from_it, context_->target->Directories(),
                                  plan->opened.places);
  }
  if (status.ok() && !plan->clone.has_value()) {
    status = MakeStatus(EndState::kCorrupt,
                        "plan: expected the files of a clone, found none");
  }
  if (status.ok() &&
      (plan->opened.lanes == 0 || plan->opened.lanes > options.lanes)) {
    status = MakeStatus(EndState::kCorrupt,
                        "plan: expected 1 to " +
                            std::to_string(options.lanes) + " lanes, found " +
                            std::to_string(plan->opened.lanes));
  }
  return status;
}

Status OtherSources::Fetch(Visitor* visitor, SourceLink* link,
                           const SourcePlan& plan, bool* again) {
  Status status =
      UnitMap::Make(*context_->plan->clone, *plan.clone, &visitor->units);
  if (!status.ok()) {
    return status;
  }
  const size_t common = visitor->units.common().size();
  const std::string found = std::to_string(common) + " of " +
                            std::to_string(context_->plan->ranges.size()) +
                            " units";
  if (common == 0) {
    SetState(visitor, "different");
    Say(visitor, "source " + visitor->url +
                     ": it has no file of the snapshot that is cloned, and is "
                     "not used");
    return Status::OK();
  }
  context_->report->Log(LogLevel::kInfo,
                        "source " + visitor->url + ": it has " + found);
  LaneSource* const lanes = &visitor->lanes;
  lanes->guard = &link->guard();
  lanes->units = &visitor->units;
  lanes->open_lane = [link](uint32_t lane, Channel** channel) {
    return link->OpenLane(lane, channel);
  };
  lanes->compare = [this](uint32_t range_id, const Digest128& content,
                          bool* equal) {
    return witness_->Compare(range_id, content, equal);
  };
  link->SetLanes(plan.opened.lanes,
                 compression_->ChooseFor(link->session()->source().features) !=
                         WireCompression::kNone
                     ? kFrameFlagZstd
                     : 0);
  RangeScheduler* const scheduler = context_->state->scheduler;
  scheduler->Join(lanes->index, visitor->units.common(), plan.opened.lanes);
  SetState(visitor, "used");
  {
    std::lock_guard<std::mutex> lock(mu_);
    visitor->is_sending = true;
  }
  status = link->RunLanes([this, visitor, link](uint32_t lane) {
    RunLane(visitor, link, lane);
  });
  scheduler->Leave(lanes->index);
  {
    std::lock_guard<std::mutex> lock(mu_);
    visitor->is_sending = false;
    visitor->is_leaving = status.ok();
  }
  if (!status.ok()) {
    SetState(visitor, "lost");
    *again = MayComeBack(EndStateOf(status));
  }
  return status;
}

void OtherSources::RunLane(Visitor* visitor, SourceLink* link, uint32_t lane) {
  const std::string where =
      "target lane " + std::to_string(lane) + " of " + visitor->url;
  LaneClient client(context_->state, &visitor->lanes, lane);
  const Status status = client.Run();
  if (!status.ok() && client.failure() == LaneFailure::kHere) {
    context_->failure->Set(status, where);
  }
  if (!status.ok() && client.failure() == LaneFailure::kWrong) {
    visitor->is_wrong = true;
  }
  link->FailLane(status, where);
}

// It is told that all has come, whatever other sources sent of it. A snapshot
// of a visit that failed is of no use either: no later one resumes it.
void OtherSources::Leave(SourceLink* link, const SourcePlan& plan,
                         const Status& status) {
  if (link->session() == nullptr) {
    return;
  }
  Status last = status;
  if (last.ok()) {
    std::vector<HeldRange> held;
    for (const Range& range : plan.ranges) {
      held.push_back({range.id, Totals()});
    }
    struct Finish ours;
    struct Finish theirs;
    ours.families.resize(plan.families.size());
    last = link->session()->Finish(ours, held, &theirs);
  }
  link->End(MayGoOnAfter(EndStateOf(last))
                ? MakeStatus(EndState::kRefused,
                             "not resumed with this snapshot: " +
                                 MessageOf(last))
                : last,
            "target");
}

void OtherSources::Say(Visitor* visitor, const std::string& note) {
  context_->report->Log(LogLevel::kWarning, note);
  std::lock_guard<std::mutex> lock(mu_);
  visitor->note = note;
}

void OtherSources::SetState(Visitor* visitor, const std::string& state) {
  std::lock_guard<std::mutex> lock(mu_);
  visitor->state = state;
}

uint32_t OtherSources::in_use() const {
  std::lock_guard<std::mutex> lock(mu_);
  uint32_t count = 0;
  for (const std::unique_ptr<Visitor>& visitor : visitors_) {
    count += visitor->is_sending ? 1 : 0;
  }
  return count;
}

uint64_t OtherSources::wire_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  uint64_t bytes = 0;
  for (const std::unique_ptr<Visitor>& visitor : visitors_) {
    bytes += visitor->wire_bytes +
             (visitor->link != nullptr ? visitor->link->wire_bytes() : 0);
  }
  return bytes;
}

std::vector<SourceSummary> OtherSources::Summaries() const {
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<SourceSummary> summaries;
  for (const std::unique_ptr<Visitor>& visitor : visitors_) {
    summaries.push_back({visitor->url, visitor->lanes.bytes,
                         visitor->lanes.chunks, visitor->state});
  }
  return summaries;
}

}  // namespace sstferry
