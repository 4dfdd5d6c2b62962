// Makes an archive in an empty place of a store, and finds out what the store
// keeps of its promises.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/archive.h"
#include "pipeline/archive/store.h"
#include "rocksdb/status.h"

namespace sstferry {

// Where a store does not refuse old signatures.
inline constexpr uint64_t kUnsignedGraceSeconds = 24ull * 3600;
inline constexpr uint64_t kDefaultGraceSeconds = 24ull * 3600;

struct InitOptions {
  std::optional<uint64_t> grace_seconds;
};

// Tries all that pushes, restores and prunes do, and puts ARCHIVE. *notes says
// what the store does not do.
//   kRefused  there is an archive already, or, in a directory, anything else; or
//             the grace is shorter than the store allows; or the store is none
//             for an archive: the message has its own answer, and what is needed
//   others    the store's
[[nodiscard]] rocksdb::Status InitArchive(ObjectStore* store,
                                          const InitOptions& options,
                                          ArchiveHead* head,
                                          std::vector<std::string>* notes);

}  // namespace sstferry
