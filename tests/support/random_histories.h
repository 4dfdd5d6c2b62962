// Plays random histories, which rapidcheck makes and shrinks. Environment:
//
// SSTFERRY_HISTORIES  number of histories
// RC_PARAMS           rapidcheck's own parameters, mainly "seed=..."
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <string>

namespace sstferry::test {

// Returns how many histories to play: the number in the environment, otherwise
// `usually`, or a quarter of that in a build with sanitizers.
int HistoryCount(int usually);

// Plays `count` histories, of sizes up to max_size. Returns true if none
// failed. Spends at most a minute on shortening a history that failed.
bool CheckHistories(const std::string& claim, int count, int max_size,
                    const std::function<void()>& play);

// Generates all numbers below `limit`, even in small histories.
rc::Gen<uint32_t> Below(uint32_t limit);

}  // namespace sstferry::test
