// Refreshes on a disk on which one step fails. After the failure the replica
// can be opened and has its old or its new contents. Running the same command
// again gives the new contents.
#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/test_db.h"

namespace sstferry::refresh_disk_test {
namespace {

namespace fs = std::filesystem;
using Entries = std::map<std::string, std::string>;

// A source, and a replica of its earlier contents.
struct NightWorld {
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
  PullOptions options;
  Entries before;
  Entries after;

  NightWorld() {
    SampleShape shape;
    shape.entries = 300;
    MakeSampleDatabase(dir / "source", shape);
    server = std::make_unique<TestServer>(ServeAndHold(dir / "source"));
    options = PullFrom(server->address(), dir / "day");
    options.mode = PullMode::kRefresh;
    options.lanes = 1;
    REQUIRE_OK(RunPull(options).status);
    {
      test::OpenDb source(dir / "source", test::OneFamily(test::Quiet()));
      size_t number = 0;
      for (const auto& [key, value] : EntriesOf(dir / "day")) {
        if (++number % 3 == 0) {
          source.Delete(key);
        } else {
          source.Put(key, test::RandomBytes(900, number));
        }
      }
      source.Flush();
      // The target's WAL has an entry, too.
      test::OpenDb target(dir / "day", test::OneFamily(test::Quiet()));
      target.Put("zzz", "of another");
    }
    before = EntriesOf(dir / "day");
    after = EntriesOf(dir / "source");
  }

  void CopyDay() {
    fs::remove_all(dir / "target");
    fs::remove_all(dir / "target.sstferry");
    fs::remove_all(dir / "read");
    fs::copy(dir / "day", dir / "target", fs::copy_options::recursive);
  }
  Summary Run(std::shared_ptr<FaultyFileSystem> disk) {
    PullOptions with = options;
    with.target_dir = dir / "target";
    with.file_system = disk;
    return RunPull(with);
  }
  // Returns the entries that plain RocksDB finds, also after it opened the
  // replica for writing. Uses a copy, because opening may repair something.
  Entries Read() {
    fs::remove_all(dir / "read");
    fs::copy(dir / "target", dir / "read", fs::copy_options::recursive);
    {
      std::unique_ptr<rocksdb::DB> db;
      rocksdb::Options plain;
      const rocksdb::Status opened =
          rocksdb::DB::Open(plain, dir / "read", IntoDb(&db));
      INFO(opened.ToString());
      REQUIRE(opened.ok());
    }
    return EntriesOf(dir / "read");
  }
  void RequireOldOrNew(const Entries& found) const {
    REQUIRE((found == before || found == after));
  }
};

TEST_CASE("Each step of a refresh can fail once, and the replica can be opened",
          "[target][refresh][disk]") {
  const FileStep step = GENERATE(from_range(std::begin(kWritingSteps),
                                            std::end(kWritingSteps)));
  NightWorld world;
  world.CopyDay();
  auto healthy = std::make_shared<FaultyFileSystem>();
  REQUIRE_OK(world.Run(healthy).status);
  REQUIRE(world.Read() == world.after);
  const uint64_t steps = healthy->count(step);
  REQUIRE((steps > 0 || step == FileStep::kTruncate));
  size_t failed = 0;
  for (uint64_t nth = 1; nth <= steps; ++nth) {
    world.CopyDay();
    auto disk = std::make_shared<FaultyFileSystem>();
    disk->FailAt(step, nth, DiskBroken());
    const Summary first = world.Run(disk);
    INFO("step " << static_cast<int>(step) << ", " << nth << " of " << steps
                 << ": " << first.status.ToString());
    const Entries found = world.Read();
    world.RequireOldOrNew(found);
    if (first.status.ok()) {
      REQUIRE(found == world.after);
    }
    failed += first.status.ok() ? 0 : 1;
    const Summary second = world.Run(nullptr);
    INFO("then: " << second.status.ToString());
    REQUIRE(second.status.ok());
    REQUIRE(EntriesOf(world.dir / "target") == world.after);
  }
  REQUIRE((failed > 0 || steps == 0 || step == FileStep::kTruncate ||
           step == FileStep::kClose));
}

}  // namespace
}  // namespace sstferry::refresh_disk_test
