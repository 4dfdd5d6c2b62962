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
  std::string point;     // the name of a fault point
  uint64_t nth = 1;      // which hit of the point
  std::string how;       // "kill", or what survives a power cut: "nothing",
                         // "random"
  uint64_t seed = 1;     // for "random"
};
std::string ToString(const Crash& crash);

// DIR/source is pulled to DIR/disk/target. Threads: one.
class CrashWorld {
 public:
  CrashWorld();

  // Prepares the target's disk for the scenario.
  void Prepare(Scenario scenario);
  // Returns how often a pull without a crash passes each fault point. The
  // numbers may vary, because the number of chunks per ingestion varies.
  std::map<std::string, uint64_t> CountHits(Scenario scenario);
  // Prepares, runs a pull in another process and lets it crash. Returns false
  // if the pull ended before that.
  bool PullAndCrash(Scenario scenario, const Crash& crash);
  // Requires that right after a crash, TARGET_DIR is unchanged or complete.
  void RequireTargetWhole(Scenario scenario, const Crash& crash);
  // Pulls once more. Requires a complete target that kept the chunks that the
  // crash table promises, and nothing undocumented beside source and target.
  void RequireNextPullCompletes(Scenario scenario, const Crash& crash);

  // Returns the options of a pull in that scenario.
  PullOptions Options(Scenario scenario) const;
  std::string root() const { return dir_ / "disk"; }
  std::string target() const { return root() + "/target"; }
  std::string source() const { return dir_ / "source"; }

 private:
  bool Die(Scenario scenario, const Crash& crash);
  void RequireServed();
  std::string hooks() const { return dir_ / "hooks"; }
  // Returns the database that a swap or a refresh by files replaces.
  std::string OldOf(Scenario scenario) const {
    return dir_ / (scenario == Scenario::kCloneSwap ||
                           scenario == Scenario::kCloneRefresh
                       ? "older"
                   : scenario == Scenario::kLinkedSwap ? "replica"
                                                       : "old");
  }

  ScratchDir dir_;
  std::map<std::string, std::string> before_;  // contents before a refresh
  std::string child_output_;
};

}  // namespace sstferry
