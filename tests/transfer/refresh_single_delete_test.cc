// An application whose keys are each put once and then deleted by SingleDelete,
// above a refresh whose chunks are not compacted yet.
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"

namespace sstferry::test {
namespace {

constexpr uint64_t kKeys = 400;

void PutAll(const std::string& dir, uint64_t seed) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = 0; i < kKeys; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, seed + i));
  }
  db.Flush();
  db.Compact();
}

TEST_CASE("SingleDelete of every key of a refreshed family leaves nothing",
          "[transfer][refresh]") {
  const CarryMode carry = GENERATE(CarryMode::kAuto, CarryMode::kNever);
  const Visibility visibility =
      GENERATE(Visibility::kAll, Visibility::kChunk);
  const TempDir dir;
  PutAll(dir / "source", 1);
  PutAll(dir / "target", 10'000);  // what the refresh replaces
  PullOptions options;
  options.visibility = visibility;
  options.chunk_bytes = 64 << 10;
  options.lanes = 2;
  options.carry = carry;
  options.adopt = true;
  options.compact = false;
  const Ferried refreshed =
      Refresh(dir / "source", dir / "target", options);
  REQUIRE_OK(refreshed.status);
  REQUIRE((refreshed.summary.chunks_carried > 0) ==
          (carry == CarryMode::kAuto));
  ExpectSameEntries(dir / "source", dir / "target");
  {
    OpenDb target(dir / "target", OneFamily(Quiet()));
    for (uint64_t i = 0; i < kKeys; ++i) {
      REQUIRE_OK(target->SingleDelete({}, NumberedKey(i)));
    }
    target.Flush();
    target.Compact();
  }
  REQUIRE(EntriesOf(dir / "target", OneFamily()).empty());
}

}  // namespace
}  // namespace sstferry::test
