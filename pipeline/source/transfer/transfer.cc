#include "pipeline/source/transfer/transfer.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>

#include "format/limits.h"
#include "format/message/for_each_batch.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/directories.h"
#include "pipeline/options/family_options.h"
#include "pipeline/options/options_file.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::steady_clock;

// When the target leaves the level to us. Of tables that shrink to 1/4.00 on
// level 1, level 3 makes 1/4.10 at half the speed (111 against 237 MB/s).
constexpr int kDefaultCompressionLevel = 1;

uint32_t GrantedLanes(const OpenRequest& request, const ServeOptions& serve) {
  return std::clamp(request.lanes, 1u, std::min(serve.max_lanes, kMaxLanes));
}

// Of table and blob files, each of which may keep one of the source alive.
uint64_t PinnedBytes(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory + "/db", error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".sst" || extension == ".blob") {
      const uint64_t size = entry.file_size(error);
      bytes += error ? 0 : size;
    }
  }
  return bytes;
}

TransferId RandomTransferId() {
  std::random_device device;
  TransferId id;
  for (size_t i = 0; i < id.size(); i += 4) {
    const uint32_t word = device();
    for (size_t j = 0; j < 4; ++j) {
      id[i + j] = static_cast<uint8_t>(word >> (8 * j));
    }
  }
  return id;
}

std::vector<std::unique_ptr<LanePort>> MakePorts(uint32_t lanes) {
  std::vector<std::unique_ptr<LanePort>> ports(lanes);
  for (std::unique_ptr<LanePort>& port : ports) {
    port = std::make_unique<LanePort>();
  }
  return ports;
}

uint64_t MicrosSince(steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          steady_clock::now() - start)
          .count());
}

}  // namespace

Transfer::Transfer(const ServedDatabase& database, const ServeOptions& serve,
                   const OpenRequest& request, const Hello& target,
                   std::string peer, TokenBucket* wire_bucket)
    : database_(database),
      serve_(serve),
      request_(request),
      target_(target),
      wire_bucket_(wire_bucket),
      started_(steady_clock::now()),
      id_(RandomTransferId()),
      plan_lanes_(GrantedLanes(request, serve)),
      rate_bucket_(request.max_rate_bytes_per_sec),
      lanes_(plan_lanes_),
      peer_(std::move(peer)),
      ports_(MakePorts(kMaxLanes)) {
  SetPace(request, target);
}

Transfer::Transfer(const ServedDatabase& database, const ServeOptions& serve,
                   const Lease& lease, std::unique_ptr<PrivateDir> dir,
                   TokenBucket* wire_bucket)
    : database_(database),
      serve_(serve),
      request_(lease.request),
      target_(lease.target),
      owner_{lease.owner_subject, lease.owner_names},
      wire_bucket_(wire_bucket),
      started_(steady_clock::now()),
      id_(lease.transfer_id),
      plan_lanes_(lease.plan_lanes),
      adopted_(lease),
      adopted_dir_(std::move(dir)),
      rate_bucket_(lease.request.max_rate_bytes_per_sec),
      lanes_(plan_lanes_),
      ports_(MakePorts(kMaxLanes)) {}

Transfer::~Transfer() = default;

Status Transfer::Pin() {
  std::lock_guard<std::mutex> lock(pin_mu_);
  if (planned_) {
    return Status::OK();
  }
  return ended() ? MakeStatus(EndState::kCancelled, "while pinning") : PinOnce();
}

Status Transfer::PinOnce() {
  const steady_clock::time_point start = steady_clock::now();
  Status status = snapshot_ != nullptr   ? Status::OK()
                  : adopted_.has_value() ? AdoptSnapshot()
                                         : PinSnapshot();
  snapshot_micros_ = MicrosSince(start);
  if (status.ok()) {
    status = DescribeFamilies();
  }
  if (status.ok()) {
    status = PlanFamilies();
  }
  if (status.ok() && adopted_.has_value() &&
      !(PlanDigest() == adopted_->plan)) {
    status = MakeStatus(EndState::kSnapshotGone,
                        "the snapshot is planned in another way than before");
  }
  plan_micros_ = MicrosSince(start) - snapshot_micros_;
  std::lock_guard<std::mutex> lock(mu_);
  covered_.resize(ranges_.size());
  if (status.ok()) {
    pinned_bytes_ = PinnedBytes(snapshot_->directory());
  } else if (snapshot_ != nullptr && EndStateOf(status) != EndState::kCancelled) {
    KeepSnapshot(false);
  }
  planned_ = status.ok();
  return status;
}

void Transfer::KeepSnapshot(bool keep) {
  if (shares_ == nullptr) {
    snapshot_->Keep(keep);
  }
}

SnapshotOptions Transfer::snapshot_options() {
  SnapshotOptions options;
  options.database_dir = database_.directory;
  options.snapshot_dir = serve_.snapshot_dir;
  options.wal_dir = database_.wal_dir;
  options.families = request_.families;
  options.registry = serve_.registry;
  options.cancelled = [this] { return ended(); };
  options.read_bytes = &read_bytes_;
  options.log = serve_.log;
  return options;
}

Status Transfer::AdoptSnapshot() {
  HeldSnapshotState state;
  state.sequence = adopted_->snapshot_sequence;
  state.database_id = adopted_->source_database_id;
  state.read_only = adopted_->read_only;
  state.wal_bytes = adopted_->wal_bytes;
  std::unique_ptr<Snapshot> adopted;
  const Status status = Snapshot::Adopt(snapshot_options(), state,
                                        std::move(adopted_dir_), &adopted);
  if (status.ok()) {
    snapshot_ = std::move(adopted);
    notes_ = snapshot_->notes();
    has_lease_ = true;
  }
  return status;
}

Status Transfer::PinSnapshot() {
  const SnapshotOptions options = snapshot_options();
  std::unique_ptr<Snapshot> made;
  const Status status =
      database_.db != nullptr
          ? Snapshot::FromOpenDatabase(database_.db, database_.handles,
                                       options, &made)
          : Snapshot::Create(options, &made);
  if (status.ok()) {
    snapshot_ = std::move(made);
    notes_ = snapshot_->notes();
  }
  return WithContext(status, EndState::kSourceError, "snapshot");
}

// What a target may ask for anew when it goes on.
void Transfer::SetPace(const OpenRequest& request, const Hello& target) {
  const WireCompression compression =
      (target.features & kFeatureWireCompression) != 0 ? request.compression
                                                       : WireCompression::kNone;
  rate_bucket_.SetRate(request.max_rate_bytes_per_sec);
  compression_ = compression;
  compression_level_ = request.compression_level == 0
                           ? kDefaultCompressionLevel
                           : static_cast<int>(request.compression_level);
  compressing_ = compression == WireCompression::kZstd;
}

Status Transfer::CheckSame(const OpenRequest& request,
                           const Hello& target) const {
  const auto differs = [](const std::string& field) {
    return MakeStatus(EndState::kRefused,
                      "resume: " + field +
                          " is not what the transfer was opened with");
  };
  constexpr uint64_t kPlanFeatures = kFeatureEntities | kFeatureCarry;
  if (request.database != request_.database) return differs("database");
  if (request.purpose != request_.purpose) return differs("purpose");
  if (request.families != request_.families) return differs("families");
  if (!(request.interval == request_.interval)) return differs("interval");
  if (request.chunk_bytes != request_.chunk_bytes) {
    return differs("chunk_bytes");
  }
  if (request.format_version != request_.format_version) {
    return differs("format_version");
  }
  if (request.carry != request_.carry) return differs("carry");
  if (request.mode != request_.mode) return differs("mode");
  if (request.compare != request_.compare) return differs("compare");
  if ((target.features & kPlanFeatures) != (target_.features & kPlanFeatures)) {
    return differs("features");
  }
  if (target.max_format_version != target_.max_format_version) {
    return differs("max_format_version");
  }
  if (target.compressions != target_.compressions) {
    return differs("compressions");
  }
  return Status::OK();
}

Status Transfer::Resume(const OpenRequest& request, const Hello& target,
                        std::string peer, Channel* control) {
  Status status = CheckSame(request, target);
  if (!status.ok()) {
    return status;
  }
  std::lock_guard<std::mutex> lock(mu_);
  if (ended()) {
    return MakeStatus(EndState::kSnapshotGone,
                      "transfer " + ToHex(id_) + " has just ended");
  }
  SetPace(request, target);
  if (control_ != nullptr) {
    control_->Close();
  }
  control_ = control;
  has_control_ = true;
  peer_ = std::move(peer);
  lanes_ = GrantedLanes(request, serve_);
  for (size_t lane = lanes_; lane < ports_.size(); ++lane) {
    ports_[lane]->Interrupt();
  }
  return Status::OK();
}

bool Transfer::Leave(const Channel* control) {
  std::lock_guard<std::mutex> lock(mu_);
  if (control_ != control) {
    return false;
  }
  control_ = nullptr;
  has_control_ = false;
  return true;
}

Status Transfer::Announce(Channel* control, bool resumed) {
  Opened opened;
  opened.transfer_id = id_;
  opened.source_database_id = snapshot_->database_id();
  opened.snapshot_sequence = snapshot_->sequence();
  opened.lanes = lanes();
  opened.resumed = resumed;
  opened.lease_seconds = may_keep() ? serve_.snapshot_ttl.count() : 0;
  opened.family_count = static_cast<uint32_t>(families_.size());
  opened.database_options = database_options_;
  opened.notes = own_notes_;
  opened.notes.insert(opened.notes.end(), notes_.begin(), notes_.end());
  opened.notes.resize(std::min<size_t>(opened.notes.size(), kMaxNotes));
  opened.snapshot_micros = snapshot_micros_;
  opened.plan_micros = plan_micros_;
  std::vector<std::string> dirs = database_.db != nullptr
                                      ? DirectoriesOf(database_.db)
                                      : DirectoriesOf(database_.directory);
  if (!database_.wal_dir.empty()) {
    dirs.push_back(database_.wal_dir);
  }
  opened.places = PlacesOf(dirs);
  Status status = control->SendMessage(FrameType::kOpened, opened);
  for (const TransferFamily& family : families_) {
    if (status.ok()) {
      status = control->SendMessage(FrameType::kFamily, family.wire);
    }
  }
  PlanEnd end;
  for (const Range& range : ranges_) {
    end.estimated_bytes += range.estimated_bytes;
  }
  if (status.ok()) {
    status = ForEachBatch(ranges_, [control](std::vector<Range> batch) {
      return control->SendMessage(FrameType::kRanges,
                                  Ranges{std::move(batch)});
    });
  }
  if (status.ok() && request_.purpose == Purpose::kPlan) {
    status = SendPlanItems(control);
  }
  if (status.ok()) {
    status = ForEachBatch(covers_, [control](std::vector<Cover> batch) {
      return control->SendMessage(FrameType::kCovers,
                                  Covers{std::move(batch)});
    });
  }
  end.cover_count = static_cast<uint32_t>(covers_.size());
  end.range_count = static_cast<uint32_t>(ranges_.size());
  return status.ok() ? control->SendMessage(FrameType::kPlanEnd, end) : status;
}

bool Transfer::IsControl(const Channel* control) const {
  std::lock_guard<std::mutex> lock(mu_);
  return control_ == control;
}

// Whether a plan that is made again is the same one.
Digest128 Transfer::PlanDigest() const {
  RangeDigest digest;
  const auto add = [&digest](const std::string& bytes) {
    digest.AddChunk(DigestOf(bytes));
  };
  for (const TransferFamily& family : families_) {
    add(family.wire.description.name);
    add(std::to_string(family.wire.format_version));
  }
  for (const Range& range : ranges_) {
    Range exact = range;
    exact.estimated_bytes = 0;
    Ranges one;
    one.ranges.push_back(exact);
    std::string bytes;
    one.EncodeTo(&bytes);
    const CarriedFile* const file = carried(range.id);
    add(bytes + (file == nullptr ? "" : file->path));
  }
  return digest.Finish();
}

Status Transfer::WriteLease(uint64_t wall_seconds) {
  // A refresh is planned by what its target told, which no lease holds.
  if (!may_keep() || is_refresh() || database_.directory.empty() ||
      !planned_) {
    return Status::OK();
  }
  std::lock_guard<std::mutex> lock(lease_mu_);
  Lease lease;
  std::error_code error;
  lease.transfer_id = id_;
  lease.database = database_.name;
  lease.directory =
      std::filesystem::canonical(database_.directory, error).string();
  lease.request = request_;
  lease.target = target_;
  lease.owner_subject = owner_.subject;
  lease.owner_names = owner_.names;
  lease.plan_lanes = plan_lanes_;
  lease.source_database_id = snapshot_->database_id();
  lease.snapshot_sequence = snapshot_->sequence();
  lease.read_only = snapshot_->wal_not_flushed();
  lease.wal_bytes = snapshot_->counters().wal_bytes_copied;
  lease.plan = PlanDigest();
  lease.pinned_bytes = pinned_bytes_;
  if (created_seconds_ == 0) {
    created_seconds_ =
        adopted_.has_value() ? adopted_->created_seconds : wall_seconds;
  }
  lease.created_seconds = created_seconds_;
  lease.renewed_seconds = wall_seconds;
  lease.ttl_seconds = std::min<uint64_t>(
      static_cast<uint64_t>(serve_.snapshot_ttl.count()), kMaxLeaseSeconds);
  lease.readers = has_control() ? 1 : 0;
  Status status;
  if (!has_lease_) {
    status = snapshot_->PrepareAdoption();
  }
  if (status.ok()) {
    status = sstferry::WriteLease(snapshot_->directory(), lease);
  }
  has_lease_ = has_lease_ || status.ok();
  return status;
}

HeldSnapshot Transfer::Describe(uint64_t wall_seconds) {
  HeldSnapshot held;
  held.transfer_id = id_;
  held.database = database_.name;
  held.snapshot_sequence = snapshot_->sequence();
  held.pinned_bytes = pinned_bytes_;
  std::lock_guard<std::mutex> lock(lease_mu_);
  held.age_seconds = created_seconds_ != 0
                         ? wall_seconds - std::min(wall_seconds,
                                                   created_seconds_)
                         : MicrosSince(started_) / 1'000'000;
  return held;
}

uint32_t Transfer::lanes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return lanes_;
}

void Transfer::set_control(Channel* control) {
  std::lock_guard<std::mutex> lock(mu_);
  control_ = control;
  has_control_ = true;
}

Status Transfer::Attach(uint32_t lane, LanePort** port) {
  if (ended()) {
    return MakeStatus(EndState::kCancelled, "lane: the transfer has ended");
  }
  std::lock_guard<std::mutex> lock(mu_);
  if (lane >= lanes_) {
    return MakeStatus(EndState::kRefused,
                      "lane: expected one below " + std::to_string(lanes_) +
                          ", found " + std::to_string(lane));
  }
  *port = ports_[lane].get();
  return Status::OK();
}

void Transfer::Fail(const Status& status, const std::string& where) {
  FailAnd(status, where, false);
}

void Transfer::Suspend(const Status& status, const std::string& where) {
  FailAnd(status, where, true);
}

void Transfer::FailAnd(const Status& status, const std::string& where,
                       bool keep) {
  std::lock_guard<std::mutex> lock(mu_);
  if (ended_.exchange(true)) {
    return;
  }
  status_ = status;
  error_where_ = where;
  if (planned_) {
    KeepSnapshot(keep && has_lease_);
  }
  rate_bucket_.Close();
  if (control_ != nullptr) {
    SendEnd(control_, status, where);
  }
  StopLanes();
}

void Transfer::End() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!ended_.exchange(true)) {
    if (planned_) {
      KeepSnapshot(false);
    }
    rate_bucket_.Close();
    StopLanes();
  }
}

void Transfer::CloseLanes() {
  std::lock_guard<std::mutex> lock(mu_);
  for (const std::unique_ptr<LanePort>& port : ports_) {
    port->Interrupt();
  }
}

void Transfer::StopLanes() {
  for (const std::unique_ptr<LanePort>& port : ports_) {
    port->Stop();
  }
  has_ended_.notify_all();
}

bool Transfer::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mu_);
  return has_ended_.wait_for(lock, limit, [this] { return ended(); });
}

Status Transfer::status() const {
  std::lock_guard<std::mutex> lock(mu_);
  return status_;
}

std::string Transfer::error_where() const {
  std::lock_guard<std::mutex> lock(mu_);
  return error_where_;
}

void Transfer::RecordRange(const RangeEnd& end, const struct Totals& held) {
  std::lock_guard<std::mutex> lock(mu_);
  struct Totals all = held;
  all += end.totals;
  covered_[end.range_id] = {all, true};
}

Status Transfer::RecordHeld(const Held& held) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const HeldRange& range : held.ranges) {
    if (range.range_id >= covered_.size()) {
      return MakeStatus(EndState::kCorrupt,
                        "held: expected a range below " +
                            std::to_string(covered_.size()) + ", found " +
                            std::to_string(range.range_id));
    }
    Covered& covered = covered_[range.range_id];
    // Not their files: the same entries make others when they are sent again.
    if (covered.sent &&
        (covered.totals->entries != range.totals.entries ||
         covered.totals->key_value_bytes != range.totals.key_value_bytes)) {
      return MakeStatus(EndState::kCorrupt,
                        "held: range " + std::to_string(range.range_id) +
                            ": sent " +
                            std::to_string(covered.totals->entries) +
                            " entries, the target has " +
                            std::to_string(range.totals.entries));
    }
    covered.totals = range.totals;
  }
  return Status::OK();
}

Finish Transfer::Totals() const {
  Finish finish;
  finish.families.resize(families_.size());
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < covered_.size(); ++i) {
      if (covered_[i].totals.has_value()) {
        finish.families[ranges_[i].family] += *covered_[i].totals;
      }
    }
  }
  finish.stats = CurrentStats();
  return finish;
}

size_t Transfer::UnsentRanges() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<size_t>(
      std::count_if(covered_.begin(), covered_.end(), [](const Covered& one) {
        return !one.totals.has_value();
      }));
}

Stats Transfer::CurrentStats() const {
  Stats stats;
  stats.entries = counters_.entries;
  stats.key_value_bytes = counters_.key_value_bytes;
  stats.sst_bytes = counters_.sst_bytes;
  stats.wire_bytes = counters_.wire_bytes;
  stats.peak_rss_bytes = PeakRssBytes();
  stats.read_build_micros = counters_.stages.micros(Stage::kReadBuild);
  stats.send_wait_micros = counters_.stages.micros(Stage::kSendWait);
  stats.idle_micros = counters_.stages.micros(Stage::kIdle);
  stats.read_bytes = read_bytes_;
  stats.send_blocked_micros = counters_.send_blocked_micros;
  return stats;
}

TransferReport Transfer::Report() const {
  TransferReport report;
  report.transfer_id = ToHex(id_);
  report.name = database_.name;
  {
    std::lock_guard<std::mutex> lock(mu_);
    report.peer = peer_;
  }
  report.status = status();
  report.error_where = error_where();
  report.entries = counters_.entries;
  report.sst_bytes = counters_.sst_bytes;
  report.wire_bytes = counters_.wire_bytes;
  report.seconds = static_cast<double>(MicrosSince(started_)) / 1e6;
  return report;
}

}  // namespace sstferry
