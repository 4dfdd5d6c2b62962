// Stops a follower, a cut, a promotion or a view of a standby between any two
// durable steps, by a kill and by a power cut. The standby must still be able
// to follow and to be promoted, with all data that was durable.

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>

#include "pipeline/base/standby_record.h"
#include "pipeline/disk/durable.h"
#include "pipeline/follow/audit.h"
#include "pipeline/follow/standby_views.h"
#include "sstferry/follow.h"
#include "tests/crash/crash_points.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/process.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::standby_points_test {
namespace {

namespace fs = std::filesystem;
constexpr int kCrashed = 99;
constexpr char kDurable[] = "durable ";
constexpr char kSeen[] = "view ";  // the sequence of `current`

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

PullOptions CutOptions(const std::string& source, const std::string& root,
                       std::shared_ptr<rocksdb::FileSystem> disk) {
  PullOptions options;
  options.source.directory = source;
  options.target_dir = root + "/standby";
  options.file_system = std::move(disk);
  options.lanes = 1;
  return options;
}

void FollowToTheEnd(const std::string& source, Standby* standby,
                    bool cuts = false,
                    const PullOptions& cut_options = PullOptions()) {
  for (int i = 0;; ++i) {
    const Round round = ReadRoundOf(source, standby->position(), 4);
    uint64_t bytes = 0;
    for (const WalBytes& log : round.logs) bytes += log.bytes.size();
    if (bytes == 0) {
      break;
    }
    REQUIRE_OK(standby->Append(standby->position(), round));
    if (i % 3 == 0) {
      REQUIRE_OK(standby->Sync());
      std::cout << kDurable << standby->durable().last_sequence << std::endl;
    }
    if (cuts && i == 8) {  // after the first WAL
      REQUIRE_OK(
          CutStandby(cut_options, {CutReason::kCutEvery}, standby));
    }
  }
}

// Makes four views. Later views replace earlier ones, which are then removed.
void MakeViews(const std::string& source, Standby* standby,
               const std::shared_ptr<rocksdb::FileSystem>& disk) {
  std::unique_ptr<StandbyViews> views;
  REQUIRE_OK(StandbyViews::Open(
      {standby->dir(), std::chrono::milliseconds(1), 1, disk, nullptr},
      standby, &views));
  views->SetConfirmed(true);
  for (int i = 0; i < 4; ++i) {
    REQUIRE_OK(standby->Append(standby->position(),
                               ReadRoundOf(source, standby->position(), 4)));
    bool made = false;
    REQUIRE_OK(views->Make(&made));
    REQUIRE(made);
    std::cout << kSeen << standby->received().last_sequence << std::endl;
  }
  const auto one_is_left = [standby] {
    int names = 0;
    for (const auto& entry : fs::directory_iterator(standby->dir() + ".view")) {
      names += entry.path().filename() != "current";
    }
    return names == 1;
  };
  while (!one_is_left()) {
    REQUIRE_OK(views->RemoveOld());
  }
}

// Takes a cut of the current source, and audits it.
void CutAndAudit(const PullOptions& options, Standby* standby) {
  const std::string manifest = ManifestBytes(options.source.directory);
  Round round;
  round.end.judged = {manifest.size(), DigestOf(manifest)};
  REQUIRE_OK(standby->Append(standby->position(), round));
  AuditOptions audited;
  audited.dir = options.target_dir;
  audited.file_system = options.file_system;
  audited.cpu_percent = 100;
  StandbyAudit audit(audited);
  REQUIRE_OK(CutStandby(options, {CutReason::kCutEvery}, standby, &audit));
  audit.Await();
  AuditFile record;
  std::string damage;
  REQUIRE_OK(ReadAuditFile(options.target_dir, &record, &damage));
  INFO(record.unaudited_reason);
  REQUIRE(record.passes == 1);
  REQUIRE(record.differences == 0);
}

TEST_CASE("child: a standby that crashes", "[.child]") {
  const std::string root = Setting("SSTFERRY_TEST_ROOT");
  const std::string source = Setting("SSTFERRY_TEST_SOURCE");
  const std::string point = Setting("SSTFERRY_TEST_POINT");
  const std::string how = Setting("SSTFERRY_TEST_HOW");
  const uint64_t seed = std::stoull(Setting("SSTFERRY_TEST_SEED"));
  const auto disk = std::make_shared<PowerLossFileSystem>(root);
  uint64_t left = std::stoull(Setting("SSTFERRY_TEST_NTH"));
  std::mutex mu;
  TEST_SetFaultHook([&](const std::string& name) {
    std::lock_guard<std::mutex> lock(mu);
    if (name != point || --left > 0) {
      return;
    }
    if (how == "kill") raise(SIGKILL);
    disk->LosePowerAndExit(
        how == "nothing" ? Survival::kNothing : Survival::kRandom, seed,
        kCrashed);
  });
  std::unique_ptr<Standby> standby;
  REQUIRE_OK(Standby::Open(root + "/standby", disk, &standby));
  if (!Setting("SSTFERRY_TEST_LOST").empty()) {
    PullOptions options = CutOptions(source, root, disk);
    options.adopt = true;  // the source was moved since the first cut
    REQUIRE_OK(CutStandby(options, {CutReason::kNewLife}, standby.get()));
    return;
  }
  MakeViews(source, standby.get(), disk);
  FollowToTheEnd(source, standby.get(), /*cuts=*/true,
                 CutOptions(source, root, disk));
  CutAndAudit(CutOptions(source, root, disk), standby.get());
  ViewOptions view;
  view.dir = root + "/standby";
  view.view_dir = root + "/view";
  view.file_system = disk;
  StandbyState state;
  REQUIRE_OK(MakeView(view)->Run(&state));
  standby.reset();
  REQUIRE_OK(PromoteIn(root + "/standby", disk.get()));
}

class StandbyWalk {
 public:
  StandbyWalk() {
    StandbyWorld world;
    world.Write(100);
    world.source()->Flush();
    world.Write(10);
    REQUIRE_OK(world.Open());
    REQUIRE_OK(world.Cut());
    world.CloseStandby();
    for (int i = 0; i < 3; ++i) {
      world.Write(20);
      // Starts another WAL. The previous one is still needed by the other
      // family.
      REQUIRE_OK((*world.source())->Flush(rocksdb::FlushOptions()));
    }
    sequence_ = world.sequence();
    world.CloseSource();
    fs::rename(world.source_dir(), source());
    fs::rename(world.root(), dir_ / "prepared");
  }

  void CrashAt(const std::string& point, const std::string& how) {
    for (const uint64_t nth : {1, 3}) {
      INFO(point << " " << nth << " " << how);
      fs::remove_all(root());
      fs::copy(dir_ / "prepared", root(), fs::copy_options::recursive);
      Process child(CaseOfThisProgram("child: a standby that crashes"),
                    {{"SSTFERRY_TEST_POINT", point},
                     {"SSTFERRY_TEST_NTH", std::to_string(nth)},
                     {"SSTFERRY_TEST_HOW", how},
                     {"SSTFERRY_TEST_SEED", std::to_string(++seed_)},
                     {"SSTFERRY_TEST_SOURCE", source()},
                     {"SSTFERRY_TEST_ROOT", root()}});
      const int code = child.Wait();
      const std::string output = child.out() + child.err();
      INFO(output);
      REQUIRE((code == 0 ||
               code == (how == "kill" ? 128 + SIGKILL : kCrashed)));
      if (code == 0) {
        REQUIRE(nth > 1);
        return;
      }
      RequireViewWhole(LastOf(kSeen, output));
      RequireMadeGood(LastOf(kDurable, output));
    }
  }

 private:
  static uint64_t LastOf(const std::string& what, const std::string& output) {
    const size_t at = output.rfind(what);
    return at == std::string::npos
               ? 0
               : std::stoull(output.substr(at + what.size()));
  }

  // Requires that `current` leads to a complete view that is not older than
  // sequence `seen`, and that unused views are removed.
  void RequireViewWhole(uint64_t seen) {
    const std::string dir = root() + "/standby";
    const std::string current = dir + ".view/current";
    uint64_t sequence = 0;
    if (seen > 0 || fs::is_symlink(current)) sequence = RequireView(current);
    REQUIRE(sequence >= seen);
    if (!IsStandby(dir)) {
      return;
    }
    const auto disk = rocksdb::FileSystem::Default();
    std::unique_ptr<Standby> standby;
    REQUIRE_OK(Standby::Open(dir, disk, &standby));
    std::unique_ptr<StandbyViews> views;
    REQUIRE_OK(StandbyViews::Open(
        {dir, std::chrono::hours(1), 1, disk, nullptr}, standby.get(),
        &views));
    REQUIRE_OK(views->RemoveOld());
    REQUIRE_FALSE(fs::exists(dir + ".view/sstferry.making"));
    REQUIRE_FALSE(fs::is_symlink(dir + ".view/sstferry.next"));
    if (sequence > 0) REQUIRE(RequireView(current) == sequence);
  }

  void RequireMadeGood(uint64_t durable) {
    const auto disk = rocksdb::FileSystem::Default();
    const std::string standby_dir = root() + "/standby";
    if (fs::exists(root() + "/view")) {
      RequirePrefixIn(root() + "/view");
    }
    bool all = false;
    if (IsStandby(standby_dir) && seed_ % 2 == 0) {
      std::unique_ptr<Standby> standby;
      REQUIRE_OK(Standby::Open(standby_dir, disk, &standby));
      REQUIRE(standby->received().last_sequence >= durable);
      FollowToTheEnd(source(), standby.get());
      REQUIRE_OK(CutStandby(CutOptions(source(), root(), disk),
                            {CutReason::kBarrier}, standby.get()));
      REQUIRE_FALSE(fs::exists(standby_dir + ".sstferry"));
      all = true;
    }
    RemoveLeftAudits(standby_dir, nullptr);
    for (const auto& entry : fs::directory_iterator(root())) {
      REQUIRE(entry.path().string().find(".sstferry-snapshot-") ==
              std::string::npos);
    }
    if (fs::exists(standby_dir + "/" + kFollowFileName)) {
      REQUIRE_OK(PromoteIn(standby_dir, disk.get()));
    }
    const uint64_t sequence = RequirePrefixIn(standby_dir);
    REQUIRE(sequence >= durable);
    REQUIRE((!all || sequence == sequence_));
  }

  std::string source() const { return dir_ / "source"; }
  std::string root() const { return dir_ / "disk"; }

  ScratchDir dir_;
  uint64_t sequence_ = 0;
  uint64_t seed_ = 0;
};

TEST_CASE("A standby stopped at any fault point can be followed and promoted",
          "[crash][follow]") {
  StandbyWalk walk;
  const std::string asked = Setting("SSTFERRY_CRASH_POINTS");
  for (const std::vector<const char*>& points :
       {StandbyCrashPoints(), CutCrashPoints()}) {
    for (const char* const point : points) {
      if (!std::string(point).starts_with(asked)) continue;
      for (const char* const how : {"kill", "nothing", "random"}) {
        walk.CrashAt(point, how);
      }
    }
  }
}

// A standby of a source that was made anew.
class LostWalk {
 public:
  LostWalk() {
    StandbyWorld world;
    world.Write(100);
    world.source()->Flush();
    world.Write(10);
    REQUIRE_OK(world.Open());
    REQUIRE_OK(world.Cut());
    world.Write(10);
    REQUIRE_OK(world.Follow());
    REQUIRE_OK(world.standby()->Sync());
    sequence_ = world.sequence();
    world.CloseStandby();
    world.CloseSource();
    fs::remove_all(world.source_dir());
    world.OpenSource();
    world.source()->Put("new", "value");
    world.CloseSource();
    fs::rename(world.source_dir(), source());
    fs::rename(world.root(), dir_ / "prepared");
  }

  void CrashAt(const std::string& point, const std::string& how) {
    INFO(point << " " << how);
    fs::remove_all(root());
    fs::copy(dir_ / "prepared", root(), fs::copy_options::recursive);
    Process child(CaseOfThisProgram("child: a standby that crashes"),
                  {{"SSTFERRY_TEST_POINT", point},
                   {"SSTFERRY_TEST_NTH", "1"},
                   {"SSTFERRY_TEST_HOW", how},
                   {"SSTFERRY_TEST_SEED", std::to_string(++seed_)},
                   {"SSTFERRY_TEST_SOURCE", source()},
                   {"SSTFERRY_TEST_ROOT", root()},
                   {"SSTFERRY_TEST_LOST", "yes"}});
    const int code = child.Wait();
    INFO(child.out() + child.err());
    REQUIRE(code == (how == "kill" ? 128 + SIGKILL : kCrashed));
    const auto disk = rocksdb::FileSystem::Default();
    PullOptions options = CutOptions(source(), root(), disk);
    options.adopt = true;
    std::unique_ptr<Standby> standby;
    REQUIRE_OK(Standby::Open(root() + "/standby", disk, &standby));
    // Either the standby still has all, or the directory beside it.
    const bool is_old = standby->record().lost_dir.empty();
    if (is_old) REQUIRE(standby->received().last_sequence == sequence_);
    if (!is_old) RequireKept();
    REQUIRE_OK(CutStandby(options, {CutReason::kNewLife}, standby.get()));
    standby.reset();
    RequireKept();
    REQUIRE_OK(PromoteIn(root() + "/standby", disk.get()));
    OpenDb db(root() + "/standby", {{"default", Quiet()}, {"other", Quiet()}});
    std::string value;
    REQUIRE_OK(db->Get(rocksdb::ReadOptions(), "new", &value));
  }

 private:
  // Requires that one directory has all that the source no longer has.
  void RequireKept() const {
    std::vector<std::string> kept;
    for (const auto& entry : fs::directory_iterator(root())) {
      const std::string path = entry.path();
      if (path.find(".sstferry-lost-") != std::string::npos) {
        kept.push_back(path);
      }
    }
    REQUIRE(kept.size() == 1);
    fs::remove_all(dir_ / "opened");
    fs::copy(kept.front(), dir_ / "opened");
    REQUIRE(RequirePrefixIn(dir_ / "opened") == sequence_);
  }

  std::string source() const { return dir_ / "source"; }
  std::string root() const { return dir_ / "disk"; }

  ScratchDir dir_;
  uint64_t sequence_ = 0;
  uint64_t seed_ = 0;
};

TEST_CASE("A cut that keeps what its source has lost can be stopped at any "
          "fault point",
          "[crash][follow]") {
  LostWalk walk;
  for (const std::vector<const char*>& points :
       {LostCrashPoints(), CutCrashPoints()}) {
    for (const char* const point : points) {
      for (const char* const how : {"kill", "nothing", "random"}) {
        walk.CrashAt(point, how);
      }
    }
  }
}

}  // namespace
}  // namespace sstferry::test::standby_points_test
