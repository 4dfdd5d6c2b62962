// Stops a former primary, which becomes a standby, between any two durable
// steps. The former primary must be complete at every moment, and the next run
// must succeed.
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>

#include "pipeline/disk/durable.h"
#include "sstferry/follow.h"
#include "tests/crash/crash_points.h"
#include "tests/support/catch.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/process.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::adopted_points_test {
namespace {

namespace fs = std::filesystem;
constexpr int kCrashed = 99;

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Follows until the first cut is complete, then stops.
rocksdb::Status FollowOnce(const std::string& source, const std::string& dir,
                           std::shared_ptr<rocksdb::FileSystem> disk,
                           bool adopts) {
  FollowOptions options;
  options.pull.source.directory = source;
  options.pull.target_dir = dir;
  options.pull.file_system = std::move(disk);
  options.pull.lanes = 1;
  options.adopt = adopts;
  StandbyJob* running = nullptr;
  options.on_state = [&running](const StandbyState&) { running->Cancel(); };
  const std::unique_ptr<StandbyJob> job = MakeFollow(options);
  running = job.get();
  StandbyState state;
  return job->Run(&state);
}

TEST_CASE("child: an adoption that crashes", "[.child]") {
  const std::string root = Setting("SSTFERRY_TEST_ROOT");
  const std::string point = Setting("SSTFERRY_TEST_POINT");
  const std::string how = Setting("SSTFERRY_TEST_HOW");
  const auto disk = std::make_shared<PowerLossFileSystem>(root);
  std::mutex mu;
  TEST_SetFaultHook([&](const std::string& name) {
    std::lock_guard<std::mutex> lock(mu);
    if (name != point) {
      return;
    }
    if (how == "kill") raise(SIGKILL);
    disk->LosePowerAndExit(
        how == "nothing" ? Survival::kNothing : Survival::kRandom,
        std::stoull(Setting("SSTFERRY_TEST_SEED")), kCrashed);
  });
  REQUIRE_OK(FollowOnce(Setting("SSTFERRY_TEST_SOURCE"), root + "/db", disk,
                        /*adopts=*/true));
}

class AdoptionWalk {
 public:
  void CrashAt(const std::string& point, const std::string& how) {
    INFO(point << " " << how);
    fs::remove_all(root());
    fs::create_directory(root());
    fs::copy(world_.old_dir(), db(), fs::copy_options::recursive);
    Process child(CaseOfThisProgram("child: an adoption that crashes"),
                  {{"SSTFERRY_TEST_POINT", point},
                   {"SSTFERRY_TEST_HOW", how},
                   {"SSTFERRY_TEST_SEED", std::to_string(++seed_)},
                   {"SSTFERRY_TEST_SOURCE", world_.new_dir()},
                   {"SSTFERRY_TEST_ROOT", root()}});
    const int code = child.Wait();
    INFO(child.out() << child.err());
    REQUIRE(code == (how == "kill" ? 128 + SIGKILL : kCrashed));
    RequireWhole();
    // Without --adopt if the standby exists, because a systemd unit may have
    // dropped the option.
    const bool is_standby = fs::exists(db() + "/sstferry.follow");
    REQUIRE_OK(FollowOnce(world_.new_dir(), db(), nullptr, !is_standby));
    const std::vector<std::string> kept = FailedOver::KeptBeside(db());
    REQUIRE(kept.size() == 1);
    world_.RequireOld(kept[0]);
    REQUIRE_OK(PromoteIn(db(), rocksdb::FileSystem::Default().get()));
    FailedOver::RequireSame(db(), world_.new_dir());
  }

 private:
  // Requires that the former primary exists under one of its names.
  void RequireWhole() const {
    std::vector<std::string> found = FailedOver::KeptBeside(db());
    for (const std::string& dir : {db(), db() + ".sstferry/db"}) {
      if (fs::exists(dir + "/LOCK")) found.push_back(dir);
    }
    REQUIRE(found.size() == 1);
    // Opens a copy, so that the next run finds the state after the crash.
    const std::string copy = dir_ / "copy";
    fs::remove_all(copy);
    fs::copy(found[0], copy, fs::copy_options::recursive);
    world_.RequireOld(copy);
  }

  std::string root() const { return dir_ / "disk"; }
  std::string db() const { return root() + "/db"; }

  const FailedOver world_;
  ScratchDir dir_;
  uint64_t seed_ = 0;
};

TEST_CASE("An adoption stopped at any fault point leaves the database complete",
          "[crash][follow][adopt]") {
  AdoptionWalk walk;
  std::vector<std::string> points = {
      "CloneTarget:ReuseRecorded", "FinishClone:ReusedMoved",
      "Standby:WalsCarried", "Puller:AfterSwapDone", "Workspace:OldKept",
      "Workspace:PartRemoved"};
  for (const char* const point : CutCrashPoints()) {
    if (point != std::string("Workspace:OldRetired")) points.push_back(point);
  }
  for (const std::string& point : points) {
    for (const char* const how : {"kill", "nothing", "random"}) {
      walk.CrashAt(point, how);
    }
  }
}

}  // namespace
}  // namespace sstferry::test::adopted_points_test
