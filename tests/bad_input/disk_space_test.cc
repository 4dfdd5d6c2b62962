// Tests targets whose disk is too small or becomes full during a transfer:
// NO_SPACE on both sides, and the next pull succeeds once there is space.
#include <sys/mount.h>

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::disk_space_test {
namespace {

namespace fs = std::filesystem;

// A small file system, if this process may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    fs::create_directory(path_);
  }
  ~SmallDisk() {
    if (mounted_) {
      umount(path_.c_str());
    }
  }
  // Returns false if mounting is not permitted.
  bool Resize(const std::string& megabytes) {
    const std::string size = "size=" + megabytes + "m";
    const bool done = mount("none", path_.c_str(), "tmpfs",
                            mounted_ ? MS_REMOUNT : 0, size.c_str()) == 0;
    mounted_ = mounted_ || done;
    return done;
  }

 private:
  const std::string path_;
  bool mounted_ = false;
};

// A served source of 2 MB and a small disk for its replica.
struct Bench {
  Bench() : disk(dir / "disk") {
    MakeSampleDatabase(dir / "source");
    server = std::make_unique<TestServer>(ServeSample(dir / "source"));
    faults = std::make_shared<FaultyFileSystem>();
  }
  Summary Pull() {
    PullOptions options = PullFrom(server->address(), dir / "disk/target");
    options.file_system = faults;
    return RunPull(options);
  }
  // Requires that the pull failed for lack of space, and that both sides report
  // the same.
  TransferReport RequireNoSpace(const Summary& summary) {
    const TransferReport report = server->Report(pulls++);
    INFO(summary.status.ToString() << " / " << report.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kNoSpace);
    REQUIRE(EndStateOf(report.status) == EndState::kNoSpace);
    REQUIRE(MessageOf(report.status).find(MessageOf(summary.status)) !=
            std::string::npos);
    REQUIRE(ExitCodeOf(EndState::kNoSpace) == 4);
    REQUIRE_FALSE(fs::exists(dir / "disk/target"));
    return report;
  }
  void RequireDone() {
    REQUIRE_OK(Pull().status);
    REQUIRE_OK(server->Report(pulls++).status);
    REQUIRE(NamesOf(dir / "disk") == std::vector<std::string>{"target"});
    REQUIRE(EntriesOf(dir / "disk/target") == EntriesOf(dir / "source"));
  }
  ScratchDir dir;
  SmallDisk disk;
  std::unique_ptr<TestServer> server;
  std::shared_ptr<FaultyFileSystem> faults;
  size_t pulls = 0;
};

TEST_CASE("A pull that does not fit is refused before data moves",
          "[bad_input][nospace]") {
  Bench bench;
  const bool real = GENERATE(true, false);
  if (!real) {
    bench.faults->SetFreeSpace(1'000'000);
  } else if (!bench.disk.Resize("1")) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  const Summary summary = bench.Pull();
  const TransferReport report = bench.RequireNoSpace(summary);
  REQUIRE(report.sst_bytes == 0);
  REQUIRE(bench.faults->count(FileStep::kAppend, "/staging/") == 0);
  REQUIRE(bench.faults->count(FileStep::kCreate, "/db/") == 0);
  REQUIRE_FALSE(std::filesystem::exists(bench.dir / "disk/target.sstferry"));
  const std::string message = summary.status.ToString();
  INFO(message);
  for (const std::string& part :
       {bench.dir / "disk/target.sstferry", std::string(" MB free ("),
        std::string("found 1.0"), std::string("make room there")}) {
    REQUIRE(message.find(part) != std::string::npos);
  }
  if (real) {
    REQUIRE(bench.disk.Resize("64"));
  } else {
    bench.faults->SetFreeSpace(64'000'000);
  }
  bench.RequireDone();
}

TEST_CASE("A disk that becomes full during a transfer ends both sides with "
          "NO_SPACE",
          "[bad_input][nospace]") {
  Bench bench;
  const bool real = GENERATE(true, false);
  bench.faults->SetFreeSpace(64'000'000);  // so that the pull starts
  if (!real) {
    bench.faults->FailAt(FileStep::kAppend, 3, DiskFull(), "/staging/",
                         /*for_good=*/true);
  } else if (!bench.disk.Resize("1")) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  const TransferReport report = bench.RequireNoSpace(bench.Pull());
  REQUIRE(report.sst_bytes > 0);
  REQUIRE(fs::exists(bench.dir / "disk/target.sstferry"));
  if (real) {
    REQUIRE(bench.disk.Resize("64"));
  } else {
    bench.faults->Heal();
  }
  bench.RequireDone();
}

}  // namespace
}  // namespace sstferry::disk_space_test
