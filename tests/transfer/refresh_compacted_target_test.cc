// Tests refreshes of a replica that an application compacts between them.
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::test::refresh_compacted_target_test {
namespace {

constexpr uint64_t kKeys = 20'000;

void Write(const std::string& dir, uint64_t step, uint64_t night) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = night % step; i < kKeys; i += step) {
    db.Put(NumberedKey(i), RandomBytes(100, i + night));
  }
  db.Flush();
}

rocksdb::CompactRangeOptions Forced() {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  return options;
}

TEST_CASE("A refresh sends only the change to a replica that its application "
          "compacts",
          "[transfer][refresh][delta]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string target = dir / "target";
  Write(source, 1, 0);
  REQUIRE_OK(Refresh(source, target).status);
  const bool is_open = GENERATE(false, true);
  std::optional<OpenDb> open;
  for (uint64_t night = 1; night < 4; ++night) {
    Write(source, 200, night);
    PullOptions options;
    options.compact = false;
    if (!open) {
      open.emplace(target, OneFamily(Quiet()));
    }
    REQUIRE_OK((*open)->CompactRange(Forced(), nullptr, nullptr));
    Ferried refreshed;
    if (is_open) {
      refreshed = RefreshOpen(source, &*open, {"default"}, options);
    } else {
      open.reset();
      refreshed = Refresh(source, target, options);
    }
    INFO(refreshed.message());
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.parts_compared == refreshed.summary.parts);
    REQUIRE(refreshed.summary.entries_put == kKeys / 200);
  }
  open.reset();
  ExpectSameEntries(source, target);
}

}  // namespace
}  // namespace sstferry::test::refresh_compacted_target_test
