#include "pipeline/archive/prune.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/end_state.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/log_retention.h"
#include "pipeline/archive/push.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// A set in the archive, with all facts that a prune needs.
struct KnownSet {
  FoundSet found;
  PrunedSet told;
  bool is_readable = false;
  // The keys and sizes of its objects.
  std::vector<std::pair<std::string, uint64_t>> objects;
  SetLog log;  // its position in a log
  SetId repairs{};
  bool is_all_there = false;  // committed, and all of its objects exist

  const SetName& name() const { return found.name; }
};

// The sets that exist, and the pushes that run, at one moment.
struct InUse {
  std::vector<KnownSet> sets;  // the oldest first
  // The names of all listed sets, also of those that another prune is deleting.
  std::map<SetId, SetName> names;
  std::set<SetId> pushing;  // sets with an intent younger than the grace
  std::set<SetId> used_by_pushes;
  std::vector<SetId> expired;  // ids of expired intents
  RepairedSets repaired;
  // The newest set that is committed or being pushed, and whose record cannot
  // be read.
  std::optional<SetName> unreadable;

  bool IsPushed(const SetId& set) const {
    return pushing.count(set) != 0 || used_by_pushes.count(set) != 0;
  }
  // Returns true if an unreadable record may name a file that the set
  // `uploader` uploaded. The unreadable record names no files of later sets,
  // because the name of a set sorts after the names of all sets and pushes
  // whose files it uses.
  bool MayBeNamed(const SetId& uploader) const {
    if (!unreadable.has_value()) {
      return false;
    }
    const auto name = names.find(uploader);
    // Compares only the seconds, because a repaired set has the same seconds as
    // the damaged set.
    return name == names.end() ||
           name->second.seconds <= unreadable->seconds;
  }
};

// The sets that a run keeps, each with the reason.
struct Staying {
  std::map<SetName, std::string> sets;  // set -> reason
  // Set only with keep_log_seconds: the log after these sets is kept if they
  // stay. If another set stays, only its own moment can be restored.
  std::optional<std::set<SetName>> logged;
};

// Returns the first fault of a set's objects that a listing shows. Returns an
// empty text if it shows no fault.
std::string FaultOfSet(const KnownSet& set, const ListedKeys& present) {
  for (const auto& [key, bytes] : set.objects) {
    const std::string fault = ListedFault(present, key, bytes);
    if (!fault.empty()) {
      return key + ": " + fault;
    }
  }
  return "";
}

// Returns true if all objects of a set exist with their sizes, even if they are
// cold.
bool IsAllThere(const KnownSet& set, const ListedKeys& present) {
  return std::all_of(set.objects.begin(), set.objects.end(),
                     [&present](const std::pair<std::string, uint64_t>& named) {
                       const auto there = present.find(named.first);
                       return there != present.end() &&
                              there->second.bytes == named.second;
                     });
}

// Returns true if a repair replaced this damaged set by a set that is whole.
bool HasWholeRepair(const InUse& use, const SetName& damaged) {
  const auto is_whole = [&use](const SetName& name) {
    return std::any_of(use.sets.begin(), use.sets.end(),
                       [&name](const KnownSet& set) {
                         return set.told.is_whole && set.name() == name;
                       });
  };
  return use.repaired.FindWhole(damaged, is_whole).has_value();
}

class Pruner {
 public:
  Pruner(const Archive& archive, const PruneOptions& options,
         PruneSummary* summary)
      : archive_(archive),
        store_(archive.store()),
        options_(options),
        summary_(summary) {}

  [[nodiscard]] Status Run();
  [[nodiscard]] Status RemoveSet(const SetName& name, bool force);
  [[nodiscard]] Status RemoveMarkOrIntent(const SetId& id);

 private:
  [[nodiscard]] Status ReadGrace();
  [[nodiscard]] Status ReadFaults() { return archive_.ReadFaults(&faults_); }
  [[nodiscard]] Status ReadInUse(InUse* use) const;
  [[nodiscard]] Status ListFiles(ListedKeys* files) const;
  // Finds out which sets are whole. `files` is a listing that may be older than
  // the sets' records. A set is not whole if the last check found one of its
  // objects wrong, or a repair replaced the set.
  [[nodiscard]] Status Judge(const ListedKeys& files, InUse* use) const;
  // Chooses which committed sets this run keeps. `marked` has the sets and keys
  // that marks name.
  [[nodiscard]] Status ChooseStaying(const InUse& use, const Marked& marked,
                                     const ArchiveLog& log,
                                     Staying* staying) const;
  // Checks the sets that marks name, but the listing did not contain: none of
  // them may exist.
  [[nodiscard]] Status CheckGone(const Marked& marked, const InUse& use) const;
  // Deletes the sets and files in marks that are older than the grace.
  [[nodiscard]] Status Sweep();
  // Returns the marked sets that this run deletes.
  static std::set<SetName> ChooseDropped(const std::vector<FoundMark>& due,
                                         const InUse& use,
                                         const Staying& staying);
  [[nodiscard]] Status Drop(const std::set<SetName>& dropped);
  [[nodiscard]] Status SweepMark(const FoundMark& found, const InUse& use,
                                 const ListedKeys& files,
                                 const std::set<std::string>& kept,
                                 const std::set<std::string>& segments);
  // Returns the keys of the segments that the sets need for which stays() is
  // true.
  static std::set<std::string> FindSegments(
      const InUse& use, const std::function<bool(const SetName&)>& stays,
      const Staying& staying, const ArchiveLog& log);
  [[nodiscard]] Status Delete(const std::vector<std::string>& keys);
  [[nodiscard]] Status Mark();
  // Undoes the marks of sets that this run keeps.
  [[nodiscard]] Status TakeBack(const std::set<SetName>& kept,
                                std::vector<FoundMark>* marks);
  void Tell(const KnownSet& set, SetFate fate, const std::string& why,
            uint64_t until_seconds = 0);
  [[nodiscard]] Status PutMarks(const std::vector<MarkedSet>& sets,
                                const std::vector<ArchiveKey>& keys,
                                const std::vector<LogKey>& segments);
  // Marks all sets and files except one set and its files. If `kept` is null,
  // marks all sets and files.
  [[nodiscard]] Status MarkAllBut(const InUse& use, const KnownSet* kept);
  [[nodiscard]] Status RemoveLeftovers();
  bool IsOlderThanGrace(uint64_t since, uint64_t now) const {
    return now > since && now - since >= grace_;
  }

  const Archive& archive_;
  ObjectStore* const store_;
  const PruneOptions& options_;
  PruneSummary* const summary_;
  uint64_t grace_ = 0;
  KeyFaults faults_;           // faults in the findings of the last check
  std::set<SetName> dropped_;  // sets that this run deletes
};

Status Pruner::ReadGrace() {
  ArchiveHead head;
  RETURN_IF_ERROR(archive_.ReadHead(&head));
  grace_ = std::max(head.grace_seconds, options_.grace_seconds.value_or(0));
  return Status::OK();
}

Status Pruner::ReadInUse(InUse* use) const {
  *use = InUse();
  // Reads the intents before the sets. A push removes its intent only after it
  // has committed its set. So this run finds the intent or the set.
  std::vector<FoundIntent> intents;
  RETURN_IF_ERROR(archive_.ReadIntents(&intents));
  uint64_t now = 0;
  RETURN_IF_ERROR(archive_.Now(&now));
  for (const FoundIntent& found : intents) {
    if (IsOlderThanGrace(found.since_seconds, now)) {
      use->expired.push_back(found.id);
      continue;
    }
    use->pushing.insert(found.id);
    use->used_by_pushes.insert(found.intent.uses.begin(),
                               found.intent.uses.end());
  }
  std::vector<FoundSet> listed;
  RETURN_IF_ERROR(archive_.ListSets(&listed));
  for (const FoundSet& found : listed) {
    use->names.emplace(found.name.id, found.name);
    std::optional<ArchiveSet> set;
    const Status read = archive_.ReadSet(found, &set);
    if (!read.ok() && !Archive::IsForeign(read, set) &&
        EndStateOf(read) != EndState::kCorrupt) {
      return read;
    }
    if (read.ok() && !set.has_value()) {
      continue;  // another prune is deleting the set
    }
    KnownSet& known = use->sets.emplace_back();
    known.found = found;
    known.told.name = found.name;
    if (!read.ok()) {
      known.told.problem = MessageOf(read);
      if (found.is_done || use->IsPushed(found.name.id)) {
        use->unreadable = found.name;  // the last one is the newest
      }
      continue;
    }
    known.is_readable = true;
    known.log = set->log;
    known.repairs = set->repairs;
    if (found.is_done) {
      use->repaired.Add(found.name, set->repairs);
    }
    static_cast<SetFacts&>(known.told) = SetFactsOf(*set);
    for (const ArchivedFile& file : set->files) {
      known.objects.emplace_back(ArchiveKeyText(file.key),
                                 set->ObjectBytes(file));
    }
  }
  return Status::OK();
}

Status Pruner::ListFiles(ListedKeys* files) const {
  RETURN_IF_ERROR(archive_.ListKeys(kArchiveFilesPrefix, files));
  return archive_.ListKeys(kArchivePartsPrefix, files);
}

Status Pruner::Judge(const ListedKeys& files, InUse* use) const {
  const auto judge = [use](const ListedKeys& present) {
    bool all = true;
    for (KnownSet& set : use->sets) {
      if (set.is_readable) {
        set.told.problem = FaultOfSet(set, present);
        set.told.is_whole = set.found.is_done && set.told.problem.empty();
        set.is_all_there = set.found.is_done && IsAllThere(set, present);
        all &= set.told.problem.empty();
      }
    }
    return all;
  };
  if (!judge(files)) {
    // Lists the files again. A set that was put after the first listing may
    // have newer files.
    ListedKeys now;
    RETURN_IF_ERROR(ListFiles(&now));
    judge(now);
  }
  for (KnownSet& set : use->sets) {
    for (const auto& [key, bytes] : set.objects) {
      const auto fault = faults_.find(key);
      if (fault != faults_.end() && set.told.problem.empty()) {
        set.told.problem = key + ": " + fault->second;
        set.told.is_whole = false;
      }
    }
    if (set.told.is_whole && use->repaired.IsReplaced(set.name())) {
      set.told.problem = kReplacedSet;
      set.told.is_whole = false;
    }
  }
  return Status::OK();
}

Status Pruner::ChooseStaying(const InUse& use, const Marked& marked,
                             const ArchiveLog& log, Staying* staying) const {
  *staying = Staying();
  std::optional<uint64_t> keep_from;
  if (options_.keep_log_seconds.has_value()) {
    uint64_t now = 0;
    RETURN_IF_ERROR(archive_.Now(&now));
    keep_from = 1'000'000 * (now - std::min(now, *options_.keep_log_seconds));
    staying->logged.emplace();
    for (const KnownSet& set : use.sets) {
      if (set.log.moment_micros > *keep_from) {
        staying->logged->insert(set.name());
      }
    }
  }
  const auto choose = [&](bool counts_damaged) {
    std::vector<SetName> names;
    std::vector<LoggedSet> sets;
    for (const KnownSet& set : use.sets) {
      if (set.found.is_done && set.is_readable &&
          (counts_damaged || set.told.is_whole)) {
        names.push_back(set.name());
        sets.push_back({set.name(), set.told.sequence, set.log});
      }
    }
    std::map<SetName, std::string> kept =
        ChooseKept(names, options_.retention);
    if (keep_from.has_value()) {
      for (const SetName& name :
           ChooseLogSets(log, std::move(sets), *keep_from)) {
        kept.emplace(name, "--keep-log");
        staying->logged->insert(name);
      }
    }
    return kept;
  };
  staying->sets = choose(false);
  const std::map<SetName, std::string> as_if_whole = choose(true);
  // A suspended removal (RemoveSet()) may still delete a marked set. So this
  // run also keeps older whole sets, up to and including the newest one that no
  // mark names.
  for (auto set = use.sets.rbegin(); set != use.sets.rend(); ++set) {
    if (set->told.is_whole) {
      staying->sets.emplace(set->name(),
                            "all newer whole sets are marked for deletion");
      if (marked.sets.count(set->name()) == 0) {
        break;
      }
    }
  }
  for (const KnownSet& set : use.sets) {
    if (!set.found.is_done || set.told.is_whole) {
      continue;
    }
    // Compares only the seconds, because a repaired set has the same time as
    // its original. So both sets stay.
    const auto as_old = as_if_whole.lower_bound({set.name().seconds, {}});
    if (!set.is_readable) {
      staying->sets.emplace(set.name(), "its record cannot be read");
    } else if (as_old != as_if_whole.end() &&
               as_old->first.seconds == set.name().seconds) {
      staying->sets.emplace(set.name(),
                            "damaged: --keep options do not count it; it is "
                            "kept as long as a whole set would be");
    }
  }
  return Status::OK();
}

std::set<SetName> Pruner::ChooseDropped(const std::vector<FoundMark>& due,
                                        const InUse& use,
                                        const Staying& staying) {
  std::map<SetName, bool> is_done;
  for (const KnownSet& set : use.sets) {
    is_done[set.name()] = set.found.is_done;
  }
  std::set<SetName> dropped;
  for (const FoundMark& found : due) {
    for (const MarkedSet& marked : found.mark.sets) {
      const auto set = is_done.find(marked.name);
      if (set == is_done.end() || staying.sets.count(marked.name) != 0) {
        continue;  // already deleted, or kept by the options of this run
      }
      // The mark names the set as unfinished, but meanwhile the push has
      // committed the set, or the push is still running. Or a prune has undone
      // the mark.
      const bool is_alive = !marked.was_done &&
                            (set->second ||
                             use.pushing.count(marked.name.id) != 0);
      if (!is_alive) {
        dropped.insert(marked.name);
      }
    }
  }
  return dropped;
}

Status Pruner::Delete(const std::vector<std::string>& keys) {
  if (options_.dry_run) {
    return Status::OK();
  }
  for (size_t at = 0; at < keys.size(); at += kMaxStorePage) {
    const size_t end = std::min<size_t>(keys.size(), at + kMaxStorePage);
    RETURN_IF_ERROR(
        store_
            ->Delete({keys.begin() + static_cast<std::ptrdiff_t>(at),
                      keys.begin() + static_cast<std::ptrdiff_t>(end)})
            .status);
  }
  return Status::OK();
}

// Deletes first `done`, so that the sets are no longer committed, and then the
// records. A later step deletes the files.
Status Pruner::Drop(const std::set<SetName>& dropped) {
  std::vector<std::string> done;
  std::vector<std::string> records;
  for (const SetName& name : dropped) {
    done.push_back(DoneKey(name));
    records.push_back(SetKey(name));
  }
  RETURN_IF_ERROR(Delete(done));
  RETURN_IF_ERROR(Delete(records));
  summary_->dropped_sets += dropped.size();
  return Status::OK();
}

Status Pruner::SweepMark(const FoundMark& found, const InUse& use,
                         const ListedKeys& files,
                         const std::set<std::string>& kept,
                         const std::set<std::string>& segments) {
  bool is_held = false;
  for (const MarkedSet& marked : found.mark.sets) {
    for (const KnownSet& set : use.sets) {
      is_held |= set.name() == marked.name && dropped_.count(set.name()) == 0;
    }
  }
  std::vector<std::string> gone;
  for (const ArchiveKey& key : found.mark.keys) {
    std::string text = ArchiveKeyText(key);
    if (kept.count(text) != 0 || use.IsPushed(key.set) ||
        use.MayBeNamed(key.set)) {
      is_held = true;
    } else {
      const auto there = files.find(text);
      summary_->deleted_bytes += there == files.end() ? 0 : there->second.bytes;
      gone.push_back(std::move(text));
    }
  }
  summary_->deleted_files += gone.size();
  for (const LogKey& key : found.mark.segments) {
    std::string text = LogKeyText(key);
    if (segments.count(text) != 0) {
      is_held = true;
    } else {
      gone.push_back(std::move(text));
      ++summary_->deleted_segments;
    }
  }
  RETURN_IF_ERROR(Delete(gone));
  // Keeps the mark while another prune may still delete something that it
  // names. Only the mark tells pushes not to use these files.
  if (is_held) {
    ++summary_->held_marks;
    return Status::OK();
  }
  return Delete({MarkKey(found.id)});
}

// Ends the prune if a listing missed a set, because then the prune would not
// protect the set's files. Checks only sets that marks name, because no other
// set can have marked files: a prune marks a file only together with all sets
// that use it, and later pushes do not use it.
Status Pruner::CheckGone(const Marked& marked, const InUse& use) const {
  for (const auto& [name, since] : marked.sets) {
    if (use.names.count(name.id) != 0) {
      continue;
    }
    ObjectInfo info;
    const StoreResult record = store_->Head(SetKey(name), &info);
    if (record.ok()) {
      return MakeStatus(EndState::kBusy,
                        store_->Describe(SetKey(name)) +
                            ": the store's list did not have this set, but it "
                            "exists; nothing was deleted: run the prune "
                            "again");
    }
    if (record.code != StoreCode::kAbsent) {
      return record.status;
    }
  }
  return Status::OK();
}

Status Pruner::Sweep() {
  Marked marked;
  std::vector<FoundMark> marks;
  RETURN_IF_ERROR(archive_.ReadMarked(&marked, &marks));
  uint64_t now = 0;
  RETURN_IF_ERROR(archive_.Now(&now));
  std::vector<FoundMark> due;
  for (FoundMark& found : marks) {
    if (IsOlderThanGrace(found.since_seconds, now)) {
      due.push_back(std::move(found));
    } else {
      ++summary_->waiting_marks;
    }
  }
  if (due.empty()) {
    return Status::OK();
  }
  // Reads the sets after the grace has passed. So it finds all sets that were
  // committed during the grace.
  InUse use;
  RETURN_IF_ERROR(ReadInUse(&use));
  RETURN_IF_ERROR(CheckGone(marked, use));
  ListedKeys files;
  RETURN_IF_ERROR(ListFiles(&files));
  RETURN_IF_ERROR(Judge(files, &use));
  ArchiveLog log;
  RETURN_IF_ERROR(ListLog(archive_, &log));
  Staying staying;
  RETURN_IF_ERROR(ChooseStaying(use, marked, log, &staying));
  dropped_ = ChooseDropped(due, use, staying);
  std::set<std::string> kept;
  for (const KnownSet& set : use.sets) {
    if (dropped_.count(set.name()) != 0) {
      Tell(set, SetFate::kDeleted, "no --keep option keeps it");
    }
    if (dropped_.count(set.name()) == 0 ||
        use.used_by_pushes.count(set.name().id) != 0) {
      for (const auto& [key, bytes] : set.objects) {
        kept.insert(key);
      }
    }
  }
  const std::set<std::string> segments = FindSegments(
      use, [this](const SetName& set) { return dropped_.count(set) == 0; },
      staying, log);
  RETURN_IF_ERROR(Drop(dropped_));
  for (const FoundMark& found : due) {
    RETURN_IF_ERROR(SweepMark(found, use, files, kept, segments));
  }
  return Status::OK();
}

std::set<std::string> Pruner::FindSegments(
    const InUse& use, const std::function<bool(const SetName&)>& stays,
    const Staying& staying, const ArchiveLog& log) {
  std::vector<SetLog> cuts;
  for (const KnownSet& set : use.sets) {
    if (set.is_readable && stays(set.name()) &&
        (!staying.logged.has_value() ||
         staying.logged->count(set.name()) != 0)) {
      cuts.push_back(set.log);
    }
  }
  // A set with an unreadable record may need any segment.
  return ChooseSegments(log, cuts, [&use](const SetId& id) {
    return use.IsPushed(id) || use.unreadable.has_value();
  });
}

Status Pruner::PutMarks(const std::vector<MarkedSet>& sets,
                        const std::vector<ArchiveKey>& keys,
                        const std::vector<LogKey>& segments) {
  size_t set_at = 0;
  size_t key_at = 0;
  size_t segment_at = 0;
  while (set_at < sets.size() || key_at < keys.size() ||
         segment_at < segments.size()) {
    ArchiveMark mark;
    while (set_at < sets.size() && mark.sets.size() < kMaxMarkSets) {
      mark.sets.push_back(sets[set_at++]);
    }
    while (key_at < keys.size() && mark.keys.size() < kMaxMarkKeys) {
      mark.keys.push_back(keys[key_at++]);
    }
    while (segment_at < segments.size() &&
           mark.segments.size() < kMaxMarkSegments) {
      mark.segments.push_back(segments[segment_at++]);
    }
    if (options_.dry_run) {
      continue;
    }
    RETURN_IF_ERROR(archive_.Now(&mark.marked_seconds));
    std::string bytes;
    EncodeArchiveMark(mark, &bytes);
    RETURN_IF_ERROR(
        PutBytes(store_, MarkKey(options_.new_id()), bytes, false).status);
  }
  summary_->marked_sets += sets.size();
  summary_->marked_files += keys.size();
  summary_->marked_segments += segments.size();
  return Status::OK();
}

void Pruner::Tell(const KnownSet& set, SetFate fate, const std::string& why,
                  uint64_t until_seconds) {
  PrunedSet told = set.told;
  told.fate = fate;
  told.why = why;
  told.until_seconds = until_seconds;
  summary_->sets.push_back(std::move(told));
  if (fate == SetFate::kStays && set.found.is_done) {
    ++(set.told.is_whole ? summary_->kept_sets : summary_->damaged_sets);
  }
}

// Undoes the marks of kept sets: names them as unfinished, and no prune deletes
// an unfinished set that has been committed since. A later run must mark a kept
// set again, and waits for a whole grace. The mark still names the set, its
// files and its segments, so pushes do not use them. RemoveSet() does not count
// the set as another whole set. A prune that read the mark before may still
// delete the set.
//
// If another prune has deleted the mark in between, this run puts it again.
// This is harmless, because everything that it names is deleted by then, and a
// later prune deletes the mark. If two prunes change a mark at once, one change
// may be lost. Then the next prune repeats it.
Status Pruner::TakeBack(const std::set<SetName>& kept,
                        std::vector<FoundMark>* marks) {
  for (FoundMark& found : *marks) {
    bool is_changed = false;
    for (MarkedSet& set : found.mark.sets) {
      if (set.was_done && kept.count(set.name) != 0) {
        set.was_done = false;
        is_changed = true;
      }
    }
    if (is_changed && !options_.dry_run) {
      std::string bytes;
      EncodeArchiveMark(found.mark, &bytes);
      RETURN_IF_ERROR(
          PutBytes(store_, MarkKey(found.id), bytes, false).status);
    }
  }
  return Status::OK();
}

Status Pruner::Mark() {
  // Lists the files before it reads the intents and the sets. If a push has
  // removed its intent in between, this run finds its set. If there is neither
  // an intent nor a set, the push has failed.
  ListedKeys files;
  RETURN_IF_ERROR(ListFiles(&files));
  ArchiveLog log;
  RETURN_IF_ERROR(ListLog(archive_, &log));
  InUse use;
  RETURN_IF_ERROR(ReadInUse(&use));
  Marked marked;
  std::vector<FoundMark> marks;
  RETURN_IF_ERROR(archive_.ReadMarked(&marked, &marks));
  // A dry run has chosen sets to delete, but has not deleted them.
  std::erase_if(use.sets, [this](const KnownSet& set) {
    return dropped_.count(set.name()) != 0;
  });
  RETURN_IF_ERROR(Judge(files, &use));
  Staying staying;
  RETURN_IF_ERROR(ChooseStaying(use, marked, log, &staying));
  uint64_t now = 0;
  RETURN_IF_ERROR(archive_.Now(&now));
  std::vector<MarkedSet> drop;
  std::set<SetName> counted;
  std::set<std::string> named;
  for (const KnownSet& set : use.sets) {
    const SetId& id = set.name().id;
    const auto kept = staying.sets.find(set.name());
    const bool stays = set.found.is_done ? kept != staying.sets.end()
                                         : use.pushing.count(id) != 0;
    const auto mark = marked.sets.find(set.name());
    // Ignores a mark that was put before the set was committed, and a mark that
    // a prune has undone.
    const bool is_marked = mark != marked.sets.end() &&
                           (mark->second.was_done || !set.found.is_done);
    if (stays || use.used_by_pushes.count(id) != 0) {
      for (const auto& [key, bytes] : set.objects) {
        named.insert(key);
      }
    }
    if (stays && set.found.is_done) {
      counted.insert(set.name());
    }
    if (stays) {
      Tell(set, SetFate::kStays,
           set.found.is_done ? kept->second : "its push is running");
    } else if (is_marked) {
      Tell(set, SetFate::kExpires, "no --keep option keeps it",
           mark->second.since_seconds + grace_);
    } else {
      Tell(set, SetFate::kMarked,
           set.found.is_done ? "no --keep option keeps it"
                             : "its push was interrupted",
           now + grace_);
      drop.push_back({set.name(), set.found.is_done});
    }
    if (stays && !set.told.problem.empty() && set.found.is_done) {
      summary_->warnings.push_back(
          "set " + SetNameText(set.name()) +
          " is damaged, so --keep options do not count it: " +
          set.told.problem +
          (HasWholeRepair(use, set.name())
               ? "; a repaired set replaces it: 'sstferry archive remove " +
                     store_->place() + " " + SetNameText(set.name()) +
                     "' removes it"
           : set.is_readable
               ? "; 'sstferry archive repair " + store_->place() +
                     "' repairs it"
               : "; this set and all files of earlier sets are kept until you "
                 "run 'sstferry archive remove " + store_->place() + " " +
                 SetNameText(set.name()) + "'"));
    }
  }
  std::vector<ArchiveKey> keys;
  for (const auto& [text, object] : files) {
    ArchiveKey key;
    if (ParseArchiveKey(text, &key) && named.count(text) == 0 &&
        marked.keys.count(text) == 0 && !use.IsPushed(key.set) &&
        !use.MayBeNamed(key.set)) {
      keys.push_back(key);
      summary_->marked_bytes += object.bytes;
    }
  }
  const std::set<std::string> needed = FindSegments(
      use,
      [&](const SetName& set) {
        return staying.sets.count(set) != 0 ||
               use.used_by_pushes.count(set.id) != 0;
      },
      staying, log);
  std::vector<LogKey> segments;
  for (const auto& [id, lineage] : log.lineages) {
    for (const auto& [number, key] : lineage.segments) {
      const std::string text = LogKeyText(key);
      if (needed.count(text) == 0 && marked.keys.count(text) == 0) {
        segments.push_back(key);
      }
    }
  }
  RETURN_IF_ERROR(TakeBack(counted, &marks));
  return PutMarks(drop, keys, segments);
}

Status Pruner::RemoveSet(const SetName& name, bool force) {
  RETURN_IF_ERROR(ReadGrace());
  if (!force) {
    RETURN_IF_ERROR(ReadFaults());
  }
  // Checks twice, and puts the mark between the checks. So if two processes
  // remove two sets at once, at least one of them finds the mark of the other.
  for (const bool is_marked : {false, true}) {
    InUse use;
    RETURN_IF_ERROR(ReadInUse(&use));
    Marked marked;
    RETURN_IF_ERROR(archive_.ReadMarked(&marked));
    RETURN_IF_ERROR(Judge({}, &use));
    const KnownSet* removed = nullptr;
    bool has_other = false;
    for (const KnownSet& set : use.sets) {
      if (set.name() == name) {
        removed = &set;
      } else {
        has_other |= set.told.is_whole && marked.sets.count(set.name()) == 0;
      }
    }
    const std::string what = store_->Describe(SetKey(name));
    ObjectInfo info;
    if (removed == nullptr && store_->Head(DoneKey(name), &info).ok() &&
        store_->Head(SetKey(name), &info).code == StoreCode::kAbsent) {
      return Drop({name});  // the set has no record
    }
    if (removed == nullptr) {
      return MakeStatus(EndState::kRefused,
                        what + ": there is no such set",
                        "sstferry archive list " + ShellWord(store_->place()));
    }
    // A set is still needed if all of its objects exist, even if it is not
    // whole. A wrong finding may come from a bad read, and a cold object may be
    // restored inside the store.
    if ((removed->told.is_whole || removed->is_all_there) && !has_other &&
        !force) {
      uint64_t now = 0;
      RETURN_IF_ERROR(archive_.Now(&now));
      const bool refuses_pushes = name.seconds > now + kMaxSetAheadSeconds;
      return MakeStatus(
          EndState::kRefused,
          what + ": this may be the last set that can be restored, apart from "
                 "sets that a prune has marked; " +
              (refuses_pushes
                   ? "only --force removes this one" + PushesWorkAgain(name)
                   : "push a new set first, or remove this one with --force"),
          refuses_pushes ? ""
                         : "sstferry archive push SOURCE " +
                               ShellWord(store_->place()));
    }
    if (!is_marked) {
      RETURN_IF_ERROR(PutMarks({{name, removed->found.is_done}}, {}, {}));
    }
  }
  return Drop({name});
}

Status Pruner::MarkAllBut(const InUse& use, const KnownSet* kept) {
  std::vector<MarkedSet> sets;
  std::set<std::string> named;
  for (const KnownSet& set : use.sets) {
    if (&set == kept) {
      for (const auto& [key, bytes] : set.objects) {
        named.insert(key);
      }
    } else {
      sets.push_back({set.name(), set.found.is_done});
    }
  }
  ListedKeys files;
  RETURN_IF_ERROR(ListFiles(&files));
  std::vector<ArchiveKey> keys;
  for (const auto& [text, object] : files) {
    ArchiveKey key;
    if (ParseArchiveKey(text, &key) && named.count(text) == 0) {
      keys.push_back(key);
    }
  }
  ArchiveLog log;
  RETURN_IF_ERROR(ListLog(archive_, &log));
  std::vector<SetLog> cuts;
  if (kept != nullptr) {
    cuts.push_back(kept->log);
  }
  const std::set<std::string> needed =
      ChooseSegments(log, cuts, [](const SetId&) { return false; });
  std::vector<LogKey> segments;
  for (const auto& [id, lineage] : log.lineages) {
    for (const auto& [number, key] : lineage.segments) {
      if (needed.count(LogKeyText(key)) == 0) {
        segments.push_back(key);
      }
    }
  }
  return PutMarks(sets, keys, segments);
}

Status Pruner::RemoveMarkOrIntent(const SetId& id) {
  RETURN_IF_ERROR(ReadGrace());
  bool has_mark = false;
  const Status mark = archive_.ReadObject(
      MarkKey(id), kMaxMarkBytes,
      [](const std::string& bytes) {
        ArchiveMark read;
        return DecodeArchiveMark(bytes, &read);
      },
      &has_mark);
  if (!mark.ok() && EndStateOf(mark) != EndState::kCorrupt) {
    return mark;
  }
  bool has_intent = false;
  const Status intent = archive_.ReadObject(
      IntentKey(id), kMaxIntentBytes,
      [](const std::string& bytes) {
        ArchiveIntent read;
        return DecodeArchiveIntent(bytes, &read);
      },
      &has_intent);
  if (!intent.ok() && EndStateOf(intent) != EndState::kCorrupt) {
    return intent;
  }
  const bool reads_mark = has_mark && mark.ok();
  const bool reads_intent = has_intent && intent.ok();
  if (!has_mark && !has_intent) {
    return MakeStatus(EndState::kRefused,
                      store_->place() +
                          ": expected a set, a prune's mark for deletion or a "
                          "push's intent with the id " + ToHex(id) +
                          ", found none");
  }
  if (reads_mark || reads_intent) {
    return MakeStatus(
        EndState::kRefused,
        store_->Describe(reads_mark ? MarkKey(id) : IntentKey(id)) +
            ": remove deletes such an object only if it cannot be read, but "
            "this one can be read; a prune removes it after the grace");
  }
  if (has_intent) {
    // Deleting an intent is safe. An intent only prevents prunes from marking
    // the files of a push.
    return Delete({IntentKey(id)});
  }
  // Continues even if the findings cannot be read, because a check cannot store
  // new findings while a mark is unreadable. This run only marks. A prune reads
  // the findings before it deletes, and keeps the newest set that is whole by
  // then.
  const Status faults = ReadFaults();
  if (!faults.ok() && EndStateOf(faults) != EndState::kCorrupt) {
    return faults;
  }
  InUse use;
  RETURN_IF_ERROR(ReadInUse(&use));
  RETURN_IF_ERROR(Judge({}, &use));
  const KnownSet* newest = nullptr;
  for (const KnownSet& set : use.sets) {
    newest = set.told.is_whole ? &set : newest;
  }
  RETURN_IF_ERROR(MarkAllBut(use, newest));
  return Delete({MarkKey(id)});
}

// Removes expired intents, and uploads of pushes that crashed.
Status Pruner::RemoveLeftovers() {
  InUse use;
  RETURN_IF_ERROR(ReadInUse(&use));
  std::vector<std::string> intents;
  for (const SetId& id : use.expired) {
    intents.push_back(IntentKey(id));
  }
  RETURN_IF_ERROR(Delete(intents));
  uint64_t now = 0;
  RETURN_IF_ERROR(archive_.Now(&now));
  return store_
      ->RemoveUploads(
          static_cast<UnixSeconds>(now) - static_cast<UnixSeconds>(grace_),
          [&use](const std::string& text) {
            ArchiveKey key;
            return ParseArchiveKey(text, &key) && !use.IsPushed(key.set);
          },
          &summary_->aborted_uploads)
      .status;
}

Status Pruner::Run() {
  RETURN_IF_ERROR(ReadGrace());
  RETURN_IF_ERROR(ReadFaults());
  RETURN_IF_ERROR(Sweep());
  RETURN_IF_ERROR(Mark());
  std::sort(summary_->sets.begin(), summary_->sets.end(),
            [](const PrunedSet& a, const PrunedSet& b) {
              return a.name < b.name;
            });
  return options_.dry_run ? Status::OK() : RemoveLeftovers();
}

}  // namespace

const char* SetFateName(SetFate fate) {
  switch (fate) {
    case SetFate::kStays:
      return "stays";
    case SetFate::kMarked:
      return "marked";
    case SetFate::kExpires:
      return "expiring";
    case SetFate::kDeleted:
      return "deleted";
  }
  return "unknown";
}

Status PruneArchive(const Archive& archive, const PruneOptions& options,
                    PruneSummary* summary) {
  *summary = PruneSummary();
  return Pruner(archive, options, summary).Run();
}

Status RemoveFromArchive(const Archive& archive,
                         const RemoveOptions& options) {
  PruneOptions prune;
  prune.new_id = options.new_id;
  PruneSummary summary;
  Pruner pruner(archive, prune, &summary);
  SetName name;
  SetId id;
  if (ParseSetName(options.what, &name)) {
    return pruner.RemoveSet(name, options.force);
  }
  if (ParseSetId(options.what, &id)) {
    return pruner.RemoveMarkOrIntent(id);
  }
  return MakeStatus(EndState::kRefused,
                    archive.store()->place() +
                        ": expected the name of a set, or the id of a mark or "
                        "an intent, found '" + options.what + "'");
}

}  // namespace sstferry
