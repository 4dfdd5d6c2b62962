// What a refresh adds to the options of a pull: how the target becomes
// current.
#pragma once

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

}  // namespace sstferry
