// Removes sets from an archive, and files that no set names. Each removal takes
// two runs: the first run marks the sets and files, and a later run deletes
// them, at least the archive's grace later by the store's clock. push.h proves
// that no file is deleted that a set needs.
//
// Rules for keeping sets: the --keep options count only whole sets. A set is
// whole if its record can be read, all of its objects exist with their sizes,
// the last check found none of them wrong, and no repair has replaced the set.
// The newest whole set is always kept. A damaged set may still be repaired. So
// it is kept as long as a whole set of the same time would be, but the options
// do not count it. A repaired set and its original are kept alike. A set with
// an unreadable record is kept until RemoveFromArchive() removes it. All files
// that the record may name are kept, too: these are the files that earlier sets
// uploaded. (The name of a set sorts after the names of all sets and pushes
// whose files it uses.)
//
// A set that an earlier run marked is treated like the others until it is
// deleted. If the options of this run select the set, this run undoes the mark.
// The mark object stays, so that no push uses the files that it names. But now
// it names the set as unfinished, and no prune deletes an unfinished set that
// has been committed since. A later run must mark the set again, and waits for
// another grace.
//
// A removal (RemoveFromArchive()) that was suspended may still delete the set
// that its mark names, because it has seen another whole set without a mark. So
// if a mark names the newest whole set, a prune also keeps the next older whole
// sets, up to and including the newest one without a mark.
//
// Segments of a log (log_index.h) belong to the sets before them. A push checks
// that the segments after its set exist, as it checks the files of the set.
// While a follower pushes the first set of a lineage, its intent has the id of
// the lineage. The intents of later sets name the lineage. So prunes keep the
// lineage during these pushes. If a segment is put after the push's check, it
// is marked only together with its set.
//
// A prune may be killed at any time, and may run at the same time as pushes and
// another prune. An unreadable mark or intent ends a prune, because it is
// unknown which files it names. Unreadable findings of the last check also end
// a prune, because it is unknown which sets are whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/retention.h"
#include "rocksdb/status.h"
#include "sstferry/archive.h"

namespace sstferry {

struct PruneOptions {
  Retention retention;
  // A grace that is longer than the archive's; not set: the archive's grace.
  std::optional<uint64_t> grace_seconds;
  // Keeps the log of the last keep_log_seconds, and the sets that a restore of
  // this log needs. Removes the older part of the log. Not set: keeps the log
  // after every kept set.
  std::optional<uint64_t> keep_log_seconds;
  // Reports what the run would change, but changes nothing.
  bool dry_run = false;
  NewSetId new_id = RandomSetId;
};

enum class SetFate : uint8_t {
  kStays = 0,
  kMarked = 1,   // this run marked the set; a run after the grace deletes it
  kExpires = 2,  // an earlier run marked the set
  kDeleted = 3,  // this run deleted the set
};
const char* SetFateName(SetFate fate);  // "stays", "marked", ...

// Result of a prune for one set.
struct PrunedSet : SetFacts {
  SetName name;
  SetFate fate = SetFate::kStays;
  std::string why;  // reason for its fate
  // Earliest time of the deletion, for kMarked and kExpires.
  uint64_t until_seconds = 0;
  bool is_whole = false;
};

struct PruneSummary : ArchivePruneCounts {
  std::vector<PrunedSet> sets;        // all sets, the oldest first
  std::vector<std::string> warnings;  // one sentence for each damaged set
};

// Runs one prune.
//   kRefused  there is no archive
//   kCorrupt  a mark, an intent or the findings of the last check are damaged:
//             nothing was marked or deleted
//   kBusy     a listing missed a set that exists: nothing was deleted
//   others    errors of the store; the next run continues
[[nodiscard]] rocksdb::Status PruneArchive(const Archive& archive,
                                           const PruneOptions& options,
                                           PruneSummary* summary);

struct RemoveOptions {
  std::string what;  // the name of a set, or the id of a mark or an intent
  // Removes the set even if it is the last whole set.
  bool force = false;
  NewSetId new_id = RandomSetId;
};

// Removes one of these objects:
//  - the record and the `done` of a set; later prunes delete its files;
//  - the `done` of a set without a record;
//  - an unreadable intent;
//  - an unreadable mark, after a new mark has named everything but the newest
//    whole set and its files. So nothing that the old mark named is used again.
//
//   kRefused  `what` does not exist. Or it is a readable mark or intent, which
//             a prune removes. Or no other whole set without a mark remains
//   kCorrupt  the findings of the last check cannot be read (not with `force`)
[[nodiscard]] rocksdb::Status RemoveFromArchive(const Archive& archive,
                                                const RemoveOptions& options);

}  // namespace sstferry
