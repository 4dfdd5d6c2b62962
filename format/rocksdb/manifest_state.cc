#include "format/rocksdb/manifest_state.h"

#include <algorithm>

namespace sstferry {

uint64_t OldestNeededWal(const ManifestState& state, bool allow_2pc,
                         const std::set<std::string>* opened) {
  uint64_t unflushed = UINT64_MAX;
  for (const auto& [id, family] : state.families) {
    if (opened == nullptr || opened->contains(family.name)) {
      unflushed = std::min(unflushed, family.log_number);
    }
  }
  return allow_2pc ? state.min_log_number_to_keep
                   : std::max(state.min_log_number_to_keep, unflushed);
}

uint64_t OldestToHold(const ManifestState& state) {
  return state.wals.empty() ? state.min_log_number_to_keep
                            : std::min(state.min_log_number_to_keep,
                                       state.wals.begin()->first);
}

}  // namespace sstferry
