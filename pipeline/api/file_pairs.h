// Checks if two sides have the same files, by comparing file descriptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace sstferry {

// A unit (a piece of a file) that both sides have.
struct FilePair {
  CloneFile file;
  uint64_t bytes = 0;
  uint32_t left = 0;  // index among the left side's units
  uint32_t right = 0;
};

// Pairs the units of all tables and blob files. Does not pair WALs, because the
// compared content digest covers them. Does not pair MANIFESTs, because each
// open of a database changes its MANIFEST. If the sides do not have the same
// files, returns an error; callers append its message to a sentence as the
// reason.
[[nodiscard]] rocksdb::Status PairFiles(const FileSet& left,
                                        const FileSet& right,
                                        std::vector<FilePair>* pairs);

}  // namespace sstferry
