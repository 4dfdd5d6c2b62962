// Chooses the sets of an archive that stay.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/archive.h"

namespace sstferry {

// A set stays if any of these asks for it.
struct Retention {
  uint32_t last = 3;     // the newest ones
  uint32_t daily = 0;    // the newest one of each of so many days (UTC)
  uint32_t weekly = 0;   // of so many weeks, from Monday on
  uint32_t monthly = 0;  // of so many months
};

// Returns the sets that stay, each with the options that ask for it. The newest
// of them always stays.
std::map<SetName, std::string> ChooseKept(const std::vector<SetName>& sets,
                                          const Retention& retention);

}  // namespace sstferry
