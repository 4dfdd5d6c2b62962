#include "format/clone_file.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "tests/support/catch.h"

namespace sstferry::clone_file_test {
namespace {

const CloneFile kManifest{CloneFileKind::kManifest, 4, 300, 290};

// File index, offset and length of each unit.
using Places = std::vector<std::array<uint64_t, 3>>;

Places PlacesOf(const std::vector<Part>& units) {
  Places places;
  for (const Part& unit : units) {
    REQUIRE(unit.id == places.size());
    REQUIRE(unit.kind == PartKind::kUnit);
    places.push_back({unit.file, unit.offset, unit.bytes});
  }
  return places;
}

TEST_CASE("Each name of a clone's file is parsed back", "[format][clone]") {
  for (uint8_t kind = 0; kind <= kMaxCloneFileKind; ++kind) {
    for (const uint64_t number : {1ull, 12ull, 1234567ull}) {
      CloneFile file;
      file.kind = static_cast<CloneFileKind>(kind);
      file.number = file.kind == CloneFileKind::kIdentity ? 0 : number;
      CloneFile parsed;
      INFO(CloneFileName(file));
      REQUIRE(ParseCloneFileName(CloneFileName(file), &parsed));
      REQUIRE(parsed == file);
    }
  }
  REQUIRE(CloneFileName({CloneFileKind::kTable, 12, 0, 0}) == "000012.sst");
  REQUIRE(CloneFileName(kManifest) == "MANIFEST-000004");
}

TEST_CASE("Names of other files are not names of a clone's files",
          "[format][clone]") {
  for (const char* name :
       {"CURRENT", "LOCK", "LOG", "LOG.old.12", "000012.dbtmp", ".sst", "sst",
        "12.sst.tmp", "OPTIONS-000007.dbtmp", "MANIFEST-", "-1.sst",
        "../12.sst", "99999999999999999999.sst"}) {
    CloneFile file;
    INFO(name);
    REQUIRE_FALSE(ParseCloneFileName(name, &file));
  }
}

TEST_CASE("Units cover each file once and in order", "[format][clone]") {
  const std::vector<CloneFile> files = {{CloneFileKind::kTable, 1, 250, 0},
                                        {CloneFileKind::kWal, 2, 0, 0},
                                        {CloneFileKind::kBlob, 3, 100, 0},
                                        {CloneFileKind::kTable, 5, 1, 0}};
  std::vector<Part> units;
  REQUIRE_OK(CutIntoUnits(files, 100, &units));
  REQUIRE(PlacesOf(units) ==
          Places{{0, 0, 100}, {0, 100, 100}, {0, 200, 50}, {2, 0, 100},
                 {3, 0, 1}});
}

TEST_CASE("The tail of a table is a unit of its own", "[format][clone]") {
  constexpr uint64_t kMiB = 1u << 20;
  std::vector<Part> units;
  REQUIRE_OK(CutIntoUnits({{CloneFileKind::kTable, 1, 32 * kMiB + 5, 0},
                           {CloneFileKind::kBlob, 2, 32 * kMiB, 0},
                           {CloneFileKind::kTable, 3, kMiB - 1, 0}},
                          20 * kMiB, &units));
  REQUIRE(PlacesOf(units) ==
          Places{{0, 0, 20 * kMiB},
                 {0, 20 * kMiB, 11 * kMiB},
                 {0, 31 * kMiB, kMiB + 5},
                 {1, 0, 20 * kMiB},
                 {1, 20 * kMiB, 12 * kMiB},
                 {2, 0, kMiB - 1}});
  // A tail that is larger than a unit is cut into units like the rest.
  REQUIRE_OK(CutIntoUnits({{CloneFileKind::kTable, 1, 4 * kMiB, 0}},
                          kMinChunkBytes, &units));
  REQUIRE(units.size() == 64);
  REQUIRE(PlacesOf(units).back() ==
          Places::value_type{0, 4 * kMiB - kMinChunkBytes, kMinChunkBytes});
}

// 10 TB in tables of RocksDB's default size.
TEST_CASE("Tables whose tails are too many units are cut without tails",
          "[format][clone]") {
  constexpr uint64_t kTableBytes = 64u << 20;
  std::vector<CloneFile> files(150'000);
  for (size_t i = 0; i < files.size(); ++i) {
    files[i] = {CloneFileKind::kTable, i + 1, kTableBytes, 0};
  }
  std::vector<Part> units;
  REQUIRE(EndStateOf(CutIntoUnits(files, kMaxChunkBytes, &units)) ==
          EndState::kRefused);
  REQUIRE_OK(CutIntoUnits(files, kUntailedUnitBytes, &units));
  REQUIRE(units.size() == files.size());
  REQUIRE(units.back().bytes == kTableBytes);
}

TEST_CASE("Files of absurd sizes are refused before they are cut into units",
          "[format][clone][corruption]") {
  std::vector<Part> units;
  REQUIRE(EndStateOf(CutIntoUnits({{CloneFileKind::kTable, 1, UINT64_MAX, 0}},
                                  kMinChunkBytes, &units)) ==
          EndState::kRefused);
  REQUIRE(units.empty());
  const CloneFile half{CloneFileKind::kTable, 1,
                       kMinChunkBytes * (kMaxParts / 2 + 1), 0};
  REQUIRE(EndStateOf(CutIntoUnits({half, half}, kMinChunkBytes, &units)) ==
          EndState::kRefused);
}

TEST_CASE("A list of files with a duplicate, a gap or a false size is damaged",
          "[format][clone][corruption]") {
  REQUIRE_OK(CheckCloneFiles({kManifest, {CloneFileKind::kTable, 5, 1, 0}}));
  const std::vector<std::vector<CloneFile>> lists = {
      {},
      {{CloneFileKind::kTable, 5, 1, 0}},
      {kManifest, kManifest},
      {kManifest, {CloneFileKind::kManifest, 5, 1, 0}},
      {kManifest, {CloneFileKind::kTable, 4, 1, 0}},
      {kManifest, {CloneFileKind::kTable, 5, 1, 0},
       {CloneFileKind::kBlob, 5, 1, 0}},
      {kManifest, {CloneFileKind::kTable, 0, 1, 0}},
      {kManifest, {CloneFileKind::kTable, UINT64_MAX, 1, 0}},
      {kManifest, {CloneFileKind::kIdentity, 1, 1, 0}},
      {kManifest, {CloneFileKind::kOptions, 6, 1, 0},
       {CloneFileKind::kOptions, 7, 1, 0}},
      {kManifest, {CloneFileKind::kWal, 6, 1, 2}},
  };
  for (size_t i = 0; i < lists.size(); ++i) {
    INFO(i);
    REQUIRE(EndStateOf(CheckCloneFiles(lists[i])) == EndState::kCorrupt);
  }
}

TEST_CASE("A clone's MANIFEST, OPTIONS and IDENTITY have limits",
          "[format][clone][corruption]") {
  const auto check = [](CloneFileKind kind, uint64_t bytes) {
    const uint64_t number = kind == CloneFileKind::kIdentity ? 0 : 5;
    const CloneFile file{kind, number, bytes, 0};
    return CheckCloneFiles(kind == CloneFileKind::kManifest
                               ? std::vector<CloneFile>{file}
                               : std::vector<CloneFile>{kManifest, file});
  };
  for (const auto& [kind, most] :
       {std::pair(CloneFileKind::kManifest, kMaxManifestFileBytes),
        std::pair(CloneFileKind::kOptions, kMaxOptionsFileBytes),
        std::pair(CloneFileKind::kIdentity, kMaxIdentityBytes)}) {
    REQUIRE_OK(check(kind, most));
    const rocksdb::Status status = check(kind, most + 1);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
    REQUIRE(MessageOf(status).find("at most " + std::to_string(most) +
                                   " bytes") != std::string::npos);
  }
  REQUIRE_OK(check(CloneFileKind::kWal, kMaxManifestFileBytes + 1));
}

}  // namespace
}  // namespace sstferry::clone_file_test
