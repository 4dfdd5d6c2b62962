// The fault points of the target, and the pulls in which the crash tests stop
// at each of them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sstferry {

enum class Scenario {
  kFresh,          // a first pull to a place where nothing is
  kAgain,          // one that resumes a pull killed in its middle, whose
                   // journal has a torn tail
  kRestart,        // the same with --restart
  kUnsynced,       // a first pull with --durability none
  kInPlace,        // a refresh of yesterday's copy
  kSwap,           // a swap of a database
  kSwapFirst,      // the same of nothing
  kSwapOwed,       // the same after one that was killed inside the exchange
  kClone,          // --method clone to a place where nothing is
  kCloneUnsynced,  // the same with --durability none
  kCloneSwap,      // swap --method clone of an older copy
  kCloneRefresh,   // a refresh by files of it
  kLinkedSwap,     // a swap of an ingested replica
};

const char* NameOf(Scenario scenario);

struct CrashPoint {
  const char* name;
  std::vector<Scenario> scenarios;
  // A disk that loses power keeps a second name of each file, and files that
  // have one are not cut.
  bool only_killed = false;
};

// Every FaultPoint() of the target but for those of a standby.
const std::vector<CrashPoint>& CrashPoints();
// Fault points at which a follower, a promotion or a view is stopped; the
// others are on the way of a cut.
const std::vector<const char*>& StandbyCrashPoints();
const std::vector<const char*>& CutCrashPoints();

// What stands between the quotes of FaultPoint("...") in pipeline/.
std::set<std::string> FaultPointsInCode();
// The names of fault points in the first column of the crash table in
// pipeline/README.md.
std::set<std::string> FaultPointsInTable();

}  // namespace sstferry
