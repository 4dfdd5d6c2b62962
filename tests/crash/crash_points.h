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
  kFresh,          // a first pull to an empty place
  kAgain,          // resumes a pull that was killed and whose journal has a
                   // torn tail
  kRestart,        // like kAgain, with --restart
  kUnsynced,       // a first pull with --durability none
  kInPlace,        // a refresh of yesterday's copy
  kSwap,           // a swap of a database
  kSwapFirst,      // a swap into an empty place
  kSwapOwed,       // a swap after one that was killed inside the exchange
  kClone,          // --method clone to an empty place
  kCloneUnsynced,  // like kClone, with --durability none
  kCloneSwap,      // swap --method clone of an older copy
  kCloneRefresh,   // a refresh by files of an older copy
  kLinkedSwap,     // a swap of a replica of chunks
};

const char* NameOf(Scenario scenario);

struct CrashPoint {
  const char* name;
  std::vector<Scenario> scenarios;
  // On PowerLossFileSystem this point is never reached: it keeps a second hard
  // link of each file, and files with several links are not truncated.
  bool only_killed = false;
};

// Returns every FaultPoint() of the target except those of a standby.
const std::vector<CrashPoint>& CrashPoints();
// Return the fault points at which a follower, a promotion or a view is
// stopped, and those at which a cut is stopped.
const std::vector<const char*>& StandbyCrashPoints();
const std::vector<const char*>& CutCrashPoints();
// Returns the fault points of a cut that keeps what its source has lost.
const std::vector<const char*>& LostCrashPoints();

// Returns the names in all FaultPoint("...") in pipeline/.
std::set<std::string> FaultPointsInCode();
// Returns the names of fault points in the first column of the crash table in
// pipeline/README.md.
std::set<std::string> FaultPointsInTable();

}  // namespace sstferry
