// Removes sets, and files that no set names, from an archive, in two steps: a
// run marks, and a later one, at least the archive's grace after it by the
// store's clock, deletes. push.h says why nothing goes that a set needs.
//
// Which sets stay. Only a set that is whole counts for an option: its record
// can be read, and all of its objects are there with their sizes. The newest
// whole one stays, whatever the options are. A damaged one stays as long as it
// would if it were whole, beside those, since it may be repaired. A set whose
// record cannot be read stays until RemoveFromArchive() takes it, with all files
// that it may name: those that sets before it uploaded. (A push takes a name
// after those of all pushes whose files it uses.) Sets that an earlier run
// marked count like others until they are gone: one that this run's options ask
// for is not dropped, and its mark stays, so that no push uses its files.
//
// Segments of a log (log_index.h) are files of the sets that they are behind: a
// push looks at those that are there, as at its own. A follower that begins a log
// has an intent under the id of its lineage until the set counts, and a further
// set's intent names the lineage. A segment that comes behind the look of a set
// is marked only by who marks the set, too.
//
// It may be killed at any time, run twice at once, and run beside pushes. A mark
// or an intent that cannot be read ends it: nobody knows what that names.
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
  // Tells what a run would do, and changes nothing.
  bool dry_run = false;
  NewSetId new_id = RandomSetId;
};

enum class SetFate : uint8_t {
  kStays = 0,
  kMarked = 1,   // now: a run after the grace deletes it
  kExpires = 2,  // an earlier run marked it
  kDeleted = 3,  // now
};
const char* SetFateName(SetFate fate);  // "stays", "marked", ...

// Tells what a prune does with a set.
struct PrunedSet {
  SetName name;
  SetFate fate = SetFate::kStays;
  std::string why;  // it stays, or goes
  uint64_t until_seconds = 0;  // of kMarked and kExpires: it stays that long
  bool is_whole = false;
  std::string problem;  // of one that is not
  std::string label;
  std::string host;
  std::string database_id;
  uint64_t sequence = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

struct PruneSummary {
  std::vector<PrunedSet> sets;  // all, the oldest first
  uint64_t dropped_sets = 0;    // deleted now
  uint64_t deleted_files = 0;   // of those that marks name; some were gone
  uint64_t deleted_bytes = 0;   // of those that were there
  uint64_t marked_sets = 0;     // now
  uint64_t marked_files = 0;
  uint64_t marked_bytes = 0;       // of the files
  uint64_t deleted_segments = 0;   // of the log; as files
  uint64_t marked_segments = 0;
  uint64_t waiting_marks = 0;   // younger than the grace
  uint64_t held_marks = 0;      // of which something is used still
  uint64_t kept_sets = 0;       // whole ones that the options ask for
  uint64_t damaged_sets = 0;    // that stay: they count for no option
  uint64_t aborted_uploads = 0;
  std::vector<std::string> warnings;  // a sentence for each damaged set
};

//   kRefused  there is no archive
//   kCorrupt  a mark or an intent is damaged: nothing was deleted
//   others    the store's; the next run continues
[[nodiscard]] rocksdb::Status PruneArchive(const Archive& archive,
                                           const PruneOptions& options,
                                           PruneSummary* summary);

struct RemoveOptions {
  std::string what;  // the name of a set, or the id of a mark or an intent
  // Removes the last set that is whole, too.
  bool force = false;
  NewSetId new_id = RandomSetId;
};

// Takes one set away at once; its files go by the next prunes. Or a mark or an
// intent that cannot be read. In the place of a mark comes one that names all
// but the newest whole set and its files: whatever the old one named, nobody
// uses it again.
//   kRefused  there is no such thing; a mark or an intent that can be read; or
//             no other set is whole that no mark names
[[nodiscard]] rocksdb::Status RemoveFromArchive(const Archive& archive,
                                                const RemoveOptions& options);

}  // namespace sstferry
