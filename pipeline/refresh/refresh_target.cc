#include "pipeline/refresh/refresh_target.h"

#include <algorithm>
#include <cstdlib>

#include "format/limits.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "pipeline/options/compaction_style.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/pull/first_sequence.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/plan_options.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/replica.h"
#include "pipeline/refresh/delta_compaction.h"
#include "pipeline/refresh/single_deletes.h"
#include "rocksdb/comparator.h"
#include "rocksdb/iostats_context.h"
#include "rocksdb/metadata.h"
#include "sstferry/status.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Maximum number of repeated searches of a family's tables. A search is
// repeated if a compaction removed a table.
constexpr int kTriesBetweenCompactions = 5;

constexpr char kAdoptSays[] =
    " (--adopt accepts it, and deletes what only the target holds)";

// Returns the command that replaces a target that cannot be refreshed in place.
// Returns an empty string in a swap by links, which is retried without links.
std::string SwapInstead(const PullOptions& options) {
  return options.mode == PullMode::kSwap ? "" : SwapCommand(options);
}

std::vector<std::string> NotPlanned(const std::vector<FamilyHandle>& families,
                                    const Plan& plan) {
  std::vector<std::string> missing;
  for (const FamilyHandle& family : families) {
    const bool planned = std::any_of(
        plan.families.begin(), plan.families.end(),
        [&family](const Family& of_plan) {
          return of_plan.description.name == family.name;
        });
    if (!planned) {
      missing.push_back(family.name);
    }
  }
  return missing;
}

// Reports options of a column family that stay unchanged although the source's
// values differ.
void NoteKept(const std::string& where, const Family& family,
              const BuiltFamily& built, const rocksdb::Options& ours,
              PullReporter* report) {
  const auto name = [](const rocksdb::ColumnFamilyOptions& options) {
    return options.merge_operator != nullptr
               ? std::string(options.merge_operator->Name())
               : "none";
  };
  const std::string merge = name(ours);
  if (merge != name(built.final_options)) {
    report->Note(where + ": the target keeps its merge operator (" + merge +
                 "; the source's: " + name(built.final_options) + ")");
  }
  const auto style = StyleOf(family.description.options);
  if (style && *style != ours.compaction_style) {
    report->NoteDetail(where + ": the target keeps its compaction style (" +
                       StyleName(ours.compaction_style) + "; the source's: " +
                       StyleName(*style) + ")");
  }
}

// While it exists, counts the bytes that this thread reads from files. The
// destructor adds the number to *bytes.
class ReadCounter {
 public:
  explicit ReadCounter(std::atomic<uint64_t>* bytes)
      : bytes_(bytes), before_(rocksdb::get_iostats_context()->bytes_read) {}
  ~ReadCounter() {
    *bytes_ += rocksdb::get_iostats_context()->bytes_read - before_;
  }
  ReadCounter(const ReadCounter&) = delete;
  ReadCounter& operator=(const ReadCounter&) = delete;

 private:
  std::atomic<uint64_t>* const bytes_;
  const uint64_t before_;
};

bool Exists(rocksdb::FileSystem* file_system, const std::string& path) {
  return file_system->FileExists(path, rocksdb::IOOptions(), nullptr).ok();
}

// Returns true if the family's memtable may have entries.
bool MayBeUnflushed(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  uint64_t unflushed = 0;
  return !db->GetIntProperty(
             family, rocksdb::DB::Properties::kNumEntriesActiveMemTable,
             &unflushed) ||
         unflushed > 0;
}

// Returns true if the family may have entries.
bool HasEntries(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  return metadata.file_count > 0 || MayBeUnflushed(db, family);
}

// Returns the number in the name of a table, "000012.sst" or "/000012.sst".
// RocksDB gives each new table a higher number.
uint64_t NumberOfTable(const std::string& name) {
  return std::strtoull(name.c_str() + (name.rfind('/') + 1), nullptr, 10);
}

}  // namespace

RefreshTarget::RefreshTarget(const TargetInputs& inputs,
                             const OpenReplica& replica)
    : RefreshTarget(inputs, kInPlaceMode, replica,
                    replica.db != nullptr ? replica.db->GetName()
                                          : inputs.options->target_dir,
                    inputs.options->drop_missing) {
  SetInPlace(this, replica.db);
}

RefreshTarget::RefreshTarget(const TargetInputs& inputs, const char* mode,
                             const OpenReplica& replica, std::string dir,
                             bool drops_missing)
    : PullTarget(inputs, mode),
      replica_(replica),
      dir_(std::move(dir)),
      drops_missing_(drops_missing),
      compared_(inputs.options->lanes),
      comparer_(
          inputs.lanes,
          [this](const Part& part, const KeyInterval& piece,
                 EntryDigester* digester, EntrySums* sums, GroupIndex* index,
                 std::optional<std::string>* rest) {
            return IndexPart(part, piece, digester, sums, index, rest);
          },
          [this](const Part& part, const KeyInterval& piece,
                 std::optional<std::string>* first,
                 std::optional<std::string>* last) {
            return FindOutermost(part, piece, first, last);
          }) {}

RefreshTarget::~RefreshTarget() = default;

Status RefreshTarget::ReadExisting(
    WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
    FoundTarget* found) {
  SetUse(use, disk);
  const Selection& selection = options().selection;
  if (options().drop_missing &&
      (!selection.families.empty() || selection.interval.begin ||
       selection.interval.end)) {
    return MakeStatus(EndState::kRefused,
                      "--drop-missing: expected a refresh of all column "
                      "families and keys, found a refresh of a selection");
  }
  RETURN_IF_ERROR(Workspace::OpenBeside(dir_, replica_.db != nullptr, disk,
                                        options().log, &found->workspace, use));
  RETURN_IF_ERROR(ReadFault(found));
  return Look(found);
}

Status RefreshTarget::TakeRecord(FoundTarget* found) {
  if (ReadLastTransfer(dir_, &last_)) {
    // Compares keys bytewise. BuildFamilies() checks this again in the orders
    // of the column families.
    RETURN_IF_ERROR(CheckNotMore(options(), last_,
                                 {rocksdb::BytewiseComparator()}));
    TransferId made_by{};
    if (FindOwnTransfer(dir_, &made_by)) {
      found->transfer = made_by;
    }
  }
  holds_more_ = HoldsMoreAfterRefresh(options(), last_);
  return Status::OK();
}

Status RefreshTarget::Look(FoundTarget* found) {
  Status status = TakeRecord(found);
  status = status.ok() ? ChooseFileAccess(options(), dir_,
                                          &lanes()->file_access)
                       : status;
  status = status.ok() ? CheckFault() : status;
  status = status.ok() ? Own(OpenAndList()) : status;
  if (!status.ok() && !workspace()->has_unfinished() &&
      workspace()->swap_state() == SwapState::kNone) {
    // Discard the workspace, which has nothing useful: no transfer was begun,
    // or a swap ended before it created its journal.
    workspace()->Discard().PermitUncheckedError();
  }
  found->families = FilledFamilies();
  return status;
}

Status RefreshTarget::CheckFault() {
  if (fault().fault == ReplicaFault::kNone) {
    return Status::OK();
  }
  if (fault().fault == ReplicaFault::kDamaged ||
      !Includes(options().selection, fault())) {
    return FaultStatus(options(), fault());
  }
  report()->Note("target " + dir_ + ": " + FaultSentence(fault()) +
                 "; this refresh compares all entries");
  return Status::OK();
}

// Reports damage in a plan as well as in a refresh, but records it only in a
// refresh.
Status RefreshTarget::Own(const Status& status) {
  if (EndStateOf(status) != EndState::kCorrupt) {
    return status;
  }
  const std::lock_guard<std::mutex> lock(damage_mu_);
  if (!damage_recorded_ && !is_only_planned()) {
    damage_recorded_ = true;
    HealthFile damage = MakeFault(ReplicaFault::kDamaged, MessageOf(status),
                                  options().selection);
    const Status recorded =
        RecordFault(disk(), options().target_dir, &damage);
    if (!recorded.ok()) {
      report()->Say(MessageOf(recorded));
    }
  }
  return MakeStatus(EndState::kCorrupt,
                    "target " + options().target_dir + " is damaged: " +
                        SentenceOf(status) + "; check its disk",
                    options().mode == PullMode::kSwap
                        ? ""  // no advice: the swap repairs it
                        : ReplaceCommand(options()));
}

Status RefreshTarget::OpenAndList() {
  std::vector<std::string> notes;
  // Check that RocksDB can replace CURRENT when it opens the database, and that
  // the refresh can replace its record when it ends. Without this check, a
  // failure would come after all data was received.
  RETURN_IF_ERROR(CheckReplaceable(
      dir_, {dir_, dir_ + "/CURRENT", dir_ + "/" + kLastTransferName}));
  Status status;
  if (replica_.db != nullptr) {
    live_ = LiveDb::Borrow(replica_);
    writable_ = true;
    status = LeaveZero();
  } else if (!Exists(disk(), dir_ + "/CURRENT") &&
             Exists(disk(), dir_ + "/" + kLastTransferName)) {
    status = MakeStatus(EndState::kCorrupt, "CURRENT is missing");
  } else {
    status = LiveDb::OpenToRead(dir_, options().registry, &live_, &notes);
    // Use the id only if the database has an IDENTITY file. Otherwise RocksDB
    // makes up an id each time it opens the database.
    if (status.ok() && Exists(disk(), dir_ + "/IDENTITY")) {
      database_id_ = DatabaseIdOf(live_->db());
    }
  }
  status = status.ok() ? CheckSupported() : status;
  status = status.ok() ? CheckRecord() : status;
  status = status.ok() ? List() : status;
  for (const std::string& note : notes) {
    report()->Note(note);
  }
  return status;
}

Status RefreshTarget::List() {
  tables_.clear();
  if (writable_) {
    RETURN_IF_ERROR(live_->Flush(Selected()));
  }
  for (const FamilyHandle& family : Selected()) {
    FamilyTables found{family.name, family.is_unflushed, {}};
    RETURN_IF_ERROR(
        ListLiveTables(live_->db(), family.handle, &found.tables));
    tables_.push_back(std::move(found));
  }
  return CheckSingleDeletes();
}

std::vector<std::string> RefreshTarget::FilledFamilies() const {
  std::vector<std::string> names;
  size_t bytes = 0;
  for (const FamilyTables& family : tables_) {
    bytes += family.name.size();
    if (bytes <= kMaxReplicaFamilyBytes &&
        (family.is_unflushed || !family.tables.empty())) {
      names.push_back(family.name);
    }
  }
  return names;
}

// Searches the tables once more if a compaction removed a table. The table's
// entries may be in a new table that was not listed yet.
Status RefreshTarget::CheckSingleDeletes() const {
  for (const FamilyTables& family : tables_) {
    if (family.is_unflushed && live_->wals_hold_single_deletes()) {
      return HasSingleDelete(family.name, "a WAL");
    }
    bool gone = false;
    RETURN_IF_ERROR(SearchTables(family.name, family.tables, &gone));
    for (int i = 0; gone && i < kTriesBetweenCompactions; ++i) {
      std::vector<LiveTable> now;
      RETURN_IF_ERROR(ListLiveTables(
          live_->db(), live_->Find(family.name), &now));
      RETURN_IF_ERROR(SearchTables(family.name, now, &gone));
    }
    if (gone) {
      return MakeStatus(
          EndState::kBusy,
          "column family '" + family.name + "' of the target: compactions of "
              "its application replace tables faster than they can be searched "
              "for a SingleDelete; try again when it is less busy");
    }
  }
  return Status::OK();
}

Status RefreshTarget::HasSingleDelete(const std::string& family,
                                      const std::string& where) const {
  return MakeStatus(
      EndState::kRefused,
      "column family '" + family + "' of the target: " + where +
          " holds a SingleDelete, which would bring back an older value of "
          "a key after a refresh in place",
      SwapInstead(options()));
}

Status RefreshTarget::SearchTables(const std::string& family,
                                   const std::vector<LiveTable>& tables,
                                   bool* gone) const {
  *gone = false;
  rocksdb::FileSystem* const files = live_->db()->GetFileSystem();
  for (const LiveTable& table : tables) {
    bool found = false;
    Status status;
    if (table.may_single_delete) {
      status = FindSingleDelete(
          files, table.path, [this] { return failure()->failed(); }, &found);
    }
    if (!status.ok() && live_->is_borrowed() && !Exists(files, table.path)) {
      *gone = true;
    } else if (!status.ok()) {
      return WithContext(status, EndStateOf(status), "target");
    }
    if (found) {
      return HasSingleDelete(family, table.name);
    }
  }
  return Status::OK();
}

Status RefreshTarget::CheckSame() const {
  if (in_place() == nullptr) {
    return Status::OK();  // no other process uses the copy of a swap
  }
  LastTransfer record;
  HealthFile known;
  ReadLastTransfer(dir_, &record);
  RETURN_IF_ERROR(ReadKnownFault(options().target_dir, &known));
  const bool is_same =
      record == last_ && known.fault == fault().fault &&
      known.id == fault().id &&
      (database_id_.empty() || live_->db() == nullptr ||
       database_id_ == DatabaseIdOf(live_->db()));
  return is_same ? Status::OK()
                 : MakeStatus(EndState::kBusy,
                              "target " + dir_ +
                                  ": since it was examined, another process "
                                  "exchanged the database, or recorded a "
                                  "transfer or a fault; run the same command "
                                  "again");
}

// Opens the database for writing and examines it once more. For a moment, no
// process holds the LOCK: another process may change the database, or put
// another database in its place.
Status RefreshTarget::OpenToWrite() {
  if (writable_) {
    return Status::OK();
  }
  RETURN_IF_ERROR(CheckSame());  // before RocksDB writes anything
  std::vector<std::string> notes;  // were already reported
  RETURN_IF_ERROR(live_->Close());
  RETURN_IF_ERROR(LiveDb::Open(dir_, options().registry, shared_disk(), &live_,
                               &notes));
  FaultPoint("Refresh:TargetOpened");
  RETURN_IF_ERROR(CheckSame());
  RETURN_IF_ERROR(CheckNotTakenOver(plan().opened.snapshot_sequence));
  RETURN_IF_ERROR(CheckSupported());
  writable_ = true;
  RETURN_IF_ERROR(LeaveZero());
  return List();
}

std::vector<FamilyHandle> RefreshTarget::Selected() const {
  const std::vector<std::string>& asked = options().selection.families;
  std::vector<FamilyHandle> selected;
  for (const FamilyHandle& family : live_->families()) {
    if (asked.empty() ||
        std::find(asked.begin(), asked.end(), family.name) != asked.end()) {
      selected.push_back(family);
    }
  }
  return selected;
}

Status RefreshTarget::CheckSupported() {
  for (const FamilyHandle& family : Selected()) {
    const rocksdb::Options ours = live_->db()->GetOptions(family.handle);
    RETURN_IF_ERROR(CheckIngestsOver(family.name, ours.compaction_style));
    if (ours.table_factory->IsInstanceOf("PlainTable")) {
      return MakeStatus(EndState::kRefused,
                        "column family '" + family.name +
                            "' of the target: expected block-based tables, as "
                            "chunks are, found plain ones",
                        SwapInstead(options()));
    }
  }
  if (!kIngestsOverMemtables && replica_.db != nullptr) {
    report()->Note(
        "RocksDB below 7.10: memtables are flushed before each ingestion; "
        "refreshed column families should not be written meanwhile");
  }
  return Status::OK();
}

// Refuses a directory that has no record of its source, or was promoted. Does
// not check the copy of a swap: the exchange later checks the directory that it
// replaces.
Status RefreshTarget::CheckRecord() {
  return in_place() == nullptr || options().adopt || last_.is_copy()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "target " + dir_ +
                              ": expected a record of its source, found " +
                              (last_.promoted_at.empty()
                                   ? std::string("none in ") + kLastTransferName
                                   : "that it was promoted at " +
                                         last_.promoted_at) +
                              kAdoptSays);
}

// Refuses another source than the recorded one. Only with --adopt may the data
// of one database be replaced by the data of another.
Status RefreshTarget::CheckSource() {
  const std::string id = options().source_id.empty()
                             ? plan().opened.source_database_id
                             : options().source_id;
  if (in_place() == nullptr || options().adopt ||
      last_.source_database_id == id) {
    return Status::OK();
  }
  return MakeStatus(EndState::kRefused,
                    "target " + dir_ + ": expected source database " +
                        last_.source_database_id + ", found " + id +
                        kAdoptSays);
}

// Checks that no application has written to the data that this refresh
// replaces, as after a failover. An application may write to families that this
// refresh leaves as they are. Does not check anything if other keys of the
// refreshed families stay, because tables do not show which keys were written.
// Does not check a database that an application has open, because that
// application may write.
Status RefreshTarget::CheckNotTakenOver(uint64_t sequence) {
  if (in_place() == nullptr || live_->is_borrowed() ||
      live_->db() == nullptr) {
    return Status::OK();
  }
  bool leaves = false;
  RETURN_IF_ERROR(LeavesKeys(&leaves));
  if (leaves) {
    return Status::OK();
  }
  RETURN_IF_ERROR(CheckSource());  // never compare two sources' numbers
  const uint64_t written = std::min(WrittenSequence(), ReplacedSequence());
  return CheckNotNewer(options(), last_, written, sequence);
}

Status RefreshTarget::LeavesKeys(bool* leaves) {
  rocksdb::DB* const db = live_->db();
  *leaves = false;
  const KeyInterval& asked = options().selection.interval;
  std::vector<KeyInterval> others;
  if (asked.begin) {
    others.push_back({std::nullopt, asked.begin});
  }
  if (asked.end) {
    others.push_back({asked.end, std::nullopt});
  }
  for (const Family& family : plan().families) {
    rocksdb::ColumnFamilyHandle* const known =
        live_->Find(family.description.name);
    for (const KeyInterval& other : others) {
      if (*leaves || known == nullptr) {
        break;
      }
      IntervalReader reader(db, known, other, /*readahead_bytes=*/0,
                            [this] { return failure()->failed(); });
      reader.SeekToBegin();
      *leaves = reader.Valid();
      RETURN_IF_ERROR(Own(reader.status()));
    }
  }
  return Status::OK();
}

// Sequence numbers do not show whether an ingestion or an application used
// them. So looks for new tables that were not ingested, because an
// application's writes become such tables. If the application compacts an
// ingested table, the new table was not ingested either. Then all numbers count
// as written. All numbers also count as written if the tables cannot be listed.
uint64_t RefreshTarget::WrittenSequence() const {
  rocksdb::DB* const db = live_->db();
  const uint64_t last = db->GetLatestSequenceNumber();
  if (!last_.ingesting || live_->is_borrowed()) {
    return last;
  }
  for (const FamilyHandle& family : live_->families()) {
    std::vector<LiveTable> tables;
    const bool is_known = ListLiveTables(db, family.handle, &tables).ok();
    if (!is_known || family.is_unflushed ||
        MayBeUnflushed(db, family.handle) ||
        std::any_of(tables.begin(), tables.end(),
                    [this](const LiveTable& table) {
                      return !table.was_ingested &&
                             NumberOfTable(table.name) >
                                 last_.ingesting->table_number;
                    })) {
      return last;
    }
  }
  return std::min(last, last_.ingesting->sequence);
}

// If no family stays, returns the database's last sequence number, which is
// never too low. The numbers in tables may be too low, because a compaction to
// the last level sets them to 0.
uint64_t RefreshTarget::ReplacedSequence() const {
  rocksdb::DB* const db = live_->db();
  const uint64_t last = db->GetLatestSequenceNumber();
  const std::vector<std::string> missing = Missing();
  const bool leaves =
      !drops_missing_ &&
      std::any_of(missing.begin(), missing.end(),
                  [this, db](const std::string& name) {
                    return HasEntries(db, live_->Find(name));
                  });
  if (!leaves) {
    return last;
  }
  uint64_t newest = 0;
  for (const FamilyHandle& family : live_->families()) {
    if (std::find(missing.begin(), missing.end(), family.name) !=
        missing.end()) {
      continue;
    }
    std::vector<LiveTable> tables;
    if (!ListLiveTables(db, family.handle, &tables).ok() ||
        family.is_unflushed || MayBeUnflushed(db, family.handle)) {
      return last;
    }
    for (const LiveTable& table : tables) {
      // True if an interrupted refresh has ingested this table.
      const bool is_own =
          last_.ingesting && table.was_ingested &&
          NumberOfTable(table.name) > last_.ingesting->table_number;
      newest = std::max(newest, is_own ? 0 : table.largest_sequence);
    }
  }
  return newest;
}

Status RefreshTarget::BuildFamilies() {
  // Request no range deletions if the database has a row cache, because the row
  // cache ignores them.
  std::vector<std::string> names;
  for (const Family& family : plan().families) {
    names.push_back(family.description.name);
  }
  comparer_.BeginPlan(std::move(names),
                      live_->db()->GetDBOptions().row_cache != nullptr
                          ? 0
                          : options().most_point_deletions);
  built_.clear();
  RETURN_IF_ERROR(CheckSource());
  for (const Family& family : plan().families) {
    BuildLimits limits;
    limits.format_version = family.format_version;
    limits.max_format_version = MaxFormatVersionOf(plan());
    BuiltFamily built;
    RETURN_IF_ERROR(
        BuildFamily(family.description, options().registry, limits, &built));
    rocksdb::ColumnFamilyHandle* const known =
        live_->Find(family.description.name);
    if (known != nullptr) {
      RETURN_IF_ERROR(CheckOrder(family, known));
      NoteKept("column family '" + family.description.name + "'", family,
               built, live_->db()->GetOptions(known), report());
    }
    PullFamily shared;
    shared.comparator = known != nullptr ? known->GetComparator()
                                         : built.final_options.comparator;
    shared.format_version = built.format_version;
    lanes()->families.push_back(shared);
    built_.push_back(std::move(built));
  }
  std::vector<const rocksdb::Comparator*> orders;
  for (const PullFamily& family : lanes()->families) {
    orders.push_back(family.comparator);
  }
  RETURN_IF_ERROR(CheckNotMore(options(), last_, orders));
  held_ = HeldAfterRefresh(options(), last_, orders);
  NoteMissing();
  NoteFilters();
  return Status::OK();
}

void RefreshTarget::NoteFilters() {
  for (const Family& family : plan().families) {
    const std::string& name = family.description.name;
    const auto found = live_->compaction_filters().find(name);
    if (found == live_->compaction_filters().end()) {
      continue;
    }
    const std::string filter = "column family '" + name +
                               "': the compaction filter " + found->second;
    if (live_->is_borrowed()) {
      report()->Note(
          filter + " of the application runs in RocksDB's compactions, "
                   "including those of this refresh, and may remove or change "
                   "entries that the source holds");
      continue;
    }
    report()->NoteDetail(
        filter + ", which its OPTIONS name, was not run; entries that it "
                 "removes stay until the application compacts");
  }
}

Status RefreshTarget::CheckOrder(const Family& family,
                                 rocksdb::ColumnFamilyHandle* known) {
  return known->GetComparator()->Name() == family.description.comparator
             ? Status::OK()
             : MakeStatus(EndState::kIncompatible,
                          "column family '" + family.description.name +
                              "': expected the target's comparator " +
                              known->GetComparator()->Name() +
                              " at the source, found " +
                              family.description.comparator);
}

std::vector<std::string> RefreshTarget::Missing() const {
  return NotPlanned(live_->families(), plan());
}

void RefreshTarget::NoteMissing() {
  if (!options().selection.families.empty() || drops_missing_) {
    return;
  }
  for (const std::string& name : Missing()) {
    report()->Note("column family '" + name +
                           "' is missing at the source and stays unchanged; "
                           "--drop-missing drops it");
  }
}

// Creates the families that the target does not have. Compares comparators once
// more: since BuildFamilies(), an application may have dropped a family and
// created another one with the same name.
Status RefreshTarget::CreateFamilies() {
  for (const Family& family : plan().families) {
    rocksdb::ColumnFamilyHandle* const known =
        live_->Find(family.description.name);
    RETURN_IF_ERROR(known == nullptr ? Status::OK()
                                     : CheckOrder(family, known));
  }
  planned_.clear();
  std::string text;  // OPTIONS; made when first needed
  for (size_t i = 0; i < plan().families.size(); ++i) {
    const std::string& name = plan().families[i].description.name;
    if (live_->Find(name) == nullptr) {
      if (text.empty()) {
        RETURN_IF_ERROR(OptionsTextOf(plan(), &text));
      }
      RETURN_IF_ERROR(live_->Create(name, built_[i].final_options, text));
      report()->Note("column family '" + name + "' was created");
    }
    planned_.push_back(*live_->FindFamily(name));
    lanes()->families[i].comparator = planned_.back().handle->GetComparator();
  }
  return Status::OK();
}

// Raises the last sequence number from 0, at which earlier versions of sstferry
// left replicas. In an application's database, this writes a deletion, which
// List() flushes before it lists the tables. In a directory, this writes no
// key, because the source has already planned without one.
Status RefreshTarget::LeaveZero() {
  const std::vector<rocksdb::ColumnFamilyHandle*> handles =
      HandlesOf(live_->families());
  const Status status =
      live_->is_borrowed()
          ? LeaveSequenceZero(live_->db(), handles, &left_zero_)
          : SpendFirstSequence(live_->db(), handles, &left_zero_);
  if (left_zero_) {
    report()->Note(
        std::string("the target was ") + kAtZero +
        "; this refresh has corrected that");
  }
  FaultPoint("Refresh:ZeroLeft");
  return status;
}

Status RefreshTarget::Create(
    const std::shared_ptr<rocksdb::FileSystem>& /*file_system*/,
    std::optional<JournalTargetFiles>* held) {
  RETURN_IF_ERROR(Own(OpenToWrite()));
  *held = FilesOf(tables_, live_->db());
  (*held)->database_id += origin();
  return CreateFamilies();
}

std::unique_ptr<ChunkStore> RefreshTarget::MakeStore(JournalFile* journal) {
  std::vector<IngestFamily> families;
  for (const FamilyHandle& family : planned_) {
    families.push_back({family.handle, false});
  }
  IngestRules rules;
  rules.over_data = true;
  gate_ = std::make_unique<IngestGate>(
      [this] { return IsBehind(live_->db(), planned_); },
      options().min_rate_bytes_per_sec, failure()->stop());
  rules.admit = [this](uint64_t bytes) { return gate_->Pass(bytes); };
  auto made = std::make_unique<Ingestor>(
      live_->db(), std::move(families), journal, lanes()->sync_chunks,
      2 * plan().opened.lanes, rules);
  ingestor_ = made.get();
  return made;
}

RefreshTarget::Written RefreshTarget::LookForWrites() const {
  Written written;
  written.sequence = live_->db()->GetLatestSequenceNumber();
  std::vector<FamilyTables> listed;
  for (const FamilyHandle& family : planned_) {
    FamilyTables found{family.name, family.is_unflushed, {}};
    if (!ListLiveTables(live_->db(), family.handle, &found.tables).ok()) {
      return written;
    }
    listed.push_back(std::move(found));
  }
  written.files = FilesOf(listed, live_->db());
  return written;
}

void RefreshTarget::BeginRead() {
  const std::lock_guard<std::mutex> lock(first_read_mu_);
  if (!first_read_ && live_->is_borrowed()) {
    first_read_ = LookForWrites();
  }
}

// Counts no part as proven if the application has changed entries during the
// comparison, because the comparison may not have read them. The deltas may
// still be right. A directory that this process opened needs no check: no other
// process writes to it.
void RefreshTarget::CheckUnwritten() {
  const std::lock_guard<std::mutex> read_lock(first_read_mu_);
  const Written now = first_read_ ? LookForWrites() : Written();
  const std::lock_guard<std::mutex> lock(lanes()->mu);
  if (lanes()->parts_unproven != 0) {
    report()->Note("the deltas of " + std::to_string(lanes()->parts_unproven) +
                   " parts did not prove them equal to the source's at first; "
                   "they were compared once more and are equal; please report "
                   "this");
  }
  if (!first_read_ || lanes()->parts_proven == 0) {
    return;
  }
  const bool wrote = first_read_->sequence != now.sequence;
  if (!wrote && now.files && first_read_->files == now.files) {
    return;
  }
  report()->Note((wrote ? "the application wrote to the target while it was "
                          "compared (sequence " +
                              std::to_string(first_read_->sequence) + " to " +
                              std::to_string(now.sequence) + ")"
                        : std::string("tables of the target changed while it "
                                      "was compared, as by an ingestion or a "
                                      "compaction of the application")) +
                 ", so none of the " +
                 std::to_string(lanes()->parts_proven) +
                 " compared parts is proven equal to the source's; sstferry "
                 "verify shows whether they are");
  lanes()->parts_proven = 0;
}

// If the end of an earlier ingestion was not recorded, also adds the numbers
// that it used to target_sequence.
Status RefreshTarget::RecordIngestionStart() {
  announced_ = last_;
  if (in_place() == nullptr || !last_.target_sequence ||
      (ingestor_->deferred() == 0 && !last_.ingesting)) {
    announced_.ingesting.reset();
    return Status::OK();
  }
  // Writes to families that stay as they are count as older than the last
  // transfer, as in the record at the end of the refresh.
  const uint64_t written =
      std::min(WrittenSequence(),
               std::max(ReplacedSequence(), *last_.target_sequence));
  IngestionStart start;
  start.sequence = live_->db()->GetLatestSequenceNumber();
  std::vector<rocksdb::LiveFileMetaData> tables;
  live_->db()->GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    start.table_number =
        std::max(start.table_number, NumberOfTable(table.name));
  }
  *announced_.target_sequence += start.sequence - written;
  announced_.ingesting = start;
  return WriteSequences();
}

// Adds the numbers that the ingestion used to target_sequence. The database's
// last sequence number then exceeds target_sequence only by the writes of an
// application.
Status RefreshTarget::RecordIngestionEnd() {
  if (!announced_.ingesting) {
    return Status::OK();
  }
  *announced_.target_sequence += live_->db()->GetLatestSequenceNumber() -
                                 announced_.ingesting->sequence;
  announced_.ingesting.reset();
  return WriteSequences();
}

Status RefreshTarget::WriteSequences() const {
  std::string text;
  RETURN_IF_ERROR(FormatSequences(dir_, announced_, &text));
  return text.empty() ? Status::OK()
                      : WriteDurably(disk(), dir_ + "/" + kLastTransferName,
                                     text);
}

Status RefreshTarget::Finish() {
  CheckUnwritten();
  RETURN_IF_ERROR(RecordIngestionStart());
  StageClock clock(&lanes()->counters.stages, Stage::kIngest);
  // The ingestion may find damage in a table that a chunk overlaps, or in a
  // chunk that has changed on the disk since it was checked.
  Status status = Own(ingestor_->IngestDeferred(&clock));
  FaultPoint("Refresh:AllIngested");
  // After an error, it is unknown which numbers the database keeps. So does not
  // record the end: the tables will show a later run whether chunks were
  // ingested.
  status = status.ok() ? RecordIngestionEnd() : status;
  if (status.ok() && replica_.db != nullptr) {
    for (const std::string& note : CrowdedLevel0(live_->db(), planned_)) {
      report()->Note(note);
    }
  }
  SetLastSequence(live_->db()->GetLatestSequenceNumber());
  return status;
}

Status RefreshTarget::DigestPart(const Part& part, DigestReply* reply) {
  const ReadCounter counter(&read_bytes_);
  return Own(DigestInterval(
      live_->db(), planned_[part.family].handle, part.interval,
      kDigestReadaheadBytes, [this] { return failure()->failed(); },
      reply));
}

Status RefreshTarget::IndexPart(const Part& part, const KeyInterval& piece,
                                EntryDigester* digester, EntrySums* sums,
                                GroupIndex* index,
                                std::optional<std::string>* rest) {
  const ReadCounter counter(&read_bytes_);
  BeginRead();
  return Own(compared_.Index(
      live_->db(), planned_[part.family].handle, is_alone(), piece,
      [this] { return failure()->failed(); }, digester, sums, index, rest));
}

Status RefreshTarget::FindOutermost(const Part& part,
                                    const KeyInterval& piece,
                                    std::optional<std::string>* first,
                                    std::optional<std::string>* last) {
  const ReadCounter counter(&read_bytes_);
  BeginRead();
  IntervalReader reader(live_->db(), planned_[part.family].handle, piece,
                        /*readahead_bytes=*/0,
                        [this] { return failure()->failed(); });
  first->reset();
  last->reset();
  reader.SeekToBegin();
  if (reader.Valid()) {
    *first = reader.key().ToString();
    reader.SeekToLast();
    if (reader.Valid()) {
      *last = reader.key().ToString();
    }
  }
  return Own(reader.status());
}

bool RefreshTarget::is_alone() const {
  const auto is_fifo = [this](const FamilyHandle& family) {
    return live_->db()->GetOptions(family.handle).compaction_style ==
           rocksdb::kCompactionStyleFIFO;
  };
  return replica_.db == nullptr &&
         std::none_of(planned_.begin(), planned_.end(), is_fifo);
}

Status RefreshTarget::Close(JournalFile* journal) {
  if (left_zero_ && !live_->is_borrowed()) {
    RaiseKnownSequence();  // CompactAndClose() will raise it
  }
  RETURN_IF_ERROR(journal->Sync());
  return journal->Close();
}

void RefreshTarget::RaiseKnownSequence() {
  SetLastSequence(std::max(last_sequence().value_or(0),
                           plan().opened.snapshot_sequence));
}

Status RefreshTarget::DropMissing() {
  if (!drops_missing_) {
    return Status::OK();
  }
  for (const std::string& name : Missing()) {
    if (name == rocksdb::kDefaultColumnFamilyName) {
      continue;  // RocksDB cannot drop this family
    }
    RETURN_IF_ERROR(live_->Drop(name));
    report()->Note("column family '" + name + "' was dropped");
  }
  return Status::OK();
}

Status RefreshTarget::Record(const Summary& summary) {
  RETURN_IF_ERROR(DropMissing());
  is_complete_ = true;
  TakeLevels();
  last_summary_ = summary;
  Status status = WriteSummary(summary);
  FaultPoint("Refresh:SummaryWritten");
  // Remove the record of the fault: this refresh has compared all entries and
  // received all differences, so the fault is repaired.
  if (status.ok()) {
    status = ClearFault(disk(), dir_, fault());
  }
  FaultPoint("Refresh:FaultCleared");
  return status;
}

Status RefreshTarget::Compact() {
  if constexpr (kCompactionsLoseErrors) {
    report()->Note("the deltas were not compacted: RocksDB " +
                   RocksDbVersion() +
                   " may lose entries in a compaction that cannot read a file "
                   "(8.7 or later does not)");
    return Status::OK();
  }
  report()->SetPhase("compact");
  const Status status =
      Own(CompactDeltas(live_->db(), planned_, failure()->stop()));
  FaultPoint("Refresh:Compacted");
  if (EndStateOf(status) == EndState::kCorrupt) {
    return status;
  }
  if (!status.ok()) {
    report()->Say(
        "not all deltas were compacted; the next refresh continues: " +
        MessageOf(status));
  }
  return Status::OK();
}

void RefreshTarget::ForgetLive() {
  live_.reset();
  tables_.clear();
  writable_ = false;
  planned_.clear();
}

Status RefreshTarget::CompactAndClose() {
  Status status;
  Status damage;
  // Do not compact a database that an application has open: its RocksDB does
  // so.
  if (options().compact && is_alone()) {
    damage = Compact();
    TakeLevels();
    FillLevels(&last_summary_);
    status = WriteSummary(last_summary_);
  }
  const bool closes = !live_->is_borrowed();
  const Status closed = live_->Close();
  status = status.ok() ? closed : status;
  if (status.ok() && closes && left_zero_) {
    // Record the new sequence number, because nothing else has recorded it if
    // no file was ingested.
    status = RaiseLastSequence(disk(), dir_,
                               plan().opened.snapshot_sequence);
  }
  const Status removed = workspace()->Remove();
  status = status.ok() ? removed : status;
  if (!status.ok()) {
    report()->Say("the target is complete, but cleaning up failed: " +
                          MessageOf(status));
  }
  return damage;
}

}  // namespace sstferry
