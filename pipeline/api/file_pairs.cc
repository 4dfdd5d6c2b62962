#include "pipeline/api/file_pairs.h"

#include <map>
#include <tuple>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Position of a unit: kind and number of its file, then offset and size.
using UnitPlace = std::tuple<CloneFileKind, uint64_t, uint64_t, uint64_t>;

UnitPlace PlaceOf(const FileSet& side, const Part& unit) {
  const CloneFile& file = side.files[unit.file];
  return {file.kind, file.number, unit.offset, unit.bytes};
}

Status Differ(const std::string& what) {
  return MakeStatus(EndState::kRefused, what);
}

}  // namespace

Status PairFiles(const FileSet& left, const FileSet& right,
                 std::vector<FilePair>* pairs) {
  pairs->clear();
  if (left.content == Digest128() || right.content == Digest128()) {
    return Differ(std::string(left.content == Digest128() ? "the left"
                                                          : "the right") +
                  " side has files without an identity, by which they would be "
                  "paired");
  }
  if (!(left.content == right.content)) {
    return Differ("the two sides have different files or WAL records");
  }
  std::vector<Part> units;
  std::vector<Part> right_units;
  RETURN_IF_ERROR(CutIntoUnits(left.files, left.unit_bytes, &units));
  RETURN_IF_ERROR(CutIntoUnits(right.files, right.unit_bytes, &right_units));
  std::map<UnitPlace, uint32_t> theirs;
  for (uint32_t id = 0; id < right_units.size(); ++id) {
    if (IsDataFile(right.files[right_units[id].file])) {
      theirs[PlaceOf(right, right_units[id])] = id;
    }
  }
  for (uint32_t id = 0; id < units.size(); ++id) {
    const CloneFile& file = left.files[units[id].file];
    if (!IsDataFile(file)) {
      continue;
    }
    const auto found = theirs.find(PlaceOf(left, units[id]));
    if (found == theirs.end() ||
        !(right.files[right_units[found->second].file].identity ==
          file.identity)) {
      return Differ("only the left side has " + CloneFileName(file));
    }
    pairs->push_back({file, units[id].bytes, id, found->second});
    theirs.erase(found);
  }
  return theirs.empty() ? Status::OK()
                        : Differ("the right side has files that the left does "
                                 "not have");
}

}  // namespace sstferry
