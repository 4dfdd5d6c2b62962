// Removes sets, and files that no set names, from an archive, in two steps: one
// run marks them, and a later run deletes them, at least the archive's grace
// later by the store's clock. push.h explains why no file that a set needs is
// deleted.
//
// Rules for keeping sets: only a whole set counts for an option. A set is whole
// if its record can be read, all of its objects exist with their sizes, the
// last check found none of them wrong, and no repair has replaced the set. The
// newest whole set is always kept. A damaged set may still be repaired, so it
// is kept as long as a whole one would be, but does not count for an option; a
// repaired set and its original are kept alike. A set with an unreadable record
// is kept until RemoveFromArchive() removes it, together with all files that it
// may name: the files that earlier sets uploaded. (The name of a set sorts
// after the names of all sets and pushes whose files it uses.)
//
// A set that an earlier run marked is treated like the others until it is
// deleted. If this run's options select it, this run takes the mark back: the
// mark object stays, so that no push uses the files that it names, but it names
// the set as an unfinished one, which no prune deletes once the set is
// committed. A later run must mark the set anew, and waits another grace. If a
// mark names the newest whole set, older whole ones stay, too, up to one that
// no mark names: a suspended removal (RemoveFromArchive()) may still delete the
// set that its mark names, because it has seen another whole set without a
// mark.
//
// Segments of a log (log_index.h) belong to the sets before them: a push checks
// that the segments after its set exist, as it checks the set's files. While a
// follower pushes the first set of a lineage, its intent has the lineage's id;
// the intents of later sets name the lineage. So prunes keep the lineage
// meanwhile. A segment that is put after the push's check is marked only
// together with its set.
//
// A prune may be killed at any time, and may run at the same time as pushes and
// another prune. An unreadable mark or intent ends a prune, because the files
// that it names are unknown. Unreadable findings of the last check end it too,
// because it is unknown which sets are whole.
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
  // A grace longer than the archive's; not set: the archive's.
  std::optional<uint64_t> grace_seconds;
  // Keeps the log of the last keep_log_seconds and the sets that it needs, and
  // drops the older part of the log. Not set: keeps the log after every kept
  // set.
  std::optional<uint64_t> keep_log_seconds;
  // Reports what a run would do, but changes nothing.
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
struct PrunedSet : SetFacts {
  SetName name;
  SetFate fate = SetFate::kStays;
  std::string why;  // reason for its fate
  uint64_t until_seconds = 0;  // kMarked, kExpires: kept at least until here
  bool is_whole = false;
};

struct PruneSummary : ArchivePruneCounts {
  std::vector<PrunedSet> sets;  // all, the oldest first
  std::vector<std::string> warnings;  // a sentence for each damaged set
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
  // Removes even the last whole set.
  bool force = false;
  NewSetId new_id = RandomSetId;
};

// Removes one set at once (later prunes delete its files), or the `done` of a
// set without a record, or an unreadable mark or intent. An unreadable mark is
// replaced by a mark that names everything except the newest whole set and its
// files, so that nothing that the old mark named is used again.
//   kRefused  not found; or a mark or an intent that can be read, and that a
//             prune removes; or no other unmarked whole set remains
//   kCorrupt  the findings of the last check cannot be read (not with `force`)
[[nodiscard]] rocksdb::Status RemoveFromArchive(const Archive& archive,
                                                const RemoveOptions& options);

}  // namespace sstferry
