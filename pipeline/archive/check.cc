#include "pipeline/archive/check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "format/end_state.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/seal.h"
#include "pipeline/archive/set_source.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr uint64_t kSecondsPerDay = 86400;

// A set and its record. `record` is unset if the record cannot be read.
struct ReadRecord {
  ListedSet listed;
  std::optional<ArchiveSet> record;
};

// Reads the records of all sets, the oldest first. Skips a set that is deleted
// during the call. For `lost`, see Archive::ListSets().
Status ReadRecords(const Archive& archive, const ArchiveHead& head,
                   std::vector<ReadRecord>* records, RepairedSets* repaired,
                   std::set<SetName>* lost = nullptr) {
  Marked marked;
  RETURN_IF_ERROR(archive.ReadMarked(&marked));
  std::vector<FoundSet> found;
  RETURN_IF_ERROR(archive.ListSets(&found, lost));
  for (const FoundSet& set : found) {
    ReadRecord read;
    read.listed.name = set.name;
    const auto mark = marked.sets.find(set.name);
    // Ignores a mark that was put before the set was committed, and a mark that
    // a prune has undone.
    const bool is_marked = mark != marked.sets.end() &&
                           (mark->second.was_done || !set.is_done);
    read.listed.state = !set.is_done ? SetState::kUnfinished
                        : is_marked  ? SetState::kExpiring
                                     : SetState::kWhole;
    if (is_marked) {
      read.listed.expires_seconds =
          mark->second.since_seconds + head.grace_seconds;
    }
    // Reads the record without the key first, to tell an unsealed set from a
    // set with another key.
    Status status = Archive(archive.store()).ReadSet(set, &read.record);
    const SealKey* const key = archive.key();
    std::optional<SetState> other;
    if (status.ok() && read.record.has_value() && key != nullptr) {
      if (!read.record->is_sealed) {
        other = SetState::kUnsealed;
      } else if (read.record->key_id != key->id()) {
        other = SetState::kOtherKey;
      } else {
        status = WithContext(key->Unseal(&*read.record), EndState::kCorrupt,
                             archive.store()->Describe(SetKey(set.name)));
      }
    }
    if (!status.ok() && EndStateOf(status) != EndState::kCorrupt) {
      return status;
    }
    if (!status.ok()) {
      read.record.reset();
      read.listed.state = SetState::kDamaged;
      read.listed.is_readable = false;
      read.listed.problem = MessageOf(status);
    } else if (!read.record.has_value()) {
      continue;
    } else {
      const ArchiveSet& record = *read.record;
      if (other.has_value() && set.is_done) {
        read.listed.state = *other;
      } else if (set.is_done) {
        repaired->Add(set.name, record.repairs);
      }
      static_cast<SetFacts&>(read.listed) = SetFactsOf(record);
      read.listed.host_seconds = record.host_seconds;
      read.listed.repairs = record.repairs;
    }
    records->push_back(std::move(read));
  }
  return Status::OK();
}

// Changes the state of a listed set to damaged if a repair has replaced the
// set.
void JudgeReplaced(const RepairedSets& repaired, ListedSet* listed) {
  if (IsRestorable(listed->state) && repaired.IsReplaced(listed->name)) {
    listed->state = SetState::kDamaged;
    listed->problem = kReplacedSet;
  }
}

// Returns OK if the findings cannot be read, so that a list or a check
// continues. Returns other errors unchanged.
Status IgnoreUnreadable(const Status& read) {
  return EndStateOf(read) == EndState::kCorrupt ? Status::OK() : read;
}

// A file that one or more sets name.
struct NamedFile {
  const ArchivedFile* file = nullptr;
  uint64_t unit_bytes = 0;
  uint64_t object_bytes = 0;
  bool is_sealed = false;         // SHA-256 verifies the object
  std::vector<ReadRecord*> sets;  // the oldest first
};

class Checker {
 public:
  Checker(const Archive& archive, const CheckOptions& options,
          CheckSummary* summary)
      : archive_(archive), options_(options), summary_(summary) {}

  [[nodiscard]] Status Run();

 private:
  void NameFiles();
  void CompareWithList();
  [[nodiscard]] Status ReadFiles();
  // Returns true if this check reads the object with this key.
  bool IsRead(const std::string& key) const;
  void ChoosePart();
  [[nodiscard]] Status ReadFile(const std::string& key,
                                const NamedFile& named);
  void Amiss(const std::string& key, const std::string& what);
  // Adds the findings of earlier checks to this check's problems.
  void AddFindings();
  // Reads the stored findings. If they cannot be read, leaves *findings empty,
  // and stores the error in unreadable_.
  [[nodiscard]] Status ReadFindings(ArchiveChecked* findings);
  // Returns true if earlier findings cannot be read, and this check does not
  // read all objects again. Then it is unknown which objects are wrong.
  bool has_unknown_findings() const {
    return !unreadable_.ok() && summary_->read_parts != 1;
  }
  ArchiveChecked MergeFindings(const ArchiveChecked& now) const;
  [[nodiscard]] Status KeepFindings();
  // Reports the problems of the sets that still exist at the end of the check.
  void TellAmiss(const std::set<SetName>& still_there);
  // Returns the whole set that replaces a damaged set; nullopt: no set does.
  std::optional<SetName> FindRepaired(const ListedSet& damaged) const;
  void WarnOfReplaced();
  // Warns of each set for which two listings show done/SET, but not sets/SET.
  void WarnOfLost(const std::set<SetName>& lost);
  [[nodiscard]] Status Verdict() const;

  const Archive& archive_;
  const CheckOptions& options_;
  CheckSummary* const summary_;
  ArchiveHead head_;
  ArchiveChecked before_;  // the findings when this check began
  Status unreadable_;      // error of reading the findings
  std::vector<ReadRecord> records_;
  std::set<SetName> lost_;  // done/SET exists, but not sets/SET
  RepairedSets repaired_;
  std::map<std::string, NamedFile> named_;
  ListedKeys present_;
  std::map<std::string, std::string> amiss_;  // object key -> problem
  // Objects whose bytes this check found wrong.
  std::set<std::string> read_wrong_;
  // Faults in before_ whose objects still exist, and were not yet read again.
  std::map<std::string, FoundFault> found_before_;
  Status forgets_;  // error of storing the findings of a partial check
  // For each set, its first problem and the address of the object.
  std::map<SetName, std::string> problems_;
  std::mutex mu_;
};

void Checker::NameFiles() {
  for (ReadRecord& read : records_) {
    if (!read.record.has_value()) {
      continue;
    }
    for (const ArchivedFile& file : read.record->files) {
      NamedFile& named = named_[ArchiveKeyText(file.key)];
      named.file = &file;
      named.unit_bytes = read.record->unit_bytes;
      named.object_bytes = read.record->ObjectBytes(file);
      named.is_sealed = read.record->is_sealed;
      named.sets.push_back(&read);
    }
  }
}

void Checker::Amiss(const std::string& key, const std::string& what) {
  const std::lock_guard<std::mutex> lock(mu_);
  amiss_.emplace(key, what);
}

// Marks each set as damaged that uses an object in amiss_, and reports the
// problem. Skips a set that a prune removed during this check together with its
// files. Skips an unfinished set, because its push may not have put all files
// yet.
void Checker::TellAmiss(const std::set<SetName>& still_there) {
  for (const auto& [key, what] : amiss_) {
    std::string sets;
    std::vector<SetName> names;
    for (ReadRecord* const read : named_[key].sets) {
      ListedSet& listed = read->listed;
      if (listed.state == SetState::kUnfinished ||
          still_there.count(listed.name) == 0) {
        continue;
      }
      listed.state = SetState::kDamaged;
      if (listed.problem.empty()) {
        listed.problem = key + ": " + what;
      }
      sets += (sets.empty() ? "" : ", ") + SetNameText(listed.name);
      names.push_back(listed.name);
    }
    const std::string problem =
        archive_.store()->Describe(key) + ": " + what + "; used by " + sets;
    for (const SetName& name : names) {
      problems_.emplace(name, problem);
    }
    if (!sets.empty() && summary_->problems.size() < kMaxProblems) {
      summary_->problems.push_back(problem);
    }
  }
}

Status Checker::ReadFindings(ArchiveChecked* findings) {
  const Status read = archive_.ReadChecked(findings);
  if (EndStateOf(read) == EndState::kCorrupt) {
    unreadable_ = read;
  }
  return IgnoreUnreadable(read);
}

void Checker::AddFindings() {
  for (const FoundFault& fault : before_.faults) {
    const auto there = present_.find(fault.key);
    const auto named = named_.find(fault.key);
    // Drops the finding if the object is missing or has another size. The
    // listing shows this fault again if a set uses the object. Keeps the
    // finding if no readable record names the object: an unreadable record or a
    // running push may use it.
    if (there == present_.end() ||
        (named != named_.end() &&
         there->second.bytes != named->second.object_bytes)) {
      continue;
    }
    found_before_[fault.key] = fault;
    if (named != named_.end()) {
      Amiss(fault.key, fault.problem + " (found " +
                           ArchiveTimeText(fault.seconds) +
                           "; --read-data 100% reads it again)");
    }
  }
}

// Returns the findings that this check stores. `now` has the findings that are
// stored at the end of this check. Keeps findings that other checks and repairs
// added during this check, because these may have read an object later.
//
// If the list of findings is full, objects that are not in it may be wrong,
// too. Then it stays full until a check has read all objects. So only objects
// with wrong bytes may fill its last entry. Missing objects are left out
// instead, because every listing shows them again.
ArchiveChecked Checker::MergeFindings(const ArchiveChecked& now) const {
  ArchiveChecked merged;
  merged.checked_seconds = summary_->now_seconds;
  if (now.faults.size() >= kMaxFoundFaults &&
      (summary_->read_parts != 1 || !(now == before_))) {
    merged.faults = now.faults;
    return merged;
  }
  std::map<std::string, FoundFault> old;
  for (const FoundFault& fault : before_.faults) {
    old[fault.key] = fault;
  }
  // Returns true if the listing alone shows the fault of the object. Returns
  // false for a cold object, because it may be restored inside the store.
  const auto is_listed = [this](const std::string& key) {
    const auto there = present_.find(key);
    return amiss_.count(key) != 0 && read_wrong_.count(key) == 0 &&
           found_before_.count(key) == 0 &&
           !(there != present_.end() && there->second.is_cold);
  };
  std::map<std::string, FoundFault> wrong;
  std::vector<FoundFault> others;
  for (const FoundFault& fault : now.faults) {
    const auto before = old.find(fault.key);
    const bool is_old = before != old.end() && before->second == fault;
    if (is_listed(fault.key) ||
        (is_old && found_before_.count(fault.key) == 0)) {
      // The object was deleted, or this check decides itself about it.
      continue;
    }
    if (is_old && named_.count(fault.key) == 0) {
      others.push_back(fault);
    } else {
      wrong[fault.key] = fault;
    }
  }
  for (const auto& [key, what] : amiss_) {
    const FoundFault fault{key, what, summary_->now_seconds};
    if (read_wrong_.count(key) != 0) {
      wrong[key] = fault;
    } else if (is_listed(key)) {
      others.push_back(fault);
    }
  }
  for (const auto& [key, fault] : wrong) {
    if (merged.faults.size() < kMaxFoundFaults) {
      merged.faults.push_back(fault);
    }
  }
  for (const FoundFault& fault : others) {
    if (merged.faults.size() + 1 < kMaxFoundFaults) {
      merged.faults.push_back(fault);
    }
  }
  return merged;
}

Status Checker::KeepFindings() {
  ArchiveChecked now;
  const Status found = archive_.ReadChecked(&now);
  const Status read = IgnoreUnreadable(found);
  if (read.ok() && !found.ok() && summary_->read_parts != 1) {
    unreadable_ = found;
    summary_->not_kept = MessageOf(found);
    return Status::OK();
  }
  if (read.ok() && now == ArchiveChecked()) {
    now = before_;  // something deleted CHECKED during this check
  }
  const StoreResult put = read.ok() ? archive_.PutChecked(MergeFindings(now))
                                    : StoreResult{StoreCode::kCaller, read};
  if (EndStateOf(put.status) == EndState::kCancelled) {
    return put.status;
  }
  // A complete check must work with an account that may only read. A partial
  // check must store its findings, because the next partial check reads other
  // objects and would not find the same faults.
  if (put.code == StoreCode::kDenied && summary_->read_parts > 1) {
    forgets_ = WithContext(put.status, EndState::kDenied,
                           "a check that reads a part of the archive needs the "
                           "right to store what it finds");
  }
  summary_->not_kept = put.ok() ? "" : MessageOf(put.status);
  return Status::OK();
}

void Checker::CompareWithList() {
  for (const auto& [key, what] : options_.known) {
    if (named_.count(key) != 0) {
      Amiss(key, what);
    }
  }
  for (const auto& [key, named] : named_) {
    const std::string fault = ListedFault(present_, key, named.object_bytes);
    if (!fault.empty()) {
      Amiss(key, fault);
    }
  }
  for (const auto& [key, object] : present_) {
    ++summary_->objects;
    summary_->bytes += object.bytes;
    if (named_.count(key) == 0) {
      ++summary_->orphans;
      summary_->orphan_bytes += object.bytes;
    }
  }
}

Status Checker::ReadFile(const std::string& key, const NamedFile& named) {
  const ArchivedFile& file = *named.file;
  PieceDigester pieces(named.object_bytes);
  UnitDigester units(file.file, named.unit_bytes);
  GetRequest request;
  request.key = key;
  request.bytes = named.object_bytes;
  const StoreResult got =
      archive_.store()->Get(request, [&](const Slice& bytes) {
        pieces.Add(bytes);
        if (options_.progress != nullptr) {
          options_.progress->done_bytes += bytes.size();
        }
        if (!named.is_sealed) {
          units.Add(bytes);
        }
        return Status::OK();
      });
  if (got.code == StoreCode::kAbsent) {
    Amiss(key, MessageOf(got.status));  // deleted after the listing
    return Status::OK();
  }
  if (got.code == StoreCode::kCold) {
    // The object was moved to a cold class after it was listed, or the list
    // does not show its class.
    Amiss(key, MessageOf(got.status));
    const std::lock_guard<std::mutex> lock(mu_);
    present_[key].is_cold = true;
    return Status::OK();
  }
  if (got.code != StoreCode::kDamaged) {
    RETURN_IF_ERROR(got.status);
  }
  const bool is_right = got.ok() &&
                        Sha256OfPieces(pieces.Finish()) == file.sha256 &&
                        (named.is_sealed || units.units() == file.units);
  const std::lock_guard<std::mutex> lock(mu_);
  if (!is_right) {
    found_before_.erase(key);  // this check reports the fault itself
    read_wrong_.insert(key);
    amiss_[key] = got.ok() ? kWrongBytes : MessageOf(got.status);
  } else if (found_before_.erase(key) != 0) {
    amiss_.erase(key);
  }
  if (!got.ok()) {
    return Status::OK();
  }
  ++summary_->read_files;
  summary_->read_bytes += named.object_bytes;
  return Status::OK();
}

// Divides the objects into read_parts parts, and chooses one part for each day.
void Checker::ChoosePart() {
  if (options_.read_percent > 0) {
    summary_->read_parts = static_cast<uint64_t>(
        std::max(1.0, std::ceil(100 / options_.read_percent)));
    summary_->read_part = PartOfDay(summary_->now_seconds / kSecondsPerDay,
                                    summary_->read_parts);
  }
}

bool Checker::IsRead(const std::string& key) const {
  return summary_->read_parts != 0 &&
         Digest64(key) % summary_->read_parts + 1 == summary_->read_part;
}

Status Checker::ReadFiles() {
  std::vector<const std::pair<const std::string, NamedFile>*> files;
  for (const auto& entry : named_) {
    if (IsRead(entry.first) &&
        ListedFault(present_, entry.first, entry.second.object_bytes)
            .empty()) {
      files.push_back(&entry);
      if (options_.progress != nullptr) {
        options_.progress->phase = "read";
        options_.progress->planned_bytes += entry.second.object_bytes;
      }
    }
  }
  return ForEachInLanes(options_.lanes, files.size(), [&](size_t at) {
    return options_.cancelled && options_.cancelled()
               ? MakeStatus(EndState::kCancelled, "check: stopped on request")
               : ReadFile(files[at]->first, files[at]->second);
  });
}

std::optional<SetName> Checker::FindRepaired(const ListedSet& damaged) const {
  return repaired_.FindWhole(damaged.name, [this](const SetName& name) {
    return std::any_of(summary_->sets.begin(), summary_->sets.end(),
                       [&name](const ListedSet& set) {
                         return set.name == name && IsRestorable(set.state);
                       });
  });
}

void Checker::WarnOfReplaced() {
  for (const ListedSet& set : summary_->sets) {
    const std::optional<SetName> by = set.state == SetState::kDamaged
                                          ? FindRepaired(set)
                                          : std::nullopt;
    if (by.has_value()) {
      const std::string name = SetNameText(set.name);
      summary_->warnings.push_back(
          "set " + name + " is damaged, but the repaired set " +
          SetNameText(*by) + " replaces it: " + set.problem +
          (set.expires_seconds != 0
               ? "; a prune marked it and removes it after " +
                     ArchiveTimeText(set.expires_seconds)
               : "; 'sstferry archive remove " +
                     ShellWord(archive_.store()->place()) + " " + name +
                     "' removes it"));
    }
  }
}

// Warns of sets without a record: done/SET exists, but sets/SET does not. No
// push or prune deletes only the record of a committed set. But a prune deletes
// the record of an uncommitted set whose push has paused. If the push then
// continues, or the store executes a delayed request of the push, done/SET may
// be written without a record.
void Checker::WarnOfLost(const std::set<SetName>& lost) {
  for (const SetName& name : lost_) {
    if (lost.count(name) != 0) {
      summary_->warnings.push_back(
          "set " + SetNameText(name) + " has no record: its push failed after "
          "all, or this is not a complete copy of the archive, or something "
          "other than sstferry deleted " +
          archive_.store()->Describe(SetKey(name)) + "; 'sstferry archive "
          "remove " + ShellWord(archive_.store()->place()) + " " +
          SetNameText(name) + "' forgets the set");
    }
  }
}

Status Checker::Verdict() const {
  const ListedSet* first = nullptr;
  const ListedSet* newest = nullptr;
  const ListedSet* last = nullptr;  // newest committed set
  std::string whole;
  int unmarked = 0;  // number of whole sets without a mark
  for (const ListedSet& set : summary_->sets) {
    if (set.state == SetState::kDamaged) {
      if (FindRepaired(set).has_value()) {
        continue;
      }
      first = first == nullptr ? &set : first;
    }
    if (IsRestorable(set.state)) {
      whole = SetNameText(set.name);
      newest = &set;
      unmarked += set.state == SetState::kWhole ? 1 : 0;
    }
    last = set.state == SetState::kUnfinished ? last : &set;
  }
  const std::string& place = archive_.store()->place();
  if (first == nullptr && !summary_->log.problems.empty()) {
    return MakeStatus(EndState::kCorrupt, summary_->log.problems.front());
  }
  if (first == nullptr && has_unknown_findings()) {
    return unreadable_;
  }
  if (first == nullptr && last != nullptr && !IsRestorable(last->state)) {
    return MakeStatus(EndState::kRefused,
                      place + ": expected the newest set to be sealed with the "
                              "key of --key-file, found " +
                          SetNameText(last->name) + ", which is " +
                          (last->state == SetState::kUnsealed
                               ? "not sealed"
                               : "sealed with another key") +
                          (whole.empty() ? "; no set is sealed with that key"
                                         : "; the newest set sealed with that "
                                           "key is " +
                                               whole));
  }
  if (first == nullptr && newest == nullptr) {
    return MakeStatus(EndState::kRefused,
                      place + ": no set is whole, so nothing can be restored",
                      "sstferry archive push SOURCE " + ShellWord(place));
  }
  if (first == nullptr) {
    const uint64_t ahead =
        newest->name.seconds -
        std::min(newest->name.seconds, summary_->now_seconds);
    const bool has_other =
        unmarked > (newest->state == SetState::kWhole ? 1 : 0);
    return ahead < kWrongClockSeconds
               ? forgets_
               : MakeStatus(EndState::kRefused,
                            place + ": " +
                                SetOfTheFuture(newest->name, newest->host,
                                               ahead) +
                                "; correct the clock first" +
                                (ahead > kMaxSetAheadSeconds
                                     ? PushesWorkAgain(newest->name)
                                     : ""),
                            has_other && ahead > kMaxSetAheadSeconds
                                ? "sstferry archive remove " +
                                      ShellWord(place) + " " + whole
                                : "");
  }
  const auto problem = problems_.find(first->name);
  return MakeStatus(
      EndState::kCorrupt,
      "set " + SetNameText(first->name) + ": " +
          (problem == problems_.end() ? first->problem : problem->second) +
          (whole.empty() ? "; no set is whole"
                         : "; the newest whole set is " + whole) +
          (first->is_readable
               ? ""
               : "; a set whose record cannot be read cannot be repaired"),
      first->is_readable ? "sstferry archive repair " + ShellWord(place)
                         : "sstferry archive remove " + ShellWord(place) +
                               " " + SetNameText(first->name));
}

Status Checker::Run() {
  RETURN_IF_ERROR(archive_.ReadHead(&head_));
  RETURN_IF_ERROR(archive_.Now(&summary_->now_seconds));
  ChoosePart();
  // Reads the findings and the sets before it lists objects. So the listing
  // contains all objects of these sets. An object with a finding that the
  // listing does not contain was deleted.
  RETURN_IF_ERROR(ReadFindings(&before_));
  RETURN_IF_ERROR(
      ReadRecords(archive_, head_, &records_, &repaired_, &lost_));
  for (const char* prefix : {kArchiveFilesPrefix, kArchivePartsPrefix}) {
    RETURN_IF_ERROR(
        archive_.ListKeys(prefix, &present_, &summary_->foreign));
  }
  NameFiles();
  AddFindings();
  CompareWithList();
  RETURN_IF_ERROR(ReadFiles());
  RETURN_IF_ERROR(CheckLog(
      archive_, [this](const std::string& key) { return IsRead(key); },
      options_.cancelled, &summary_->log));
  std::vector<FoundSet> now;
  std::set<SetName> lost;
  RETURN_IF_ERROR(archive_.ListSets(&now, &lost));
  WarnOfLost(lost);
  std::set<SetName> still_there;
  for (const FoundSet& set : now) {
    still_there.insert(set.name);
  }
  if (options_.keeps_findings) {
    RETURN_IF_ERROR(KeepFindings());
  }
  TellAmiss(still_there);
  for (ReadRecord& read : records_) {
    if (still_there.count(read.listed.name) == 0) {
      continue;
    }
    JudgeReplaced(repaired_, &read.listed);
    if (IsRestorable(read.listed.state)) {
      summary_->newest_seconds = read.listed.name.seconds;
    }
    summary_->sets.push_back(read.listed);
  }
  summary_->is_complete = true;
  WarnOfReplaced();
  return Verdict();
}

}  // namespace

uint64_t PartOfDay(uint64_t day, uint64_t parts) {
  const uint64_t shift = Digest64(std::to_string(day / parts)) % parts;
  return (day % parts + shift) % parts + 1;
}

const char* SetStateName(SetState state) {
  switch (state) {
    case SetState::kWhole:
      return "whole";
    case SetState::kExpiring:
      return "expiring";
    case SetState::kUnfinished:
      return "unfinished";
    case SetState::kDamaged:
      return "damaged";
    case SetState::kUnsealed:
      return "unsealed";
    case SetState::kOtherKey:
      return "other key";
  }
  return "unknown";
}

Status ListArchive(const Archive& archive, std::vector<ListedSet>* sets,
                   std::optional<uint64_t>* checked_age) {
  ArchiveHead head;
  RETURN_IF_ERROR(archive.ReadHead(&head));
  std::vector<ReadRecord> records;
  RepairedSets repaired;
  RETURN_IF_ERROR(ReadRecords(archive, head, &records, &repaired));
  sets->clear();
  KeyFaults faults;
  uint64_t checked_seconds = 0;
  // If the list of faults is full, still uses the faults in it.
  RETURN_IF_ERROR(
      IgnoreUnreadable(archive.ReadFaults(&faults, &checked_seconds)));
  for (ReadRecord& read : records) {
    if (read.record.has_value() && IsRestorable(read.listed.state)) {
      for (const ArchivedFile& file : read.record->files) {
        const auto found = faults.find(ArchiveKeyText(file.key));
        if (found != faults.end()) {
          read.listed.state = SetState::kDamaged;
          read.listed.problem = found->first + ": " + found->second;
          break;
        }
      }
    }
    JudgeReplaced(repaired, &read.listed);
    sets->push_back(std::move(read.listed));
  }
  if (checked_age != nullptr && checked_seconds != 0) {
    uint64_t now = 0;
    RETURN_IF_ERROR(archive.Now(&now));
    *checked_age = KnownAge(now, checked_seconds);
  }
  return Status::OK();
}

Status CheckArchive(const Archive& archive, const CheckOptions& options,
                    CheckSummary* summary) {
  *summary = CheckSummary();
  return Checker(archive, options, summary).Run();
}

}  // namespace sstferry
