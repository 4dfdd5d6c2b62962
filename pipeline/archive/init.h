// Creates an archive in an empty directory or under a bucket's prefix. Finds
// out which guarantees the store gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/archive.h"
#include "pipeline/archive/store.h"
#include "rocksdb/status.h"

namespace sstferry {

// Minimum grace for a store that accepts old signatures.
inline constexpr uint64_t kUnsignedGraceSeconds = 24ull * 3600;
inline constexpr uint64_t kDefaultGraceSeconds = 24ull * 3600;

struct InitOptions {
  std::optional<uint64_t> grace_seconds;
};

// Creates an archive. Tries every operation that pushes, restores and prunes
// use, and then puts the object ARCHIVE. *notes receives the features that the
// store does not support.
//   kRefused  there is an archive already; or the directory is not empty; or
//             the grace is too short for this store; or the store is not
//             suitable. The message then has the store's answer, and says what
//             an archive needs
//   others    errors of the store
[[nodiscard]] rocksdb::Status InitArchive(ObjectStore* store,
                                          const InitOptions& options,
                                          ArchiveHead* head,
                                          std::vector<std::string>* notes);

}  // namespace sstferry
