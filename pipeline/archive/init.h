// Creates an archive in an empty directory or bucket prefix, and finds out
// which guarantees the store gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/archive.h"
#include "pipeline/archive/store.h"
#include "rocksdb/status.h"

namespace sstferry {

// Minimum grace for a store that does not refuse old signatures.
inline constexpr uint64_t kUnsignedGraceSeconds = 24ull * 3600;
inline constexpr uint64_t kDefaultGraceSeconds = 24ull * 3600;

struct InitOptions {
  std::optional<uint64_t> grace_seconds;
};

// Tries every operation that pushes, restores and prunes use, and then puts the
// object ARCHIVE. *notes lists unsupported features of the store.
//   kRefused  there is an archive already; or the directory is not empty; or
//             the grace is too short for this store; or the store is not
//             suitable: the message has its answer, and what is required
//   others    errors of the store
[[nodiscard]] rocksdb::Status InitArchive(ObjectStore* store,
                                          const InitOptions& options,
                                          ArchiveHead* head,
                                          std::vector<std::string>* notes);

}  // namespace sstferry
