// Tests the notes of a pull about an application that may write without the
// WAL.
#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::without_wal_test {
namespace {

constexpr char kNote[] = "if it writes without the WAL";

Ferried Pull(const ScratchDir& dir, PullMethod method) {
  PullOptions options;
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  options.method = method;
  Ferried pulled;
  pulled.status = MakePull(options)->Run(&pulled.summary);
  INFO(pulled.message());
  REQUIRE_OK(pulled.status);
  return pulled;
}

void FlushWithoutWal(OpenDb* db) {
  rocksdb::WriteOptions no_wal;
  no_wal.disableWAL = true;
  REQUIRE_OK((*db)->Put(no_wal, "flushed", "value"));
  db->Flush();
  REQUIRE_OK((*db)->Put(no_wal, "late", "value"));
}

void SetManifestTime(const std::string& dir, time_t seconds) {
  for (const std::string& path : PathsWith(dir, "")) {
    if (path.find("/MANIFEST-") != std::string::npos) {
      const timespec times[2] = {{seconds, 0}, {seconds, 0}};
      REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    }
  }
}

TEST_CASE("A pull reports the age of the last flush if all WALs are empty",
          "[transfer][without_wal]") {
  const ScratchDir dir;
  OpenDb db(dir / "source", OneFamily(Quiet()));
  FlushWithoutWal(&db);
  SetManifestTime(dir / "source", std::time(nullptr) - 600);
  const Ferried pulled =
      Pull(dir, GENERATE(PullMethod::kIngest, PullMethod::kClone));
  REQUIRE(pulled.notes_mention(kNote));
  REQUIRE(pulled.notes_mention("at least 10 min before the snapshot"));
  REQUIRE(pulled.summary.last_flush_seconds_before.has_value());
  REQUIRE(*pulled.summary.last_flush_seconds_before >= 600);
  REQUIRE(*pulled.summary.last_flush_seconds_before < 660);
}

TEST_CASE("A flush after the start of the snapshot is not reported as in the "
          "future",
          "[transfer][without_wal]") {
  const ScratchDir dir;
  OpenDb db(dir / "source", OneFamily(Quiet()));
  FlushWithoutWal(&db);
  SetManifestTime(dir / "source", std::time(nullptr) + 600);
  const Ferried pulled = Pull(dir, PullMethod::kIngest);
  REQUIRE(pulled.summary.last_flush_seconds_before == 0);
}

TEST_CASE("A pull has no such note if a WAL has entries, or if no process "
          "writes",
          "[transfer][without_wal]") {
  const ScratchDir dir;
  const bool is_open = GENERATE(true, false);
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    FlushWithoutWal(&db);
    if (is_open) {
      db.Put("logged", "value");
      const Ferried pulled = Pull(dir, PullMethod::kIngest);
      REQUIRE_FALSE(pulled.summary.last_flush_seconds_before.has_value());
      REQUIRE_FALSE(pulled.notes_mention(kNote));
      return;
    }
  }
  const Ferried pulled = Pull(dir, PullMethod::kIngest);
  REQUIRE_FALSE(pulled.summary.last_flush_seconds_before.has_value());
  REQUIRE_FALSE(pulled.notes_mention(kNote));
}

}  // namespace
}  // namespace sstferry::test::without_wal_test
