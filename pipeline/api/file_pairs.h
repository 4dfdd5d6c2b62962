// Checks if two sides have the same files, by comparing file descriptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace sstferry {

// The same unit of the same file at both sides.
struct FilePair {
  CloneFile file;
  uint64_t bytes = 0;
  uint32_t left = 0;  // index of the unit at the left side
  uint32_t right = 0;
};

// Pairs the units of all tables and blob files. WALs are not paired, because
// the compared content digest covers them; MANIFESTs are not, because each open
// changes them. Returns an error if the sides do not have the same files; its
// message is the end of a sentence that says why.
[[nodiscard]] rocksdb::Status PairFiles(const FileSet& left,
                                        const FileSet& right,
                                        std::vector<FilePair>* pairs);

}  // namespace sstferry
