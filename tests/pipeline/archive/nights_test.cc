// Nightly pushes to an archive: each uploads what a clone refreshed in that
// night would fetch. SSTFERRY_ARCHIVE_KEYS makes the database larger.
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "sstferry/archive.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/compacted.h"
#include "tests/support/restored.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::nights_test {

TEST_CASE("Each of 20 nights uploads what a clone of that night fetches, and "
          "every set is restored as it was",
          "[archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string archive = dir / "archive";
  const std::string replica = dir / "replica";
  const char* const asked = std::getenv("SSTFERRY_ARCHIVE_KEYS");
  const uint64_t keys =
      asked == nullptr ? 20'000 : std::strtoull(asked, nullptr, 10);
  InitArchive(archive);
  std::mt19937_64 random(20);
  uint64_t uploaded = 0;
  uint64_t all = 0;
  for (int night = 0; night < 20; ++night) {
    INFO("night " << night);
    {
      // Changes 1 % of the keys, which are neighbours, so most tables stay.
      OpenDb db(source, OneFamily(SmallFiles()));
      const uint64_t changed = night == 0 ? keys : keys / 100;
      const uint64_t begin = night == 0 ? 0 : random() % (keys - changed);
      for (uint64_t i = begin; i < begin + changed; ++i) {
        db.Put(NumberedKey(i), RandomBytes(200, random()));
      }
      db.Flush();
      if (night % 3 == 0) {
        db.Compact();
      }
    }
    PullOptions swap;
    swap.source.directory = source;
    swap.target_dir = replica;
    swap.mode = PullMode::kSwap;
    swap.method = PullMethod::kClone;
    Summary fetched;
    REQUIRE_OK(MakePull(swap)->Run(&fetched));

    ArchiveOptions push;
    push.action = ArchiveAction::kPush;
    push.store.where.directory = archive;
    push.source.directory = source;
    push.label = "night " + std::to_string(night);
    ArchiveReport pushed;
    REQUIRE_OK(MakeArchiveJob(push)->Run(&pushed));
    // A clone also writes and counts its own MANIFEST, OPTIONS and IDENTITY. So
    // the two amounts differ by the size of such files.
    constexpr uint64_t kSmallFiles = 100'000;
    REQUIRE(pushed.uploaded_bytes < fetched.sst_bytes + kSmallFiles);
    REQUIRE(fetched.sst_bytes < pushed.uploaded_bytes + kSmallFiles);
    uploaded += pushed.uploaded_bytes;
    all += pushed.sets.at(0).bytes;
    if (night % 5 == 4) {
      const Ferried restored = RestoreFrom(archive, dir / push.label);
      REQUIRE_OK(restored.status);
      ExpectSameEntries(source, dir / push.label);
    }
  }
  // The limit is generous: how much a compaction rewrites depends on the ones
  // before it.
  REQUIRE(uploaded < all / 2);
  // Later nights have not changed an older set.
  PullOptions again;
  const Ferried older =
      RestoreFrom(archive + "@night 4", dir / "again", again);
  REQUIRE_OK(older.status);
  ExpectSameEntries(dir / "night 4", dir / "again");
}

}  // namespace sstferry::test::nights_test
