// Chooses the sets of an archive that a prune keeps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/archive.h"

namespace sstferry {

// Rules of retention. A set is kept if at least one rule selects it.
struct Retention {
  uint32_t last = 3;     // number of newest sets
  uint32_t daily = 0;    // number of days (UTC) whose newest set is kept
  uint32_t weekly = 0;   // the same for weeks, which begin on Mondays
  uint32_t monthly = 0;  // the same for months
};

// Returns the sets to keep. Each set has a text with the options that select
// it. The newest set is always kept.
std::map<SetName, std::string> ChooseKept(const std::vector<SetName>& sets,
                                          const Retention& retention);

}  // namespace sstferry
