#include "pipeline/archive/log_retention.h"

#include <algorithm>
#include <map>

namespace sstferry {

std::set<std::string> ChooseSegments(
    const ArchiveLog& log, std::vector<SetLog> cuts,
    const std::function<bool(const SetId&)>& is_written,
    std::optional<uint64_t> keep_from_micros) {
  std::erase_if(cuts, [](const SetLog& cut) { return cut.segment == 0; });
  if (keep_from_micros.has_value()) {
    uint64_t newest_before = 0;
    for (const SetLog& cut : cuts) {
      if (cut.moment_micros <= *keep_from_micros) {
        newest_before = std::max(newest_before, cut.moment_micros);
      }
    }
    std::erase_if(cuts, [newest_before](const SetLog& cut) {
      return cut.moment_micros < newest_before;
    });
  }
  // The first segment number to keep of each lineage.
  std::map<SetId, uint64_t> first;
  for (const SetLog& cut : cuts) {
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
