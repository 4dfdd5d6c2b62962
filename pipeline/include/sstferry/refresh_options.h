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
  kPull,     // fills a missing or empty TARGET_DIR
  // Updates a replica that no process has open. A replica made of files is
  // replaced by a new set of files; a replica built from chunks is updated in
  // place.
  kRefresh,
  kSwap,  // builds a database next to it, then exchanges the two
};

// Returns the name of the command: "pull", "refresh" or "swap".
const char* PullModeName(PullMode mode);

struct SwapEvent {
  std::string target_dir;
  std::string transfer_id;  // 32 hex digits
  // In after_swap: true if the new database is at target_dir; false if
  // target_dir is unchanged.
  bool exchanged = false;
  // In before_swap: returns true once the pull was cancelled or its deadline
  // has passed; the hook should then return soon. In after_swap: always returns
  // false.
  std::function<bool()> stopped;
};

// Closes the target's database before the exchange, or opens it afterwards.
// Called from the thread that runs the pull.
using SwapHook = std::function<rocksdb::Status(const SwapEvent&)>;

}  // namespace sstferry
