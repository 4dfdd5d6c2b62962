// Removes sets, and files that no set names, from an archive, in two steps: one
// run marks, and a later one deletes, at least the archive's grace later by the
// store's clock. push.h explains why no file that a set needs is deleted.
//
// Which sets are kept: only a whole set counts for an option, that is, its
// record can be read, and all of its objects are there with their sizes. The
// newest whole set is always kept. A damaged set is kept as long as it would be
// if it were whole, in addition to those, since it may be repaired. A set whose
// record cannot be read is kept until RemoveFromArchive() removes it, together
// with all files that it may name: those that earlier sets uploaded. (A push
// takes a name after those of all pushes whose files it uses.) Sets that an
// earlier run marked count like others until they are deleted: if this run's
// options ask for one, it is not deleted, and its mark stays, so that no push
// uses its files.
//
// Segments of a log (log_index.h) belong to the sets that they come after: a
// push looks for those that exist as for its own files. A follower that begins
// a log has an intent under the id of its lineage until the set counts, and the
// intent of each further set names the lineage. A segment that is put after the
// look of a set is marked only together with the set.
//
// A prune may be killed at any time, run twice at once, and run beside pushes.
// An unreadable mark or intent ends it, because the files that it names are
// unknown.
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
  // Longer than the archive's grace; not set: the archive's.
  std::optional<uint64_t> grace_seconds;
  // Keeps the log of this period, and the sets that it needs, and drops the
  // older log. Not set: keeps the log after every kept set.
  std::optional<uint64_t> keep_log_seconds;
  // Reports what a run would do, and changes nothing.
  bool dry_run = false;
  NewSetId new_id = RandomSetId;
};

enum class SetFate : uint8_t {
  kStays = 0,
  kMarked = 1,   // by this run; a run after the grace deletes it
  kExpires = 2,  // marked by an earlier run
  kDeleted = 3,  // by this run
};
const char* SetFateName(SetFate fate);  // "stays", "marked", ...

// Result of a prune for one set.
struct PrunedSet {
  SetName name;
  SetFate fate = SetFate::kStays;
  std::string why;  // why it is kept or removed
  uint64_t until_seconds = 0;  // kMarked and kExpires: kept at least until then
  bool is_whole = false;
  std::string problem;  // set if it is not whole
  std::string label;
  std::string host;
  std::string database_id;
  uint64_t sequence = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

struct PruneSummary {
  std::vector<PrunedSet> sets;  // all, the oldest first
  uint64_t dropped_sets = 0;    // deleted by this run
  uint64_t deleted_files = 0;   // named by marks; some were already gone
  uint64_t deleted_bytes = 0;   // of those that existed
  uint64_t marked_sets = 0;     // by this run
  uint64_t marked_files = 0;
  uint64_t marked_bytes = 0;       // of the files
  uint64_t deleted_segments = 0;   // of the log; also counted as files
  uint64_t marked_segments = 0;
  uint64_t waiting_marks = 0;   // younger than the grace
  uint64_t held_marks = 0;      // something that they name is still used
  uint64_t kept_sets = 0;       // whole ones that the options ask for
  uint64_t damaged_sets = 0;    // kept, without counting for an option
  uint64_t aborted_uploads = 0;
  std::vector<std::string> warnings;  // a sentence for each damaged set
};

// Runs one prune.
//   kRefused  there is no archive
//   kCorrupt  a mark or an intent is damaged: nothing was deleted
//   others    errors of the store; the next run continues
[[nodiscard]] rocksdb::Status PruneArchive(const Archive& archive,
                                           const PruneOptions& options,
                                           PruneSummary* summary);

struct RemoveOptions {
  std::string what;  // the name of a set, or the id of a mark or an intent
  // Removes even the last whole set.
  bool force = false;
  NewSetId new_id = RandomSetId;
};

// Removes one set at once, whose files the next prunes delete; or an unreadable
// mark or intent. A mark is replaced by one that names everything except the
// newest whole set and its files, so that nothing that the old mark named is
// used again.
//   kRefused  not found; a mark or an intent that can be read; or there is no
//             other whole set without a mark
[[nodiscard]] rocksdb::Status RemoveFromArchive(const Archive& archive,
                                                const RemoveOptions& options);

}  // namespace sstferry
