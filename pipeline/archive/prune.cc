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

namespace sstferry {

using rocksdb::Status;

namespace {

// The files that sets and pushes need, at one time.
struct InUse {
  std::vector<FoundSet> sets;
  std::map<SetName, std::vector<std::string>> keys;  // that they name
  std::map<SetName, SetLog> logs;  // that continue them
  std::set<SetId> pushing;  // whose intents are not older than the grace
  std::set<SetId> used_by_pushes;
  std::vector<SetId> expired;  // intents

  bool IsPushed(const SetId& set) const {
    return pushing.count(set) != 0 || used_by_pushes.count(set) != 0;
  }
};

class Pruner {
 public:
  Pruner(const Archive& archive, const PruneOptions& options,
         PruneSummary* summary)
      : archive_(archive),
        store_(archive.store()),
        options_(options),
        summary_(summary) {}

  [[nodiscard]] Status Run();

 private:
  [[nodiscard]] Status ReadInUse(InUse* use) const;
  // Deletes what marks older than the grace name.
  [[nodiscard]] Status Sweep();
  // Returns which of the sets that the marks name are dropped now.
  std::set<SetName> ChooseDropped(const std::vector<FoundMark>& due,
                                  const InUse& use) const;
  [[nodiscard]] Status Drop(const std::set<SetName>& dropped);
  [[nodiscard]] Status SweepMark(const FoundMark& found, const InUse& use,
                                 const std::set<SetName>& dropped,
                                 const std::set<std::string>& kept,
                                 const std::set<std::string>& segments);
  [[nodiscard]] Status KeepFrom(uint64_t* micros) const;
  static void KeepForLog(const InUse& use, const std::vector<SetName>& whole,
                         uint64_t keep_from, std::set<SetName>* kept);
  // Returns the keys of segments that are needed if these sets are left.
  [[nodiscard]] Status FindSegments(
      const InUse& use, const std::function<bool(const SetName&)>& stays,
      const ArchiveLog& log, std::set<std::string>* needed) const;
  [[nodiscard]] Status Delete(const std::vector<std::string>& keys);
  [[nodiscard]] Status Mark();
  [[nodiscard]] Status PutMarks(const std::vector<MarkedSet>& sets,
                                const std::vector<ArchiveKey>& keys,
                                const std::vector<LogKey>& segments);
  [[nodiscard]] Status RemoveLeftovers();
  bool IsOlderThanGrace(uint64_t since, uint64_t now) const {
    return now > since && now - since >= grace_;
  }

  const Archive& archive_;
  ObjectStore* const store_;
  const PruneOptions& options_;
  PruneSummary* const summary_;
  uint64_t grace_ = 0;
};

Status Pruner::ReadInUse(InUse* use) const {
  *use = InUse();
  // Intents first: a push removes its own once its set counts.
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
    std::optional<ArchiveSet> set;
    RETURN_IF_ERROR(archive_.ReadSet(found, &set));
    if (!set.has_value()) {
      continue;  // another prune removes it
    }
    use->sets.push_back(found);
    use->logs.emplace(found.name, set->log);
    std::vector<std::string>& keys = use->keys[found.name];
    for (const ArchivedFile& file : set->files) {
      keys.push_back(ArchiveKeyText(file.key));
    }
  }
  return Status::OK();
}

std::set<SetName> Pruner::ChooseDropped(const std::vector<FoundMark>& due,
                                        const InUse& use) const {
  std::map<SetName, bool> is_done;
  std::optional<SetName> newest;
  for (const FoundSet& set : use.sets) {
    is_done[set.name] = set.is_done;
    if (set.is_done) {
      newest = set.name;  // they ascend
    }
  }
  std::set<SetName> dropped;
  for (const FoundMark& found : due) {
    for (const MarkedSet& marked : found.mark.sets) {
      const auto set = is_done.find(marked.name);
      if (set == is_done.end() || newest == marked.name) {
        continue;  // gone; or two prunes with two ideas of what stays
      }
      // Its push has finished it, or is at it still.
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

// A set first stops to count, then goes; its files go after that.
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
                         const std::set<SetName>& dropped,
                         const std::set<std::string>& kept,
                         const std::set<std::string>& segments) {
  bool is_held = false;
  for (const MarkedSet& marked : found.mark.sets) {
    is_held |= use.keys.count(marked.name) != 0 &&
               dropped.count(marked.name) == 0;
  }
  std::vector<std::string> gone;
  for (const ArchiveKey& key : found.mark.keys) {
    std::string text = ArchiveKeyText(key);
    if (kept.count(text) != 0 || use.IsPushed(key.set)) {
      is_held = true;
    } else {
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
  // Who looks whether its files are there relies on this mark as long as any
  // sweep may be at what it names.
  if (is_held) {
    ++summary_->held_marks;
    return Status::OK();
  }
  return Delete({MarkKey(found.id)});
}

Status Pruner::Sweep() {
  std::vector<FoundMark> marks;
  RETURN_IF_ERROR(archive_.ReadMarks(&marks));
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
  // Read after the grace: sets that were committed during it are seen.
  InUse use;
  RETURN_IF_ERROR(ReadInUse(&use));
  const std::set<SetName> dropped = ChooseDropped(due, use);
  std::set<std::string> kept;
  for (const auto& [name, keys] : use.keys) {
    if (dropped.count(name) == 0 || use.used_by_pushes.count(name.id) != 0) {
      kept.insert(keys.begin(), keys.end());
    }
  }
  std::set<std::string> segments;
  ArchiveLog log;
  RETURN_IF_ERROR(ListLog(archive_, &log));
  RETURN_IF_ERROR(FindSegments(
      use, [&dropped](const SetName& set) { return dropped.count(set) == 0; },
      log, &segments));
  RETURN_IF_ERROR(Drop(dropped));
  for (const FoundMark& found : due) {
    RETURN_IF_ERROR(SweepMark(found, use, dropped, kept, segments));
  }
  return Status::OK();
}

// Returns the time from which on the log is kept.
Status Pruner::KeepFrom(uint64_t* micros) const {
  uint64_t now = 0;
  RETURN_IF_ERROR(archive_.Now(&now));
  *micros = 1'000'000 * (now - std::min(now, *options_.keep_log_seconds));
  return Status::OK();
}

// Keeps the newest set before the log that is kept, and those with which a log
// begins behind it: further ones save time, and no more.
void Pruner::KeepForLog(const InUse& use, const std::vector<SetName>& whole,
                        uint64_t keep_from, std::set<SetName>* kept) {
  const SetName* base = nullptr;
  uint64_t newest = 0;
  for (const SetName& name : whole) {
    const SetLog& log = use.logs.at(name);
    if (log.segment == 0) {
      continue;
    }
    if (log.moment_micros > keep_from) {
      if (log.lineage == name.id) {
        kept->insert(name);
      }
    } else if (log.moment_micros >= newest) {
      base = &name;
      newest = log.moment_micros;
    }
  }
  if (base != nullptr) {
    kept->insert(*base);
  }
}

Status Pruner::FindSegments(
    const InUse& use, const std::function<bool(const SetName&)>& stays,
    const ArchiveLog& log, std::set<std::string>* needed) const {
  std::vector<SetLog> cuts;
  for (const auto& [name, set_log] : use.logs) {
    if (stays(name)) {
      cuts.push_back(set_log);
    }
  }
  std::optional<uint64_t> keep_from;
  if (options_.keep_log_seconds.has_value()) {
    RETURN_IF_ERROR(KeepFrom(&keep_from.emplace()));
  }
  *needed = ChooseSegments(
      log, std::move(cuts),
      [&use](const SetId& id) { return use.IsPushed(id); }, keep_from);
  return Status::OK();
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

Status Pruner::Mark() {
  // Files first: whose push is not seen to run has its set among those that are
  // read afterwards, or is dead.
  ListedKeys files;
  RETURN_IF_ERROR(archive_.ListKeys(kArchiveFilesPrefix, &files));
  RETURN_IF_ERROR(archive_.ListKeys(kArchivePartsPrefix, &files));
  ArchiveLog log;
  RETURN_IF_ERROR(ListLog(archive_, &log));
  InUse use;
  RETURN_IF_ERROR(ReadInUse(&use));
  Marked marked;
  RETURN_IF_ERROR(archive_.ReadMarked(&marked));

  std::vector<SetName> whole;
  for (const FoundSet& set : use.sets) {
    if (set.is_done && marked.sets.count(set.name) == 0) {
      whole.push_back(set.name);
    }
  }
  std::set<SetName> kept = ChooseKept(whole, options_.retention);
  if (options_.keep_log_seconds.has_value()) {
    uint64_t keep_from = 0;
    RETURN_IF_ERROR(KeepFrom(&keep_from));
    KeepForLog(use, whole, keep_from, &kept);
  }
  summary_->kept_sets = kept.size();
  std::vector<MarkedSet> drop;
  std::set<std::string> named;
  for (const FoundSet& set : use.sets) {
    const bool stays = set.is_done ? kept.count(set.name) != 0
                                   : use.pushing.count(set.name.id) != 0;
    const bool is_marked = marked.sets.count(set.name) != 0;
    if (stays || use.used_by_pushes.count(set.name.id) != 0) {
      const std::vector<std::string>& keys = use.keys[set.name];
      named.insert(keys.begin(), keys.end());
    }
    if (!stays && !is_marked) {
      drop.push_back({set.name, set.is_done});
    }
  }
  std::vector<ArchiveKey> keys;
  for (const auto& [text, bytes] : files) {
    ArchiveKey key;
    if (ParseArchiveKey(text, &key) && named.count(text) == 0 &&
        marked.keys.count(text) == 0 && !use.IsPushed(key.set)) {
      keys.push_back(key);
      summary_->marked_bytes += bytes;
    }
  }
  std::set<std::string> needed;
  RETURN_IF_ERROR(FindSegments(
      use,
      [&](const SetName& set) {
        return kept.count(set) != 0 || use.used_by_pushes.count(set.id) != 0;
      },
      log, &needed));
  std::vector<LogKey> segments;
  for (const auto& [id, lineage] : log.lineages) {
    for (const auto& [number, key] : lineage.segments) {
      const std::string text = LogKeyText(key);
      if (needed.count(text) == 0 && marked.keys.count(text) == 0) {
        segments.push_back(key);
      }
    }
  }
  return PutMarks(drop, keys, segments);
}

// Intents and uploads of pushes that died.
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
  std::vector<UploadInfo> uploads;
  RETURN_IF_ERROR(store_->ListUploads("", &uploads).status);
  for (const UploadInfo& upload : uploads) {
    ArchiveKey key;
    const auto begun = static_cast<uint64_t>(std::max<UnixSeconds>(
        upload.begun, 0));
    if (ParseArchiveKey(upload.key, &key) && !use.IsPushed(key.set) &&
        IsOlderThanGrace(begun, now)) {
      RETURN_IF_ERROR(
          store_->AbortUpload(upload.key, upload.upload_id).status);
      ++summary_->aborted_uploads;
    }
  }
  return Status::OK();
}

Status Pruner::Run() {
  ArchiveHead head;
  RETURN_IF_ERROR(archive_.ReadHead(&head));
  grace_ = std::max(head.grace_seconds, options_.grace_seconds.value_or(0));
  RETURN_IF_ERROR(Sweep());
  RETURN_IF_ERROR(Mark());
  return RemoveLeftovers();
}

}  // namespace

Status PruneArchive(const Archive& archive, const PruneOptions& options,
                    PruneSummary* summary) {
  *summary = PruneSummary();
  return Pruner(archive, options, summary).Run();
}

}  // namespace sstferry
