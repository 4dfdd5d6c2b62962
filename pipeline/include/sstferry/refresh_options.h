// The three modes of a pull, and the hooks around the exchange of a directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Selects what a pull does with TARGET_DIR. Each mode has a command of its
// name.
enum class PullMode {
  kPull,     // fills a TARGET_DIR that is empty or absent
  // Makes a replica that no process has open current: exchanges one of files
  // for the next set of files, and updates one of chunks in place.
  kRefresh,
  kSwap,  // builds a new database beside it, then exchanges the directories
};

// Returns the name of the command: "pull", "refresh" or "swap".
const char* PullModeName(PullMode mode);

struct SwapEvent {
  std::string target_dir;
  std::string transfer_id;  // 32 hex digits
  // In after_swap: true if target_dir is the new database, false if it is
  // unchanged.
  bool exchanged = false;
  // In before_swap: returns true after the pull was cancelled or its deadline
  // has passed; the hook should then return soon. In after_swap: always returns
  // false.
  std::function<bool()> stopped;
};

// Called to close the target's database before the exchange, or to open it
// afterwards. Called from the thread that runs the pull.
using SwapHook = std::function<rocksdb::Status(const SwapEvent&)>;

}  // namespace sstferry
