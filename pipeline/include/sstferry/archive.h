// Public interface of archives. An archive is a store (a bucket or a directory)
// that holds sets: the files of a database at one time. See docs/archive.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sstferry/options.h"
#include "sstferry/store_options.h"

namespace sstferry {

enum class ArchiveAction : uint8_t {
  kInit,
  kPush,
  kList,
  kCheck,
  kPrune,
  kRemove,
  kRepair
};
// Returns "init", "push", ...
const char* ArchiveActionName(ArchiveAction action);

// Options of a command on an archive. `store` (with `where`) is the archive;
// the other members of SourceAccess are for `source`.
struct ArchiveOptions : SourceAccess {
  ArchiveAction action = ArchiveAction::kList;
  // Time limit for the complete command; after it the command ends with
  // kDeadline. 0: no limit.
  std::chrono::milliseconds deadline{0};

  // For kInit and kPrune. Not set: one day for a new archive, otherwise the
  // archive's value.
  std::optional<std::chrono::seconds> grace;

  // kPush: the database. kRepair: a database whose files may replace the
  // damaged bytes; with an empty directory, only the archive is searched.
  SourceAddress source;
  std::string label;
  bool adopt = false;  // allow a database unrelated to the newest set
  bool init_if_absent = false;  // kPush: creates a missing archive
  uint32_t lanes = 8;  // files transferred at once; also for kCheck

  // kCheck: percentage of all bytes to read; each day reads other bytes.
  double read_percent = 0;
  // kCheck, the drill: restores the newest set into a database next to this
  // directory, opens that database, compares it with the set, and removes it.
  // This directory must be missing or empty, and stays so. If the archive has a
  // log, the drill does the same for a random time, and for the second newest
  // set with its log. Empty: no drill. A drill also runs after a check that
  // found damage.
  std::string drill_dir;

  // kPrune: keeps a set if any of these limits includes it.
  uint32_t keep_last = 3;
  uint32_t keep_daily = 0;
  uint32_t keep_weekly = 0;
  uint32_t keep_monthly = 0;
  // kPrune: keeps the log of this period and the sets that this log needs, and
  // drops older log segments. Not set: keeps the log after each kept set.
  std::optional<std::chrono::seconds> keep_log;
  // kPrune: changes nothing; reports what a prune would do.
  bool dry_run = false;

  // kRemove: the name of a set, or the id of a mark or an intent. kRepair: the
  // name of a set; empty: all finished sets.
  std::string set;
  bool force = false;  // kRemove: even the last complete set
};

// A period in which every moment can be restored.
struct ArchiveWindow {
  std::string begin;  // "2026-11-24T14:03:20.000123Z"
  std::string end;
  std::string why;    // why it ends: "outage", "barrier: ...", ...; empty: the
                      // log continues
};

// Returns true if the directory is an archive.
bool IsArchiveDirectory(const std::string& directory);

// Facts about a set: what its record says, and what is wrong with it.
struct SetFacts {
  std::string label;
  std::string host;
  std::string database_id;
  uint64_t sequence = 0;
  uint64_t families = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t own_bytes = 0;  // bytes that this set was the first to upload
  bool is_sealed = false;
  std::string problem;     // damaged: what is wrong; otherwise empty
};

// A set, according to its record and the store's listing.
struct ArchivedSet : SetFacts {
  std::string name;      // "20261124T030000Z-0123456789abcdef"
  std::string pushed_at;  // RFC 3339, taken from `name`
  std::string host_time;  // RFC 3339, by the host's own clock; empty: unknown
  // "whole", "expiring", "unfinished", "damaged", "unsealed" or "other key"; a
  // prune reports "stays", "marked", "expiring" or "deleted".
  std::string state;
  std::string why;       // kPrune: why it is kept or removed
  std::string until;     // expiring: earliest time of removal; RFC 3339
  std::string repairs;   // damaged set that this one repairs; or empty
};

// The result of a drill.
struct ArchiveDrill {
  std::string set;
  std::string time;  // the log was restored up to here; empty: see same_as
  // The newer set whose entries were compared with this set and its log, and
  // were equal. Empty: not compared.
  std::string same_as;
  // Sequence number and entry count of the opened database. Column families
  // that cannot be compared are not counted.
  uint64_t sequence = 0;
  std::optional<uint64_t> entries;  // not set: the entries were not counted
  uint64_t bytes = 0;
  // Time until the database was restored, durable and open. Excludes the
  // comparison.
  double seconds = 0;
  // False: the linked RocksDB cannot open this database; `notes` say why.
  bool is_opened = false;
  rocksdb::Status status;
};

// Files that a push or a repair uploaded or reused.
struct ArchiveUploads {
  uint64_t uploaded_files = 0;
  uint64_t uploaded_bytes = 0;
  uint64_t reused_files = 0;  // from earlier sets, or from a push that crashed
  uint64_t reused_bytes = 0;
};

// Counts and findings of a check.
struct ArchiveCheckCounts {
  uint64_t objects = 0;       // in files/ and parts/
  uint64_t bytes = 0;
  uint64_t orphans = 0;       // objects that no set names
  uint64_t orphan_bytes = 0;
  uint64_t foreign = 0;       // objects with unknown names
  uint64_t read_files = 0;
  uint64_t read_bytes = 0;
  // A check with read_percent divides the objects into read_parts parts, one
  // per day, and reads the part with the number read_part (from 1; 0: no part
  // was read).
  uint64_t read_part = 0;
  uint64_t read_parts = 0;
  // A sentence for each faulty object, up to a limit.
  std::vector<std::string> problems;
};

// Counts of a prune.
struct ArchivePruneCounts {
  uint64_t kept_sets = 0;       // whole sets that the options select
  uint64_t damaged_sets = 0;    // kept, in addition to kept_sets
  uint64_t dropped_sets = 0;    // deleted by this run
  uint64_t deleted_files = 0;   // files that marks named, missing ones included
  uint64_t deleted_bytes = 0;   // size of these files, without missing ones
  uint64_t marked_sets = 0;     // by this run
  uint64_t marked_files = 0;
  uint64_t marked_bytes = 0;    // size of these files
  uint64_t waiting_marks = 0;   // marks younger than the grace
  uint64_t held_marks = 0;      // marks of files that a set or push still uses
  uint64_t aborted_uploads = 0;
  uint64_t deleted_segments = 0;  // segments of the log; also counted as files
  uint64_t marked_segments = 0;
};

struct ArchiveReport : ArchiveUploads, ArchiveCheckCounts, ArchivePruneCounts {
  rocksdb::Status status;
  double seconds = 0;  // total duration
  std::vector<std::string> notes;
  std::vector<std::string> warnings;  // such as damaged sets and wrong clocks
  // kList, kCheck and kPrune: all sets, oldest first. kPush: the new set.
  // kRepair: the new sets, and the sets that are still damaged.
  std::vector<ArchivedSet> sets;
  std::vector<ArchiveWindow> windows;  // kList and kCheck; oldest first

  // For kInit, kList and kCheck.
  std::string archive_id;
  uint64_t grace_seconds = 0;
  bool has_if_absent = false;
  bool refuses_old_signatures = false;

  // kRepair: number of sets that had no damage.
  uint64_t whole_sets = 0;

  // For kCheck, down to continued_drill.
  rocksdb::Status check_status;  // without the result of the drill
  bool is_checked = false;       // the check was complete, even if it found
                                 // damage
  std::optional<ArchiveDrill> drill;      // drill of the newest set
  std::optional<ArchiveDrill> log_drill;  // with its log up to a random time
  // Drill of the second newest set, with its log up to the sequence number of
  // the newest set. Both must have the same entries.
  std::optional<ArchiveDrill> continued_drill;
  // The ages below are not set if they are unknown (KnownAge()).
  // kList: seconds since the last check that stored its findings; not set: no
  // such check.
  std::optional<uint64_t> checked_age_seconds;
  // Seconds since the newest complete set was pushed; not set: no such set.
  std::optional<uint64_t> newest_age_seconds;
  uint64_t segments = 0;       // log segments
  uint64_t segment_bytes = 0;
  uint64_t orphan_segments = 0;  // segments that follow no finished set
  // Seconds since the newest time that the log can restore; not set: no such
  // time.
  std::optional<uint64_t> log_age_seconds;
};

// One command on an archive.
//
// Threads: Run() from one thread, once; it blocks, and joins all threads that
// it starts. Cancel() from any thread: Run() then returns kCancelled within
// seconds.
class ArchiveJob {
 public:
  virtual ~ArchiveJob() = default;
  // report->status equals the returned status.
  //   kRefused   the archive is missing (kInit: it exists already); kPush: the
  //              source cannot be pushed; kCheck: there is no complete set, or
  //              the newest set has another key or a date in the future
  //   kBusy      kPush: another command deleted objects that this push needed;
  //              push again
  //   kCorrupt   kCheck: a file is missing or damaged; other commands: a
  //              record, a mark or an intent is damaged
  //   others     kCheck: nothing is damaged, but the drill failed
  //   others     errors of the source or the store, see EndState
  [[nodiscard]] virtual rocksdb::Status Run(ArchiveReport* report) = 0;
  virtual void Cancel() = 0;
  // Returns the bytes that a push has sent, that a check or a repair has read,
  // or that a drill has restored. May be called from any thread.
  virtual Progress progress() const = 0;
};
std::unique_ptr<ArchiveJob> MakeArchiveJob(const ArchiveOptions& options);

}  // namespace sstferry
