// The three modes of a pull, and the hooks around the exchange of directories.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Selects what a pull does with TARGET_DIR. Each mode is named after its
// command.
enum class PullMode {
  // Fills a missing or empty TARGET_DIR.
  kPull,
  // Updates a replica that no process has open. A replica that was cloned is
  // replaced by a new set of files. A replica that was built from chunks is
  // updated in place.
  kRefresh,
  // Builds a database next to TARGET_DIR, then exchanges the two directories.
  kSwap,
};

// Returns the name of the command: "pull", "refresh" or "swap".
const char* PullModeName(PullMode mode);

struct SwapEvent {
  std::string target_dir;
  std::string transfer_id;  // 32 hex digits
  // In after_swap: true if target_dir is now the new database, false if
  // target_dir is unchanged.
  bool exchanged = false;
  // In before_swap: returns true after the pull was cancelled or its deadline
  // has passed. The hook should then return soon. In after_swap, always returns
  // false.
  std::function<bool()> stopped;
};

// A hook of a swap. The one before the exchange closes the application's
// database, and the one after it opens the database again. The calling thread
// is that of Run().
using SwapHook = std::function<rocksdb::Status(const SwapEvent&)>;

}  // namespace sstferry
