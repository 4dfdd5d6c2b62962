// Random histories, which rapidcheck makes and shrinks. The environment says:
//
// SSTFERRY_HISTORIES  how many
// RC_PARAMS           rapidcheck's own, "seed=..." above all
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <string>

namespace sstferry::test {

// Returns how many histories to play: what the environment says, or `usually`,
// of which a build with sanitizers plays a quarter.
int HistoryCount(int usually);

// Plays so many histories, of sizes up to max_size. Returns true if all held.
// Looks for a shorter history than one that failed for a minute.
bool CheckHistories(const std::string& claim, int count, int max_size,
                    const std::function<void()>& play);

// Numbers below the limit, in small histories, too.
rc::Gen<uint32_t> Below(uint32_t limit);

}  // namespace sstferry::test
