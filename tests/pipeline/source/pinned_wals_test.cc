#include "pipeline/snapshot/snapshot_wals.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "format/coding.h"
#include "format/crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::pinned_wals_test {
namespace {

// A whole record.
std::string Record(const std::string& payload) {
  const std::string checked = '\x01' + payload;
  std::string record;
  PutFixed32(&record, MaskCrc32c(Crc32c(checked.data(), checked.size())));
  PutFixed16(&record, static_cast<uint16_t>(payload.size()));
  return record + checked;
}

void Append(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
}

}  // namespace

TEST_CASE("A WAL before an empty one counts once it does not grow, if its owner "
          "buffers",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  Append(dir / "000004.log", Record("first"));
  Append(dir / "000007.log", "");
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_recycle(false);
  SECTION("it does not buffer") {
    wals.set_may_buffer(false);
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
  }
  SECTION("it does") {
    int looks = 0;
    do {
      REQUIRE_OK(wals.Follow(0));
      // Twice, the WAL grows.
      if (looks < 2) Append(dir / "000004.log", Record("more"));
    } while (wals.CheckEnds().IsTryAgain() && ++looks < 20);
    REQUIRE(looks >= 4);
    REQUIRE(looks < 20);
  }
  SECTION("the later one has begun") {
    Append(dir / "000007.log", Record("second"));
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
  }
}

}  // namespace sstferry::pinned_wals_test
