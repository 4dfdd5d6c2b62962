// A source, a disk for the target, and pulls on it that are made to crash.
#pragma once

#include <map>
#include <string>

#include "sstferry/options.h"
#include "tests/crash/crash_points.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {

// How a pull ends.
struct Crash {
  std::string point;     // a fault point
  uint64_t nth = 1;      // at its nth hit
  std::string how;       // "kill", or what a power cut leaves: "nothing",
                         // "random"
  uint64_t seed = 1;     // of "random"
};
std::string ToString(const Crash& crash);

// DIR/source is pulled to DIR/disk/target. Threads: one.
class CrashWorld {
 public:
  CrashWorld();

  // The target's disk as the scenario finds it.
  void Prepare(Scenario scenario);
  // How often each fault point is passed by a pull that does not crash; more
  // or less may be ingested together another time.
  std::map<std::string, uint64_t> CountHits(Scenario scenario);
  // Prepares, pulls in a process of its own and lets it crash; false when it
  // ended before that.
  bool PullAndCrash(Scenario scenario, const Crash& crash);
  // Right after a crash TARGET_DIR is what it was or complete.
  void RequireTargetWhole(Scenario scenario, const Crash& crash);
  // Pulls once more; requires a complete target that kept the chunks that the
  // crash table promises, and nothing beside source and target but what is
  // documented.
  void RequireNextPullCompletes(Scenario scenario, const Crash& crash);

  // Of a pull in that scenario.
  PullOptions Options(Scenario scenario) const;
  std::string root() const { return dir_ / "disk"; }
  std::string target() const { return root() + "/target"; }
  std::string source() const { return dir_ / "source"; }

 private:
  bool Die(Scenario scenario, const Crash& crash);
  void RequireServed();
  std::string hooks() const { return dir_ / "hooks"; }
  // What a swap replaces.
  std::string OldOf(Scenario scenario) const {
    return dir_ / (scenario == Scenario::kCloneSwap ||
                           scenario == Scenario::kCloneRefresh
                       ? "older"
                   : scenario == Scenario::kLinkedSwap ? "replica"
                                                       : "old");
  }

  ScratchDir dir_;
  std::map<std::string, std::string> before_;  // a refresh of it
  std::string child_output_;
};

}  // namespace sstferry
