// Removes sets, and files that no set names, from an archive, in two steps: a
// run marks, and a later one, at least the archive's grace after it by the
// store's clock, deletes. push.h says why nothing goes that a set needs.
//
// It may be killed at any time, run twice at once, and run beside pushes. What
// it read that is damaged ends it: of a set whose record cannot be read nobody
// knows what it names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/retention.h"
#include "rocksdb/status.h"

namespace sstferry {

struct PruneOptions {
  Retention retention;
  // Longer than that of the archive; not set: as long.
  std::optional<uint64_t> grace_seconds;
  NewSetId new_id = RandomSetId;
};

struct PruneSummary {
  uint64_t dropped_sets = 0;    // deleted now
  uint64_t deleted_files = 0;   // of those that marks name; some were gone
  uint64_t marked_sets = 0;     // now
  uint64_t marked_files = 0;
  uint64_t marked_bytes = 0;
  uint64_t waiting_marks = 0;   // younger than the grace
  uint64_t held_marks = 0;      // of which something is used still
  uint64_t kept_sets = 0;       // whole ones that no mark names
  uint64_t aborted_uploads = 0;
};

//   kRefused  there is no archive
//   kCorrupt  a record, a mark or an intent is damaged: nothing was deleted
//   others    the store's; the next run continues
[[nodiscard]] rocksdb::Status PruneArchive(const Archive& archive,
                                           const PruneOptions& options,
                                           PruneSummary* summary);

}  // namespace sstferry
