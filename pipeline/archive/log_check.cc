#include "pipeline/archive/log_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "format/end_state.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/log_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

bool IsDamage(const Status& status) {
  const EndState state = EndStateOf(status);
  return state == EndState::kCorrupt || state == EndState::kRefused;
}

// Reads the record of a set. Leaves *set unset if a prune has removed the set.
Status ReadSetOf(const Archive& archive, const SetName& name,
                 std::optional<ArchiveSet>* set) {
  std::vector<FoundSet> sets;
  RETURN_IF_ERROR(archive.ListSets(&sets));
  for (const FoundSet& found : sets) {
    if (found.name == name) {
      return archive.ReadSet(found, set);
    }
  }
  return Status::OK();
}

Status CheckPayload(const Archive& archive, const LogKey& key,
                    uint64_t* bytes) {
  LogHead head;
  Sha256Digest digest;
  uint64_t head_bytes = 0;
  RETURN_IF_ERROR(ReadLogHead(archive, key, &head, &digest, &head_bytes));
  RETURN_IF_ERROR(ReadLogPayload(archive, head, head_bytes, 0,
                                 head.payload_bytes(),
                                 [](const Slice&) { return Status::OK(); })
                      .status);
  *bytes += head.stored_bytes();
  return Status::OK();
}

// Checks the chain of a path's segments. If reads() is true for all segments,
// also checks their records, and adds these segments and their sizes to
// *proved.
Status CheckPath(const Archive& archive, const ArchiveSet& set,
                 const LogPath& path,
                 const std::function<bool(const std::string&)>& reads,
                 const std::function<bool()>& cancelled,
                 std::map<LogKey, uint64_t>* proved) {
  LogPoint end;
  end.micros = kMaxLogMicros;
  std::unique_ptr<LogTail> tail;
  RETURN_IF_ERROR(LogTail::Read(archive, set, path, end, cancelled, &tail));
  // The records can be checked only if all payloads are read and decrypted.
  const bool is_read = (!set.is_sealed || archive.key() != nullptr) &&
                       std::all_of(path.segments.begin(), path.segments.end(),
                                   [&reads](const LogKey& key) {
                                     return reads(LogKeyText(key));
                                   });
  if (!is_read) {
    return Status::OK();
  }
  RETURN_IF_ERROR(tail->CheckRecords(0, cancelled));
  proved->merge(tail->SegmentsRead());
  return Status::OK();
}

}  // namespace

Status CheckLog(const Archive& archive,
                const std::function<bool(const std::string&)>& reads,
                const std::function<bool()>& cancelled,
                LogCheckSummary* summary) {
  *summary = LogCheckSummary();
  // Reads the marks before it lists the segments. So the marks name every
  // segment that a prune deletes after the listing.
  Marked marked;
  RETURN_IF_ERROR(archive.ReadMarked(&marked));
  ArchiveLog log;
  RETURN_IF_ERROR(ReadLog(archive, &log));
  summary->bytes = log.bytes;
  summary->foreign = log.foreign;
  summary->windows = log.Windows();
  std::set<std::string> problems;
  std::set<LogKey> used;
  std::map<LogKey, uint64_t> proved;  // checked segment -> its size
  // Checks only the paths after the earliest set of each lineage, because they
  // contain the paths after the later sets. A prune may have removed the first
  // segments of a lineage, up to the segment where the log of a later set
  // begins. Then checks the paths after that set instead.
  std::map<SetId, LoggedSet> first;
  for (const LoggedSet& set : log.sets) {
    const auto [found, is_new] = first.emplace(set.log.lineage, set);
    const uint64_t left = log.FirstSegment(set.log.lineage);
    const uint64_t best = found->second.log.segment;
    if (!is_new && (set.log.segment < best ? best > left
                                           : set.log.segment <= left)) {
      found->second = set;
    }
  }
  for (const auto& [id, logged] : first) {
    std::optional<ArchiveSet> set;
    const Status read = ReadSetOf(archive, logged.name, &set);
    if (!read.ok() && !IsDamage(read)) {
      return read;
    }
    Status checked;
    log.PathsOf(logged.log, [&](const LogPath& path) {
      used.insert(path.segments.begin(), path.segments.end());
      if (path.why.ends_with("is missing")) {
        problems.insert(archive.store()->place() + ": " + path.why);
      }
      // If the record cannot be read, the check of the sets reports it.
      if (read.ok() && set.has_value()) {
        checked = CheckPath(archive, *set, path, reads, cancelled, &proved);
      }
      if (IsDamage(checked)) {
        problems.insert(MessageOf(checked));
        checked = Status::OK();
      }
      return checked.ok();
    });
    RETURN_IF_ERROR(checked);
  }
  for (const auto& [id, lineage] : log.lineages) {
    // If the first remaining segment is marked, a prune is removing the
    // segments of the lineage. If the log of a kept set begins with it, a prune
    // has removed an older part of the log. In both cases the missing segments
    // are no damage.
    const LogKey& begin = lineage.segments.begin()->second;
    const bool is_pruned =
        marked.keys.count(LogKeyText(begin)) != 0 ||
        std::any_of(log.sets.begin(), log.sets.end(),
                    [&begin](const LoggedSet& set) {
                      return set.log.lineage == begin.lineage &&
                             set.log.segment == begin.number;
                    });
    if (lineage.is_damaged && !is_pruned) {
      problems.insert(lineage.problem);
    }
    // No set is sealed with the archive's key, and neither is this log. It is
    // not damaged.
    const bool is_foreign = !log.has_own_set && !lineage.problem.empty() &&
                            !lineage.is_damaged;
    for (const auto& [number, key] : lineage.segments) {
      ++summary->segments;
      summary->orphans += used.count(key) == 0 ? 1 : 0;
      if (is_foreign || !reads(LogKeyText(key))) {
        continue;
      }
      if (cancelled && cancelled()) {
        return MakeStatus(EndState::kCancelled, "check: stopped on request");
      }
      ++summary->read_segments;
      if (const auto read = proved.find(key); read != proved.end()) {
        summary->read_bytes += read->second;
        continue;
      }
      const Status status = CheckPayload(archive, key, &summary->read_bytes);
      if (IsDamage(status)) {
        problems.insert(MessageOf(status));
      } else {
        RETURN_IF_ERROR(status);
      }
    }
  }
  for (const LogWindow& window : summary->windows) {
    summary->newest_micros =
        std::max(summary->newest_micros, window.end_micros);
  }
  summary->problems.assign(problems.begin(), problems.end());
  summary->problems.resize(std::min(summary->problems.size(), kMaxProblems));
  return Status::OK();
}

}  // namespace sstferry
