#include "pipeline/source/transfer.h"

#include <algorithm>
#include <random>

#include "format/limits.h"
#include "pipeline/family_options.h"
#include "pipeline/options_file.h"
#include "pipeline/rocksdb_compat.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::steady_clock;

// Memory for readahead of all lanes and sorted runs together.
constexpr uint64_t kReadaheadBudgetBytes = 16u << 20;
constexpr uint64_t kMinReadaheadBytes = 64u << 10;
constexpr uint64_t kMaxReadaheadBytes = 1u << 20;
// When the target leaves the level to us. Of tables that shrink to 1/4.00 on
// level 1, level 3 makes 1/4.10 at half the speed (111 against 237 MB/s).
constexpr int kDefaultCompressionLevel = 1;

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
      peer_(std::move(peer)),
      wire_bucket_(wire_bucket),
      started_(steady_clock::now()),
      id_(RandomTransferId()),
      lanes_(std::clamp(request.lanes, 1u,
                        std::min(serve.max_lanes, kMaxLanes))),
      rate_bucket_(request.max_rate_bytes_per_sec),
      compressing_(compression() == WireCompression::kZstd),
      attached_(lanes_, nullptr) {}

Transfer::~Transfer() = default;

Status Transfer::Pin() {
  const steady_clock::time_point start = steady_clock::now();
  Status status = snapshot_ == nullptr ? PinSnapshot() : Status::OK();
  snapshot_micros_ = MicrosSince(start);
  if (status.ok()) {
    status = DescribeFamilies();
  }
  if (status.ok()) {
    status = PlanFamilies();
  }
  plan_micros_ = MicrosSince(start) - snapshot_micros_;
  std::lock_guard<std::mutex> lock(mu_);
  sent_.resize(ranges_.size());
  return status;
}

Status Transfer::PinSnapshot() {
  SnapshotOptions options;
  options.database_dir = database_.directory;
  options.snapshot_dir = serve_.snapshot_dir;
  options.families = request_.families;
  options.registry = serve_.registry;
  options.cancelled = [this] { return ended(); };
  options.read_bytes = &read_bytes_;
  options.log = serve_.log;
  Status status =
      database_.db != nullptr
          ? Snapshot::FromOpenDatabase(database_.db, database_.handles,
                                       options, &snapshot_)
          : Snapshot::Create(options, &snapshot_);
  if (status.ok()) {
    notes_ = snapshot_->notes();
  }
  return WithContext(status, EndState::kSourceError, "snapshot");
}

// RocksDB bounds neither; what crosses the wire is bounded.
Status Transfer::CheckNames() const {
  if (snapshot_->families().size() > kMaxFamilies) {
    return MakeStatus(EndState::kRefused,
                      "expected at most " + std::to_string(kMaxFamilies) +
                          " column families, found " +
                          std::to_string(snapshot_->families().size()));
  }
  for (const SnapshotFamily& family : snapshot_->families()) {
    if (family.name.size() > kMaxFamilyNameBytes) {
      return MakeStatus(EndState::kRefused,
                        "column family '" + family.name.substr(0, 32) +
                            "...': expected a name of at most " +
                            std::to_string(kMaxFamilyNameBytes) +
                            " bytes, found " +
                            std::to_string(family.name.size()));
    }
  }
  if (snapshot_->database_id().size() > kMaxIdentifierBytes) {
    return MakeStatus(EndState::kRefused,
                      "database id: expected at most " +
                          std::to_string(kMaxIdentifierBytes) +
                          " bytes, found " +
                          std::to_string(snapshot_->database_id().size()));
  }
  return Status::OK();
}

Status Transfer::DescribeFamilies() {
  const Status named = CheckNames();
  if (!named.ok()) {
    return named;
  }
  DatabaseDescription described;
  if (!snapshot_->options_text().empty()) {
    const Status status =
        ParseOptionsText(snapshot_->options_text(), &described, &notes_);
    if (!status.ok()) {
      return WithContext(status, EndState::kSourceError, "OPTIONS");
    }
  }
  database_options_ = described.options;
  for (const SnapshotFamily& source : snapshot_->families()) {
    TransferFamily family;
    family.handle = source.handle;
    family.wire.index = static_cast<uint32_t>(families_.size());
    bool found = false;
    for (FamilyDescription& description : described.families) {
      if (description.name == source.name) {
        family.wire.description = std::move(description);
        found = true;
      }
    }
    if (!found) {
      const Status status = DescribeFamily(source.name, source.options,
                                           &family.wire.description);
      if (!status.ok()) {
        return status;
      }
    }
    family.chunk_options = rocksdb::Options(rocksdb::DBOptions(),
                                            source.options);
    families_.push_back(std::move(family));
  }
  return Status::OK();
}

Status Transfer::ChooseFormat(TransferFamily* family) {
  const std::string& name = family->wire.description.name;
  const uint32_t readable =
      std::min(target_.max_format_version, MaxReadableFormatVersion());
  uint32_t version = request_.format_version;
  if (version == 0) {
    version = family->plan.tables.max_format_version != 0
                  ? family->plan.tables.max_format_version
                  : DefaultFormatVersion();
    version = std::min(version, readable);
  }
  if (version > readable || version < 2) {
    return MakeStatus(EndState::kIncompatible,
                      "column family '" + name +
                          "': expected a format version of 2 to " +
                          std::to_string(readable) +
                          " that both sides read, found " +
                          std::to_string(version));
  }
  family->wire.format_version = version;
  const rocksdb::ColumnFamilyOptions own = family->chunk_options;
  return ChunkOptions(own, version, &family->chunk_options);
}

PlannerOptions Transfer::planner_options() const {
  PlannerOptions options;
  options.interval = request_.interval;
  options.lanes = lanes_;
  options.chunk_bytes = request_.chunk_bytes;
  return options;
}

PlannerFamily Transfer::planner_family(const TransferFamily& family) const {
  PlannerFamily planned;
  planned.index = family.wire.index;
  planned.handle = family.handle;
  planned.one_range = family.wire.description.table_factory == "PlainTable";
  return planned;
}

// What is carried is decided for all families before any is cut: the sizes of
// ranges follow from what is left to rebuild.
Status Transfer::PlanFamilies() {
  Status status;
  uint64_t rebuilt_bytes = 0;
  for (size_t i = 0; i < families_.size() && status.ok(); ++i) {
    status = PlanFilesOf(i);
    rebuilt_bytes += RebuiltBytes(families_[i].plan);
  }
  const uint64_t target_bytes =
      RangeTargetBytes(rebuilt_bytes, planner_options());
  for (size_t i = 0; i < families_.size() && status.ok(); ++i) {
    status = CutFamilyAt(i, target_bytes);
  }
  if (status.ok() && ranges_.size() > kMaxRanges) {
    return MakeStatus(EndState::kRefused,
                      "plan: expected at most " + std::to_string(kMaxRanges) +
                          " ranges, found " + std::to_string(ranges_.size()));
  }
  return status;
}

Status Transfer::PlanFilesOf(size_t index) {
  TransferFamily& family = families_[index];
  const SnapshotFamily& source = snapshot_->families()[index];
  Status status =
      ended() ? MakeStatus(EndState::kCancelled, "while planning")
              : PlanFiles(db(), planner_family(family), planner_options(),
                          &family.plan);
  if (status.ok()) {
    status = DecideCarryingOf(index);
  }
  if (status.ok()) {
    status = ChooseFormat(&family);
  }
  if (status.ok() && !source.unknown_merge_operator.empty() &&
      family.plan.tables.merge_operands > 0) {
    return MakeStatus(
        EndState::kRefused,
        "column family '" + source.name + "' holds " +
            std::to_string(family.plan.tables.merge_operands) +
            " merge operands of operator '" + source.unknown_merge_operator +
            "', which this process does not have");
  }
  return status;
}

Status Transfer::DecideCarryingOf(size_t index) {
  TransferFamily& family = families_[index];
  CarryRules rules;
  // A verify compares intervals; what they are made of is nothing to it.
  rules.mode = request_.purpose == Purpose::kVerify ? CarryMode::kNever
                                                    : request_.carry;
  rules.target_takes_carried = (target_.features & kFeatureCarry) != 0;
  rules.wal_not_flushed = snapshot_->wal_not_flushed() &&
                          snapshot_->counters().wal_bytes_copied > 0;
  rules.plain_tables = planner_family(family).one_range;
  rules.comparator = family.handle->GetComparator();
  rules.asked_format_version = request_.format_version;
  rules.max_format_version =
      std::min(target_.max_format_version, MaxReadableFormatVersion());
  rules.compressions.insert(target_.compressions.begin(),
                            target_.compressions.end());
  // The shape does not depend on the format version, which is chosen later.
  rocksdb::Options built;
  Status status =
      ChunkOptions(family.chunk_options, kPortableTableFormatVersion, &built);
  if (!status.ok()) {
    return status;
  }
  rules.shape = ShapeOf(built);
  status = DecideCarrying(rules, family.wire.description.name,
                          [this] { return ended(); }, &family.plan.tables,
                          &family.plan.files);
  return status.ok() ? BoundCarried(&family.plan) : status;
}

// Ranges are counted, and each carried file is one.
Status Transfer::BoundCarried(FamilyPlan* plan) {
  uint64_t waived = 0;
  for (FilePlan& file : plan->files) {
    if (!file.carry) {
      continue;
    }
    if (carried_files_ >= kMaxCarriedFiles) {
      file.carry = false;
      file.reason = "more than " + std::to_string(kMaxCarriedFiles) +
                    " files to carry";
      if (request_.carry == CarryMode::kOnly) {
        return MakeStatus(EndState::kRefused, "--carry only: " + file.reason);
      }
      continue;
    }
    carried_files_++;
    waived += file.reason.empty() ? 0 : 1;
  }
  if (waived > 0) {
    notes_.push_back("carried as asked, though rebuilding would change them: " +
                     std::to_string(waived) + " files of one column family");
  }
  return Status::OK();
}

Status Transfer::CutFamilyAt(size_t index, uint64_t target_bytes) {
  TransferFamily& family = families_[index];
  FamilyPlan& plan = family.plan;
  std::vector<CarriedFile> carried;
  const Status status =
      ended() ? MakeStatus(EndState::kCancelled, "while planning")
              : CutFamily(planner_family(family), planner_options(),
                          target_bytes, &plan, &ranges_, &carried);
  if (!status.ok()) {
    return status;
  }
  for (CarriedFile& file : carried) {
    carried_.emplace(file.range_id, std::move(file));
  }
  family.wire.estimated_bytes = plan.estimated_bytes;
  family.wire.estimated_entries = plan.estimated_entries;
  family.wire.source_files = static_cast<uint32_t>(plan.files.size());
  const uint64_t streams = static_cast<uint64_t>(lanes_) *
                           std::max<uint32_t>(1, plan.sorted_runs);
  family.readahead_bytes = std::clamp(kReadaheadBudgetBytes / streams,
                                      kMinReadaheadBytes, kMaxReadaheadBytes);
  if (request_.purpose == Purpose::kPlan) {
    AddPlanItems(family);
  }
  plan.files.clear();
  plan.files.shrink_to_fit();
  return status;
}

// One for each file, with its first and its last key.
void Transfer::AddPlanItems(const TransferFamily& family) {
  for (const FilePlan& file : family.plan.files) {
    PlanItem item;
    item.family = family.wire.index;
    if (file.smallest.size() <= kMaxKeyBytes &&
        file.largest.size() <= kMaxKeyBytes) {
      item.interval.begin = file.smallest;
      item.interval.end = file.largest;
    }
    item.file = file.name;
    item.bytes = file.carry ? file.carried_bytes : file.bytes;
    item.action = file.carry ? PlanAction::kCarry : PlanAction::kRebuild;
    item.reason = file.reason;
    if (items_.size() < kMaxRanges) {
      items_.push_back(std::move(item));
    }
  }
}

Status Transfer::Announce(Channel* control) {
  Opened opened;
  opened.transfer_id = id_;
  opened.source_database_id = snapshot_->database_id();
  opened.snapshot_sequence = snapshot_->sequence();
  opened.lanes = lanes_;
  opened.family_count = static_cast<uint32_t>(families_.size());
  opened.database_options = database_options_;
  opened.notes = notes_;
  opened.notes.resize(std::min<size_t>(opened.notes.size(), kMaxNotes));
  opened.snapshot_micros = snapshot_micros_;
  opened.plan_micros = plan_micros_;
  Status status = control->SendMessage(FrameType::kOpened, opened);
  for (const TransferFamily& family : families_) {
    if (status.ok()) {
      status = control->SendMessage(FrameType::kFamily, family.wire);
    }
  }
  PlanEnd end;
  for (size_t at = 0; at < ranges_.size() && status.ok();) {
    const size_t next = BatchEnd(ranges_, at);
    Ranges batch;
    for (; at < next; ++at) {
      end.estimated_bytes += ranges_[at].estimated_bytes;
      batch.ranges.push_back(ranges_[at]);
    }
    status = control->SendMessage(FrameType::kRanges, batch);
  }
  if (status.ok() && request_.purpose == Purpose::kPlan) {
    status = SendPlanItems(control);
  }
  end.range_count = static_cast<uint32_t>(ranges_.size());
  return status.ok() ? control->SendMessage(FrameType::kPlanEnd, end) : status;
}

Status Transfer::SendPlanItems(Channel* control) {
  Status status;
  for (size_t at = 0; at < items_.size() && status.ok();) {
    const size_t next = BatchEnd(items_, at);
    PlanItems batch;
    batch.items.assign(items_.begin() + at, items_.begin() + next);
    at = next;
    status = control->SendMessage(FrameType::kPlanItems, batch);
  }
  return status;
}

WireCompression Transfer::compression() const {
  return (target_.features & kFeatureWireCompression) != 0
             ? request_.compression
             : WireCompression::kNone;
}

int Transfer::compression_level() const {
  return request_.compression_level == 0
             ? kDefaultCompressionLevel
             : static_cast<int>(request_.compression_level);
}

void Transfer::set_control(Channel* control) {
  std::lock_guard<std::mutex> lock(mu_);
  control_ = control;
}

Status Transfer::Attach(uint32_t lane, Channel* channel) {
  std::lock_guard<std::mutex> lock(mu_);
  if (ended()) {
    return MakeStatus(EndState::kCancelled, "lane: the transfer has ended");
  }
  if (lane >= attached_.size() || attached_[lane] != nullptr) {
    return MakeStatus(EndState::kRefused,
                      "lane: expected a free lane below " +
                          std::to_string(attached_.size()) + ", found " +
                          std::to_string(lane));
  }
  attached_[lane] = channel;
  return Status::OK();
}

void Transfer::Detach(uint32_t lane, Channel* channel) {
  std::lock_guard<std::mutex> lock(mu_);
  if (lane < attached_.size() && attached_[lane] == channel) {
    attached_[lane] = nullptr;
  }
}

void Transfer::Fail(const Status& status, const std::string& where) {
  std::lock_guard<std::mutex> lock(mu_);
  if (ended_.exchange(true)) {
    return;
  }
  status_ = status;
  error_where_ = where;
  rate_bucket_.Close();
  if (control_ != nullptr) {
    SendEnd(control_, status, where);
  }
  StopLanes();
}

void Transfer::End() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!ended_.exchange(true)) {
    rate_bucket_.Close();
    StopLanes();
  }
}

void Transfer::StopLanes() {
  for (Channel* channel : attached_) {
    if (channel != nullptr) {
      channel->Close();
    }
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

void Transfer::RecordRange(const RangeEnd& end) {
  std::lock_guard<std::mutex> lock(mu_);
  sent_[end.range_id] = end;
}

Finish Transfer::Totals() const {
  Finish finish;
  finish.families.resize(families_.size());
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < sent_.size(); ++i) {
      if (sent_[i].has_value()) {
        finish.families[ranges_[i].family] += sent_[i]->totals;
      }
    }
  }
  finish.stats = CurrentStats();
  return finish;
}

size_t Transfer::UnsentRanges() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<size_t>(
      std::count(sent_.begin(), sent_.end(), std::nullopt));
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
  report.peer = peer_;
  report.status = status();
  report.error_where = error_where();
  report.entries = counters_.entries;
  report.sst_bytes = counters_.sst_bytes;
  report.wire_bytes = counters_.wire_bytes;
  report.seconds = static_cast<double>(MicrosSince(started_)) / 1e6;
  return report;
}

}  // namespace sstferry
