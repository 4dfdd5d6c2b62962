// Names of RocksDB's numbered files.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sstferry {

// Returns a name like "000012.sst". `suffix` includes the dot (".sst").
inline std::string NumberedName(uint64_t number, const char* suffix) {
  char text[32];
  snprintf(text, sizeof(text), "%06" PRIu64 "%s", number, suffix);
  return text;
}

}  // namespace sstferry
