#include "pipeline/archive/log_index.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "format/end_state.h"
#include "format/sealed_file.h"
#include "pipeline/archive/seal.h"
#include "pipeline/base/sha256.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Number of bytes of a head that are read first. Most heads are smaller.
constexpr uint64_t kFirstHeadBytes = 64u << 10;
constexpr char kOutage[] = "outage";
constexpr uint64_t kSecondMicros = 1'000'000;

StoreResult GetStart(ObjectStore* store, const std::string& key,
                     uint64_t bytes, std::string* start) {
  GetRequest request;
  request.key = key;
  request.bytes = bytes;
  start->clear();
  return store->Get(request, [start](const Slice& piece) {
    start->append(piece.data(), piece.size());
    return Status::OK();
  });
}

Status TryHead(const Archive& archive, const std::string& name,
               const LogKey& key, LogHead* head, std::string* bytes) {
  ObjectStore* const store = archive.store();
  ObjectInfo info;
  RETURN_IF_ERROR(store->Head(name, &info).status);
  RETURN_IF_ERROR(
      GetStart(store, name, std::min(info.bytes, kFirstHeadBytes), bytes)
          .status);
  const uint64_t head_bytes = LogHeadBytes(*bytes);
  if (head_bytes > info.bytes) {
    return MakeStatus(EndState::kCorrupt,
                      "expected a head of " + std::to_string(head_bytes) +
                          " bytes, found an object of " +
                          std::to_string(info.bytes));
  }
  if (head_bytes > bytes->size()) {
    RETURN_IF_ERROR(GetStart(store, name, head_bytes, bytes).status);
  }
  bytes->resize(std::min<size_t>(bytes->size(), head_bytes));
  RETURN_IF_ERROR(DecodeLogHead(*bytes, key, head));
  if (archive.key() != nullptr) {
    RETURN_IF_ERROR(archive.key()->Check(*head));
  }
  return info.bytes - head_bytes == head->stored_bytes()
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "expected a payload of " +
                              std::to_string(head->stored_bytes()) +
                              " bytes, found " +
                              std::to_string(info.bytes - head_bytes));
}

std::string WhyEnded(const ArchiveLog::Lineage& lineage) {
  return lineage.ended == CutReason::kNone
             ? ""
             : std::string(CutReasonName(lineage.ended)) +
                   (lineage.note.empty() ? "" : ": ") + lineage.note;
}

// Identifies the cut with which a log began. All lineages of one log have the
// same LogCut.
using LogCut = std::tuple<std::string, uint64_t, uint64_t, uint64_t, uint64_t>;

LogCut CutOf(const LogHead& head) {
  return {head.database_id, head.begin.manifest_number,
          head.begin.manifest_bytes, head.begin.manifest.low,
          head.begin.manifest.high};
}

// Sets the problem of each lineage whose first segments are lost. Only the head
// of a lineage's first segment shows which lineage it continues. If this
// segment is lost, no path leads to the lineage. A prune also removes first
// segments, but together with everything that they continue, which is no
// problem.
//
// `cuts` maps each lineage with a readable head to its cut. `headless` has the
// lineages whose first remaining segment continues a segment of the same
// lineage.
void FindLostBegins(const Archive& archive,
                    const std::map<SetId, LogCut>& cuts,
                    const std::set<SetId>& headless, ArchiveLog* log) {
  // Maps a cut to the lowest segment number of its lineages that have not
  // ended.
  std::map<LogCut, uint64_t> begins;
  for (const auto& [id, cut] : cuts) {
    const uint64_t number = log->FirstSegment(id);
    if (log->lineages.at(id).ended == CutReason::kNone) {
      const auto [begin, is_new] = begins.emplace(cut, number);
      begin->second = std::min(begin->second, number);
    }
  }
  for (const SetId& id : headless) {
    ArchiveLog::Lineage& lineage = log->lineages.at(id);
    const uint64_t number = log->FirstSegment(id);
    const auto cut = cuts.find(id);
    const auto begin = cut == cuts.end() ? begins.end()
                                         : begins.find(cut->second);
    if (begin != begins.end() && begin->second + 1 < number) {
      lineage.problem = archive.store()->place() + ": segment " +
                        std::to_string(number - 1) + " of wal/" + ToHex(id) +
                        " is missing";
      lineage.is_damaged = true;
    }
  }
}

// Stores in *path why no segment follows. The path ends with the segments
// [begin, end) of the lineage `id`.
void SetEnd(const ArchiveLog& log, const SetId& id, uint64_t begin,
            uint64_t end, LogRuns* path) {
  path->ended = CutReason::kNone;
  path->why.clear();
  const auto found = log.lineages.find(id);
  const uint64_t left = log.FirstSegment(id);
  // A prune with --keep-log removes the older segments of a lineage, up to the
  // segment with which the log of a kept set begins.
  const bool is_pruned =
      path->runs.empty() && begin < left &&
      std::any_of(log.sets.begin(), log.sets.end(), [&](const LoggedSet& set) {
        return set.log.lineage == id && set.log.segment == left;
      });
  if (is_pruned) {
    path->why = "a prune removed the log after it";
  } else if (found != log.lineages.end() &&
             found->second.segments.rbegin()->first >= end) {
    path->why = "segment " + std::to_string(end) + " of wal/" + ToHex(id) +
                " is missing";
  } else if (found != log.lineages.end()) {
    path->ended = found->second.ended;
    path->why = WhyEnded(found->second);
  }
}

}  // namespace

Status ReadLogHead(const Archive& archive, const LogKey& key, LogHead* head,
                   Sha256Digest* digest, uint64_t* bytes) {
  const std::string name = LogKeyText(key);
  const Status status = RetryIfCorrupt([&] {
    std::string found;
    const Status tried = TryHead(archive, name, key, head, &found);
    archive.CountRead(found.size());
    if (tried.ok()) {
      *digest = Sha256Of(found);
      *bytes = found.size();
    }
    return tried;
  });
  return WithContext(status, EndStateOf(status),
                     archive.store()->Describe(name));
}

// Reads an unsealed payload completely, because its digest covers the whole
// payload. Reads only the requested chunks of a sealed payload, because each
// chunk is authenticated separately.
StoreResult ReadLogPayload(const Archive& archive, const LogHead& head,
                           uint64_t head_bytes, uint64_t offset,
                           uint64_t bytes, const ObjectSink& sink) {
  GetRequest request;
  request.key = LogKeyText(head.key);
  if (archive.key() != nullptr) {
    return GetSealed(
        archive.store(), *archive.key(),
        {request.key, head.salt, head.payload_bytes(), head_bytes}, offset,
        bytes, [&](const Slice& piece) {
          archive.CountRead(piece.size());
          return sink(piece);
        });
  }
  request.offset = head_bytes;
  request.bytes = head.stored_bytes();
  const uint64_t end = offset + bytes;
  Digest128Stream digest;
  uint64_t at = 0;
  const StoreResult got = archive.store()->Get(request, [&](const Slice& piece) {
    archive.CountRead(piece.size());
    digest.Add(piece);
    const uint64_t from = std::max(offset, at);
    const uint64_t to = std::min(end, at + piece.size());
    const uint64_t skipped = from - std::min(from, at);
    at += piece.size();
    return from < to ? sink(Slice(piece.data() + skipped, to - from))
                     : Status::OK();
  });
  return !got.ok() || digest.Finish() == head.payload
             ? got
             : StoreError(StoreCode::kDamaged,
                          archive.store()->Describe(request.key) +
                              ": its bytes differ from those that were put");
}

Status ListLog(const Archive& archive, ArchiveLog* log) {
  *log = ArchiveLog();
  std::vector<ObjectInfo> objects;
  RETURN_IF_ERROR(ListAll(archive.store(), kArchiveLogPrefix,
                          kMaxArchiveObjects, &objects, &log->foreign)
                      .status);
  for (const ObjectInfo& object : objects) {
    LogKey key;
    if (!ParseLogKey(object.key, &key)) {
      ++log->foreign;
      continue;
    }
    log->bytes += object.bytes;
    log->lineages[key.lineage].segments.emplace(key.number, key);
  }
  std::map<SetId, LogCut> cuts;
  std::set<SetId> headless;
  for (auto& [id, lineage] : log->lineages) {
    const LogKey first = lineage.segments.begin()->second;
    const LogKey last = lineage.segments.rbegin()->second;
    for (const LogKey& key : {first, last}) {
      LogHead head;
      Sha256Digest digest;
      uint64_t bytes = 0;
      const Status status = ReadLogHead(archive, key, &head, &digest, &bytes);
      const EndState state = EndStateOf(status);
      if (state == EndState::kCorrupt || state == EndState::kRefused) {
        lineage.problem = MessageOf(status);
        bool is_damaged = archive.key() == nullptr;
        if (!is_damaged) {
          const Status unchecked = ReadLogHead(Archive(archive.store()), key,
                                               &head, &digest, &bytes);
          is_damaged = EndStateOf(unchecked) == EndState::kCorrupt ||
                       EndStateOf(unchecked) == EndState::kRefused;
          if (!is_damaged) {
            RETURN_IF_ERROR(unchecked);
          }
        }
        lineage.is_damaged |= is_damaged;
        continue;
      }
      RETURN_IF_ERROR(status);
      if (key == first && head.previous_lineage == id) {
        headless.insert(id);
      }
      if (key == first && head.previous_lineage != SetId() &&
          head.previous_lineage != id) {
        lineage.parent = head.previous_lineage;
        lineage.parent_number = key.number - 1;
      }
      if (key == last) {
        lineage.ended = head.ended;
        lineage.note = head.note;
        cuts.emplace(id, CutOf(head));
      }
    }
  }
  FindLostBegins(archive, cuts, headless, log);
  return Status::OK();
}

Status ReadLog(const Archive& archive, ArchiveLog* log,
               std::optional<SetName> named) {
  // Reads the sets before it lists the segments. So the listing contains every
  // segment that was put before one of these sets was committed.
  std::vector<LoggedSet> sets;
  bool has_own_set = false;
  RepairedSets repaired;
  std::vector<FoundSet> found;
  RETURN_IF_ERROR(archive.ListSets(&found));
  for (const FoundSet& each : found) {
    std::optional<ArchiveSet> set;
    if (!each.is_done) {
      continue;
    }
    const Status status = archive.ReadSet(each, &set);
    if (!status.ok() && !Archive::IsForeign(status, set) &&
        EndStateOf(status) != EndState::kCorrupt) {
      return status;
    }
    has_own_set |= status.ok() && set.has_value();
    if (status.ok() && set.has_value() && set->log.segment != 0) {
      sets.push_back({set->name, set->sequence, set->log});
      repaired.Add(set->name, set->repairs);
    }
  }
  std::erase_if(sets, [&](const LoggedSet& set) {
    return repaired.IsReplaced(set.name) && named != set.name;
  });
  RETURN_IF_ERROR(ListLog(archive, log));
  log->sets = std::move(sets);
  log->has_own_set = has_own_set;
  std::stable_sort(log->sets.begin(), log->sets.end(),
                   [](const LoggedSet& a, const LoggedSet& b) {
                     return a.log.moment_micros < b.log.moment_micros;
                   });
  return Status::OK();
}

uint64_t ArchiveLog::FirstSegment(const SetId& lineage) const {
  const auto found = lineages.find(lineage);
  return found == lineages.end() ? 0 : found->second.segments.begin()->first;
}

std::map<SetId, SetId> ArchiveLog::Roots() const {
  std::map<SetId, SetId> roots;
  for (const LoggedSet& set : sets) {
    if (!lineages.contains(set.log.lineage)) {
      roots.emplace(set.log.lineage, set.log.lineage);
    }
  }
  for (const auto& [id, unused] : lineages) {
    SetId at = id;
    std::vector<SetId> passed;
    // Stops at a lineage that was already visited. So this loop also ends if
    // damaged lineages continue each other in a circle.
    while (roots.emplace(at, at).second) {
      passed.push_back(at);
      const auto found = lineages.find(at);
      if (found == lineages.end() || found->second.parent_number == 0) {
        break;
      }
      at = found->second.parent;
    }
    const SetId root = roots.at(at);
    for (const SetId& lineage : passed) {
      roots[lineage] = root;
    }
  }
  return roots;
}

LogPaths::LogPaths(const ArchiveLog& log) : log_(log) {
  for (const auto& [id, lineage] : log.lineages) {
    if (lineage.parent_number != 0) {
      continuing_[lineage.parent].push_back(id);
    }
    std::map<uint64_t, uint64_t>& ends = ends_[id];
    for (const auto& [number, key] : lineage.segments) {
      if (ends.empty() || ends.rbegin()->second != number) {
        ends.emplace_hint(ends.end(), number, number);
      }
      ends.rbegin()->second = number + 1;
    }
  }
}

uint64_t LogPaths::EndOfRun(const SetId& lineage, uint64_t begin) const {
  const auto found = ends_.find(lineage);
  if (found == ends_.end()) {
    return begin;
  }
  const auto after = found->second.upper_bound(begin);
  return after == found->second.begin()
             ? begin
             : std::max(begin, std::prev(after)->second);
}

LogPath LogPaths::Expand(const LogRuns& path) const {
  LogPath expanded;
  for (const LogRun& run : path.runs) {
    const auto& segments = log_.lineages.at(run.lineage).segments;
    for (auto segment = segments.find(run.begin);
         segment != segments.end() && segment->first < run.end; ++segment) {
      expanded.segments.push_back(segment->second);
    }
  }
  expanded.ended = path.ended;
  expanded.why = path.why;
  return expanded;
}

const LogKey& LogPaths::LastOf(const LogRuns& path) const {
  const LogRun& run = path.runs.back();
  return log_.lineages.at(run.lineage).segments.at(run.end - 1);
}

void LogPaths::Of(const SetLog& after,
                  const std::function<bool(const LogRuns&)>& take) const {
  // A lineage of the current path.
  struct Step {
    SetId id{};
    uint64_t begin = 0;  // first segment of the lineage on the path
    // Number of the last segment without a gap + 1.
    uint64_t end = 0;
    // Number of runs that precede the lineage on the path.
    size_t before = 0;
    // Lineages that continue this lineage and were not entered yet, the most
    // recent last.
    std::vector<SetId> next;
    bool is_continued = false;  // a lineage continues segment end - 1
  };
  // Enters no lineage twice. A lineage continues only one other lineage, so
  // only damage leads to it again.
  std::set<SetId> seen = {after.lineage};
  std::vector<Step> steps;
  LogRuns path;
  const auto end_of = [this](const SetId& id) {
    return log_.lineages.at(id).segments.rbegin()->second.end_micros;
  };
  const auto enter = [&](const SetId& id, uint64_t number) {
    Step step;
    step.id = id;
    step.begin = number;
    step.end = EndOfRun(id, number);
    step.before = path.runs.size();
    const auto continuing = continuing_.find(id);
    if (continuing != continuing_.end()) {
      for (const SetId& next : continuing->second) {
        const uint64_t last = log_.lineages.at(next).parent_number;
        if (last + 1 >= number && last < step.end && seen.insert(next).second) {
          step.next.push_back(next);
          step.is_continued |= last + 1 == step.end;
        }
      }
    }
    std::sort(step.next.begin(), step.next.end(),
              [&end_of](const SetId& a, const SetId& b) {
                return std::pair(end_of(a), a) < std::pair(end_of(b), b);
              });
    steps.push_back(std::move(step));
  };
  // Cuts the path, so that it ends with the last step's segments before `end`.
  const auto go_to = [&](uint64_t end) {
    const Step& step = steps.back();
    path.runs.resize(step.before);
    if (step.begin < end) {
      path.runs.push_back({step.id, step.begin, end});
    }
  };
  enter(after.lineage, after.segment);
  while (!steps.empty()) {
    Step& step = steps.back();
    if (!step.next.empty()) {
      const SetId next = step.next.back();
      step.next.pop_back();
      const uint64_t number = log_.lineages.at(next).parent_number + 1;
      go_to(number);
      enter(next, number);
      continue;
    }
    if (!step.is_continued) {
      go_to(step.end);
      SetEnd(log_, step.id, step.begin, step.end, &path);
      if (!take(path)) {
        return;
      }
    }
    steps.pop_back();
  }
}

void ArchiveLog::PathsOf(
    const SetLog& log, const std::function<bool(const LogPath&)>& take) const {
  const LogPaths paths(*this);
  paths.Of(log, [&](const LogRuns& path) { return take(paths.Expand(path)); });
}

std::vector<LogWindow> ArchiveLog::WindowsOf(const LoggedSet& set,
                                             const LogPath& path) const {
  const uint64_t moment = set.log.moment_micros;
  std::vector<LogWindow> windows;
  for (const LogKey& key : path.segments) {
    if (key.end_micros <= moment) {
      continue;  // the segment ends before the set's moment
    }
    const uint64_t begin = std::max(key.begin_micros, moment);
    if (!windows.empty() && begin <= windows.back().end_micros) {
      windows.back().end_micros =
          std::max(windows.back().end_micros, key.end_micros);
      continue;
    }
    if (!windows.empty()) {
      windows.back().why = kOutage;
    }
    windows.push_back({begin, key.end_micros, "", set.name});
  }
  // If no segment ends after the set's moment, the moment is the only window.
  // Otherwise the moment is restorable only if a segment includes it: the
  // snapshot may be much older than the moment, and the segments show when the
  // follower had all records again.
  if (windows.empty()) {
    windows.push_back({moment, moment, "", set.name});
  }
  windows.back().why = path.why;
  return windows;
}

std::vector<LogWindow> ArchiveLog::Windows(uint64_t* looks) const {
  // A run of segments that was already searched for a set with this `moment`.
  // The windows of the run, and of all paths after it, are known. A later set
  // in the run adds no window, so the log after the later set is not searched
  // again.
  struct Found {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t moment = 0;
  };
  std::map<SetId, std::vector<Found>> found;
  uint64_t looked = 0;
  // Returns true if a segment in a known run ends after the set's moment.
  const auto is_known = [&](const SetLog& log) {
    for (const Found& each : found[log.lineage]) {
      if (log.segment < each.begin || log.segment >= each.end ||
          log.moment_micros < each.moment) {
        continue;
      }
      const auto& segments = lineages.at(log.lineage).segments;
      for (auto next = segments.find(log.segment);
           next != segments.end() && next->first < each.end; ++next) {
        ++looked;
        if (next->second.end_micros > log.moment_micros) {
          return true;
        }
      }
    }
    return false;
  };
  const LogPaths paths(*this);
  // A set of windows removes duplicates, because paths have most windows in
  // common.
  const auto less = [](const LogWindow& a, const LogWindow& b) {
    return std::tie(a.begin_micros, a.set, a.end_micros, a.why) <
           std::tie(b.begin_micros, b.set, b.end_micros, b.why);
  };
  const std::map<SetId, SetId> roots = Roots();
  // Maps the first lineage of each log to the windows of the log.
  std::map<SetId, std::set<LogWindow, decltype(less)>> logs;
  for (const LoggedSet& set : sets) {
    auto& all =
        logs.try_emplace(roots.at(set.log.lineage), less).first->second;
    const uint64_t moment = set.log.moment_micros;
    if (is_known(set.log)) {
      continue;
    }
    std::vector<LogRun> own;
    paths.Of(set.log, [&](const LogRuns& path) {
      const LogPath expanded = paths.Expand(path);
      looked += expanded.segments.size();
      own.insert(own.end(), path.runs.begin(), path.runs.end());
      for (LogWindow& window : WindowsOf(set, expanded)) {
        all.insert(std::move(window));
      }
      return true;
    });
    for (const LogRun& run : own) {
      found[run.lineage].push_back({run.begin, run.end, moment});
    }
  }
  if (looks != nullptr) {
    *looks = looked;
  }
  std::vector<LogWindow> merged;
  for (const auto& [root, all] : logs) {
    const size_t others = merged.size();
    for (const LogWindow& window : all) {
      if (merged.size() == others ||
          window.begin_micros > merged.back().end_micros) {
        merged.push_back(window);
      } else if (window.end_micros >= merged.back().end_micros) {
        merged.back().end_micros = window.end_micros;
        merged.back().why = window.why;
      }
    }
  }
  std::sort(merged.begin(), merged.end(), less);
  for (LogWindow& window : merged) {
    if (window.why.empty() &&
        window.end_micros < merged.back().begin_micros) {
      window.why = kOutage;  // no follower was running
    }
  }
  return merged;
}

std::vector<LogWindow> ClearPeriods(const std::vector<LogWindow>& windows) {
  std::map<uint64_t, int> steps;  // time -> change of the number of windows
  for (const LogWindow& window : windows) {
    ++steps[window.begin_micros];
    --steps[window.end_micros + 1];
  }
  std::vector<LogWindow> clear;
  int count = 0;
  uint64_t begin_micros = 0;
  for (const auto& [micros, change] : steps) {
    if (count == 1) {
      LogWindow& period = clear.emplace_back();
      period.begin_micros = begin_micros;
      period.end_micros = micros - 1;
    }
    count += change;
    begin_micros = micros;
  }
  return clear;
}

std::string LogTimeText(uint64_t micros) {
  const std::string packed = ArchiveTimeText(micros / kSecondMicros);
  std::string part = std::to_string(micros % kSecondMicros);
  part.insert(0, 6 - part.size(), '0');
  return packed.substr(0, 4) + "-" + packed.substr(4, 2) + "-" +
         packed.substr(6, 5) + ":" + packed.substr(11, 2) + ":" +
         packed.substr(13, 2) + "." + part + "Z";
}

bool ParseLogTime(const std::string& text, uint64_t* micros) {
  constexpr char kForm[] = "0000-00-00T00:00:00";
  constexpr size_t kFormBytes = sizeof(kForm) - 1;
  std::string packed = text;
  uint64_t part = 0;
  if (text.size() > kFormBytes && text.back() == 'Z') {
    packed.clear();
    for (size_t i = 0; i < kFormBytes; ++i) {
      const bool is_separator = kForm[i] == '-' || kForm[i] == ':';
      if (is_separator && text[i] != kForm[i]) {
        return false;
      }
      if (!is_separator) {
        packed += text[i];
      }
    }
    packed += 'Z';
    const std::string rest =
        text.substr(kFormBytes, text.size() - kFormBytes - 1);
    if (!rest.empty() && (rest[0] != '.' || rest.size() < 2 ||
                          rest.size() > 7 ||
                          rest.find_first_not_of("0123456789", 1) !=
                              std::string::npos)) {
      return false;
    }
    for (size_t i = 1; i < 7; ++i) {
      part = 10 * part +
             (i < rest.size() ? static_cast<uint64_t>(rest[i] - '0') : 0);
    }
  }
  uint64_t seconds = 0;
  if (!ParseArchiveTime(packed, &seconds)) {
    return false;
  }
  *micros = seconds * kSecondMicros + part;
  return true;
}

}  // namespace sstferry
