// How a transfer describes and plans its snapshot.
#include <algorithm>

#include "format/limits.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/family_options.h"
#include "pipeline/options/options_file.h"
#include "pipeline/source/transfer/transfer.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Memory for readahead of all lanes and sorted runs together.
constexpr uint64_t kReadaheadBudgetBytes = 16u << 20;
constexpr uint64_t kMinReadaheadBytes = 64u << 10;
constexpr uint64_t kMaxReadaheadBytes = 1u << 20;

// Of the database that the snapshot opened, and may have flushed to.
std::string OwnSessionId(rocksdb::DB* db) {
  std::string id;
  return db->GetDbSessionId(id).ok() ? id : "";
}

}  // namespace

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
  return ChunkOptions(own, version, target_reads_marked_blocks(),
                      &family->chunk_options);
}

PlannerOptions Transfer::planner_options() const {
  PlannerOptions options;
  options.interval = request_.interval;
  options.lanes = plan_lanes_;
  options.chunk_bytes = request_.chunk_bytes;
  options.all_files = is_refresh();
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
    if (status.ok()) {
      CompareFamilyAt(i);
      rebuilt_bytes += BytesToRebuild(families_[i]);
    }
  }
  uint64_t target_bytes = RangeTargetBytes(rebuilt_bytes, planner_options());
  if (is_refresh()) {
    target_bytes =
        std::max(target_bytes, std::min(kMinReplacedBytes,
                                        request_.chunk_bytes / 16 * 15));
  }
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
  rules.reads_marked_blocks =
      kReadsMarkedBlocks && target_reads_marked_blocks();
  rules.wal_not_flushed = snapshot_->wal_not_flushed() &&
                          snapshot_->counters().wal_bytes_copied > 0;
  rules.plain_tables = planner_family(family).one_range;
  rules.comparator = family.handle->GetComparator();
  rules.replaces = is_refresh();
  rules.own_session_id = OwnSessionId(db());
  rules.asked_format_version = request_.format_version;
  rules.max_format_version =
      std::min(target_.max_format_version, MaxReadableFormatVersion());
  rules.compressions.insert(target_.compressions.begin(),
                            target_.compressions.end());
  // The shape does not depend on the format version, which is chosen later.
  rocksdb::Options built;
  Status status =
      ChunkOptions(family.chunk_options, kPortableTableFormatVersion,
                   target_reads_marked_blocks(), &built);
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
  const Backings backings = BackingsOf(index);
  const std::vector<std::vector<FilePart>> parts = PartsOf(family);
  for (size_t i = 0; i < family.segments.size(); ++i) {
    const PlanSegment& segment = family.segments[i];
    const size_t first_range = ranges_.size();
    const Status status =
        ended() ? MakeStatus(EndState::kCancelled, "while planning")
                : CutSegment(segment, parts[i], target_bytes, &family);
    if (!status.ok()) {
      return status;
    }
    AddCovers(segment, first_range, backings);
    if (request_.purpose == Purpose::kPlan && is_refresh()) {
      AddSegmentItem(family, segment, first_range);
    }
  }
  family.segments.clear();
  family.wire.estimated_bytes = plan.estimated_bytes;
  family.wire.estimated_entries = plan.estimated_entries;
  family.wire.source_files = static_cast<uint32_t>(plan.files.size());
  const uint64_t streams = static_cast<uint64_t>(plan_lanes_) *
                           std::max<uint32_t>(1, plan.sorted_runs);
  family.readahead_bytes = std::clamp(kReadaheadBudgetBytes / streams,
                                      kMinReadaheadBytes, kMaxReadaheadBytes);
  if (request_.purpose == Purpose::kPlan && !is_refresh()) {
    AddPlanItems(family);
  }
  plan.files.clear();
  plan.files.shrink_to_fit();
  return Status::OK();
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

}  // namespace sstferry
