#include "pipeline/refresh/refresh_source.h"

#include <algorithm>
#include <random>

#include "format/end_state.h"
#include "pipeline/refresh/delta_builder.h"
#include "pipeline/refresh/delta_filter.h"
#include "pipeline/refresh/lane_deltas.h"

namespace sstferry {
namespace {

using rocksdb::Status;

uint64_t NewNonce() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Sets *known to the target's interval records of the family. Returns false if
// the target has nothing of it.
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

RefreshSource::RefreshSource(const Snapshot& snapshot, TransferPlan* plan)
    : snapshot_(snapshot), plan_(plan), nonce_(NewNonce()) {}

Backings RefreshSource::BackingsOf(const TransferFamily& family,
                                   const std::vector<FilePlan>* files) const {
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

// Sets the family's segments: how each interval is transferred.
Status RefreshSource::Decide(const PlanOrder& order,
                             const TransferFamily& family) {
  // A record that is damaged, or of another build, is ignored.
  if (families_.empty() &&
      !DecodeSourceRecord(order.replica.source_record, &then_).ok()) {
    then_ = SourceRecord();
  }
  families_.resize(plan_->sources.size());
  Decided& decided = families_[family.index];
  decided.delta_options = family.chunk_options;
  UseDeltaFilters(snapshot_.families()[family.index].options,
                  &decided.delta_options);
  IntervalComparison how;
  how.order = family.handle->GetComparator();
  how.compare = order.request.compare;
  how.selection = order.request.interval;
  how.sequence = snapshot_.sequence();
  std::vector<IntervalRecord> known;
  how.target_is_empty =
      !TakeWhatTargetHolds(order.replica, told(family), &known);
  FamilyChanges changes;
  RETURN_IF_ERROR(FindChangesOf(order, family, &changes));
  const Backings backings = BackingsOf(family);
  const Backings old_files = BackingsOf(family, &changes.old_files);
  changes.known.old_files = &old_files;
  if (changes.keys != nullptr) {
    how.changes = &changes.known;
    decided.changed = changes.keys;
    decided.changed_entry_bytes =
        changes.new_bytes / std::max<uint64_t>(1, changes.new_entries);
    if (family.plan.files.size() <= kMaxMergedFiles) {
      decided.lookup_files.added = std::move(changes.new_files);
      decided.lookup_files.kept.assign(changes.old_files.begin(),
                                       changes.old_files.end());
    }
  }
  decided.segments = CompareIntervals(how, backings, std::move(known));
  return Status::OK();
}

const SourceRecordFamily* RefreshSource::FamilyThen(
    const std::string& name) const {
  for (const SourceRecordFamily& family : then_.families) {
    if (family.name == name) {
      return &family;
    }
  }
  return nullptr;
}

ChangeQuestion RefreshSource::QuestionOf(const PlanOrder& order,
                                         const TransferFamily& family) const {
  ChangeQuestion question;
  question.order = family.handle->GetComparator();
  question.files = &family.plan.files;
  question.then = FamilyThen(told(family).description.name);
  question.in_memory =
      snapshot_.wal_not_flushed() && snapshot_.wal_holds_entries();
  question.wal_single_deletes = snapshot_.wal_holds_single_deletes();
  question.cancelled = order.ended;
  return question;
}

Status RefreshSource::FindChangesOf(const PlanOrder& order,
                                    const TransferFamily& family,
                                    FamilyChanges* changes) {
  ChangeQuestion question = QuestionOf(order, family);
  question.room_bytes -= changed_bytes_;
  std::string where;
  RETURN_IF_ERROR(FindSingleDeleteUse(question, &where));
  if (!where.empty()) {
    return MakeStatus(EndState::kRefused,
                      "column family '" + told(family).description.name +
                          "': the application may use SingleDelete (" + where +
                          "), which would bring back an older value of a key "
                          "after a refresh in place; only a swap can refresh "
                          "the replica");
  }
  families_[family.index].searched = true;
  if (order.request.compare != CompareMode::kFiles) {
    return Status::OK();
  }
  const Status status = FindChanges(question, changes);
  changed_bytes_ += changes->keys != nullptr ? changes->keys->bytes() : 0;
  return status;
}

Status RefreshSource::Record(const PlanOrder& order) {
  if (!order.is_refresh()) {  // Cut() has not added them
    size_t next = 0;
    for (const TransferFamily& family : plan_->sources) {
      const Backings backings = BackingsOf(family);
      for (; next < plan_->parts.size() &&
             plan_->parts[next].family == family.index;
           ++next) {
        AddRecordOf(plan_->parts[next], backings);
      }
    }
  }
  // The target keeps only records of whole families.
  if (!(order.request.interval == KeyInterval())) {
    return Status::OK();
  }
  SourceRecord record;
  uint64_t kept_bytes = 0;  // bytes of keys
  for (const TransferFamily& family : plan_->sources) {
    ChangeQuestion question = QuestionOf(order, family);
    question.kept_room_bytes -= kept_bytes;
    SourceRecordFamily one;
    one.name = told(family).description.name;
    one.searched = order.is_refresh() && families_[family.index].searched;
    RETURN_IF_ERROR(RecordFamily(question, &one));
    for (const std::string& key : one.keys) {
      kept_bytes += key.size() + sizeof(uint64_t);
    }
    record.families.push_back(std::move(one));
  }
  EncodeSourceRecord(std::move(record), &plan_->source_record);
  return Status::OK();
}

Status RefreshSource::BuildLookups(const Part& part,
                                   const ChunkBuilderOptions& options,
                                   ChunkSink* sink) const {
  const Decided& decided = families_[part.family];
  rocksdb::ColumnFamilyHandle* const handle = family(part).handle;
  const auto [first, last] =
      decided.changed->Find(handle->GetComparator(), part.interval);
  return DeltaBuilder(db(), handle, decided.delta_options, options, sink)
      .BuildLookups(part, decided.lookup_files, *decided.changed, first, last);
}

std::unique_ptr<LaneDeltas> RefreshSource::MakeDeltas(
    const TransferId& salt) const {
  return std::make_unique<GroupDeltas>(this, salt);
}

}  // namespace sstferry
