#include "pipeline/archive/log_retention.h"

#include <algorithm>
#include <map>

namespace sstferry {

namespace {

// Returns the segments that may have records since a time. A segment without
// times may have them, unless a later segment of its lineage ended before that
// time.
std::set<LogKey> SegmentsSince(const ArchiveLog& log, uint64_t micros) {
  std::set<LogKey> since;
  for (const auto& [id, lineage] : log.lineages) {
    for (auto segment = lineage.segments.rbegin();
         segment != lineage.segments.rend(); ++segment) {
      const uint64_t end = segment->second.end_micros;
      if (end != 0 && end <= micros) {
        break;
      }
      since.insert(segment->second);
    }
  }
  return since;
}

}  // namespace

std::set<SetName> ChooseLogSets(const ArchiveLog& log,
                                std::vector<LoggedSet> sets,
                                uint64_t keep_from_micros) {
  std::erase_if(sets, [](const LoggedSet& set) { return set.log.segment == 0; });
  std::stable_sort(sets.begin(), sets.end(),
                   [](const LoggedSet& a, const LoggedSet& b) {
                     return a.log.moment_micros < b.log.moment_micros;
                   });
  const auto later = std::partition_point(
      sets.begin(), sets.end(), [&](const LoggedSet& set) {
        return set.log.moment_micros <= keep_from_micros;
      });
  std::reverse(sets.begin(), later);
  std::set<LogKey> unreached = SegmentsSince(log, keep_from_micros);
  std::set<SetName> needed;
  const LogPaths paths(log);
  for (auto set = sets.begin(); set != sets.end(); ++set) {
    // Keeps the newest set before the kept log. Keeps each later set whose log
    // has no segment yet. A follower may still put segments after these sets.
    bool is_needed = set < later ? set == sets.begin()
                                 : log.lineages.count(set->log.lineage) == 0;
    paths.Of(set->log, [&](const LogRuns& path) {
      for (const LogRun& run : path.runs) {
        const auto begin = unreached.lower_bound({run.lineage, run.begin});
        const auto end = unreached.lower_bound({run.lineage, run.end});
        is_needed |= begin != end;
        unreached.erase(begin, end);
      }
      return true;
    });
    if (is_needed) {
      needed.insert(set->name);
    }
  }
  return needed;
}

std::set<std::string> ChooseSegments(
    const ArchiveLog& log, const std::vector<SetLog>& cuts,
    const std::function<bool(const SetId&)>& is_written) {
  // Maps a lineage to the number of its first segment to keep.
  std::map<SetId, uint64_t> first;
  for (const SetLog& cut : cuts) {
    if (cut.segment == 0) {
      continue;
    }
    const auto [found, is_new] = first.emplace(cut.lineage, cut.segment);
    found->second = std::min(found->second, cut.segment);
  }
  for (const auto& [id, lineage] : log.lineages) {
    if (!lineage.problem.empty() || is_written(id)) {
      first[id] = 0;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [id, lineage] : log.lineages) {
      const auto parent = first.find(lineage.parent);
      if (lineage.parent_number != 0 && parent != first.end() &&
          lineage.parent_number + 1 >= parent->second &&
          (first.count(id) == 0 || first[id] > lineage.parent_number + 1)) {
        first[id] = lineage.parent_number + 1;
        changed = true;
      }
    }
  }
  std::set<std::string> needed;
  for (const auto& [id, lineage] : log.lineages) {
    const auto found = first.find(id);
    if (found == first.end()) {
      continue;
    }
    for (auto segment = lineage.segments.lower_bound(found->second);
         segment != lineage.segments.end(); ++segment) {
      needed.insert(LogKeyText(segment->second));
    }
  }
  return needed;
}

}  // namespace sstferry
