// Which units of a clone at one source are units of a clone at another one.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/message/messages_clone.h"
#include "rocksdb/status.h"

namespace sstferry {

// Units are the same if they are the same part of files with the same identity,
// kind and size. An identity says which file it is, not what the disk holds.
// Threads: constant after Make().
class UnitMap {
 public:
  // kCorrupt: a list of files is malformed.
  [[nodiscard]] static rocksdb::Status Make(const ClonePlan& ours,
                                            const ClonePlan& theirs,
                                            UnitMap* map);

  // By range id. False: only one of the sources has that unit.
  [[nodiscard]] bool FindTheirs(uint32_t ours, uint32_t* theirs) const {
    return Find(theirs_, ours, theirs);
  }
  [[nodiscard]] bool FindOurs(uint32_t theirs, uint32_t* ours) const {
    return Find(ours_, theirs, ours);
  }
  // Our ids of the units that both have, in order.
  const std::vector<uint32_t>& common() const { return common_; }

 private:
  using Ids = std::unordered_map<uint32_t, uint32_t>;
  [[nodiscard]] static bool Find(const Ids& ids, uint32_t id, uint32_t* found) {
    const auto at = ids.find(id);
    if (at != ids.end()) *found = at->second;
    return at != ids.end();
  }

  Ids theirs_;  // by ours
  Ids ours_;    // by theirs
  std::vector<uint32_t> common_;
};

}  // namespace sstferry
