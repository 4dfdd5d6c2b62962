#include "pipeline/serve/transfer_planner.h"

#include <algorithm>
#include <cstdlib>

#include "format/limits.h"
#include "format/options_line.h"
#include "format/rocksdb/known.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/family_options.h"
#include "pipeline/options/options_file.h"
#include "pipeline/parts/range_entries.h"

namespace sstferry {
namespace {

using rocksdb::Status;

}  // namespace

PlannerOptions PlannerOptionsOf(const PlanOrder& order) {
  PlannerOptions options;
  options.interval = order.request.interval;
  options.lanes = order.lanes;
  options.chunk_bytes = order.request.chunk_bytes;
  return options;
}

PlannerFamily PlannerFamilyOf(const TransferFamily& family,
                              const Family& told) {
  PlannerFamily planned;
  planned.index = family.index;
  planned.handle = family.handle;
  planned.one_part = told.description.table_factory == "PlainTable";
  return planned;
}

Status TransferPlanner::Run() {
  plan_->opened.notes = snapshot_.notes();
  if (is_refresh()) {
    if (make_refresh_ == nullptr) {
      return MakeStatus(EndState::kRefused,
                        "this source was built without refreshes in place: "
                        "expected a request for a pull or a verify, found one "
                        "for a refresh");
    }
    refresh_ = make_refresh_(snapshot_, plan_);
  }
  RETURN_IF_ERROR(ChooseApplication());
  RETURN_IF_ERROR(DescribeFamilies());
  RETURN_IF_ERROR(PlanFamilies());
  for (TransferFamily& family : plan_->sources) {
    EndFiles(&family);
  }
  if (is_refresh()) {
    plan_->refresh = std::move(refresh_);
  }
  return Status::OK();
}

Status TransferPlanner::ChooseApplication() {
  const Status status = ReleaseAsked(asked_.request, &plan_->application);
  if (!plan_->application.is_known()) {
    plan_->application = ReleaseOfOptions(snapshot_.options_text());
  }
  return status;
}

uint32_t TransferPlanner::MaxChunkFormatVersion() const {
  const uint32_t both =
      std::min(asked_.target.max_format_version, MaxReadableFormatVersion());
  return plan_->application.is_known()
             ? std::min(both, MaxFormatVersion(plan_->application))
             : both;
}

Status TransferPlanner::DescribeFamilies() {
  RETURN_IF_ERROR(CheckNames(snapshot_));
  DatabaseDescription described;
  if (!snapshot_.options_text().empty()) {
    const Status status = ParseOptionsText(snapshot_.options_text(), &described,
                                           &plan_->opened.notes);
    if (!status.ok()) {
      return WithContext(status, EndState::kSourceError, "OPTIONS");
    }
  }
  plan_->opened.database_options = described.options;
  const bool is_moved = asked_.request.purpose != Purpose::kVerify;
  if (is_moved) {
    RETURN_IF_ERROR(CheckIngestsBehind("database", "allow_ingest_behind",
                                       described.options));
  }
  plan_->written_by = described.release;
  for (const SnapshotFamily& source : snapshot_.families()) {
    TransferFamily family;
    family.handle = source.handle;
    family.index = static_cast<uint32_t>(plan_->sources.size());
    plan_->families.emplace_back().index = family.index;
    bool found = false;
    for (FamilyDescription& description : described.families) {
      if (description.name == source.name) {
        told(family).description = std::move(description);
        found = true;
      }
    }
    if (!found) {
      RETURN_IF_ERROR(DescribeFamily(source.name, source.options,
                                     &told(family).description));
    }
    if (is_moved) {
      const FamilyDescription& description = told(family).description;
      RETURN_IF_ERROR(CheckNextTables(description));
      RETURN_IF_ERROR(CheckOwnIndex(description));
      RETURN_IF_ERROR(CheckIngestsBehind("column family '" + source.name + "'",
                                         "cf_allow_ingest_behind",
                                         description.options));
    }
    family.chunk_options = rocksdb::Options(rocksdb::DBOptions(),
                                            source.options);
    plan_->sources.push_back(std::move(family));
  }
  return Status::OK();
}

// Without this check, a seed would work now, while all entries are in WALs. But
// its replica could not be refreshed later.
Status TransferPlanner::CheckNextTables(const FamilyDescription& family) {
  Needs needs;
  for (const NamedValue& option : family.table_options) {
    if (option.name == "format_version") {
      needs.AddFormatVersion(static_cast<uint32_t>(
          std::strtoul(option.value.c_str(), nullptr, 10)));
    }
  }
  if (needs.release() <= kLinkedRelease) {
    return Status::OK();
  }
  const std::string what =
      "column family '" + family.name + "': according to its OPTIONS, the "
      "application writes tables of " + needs.what() +
      ", which RocksDB reads since " + ReleaseName(needs.release()) +
      ", but this sstferry has RocksDB " + RocksDbVersion();
  if (!is_refresh()) {
    return OnlyAsFiles(EndState::kIncompatible, what);
  }
  plan_->opened.notes.push_back(what +
                                "; once it has written such tables, only a "
                                "swap with --method clone can refresh the "
                                "replica");
  return Status::OK();
}

Status TransferPlanner::CheckOwnIndex(const FamilyDescription& family) const {
  bool has_index = false;
  std::string demand;
  for (const NamedValue& option : family.table_options) {
    if (option.name == "user_defined_index_factory") {
      has_index = !IsNullObject(option.value);
    } else if ((option.name == "use_udi_as_primary_index" ||
                option.name == "fail_if_no_udi_on_open") &&
               option.value == "true" &&
               (!plan_->application.is_known() ||
                FirstWithOption(option.name) <= plan_->application)) {
      demand = option.name;
    }
  }
  return !has_index || demand.empty()
             ? Status::OK()
             : OnlyAsFiles(EndState::kRefused,
                              "column family '" + family.name +
                                  "': according to its OPTIONS (" + demand +
                                  "), the application cannot open a table "
                                  "without its user-defined index, which "
                                  "chunks do not have");
}

// With this option, RocksDB reserves the last level for older data that is
// ingested later. Chunks fill this level and contain no deletions. Without
// deletions to hide the older data, a deleted key could come back.
Status TransferPlanner::CheckIngestsBehind(
    const std::string& where, const std::string& option,
    const std::vector<NamedValue>& options) {
  const bool has_option = std::any_of(
      options.begin(), options.end(), [&option](const NamedValue& each) {
        return each.name == option && each.value == "true";
      });
  return !has_option
             ? Status::OK()
             : OnlyAsFiles(EndState::kRefused,
                           where + ": according to its OPTIONS (" + option +
                               "), the application may ingest older data, "
                               "which existing deletions must hide, but chunks "
                               "do not have these deletions");
}

Status TransferPlanner::ChooseFormat(TransferFamily* family) {
  const uint32_t readable = MaxChunkFormatVersion();
  const uint32_t version =
      std::min(family->plan.tables.max_format_version != 0
                   ? family->plan.tables.max_format_version
                   : DefaultFormatVersion(),
               readable);
  told(*family).format_version = version;
  const rocksdb::ColumnFamilyOptions own = family->chunk_options;
  const Status status =
      ChunkOptions(own, version, plan_->application, reads_marked_blocks(),
                   &family->chunk_options);
  plan_->needs.AddFormatVersion(version);
  const auto* const table =
      status.ok() ? family->chunk_options.table_factory
                        ->GetOptions<rocksdb::BlockBasedTableOptions>()
                  : nullptr;
  if (table != nullptr && table->checksum == rocksdb::kXXH3) {
    plan_->needs.Add(kReadsXxh3Checksums, "XXH3 checksums");
  }
  if (table != nullptr && MarksBlocks(*table)) {
    plan_->needs.Add(kReadsMarkedBlocks, "marked blocks");
  }
  return status;
}

// Lists the files of all families before it divides any family into parts,
// because the sizes of the parts depend on the total.
Status TransferPlanner::PlanFamilies() {
  Status status;
  uint64_t rebuilt_bytes = 0;
  for (size_t i = 0; i < plan_->sources.size() && status.ok(); ++i) {
    const TransferFamily& family = plan_->sources[i];
    status = PlanFilesOf(i);
    if (status.ok() && is_refresh()) {
      status = refresh_->Decide(asked_, family);
    }
    if (status.ok()) {
      rebuilt_bytes += is_refresh() ? refresh_->BytesToSend(family)
                                    : RebuiltBytes(family.plan);
    }
  }
  const uint64_t target_bytes =
      PartTargetBytes(rebuilt_bytes, planner_options());
  for (size_t i = 0; i < plan_->sources.size() && status.ok(); ++i) {
    status = CutFamilyAt(i, target_bytes);
  }
  if (status.ok() && plan_->parts.size() > kMaxParts) {
    return MakeStatus(EndState::kRefused,
                      "plan: expected at most " + std::to_string(kMaxParts) +
                          " parts, found " +
                          std::to_string(plan_->parts.size()) +
                          ": name fewer column families (--cf)");
  }
  return status;
}

Status TransferPlanner::PlanFilesOf(size_t index) {
  TransferFamily& family = plan_->sources[index];
  const SnapshotFamily& source = snapshot_.families()[index];
  Status status = asked_.ended()
                      ? MakeStatus(EndState::kCancelled,
                                 "the transfer ended while it was planned")
                      : PlanFiles(snapshot_.db(), planner_family(family),
                                  planner_options(), &family.plan);
  if (status.ok()) {
    status = ReadProperties([this] { return asked_.ended(); },
                            &family.plan.tables, &family.plan.files);
  }
  if (status.ok()) {
    status = ChooseFormat(&family);
  }
  if (status.ok() && !source.unknown_merge_operator.empty() &&
      family.plan.tables.merge_operands > 0) {
    return OnlyAsFiles(
        EndState::kRefused,
        "column family '" + source.name + "' contains " +
            std::to_string(family.plan.tables.merge_operands) +
            " merge operands of operator '" + source.unknown_merge_operator +
            "', which this process does not have");
  }
  return status;
}

Status TransferPlanner::CutFamilyAt(size_t index, uint64_t target_bytes) {
  TransferFamily& family = plan_->sources[index];
  FamilyPlan& plan = family.plan;
  if (asked_.ended()) {
    return MakeStatus(EndState::kCancelled,
                      "the transfer ended while it was planned");
  }
  if (is_refresh()) {
    RETURN_IF_ERROR(refresh_->Cut(asked_, target_bytes, &family));
  } else {
    RETURN_IF_ERROR(CutFamily(planner_family(family), planner_options(),
                              target_bytes, &plan, &plan_->parts));
  }
  told(family).estimated_bytes = plan.estimated_bytes;
  told(family).estimated_entries = plan.estimated_entries;
  told(family).source_files = static_cast<uint32_t>(plan.files.size());
  family.readahead_bytes = ReadaheadOf(asked_.lanes, plan.sorted_runs);
  if (asked_.request.purpose == Purpose::kPlan && !is_refresh()) {
    AddPlanItems(family);
  }
  return Status::OK();
}

void TransferPlanner::EndFiles(TransferFamily* family) const {
  std::vector<FilePlan>* const files = &family->plan.files;
  if (CanMerge(family->plan)) {
    family->merged_files.assign(files->begin(), files->end());
  }
  files->clear();
  files->shrink_to_fit();
}

// Returns true if sstferry can merge the files itself: they contain all
// entries, and the list of files is short enough.
bool TransferPlanner::CanMerge(const FamilyPlan& plan) const {
  return asked_.request.purpose == Purpose::kPull &&
         !entries_are_in_memory() && plan.files.size() <= kMaxMergedFiles;
}

// Adds a plan item for each file, with the file's first and last key.
void TransferPlanner::AddPlanItems(const TransferFamily& family) {
  for (const FilePlan& file : family.plan.files) {
    PlanItem item;
    item.family = family.index;
    if (file.smallest.size() <= kMaxKeyBytes &&
        file.largest.size() <= kMaxKeyBytes) {
      item.interval.begin = file.smallest;
      item.interval.end = file.largest;
    }
    item.file = file.name;
    item.bytes = file.bytes;
    if (plan_->items.size() < kMaxParts) {
      plan_->items.push_back(std::move(item));
    }
  }
}

}  // namespace sstferry
