// Plans what a refresh compares, looks up and leaves out.
#include <algorithm>
#include <random>

#include "format/limits.h"
#include "pipeline/parts/group_index.h"
#include "pipeline/serve/transfer_planner.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Parts per chunk size for intervals that are compared, at most.
constexpr uint64_t kComparedPerChunk = 16;

// Entries of a part of which both sides compare groups: a quarter of what an
// index keeps, because this is an estimate.
constexpr uint64_t kEntriesPerCompared = kMaxIndexEntries / 4;
// Where RocksDB has not read how many entries a file has.
constexpr uint64_t kAssumedEntryBytes = 64;

// Keys that one part looks up.
constexpr size_t kLeastLookups = 2048;
constexpr size_t kMostLookups = 65536;

uint64_t NewNonce() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Sets *known to the interval records that the target has of the family.
// Returns false if it has nothing of it.
bool TakeWhatTargetHolds(const ReplicaRecord& replica, const Family& family,
                         std::vector<IntervalRecord>* known) {
  for (size_t i = 0; i < replica.families.size(); ++i) {
    const TargetFamily& theirs = replica.families[i];
    if (theirs.name != family.description.name) {
      continue;
    }
    for (const IntervalRecord& interval_record : replica.intervals) {
      if (interval_record.family == i) {
        known->push_back(interval_record);
        known->back().family = family.index;
      }
    }
    return !theirs.is_empty;
  }
  return false;
}

}  // namespace

Backings TransferPlanner::BackingsOf(
    size_t index, const std::vector<FilePlan>* files) const {
  const TransferFamily& family = plan_->sources[index];
  FamilyEvidence evidence;
  evidence.family_id = family.handle->GetID();
  evidence.comparator = told(family).description.comparator;
  evidence.merge_operator = told(family).description.merge_operator;
  evidence.in_memory =
      snapshot_.wal_not_flushed() && snapshot_.wal_holds_entries();
  evidence.wal = snapshot_.wal_digest();
  evidence.nonce = nonce_;
  return Backings(family.handle->GetComparator(),
                  files != nullptr ? files : &family.plan.files, evidence);
}

// Sets the family's segments and the keys that its chunks clear.
Status TransferPlanner::CompareFamilyAt(size_t index) {
  TransferFamily& family = plan_->sources[index];
  if (nonce_ == 0) {
    nonce_ = NewNonce();
  }
  IntervalComparison how;
  how.order = family.handle->GetComparator();
  how.compare = asked_.request.compare;
  how.selection = asked_.request.interval;
  how.sequence = snapshot_.sequence();
  std::vector<IntervalRecord> known;
  how.target_is_empty =
      !is_refresh() ||
      !TakeWhatTargetHolds(asked_.replica, told(family), &known);
  FamilyChanges changes;
  RETURN_IF_ERROR(FindChangesOf(index, &changes));
  const Backings backings = BackingsOf(index);
  const Backings old_files = BackingsOf(index, &changes.old_files);
  changes.known.old_files = &old_files;
  if (changes.keys != nullptr) {
    how.changes = &changes.known;
    family.changed = changes.keys;
    family.changed_entry_bytes =
        changes.new_bytes / std::max<uint64_t>(1, changes.new_entries);
    if (family.plan.files.size() <= kMaxMergedFiles) {
      family.lookup_files.added = std::move(changes.new_files);
      family.lookup_files.kept.assign(changes.old_files.begin(),
                                      changes.old_files.end());
    }
  }
  family.segments = CompareIntervals(how, backings, std::move(known));
  return Status::OK();
}

const SourceRecordFamily* TransferPlanner::FamilyThen(
    const std::string& name) const {
  for (const SourceRecordFamily& family : then_.families) {
    if (family.name == name) {
      return &family;
    }
  }
  return nullptr;
}

Status TransferPlanner::FindChangesOf(size_t index, FamilyChanges* changes) {
  TransferFamily& family = plan_->sources[index];
  ChangeQuestion question;
  question.order = family.handle->GetComparator();
  question.files = &family.plan.files;
  question.then = FamilyThen(told(family).description.name);
  question.in_memory =
      snapshot_.wal_not_flushed() && snapshot_.wal_holds_entries();
  question.wal_single_deletes = snapshot_.wal_holds_single_deletes();
  question.room_bytes -= changed_bytes_;
  question.kept_room_bytes -= kept_bytes_;
  question.cancelled = [this] { return asked_.ended(); };
  SourceRecordFamily record;
  record.name = told(family).description.name;
  Status status;
  if (is_refresh()) {
    std::string where;
    status = FindSingleDeleteUse(question, &where);
    if (status.ok() && !where.empty()) {
      return MakeStatus(EndState::kRefused,
                        "column family '" + record.name +
                            "': the application may use SingleDelete (" +
                            where +
                            "), which would bring back the older value of a "
                            "key that a refresh in place has put above it; "
                            "refresh by swap instead (--visibility swap)");
    }
    record.searched = status.ok();
  }
  if (status.ok() && is_refresh() &&
      asked_.request.compare == CompareMode::kFiles) {
    status = FindChanges(question, changes);
    changed_bytes_ += changes->keys != nullptr ? changes->keys->bytes() : 0;
  }
  if (status.ok() && keeps_record()) {
    status = RecordFamily(question, &record);
    for (const std::string& key : record.keys) {
      kept_bytes_ += key.size() + sizeof(uint64_t);
    }
    record_.families.push_back(std::move(record));
  }
  return status;
}

// The keys of one part make one file at the target.
void TransferPlanner::CutLookup(const PlanSegment& segment,
                                TransferFamily* family) {
  const ChangedKeys& keys = *family->changed;
  const auto [first, last] =
      keys.Find(family->handle->GetComparator(), segment.interval);
  const uint64_t fit =
      asked_.request.chunk_bytes /
      std::max<uint64_t>(1, family->changed_entry_bytes);
  const size_t most =
      std::clamp<size_t>(fit, kLeastLookups, kMostLookups);
  const size_t each = std::clamp<size_t>((last - first) / (2 * asked_.lanes),
                                         kLeastLookups, most);
  std::optional<std::string> begin = segment.interval.begin;
  for (size_t at = first; at < last || at == first; at += each) {
    const size_t next = std::min(last, at + each);
    Part part;
    part.id = static_cast<uint32_t>(plan_->parts.size());
    part.family = family->index;
    part.interval.begin = begin;
    part.interval.end = next < last ? std::optional(keys.key(next).ToString())
                                     : segment.interval.end;
    part.kind = PartKind::kDelta;
    part.need = PartNeed::kLookup;
    part.bytes = (next - at) * family->changed_entry_bytes;
    begin = part.interval.end;
    family->plan.estimated_bytes += part.bytes;
    family->plan.estimated_entries += next - at;
    plan_->parts.push_back(std::move(part));
  }
}

// The size of a part that is compared: as large as the keys in memory allow,
// because each makes a file.
uint64_t TransferPlanner::ComparedBytes(const TransferFamily& family) const {
  const uint64_t small = std::max(
      asked_.request.chunk_bytes / kComparedPerChunk, kMinRangeBytes);
  uint64_t bytes = 0;
  uint64_t entries = 0;
  for (const FilePlan& file : family.plan.files) {
    bytes += file.bytes;
    entries += file.entries;
  }
  const uint64_t by_entries =
      (entries == 0 ? kAssumedEntryBytes : bytes / entries) *
      kEntriesPerCompared;
  const uint64_t most = asked_.request.chunk_bytes / 16 * 15;
  return std::clamp(
      std::min(by_entries, bytes / (asked_.lanes * kPartsPerLane)),
      std::min(small, most), most);
}

}  // namespace sstferry
