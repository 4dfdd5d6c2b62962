// What a refresh adds to the options of a pull: how the target becomes
// current, and what an application does around an exchange of its directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

enum class PullMode {
  kSeed,     // fills a TARGET_DIR that is empty or not there (or --replace)
  kRefresh,  // makes a replica of the same source current
};

enum class Visibility {
  kAll,    // in the open database, all of it at once
  kChunk,  // in the open database, chunk by chunk
  kSwap,   // a new database is built beside, and the directories exchanged
};

struct SwapEvent {
  std::string target_dir;
  std::string transfer_id;  // 32 hex digits
  // After: target_dir is the new database; false: it is what it was before.
  bool exchanged = false;
  // Before: true once the pull was cancelled or its deadline has passed; the
  // hook should return soon. After: always false.
  std::function<bool()> stopped;
};

// Closes the target's database before, or opens it after. Called from the
// thread that runs the pull.
using SwapHook = std::function<rocksdb::Status(const SwapEvent&)>;

}  // namespace sstferry
