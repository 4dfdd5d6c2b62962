// Removes sets, and files that no set names, from an archive, in two steps: a
// run marks, and a later one, at least the archive's grace after it by the
// store's clock, deletes. push.h says why nothing goes that a set needs.
//
// Segments of a log (log_index.h) are files of the sets that they are behind: a
// push looks at those that are there, as at its own. A follower that begins a log
// has an intent under the id of its lineage until the set counts, and a further
// set's intent names the lineage. A segment that comes behind the look of a set
// is marked only by who marks the set, too.
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
  // The log of this time is kept, and the sets that it needs, but not that of
  // the time before; not set: that behind all sets that stay is.
  std::optional<uint64_t> keep_log_seconds;
  NewSetId new_id = RandomSetId;
};

struct PruneSummary {
  uint64_t dropped_sets = 0;    // deleted now
  uint64_t deleted_files = 0;   // of those that marks name; some were gone
  uint64_t marked_sets = 0;     // now
  uint64_t marked_files = 0;
  uint64_t marked_bytes = 0;       // of the files
  uint64_t deleted_segments = 0;   // of the log; as files
  uint64_t marked_segments = 0;
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
