// Checks whether two sides have the same files, by their descriptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace sstferry {

// The same part of the same file at both sides.
struct FilePair {
  CloneFile file;
  uint64_t bytes = 0;
  uint32_t left = 0;  // units at the left side
  uint32_t right = 0;
};

// Pairs the units of all tables and blob files. The contents of WALs are part
// of the compared content digest; a MANIFEST differs after each open. Not OK:
// the sides do not have the same files; the message is the rest of a sentence
// that says why.
[[nodiscard]] rocksdb::Status PairFiles(const ClonePlan& left,
                                        const ClonePlan& right,
                                        std::vector<FilePair>* pairs);

}  // namespace sstferry
