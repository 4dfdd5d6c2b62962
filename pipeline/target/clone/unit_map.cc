#include "pipeline/target/clone/unit_map.h"

#include <string>

#include "format/coding.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Empty: the file has no identity.
std::string KeyOf(const ClonePlan& clone, const CloneUnit& unit) {
  const CloneFile& file = clone.files[unit.file];
  if (file.identity == Digest128()) {
    return "";
  }
  std::string key(1, static_cast<char>(file.kind));
  for (const uint64_t part : {file.identity.low, file.identity.high,
                              file.bytes, unit.offset, unit.bytes}) {
    PutFixed64(&key, part);
  }
  return key;
}

Status Cut(const ClonePlan& clone, std::vector<CloneUnit>* units) {
  const Status status = CheckCloneFiles(clone.files);
  return status.ok() ? CutIntoUnits(clone.files, clone.set.unit_bytes, units)
                     : status;
}

}  // namespace

Status UnitMap::Make(const ClonePlan& ours, const ClonePlan& theirs,
                     UnitMap* map) {
  *map = UnitMap();
  std::vector<CloneUnit> our_units;
  std::vector<CloneUnit> their_units;
  Status status = Cut(ours, &our_units);
  if (status.ok()) status = Cut(theirs, &their_units);
  std::unordered_map<std::string, uint32_t> by_key;
  for (uint32_t id = 0; status.ok() && id < their_units.size(); ++id) {
    by_key.emplace(KeyOf(theirs, their_units[id]), id);
  }
  for (uint32_t id = 0; status.ok() && id < our_units.size(); ++id) {
    const std::string key = KeyOf(ours, our_units[id]);
    const auto found = by_key.find(key);
    if (!key.empty() && found != by_key.end() &&
        map->ours_.emplace(found->second, id).second) {
      map->theirs_.emplace(id, found->second);
      map->common_.push_back(id);
    }
  }
  return status;
}

}  // namespace sstferry
