// Public interface of archives. An archive is a store (a bucket or a directory)
// that holds sets. Each set has all files that a database had at one point in
// time. See docs/archive.md.
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
// Returns the name of the action, for example "push" for kPush.
const char* ArchiveActionName(ArchiveAction action);

// Options of a command on an archive. The member `store.where` is the address
// of the archive. The other inherited members say how to reach `source`.
struct ArchiveOptions : SourceAccess {
  ArchiveAction action = ArchiveAction::kList;
  // Time limit for the complete command. If the command exceeds the limit, it
  // ends with kDeadline. 0: no limit.
  std::chrono::milliseconds deadline{0};

  // kInit and kPrune: how long a prune waits before it deletes what an earlier
  // prune has marked. Not set: a new archive gets one day, and an existing
  // archive keeps its value.
  std::optional<std::chrono::seconds> grace;

  // kPush: the database to push. kRepair: a database whose files can replace
  // the damaged bytes. If source.directory is empty, a repair uses only bytes
  // that are in the archive.
  SourceAddress source;
  std::string label;
  // kPush: allows a database that is unrelated to the newest set.
  bool adopt = false;
  // kPush: creates the archive if it is missing.
  bool init_if_absent = false;
  // Maximum number of files that are transferred (or read by kCheck) at once.
  uint32_t lanes = 8;

  // kCheck: percentage of all bytes to read. A check on another day reads
  // another part of the bytes.
  double read_percent = 0;
  // kCheck: runs a drill, which is a test restore, next to this directory. The
  // directory must be missing or empty. The drill restores the newest set into
  // a database, opens the database, compares it with the set, and removes it.
  // If the archive has a log, the drill also restores a random time, and the
  // second newest set with its log. A drill runs even if the check has found
  // damage. Empty: no drill.
  std::string drill_dir;

  // kPrune: numbers of sets to keep, by kind. A prune keeps a set if at least
  // one of these four options selects it.
  uint32_t keep_last = 3;
  uint32_t keep_daily = 0;
  uint32_t keep_weekly = 0;
  uint32_t keep_monthly = 0;
  // kPrune: how far back the log is kept. The prune also keeps the sets that a
  // restore from this log needs, and drops older segments. Not set: keeps the
  // log that follows each kept set.
  std::optional<std::chrono::seconds> keep_log;
  // kPrune: changes nothing, and reports what a prune would do.
  bool dry_run = false;

  // kRemove: what to remove. It is a set (by its name), the record of a prune
  // (a mark, by its id) or the record of an unfinished push (an intent, by its
  // id). kRepair: the name of the set to repair. Empty: all finished sets.
  std::string set;
  // kRemove: allows the removal of the last complete set.
  bool force = false;
};

// A period of time in which the log can restore every moment.
struct ArchiveWindow {
  std::string begin;  // "2026-11-24T14:03:20.000123Z"
  std::string end;
  // Why the window ends, such as "outage" or "barrier: ...". Empty: the log
  // continues.
  std::string why;
};

// Returns true if the directory is an archive.
bool IsArchiveDirectory(const std::string& directory);

// Facts about a set, from the set's record and from checks.
struct SetFacts {
  std::string label;
  std::string host;
  std::string database_id;
  uint64_t sequence = 0;
  uint64_t families = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  // Bytes that were not in the archive before the push of this set.
  uint64_t own_bytes = 0;
  bool is_sealed = false;
  // If the set is damaged: a description of the damage. Otherwise empty.
  std::string problem;
};

// A set in the archive. The facts come from its record and from the store's
// list of objects.
struct ArchivedSet : SetFacts {
  // Name of the set, such as "20261124T030000Z-0123456789abcdef".
  std::string name;
  // Time in `name`, in RFC 3339 form.
  std::string pushed_at;
  // Time by the clock of the host that pushed, in RFC 3339 form. Empty:
  // unknown.
  std::string host_time;
  // State of the set: "whole", "expiring" (marked by a prune), "unfinished",
  // "damaged", "unsealed" or "other key". After a prune, it is the result for
  // this set: "stays", "marked", "expiring" or "deleted".
  std::string state;
  // kPrune: why the set is kept or removed.
  std::string why;
  // A marked set is kept at least until this time (RFC 3339). Otherwise empty.
  std::string until;
  // Name of the damaged set that this set replaces. Empty: this set is no
  // repair.
  std::string repairs;
};

// Result of one restore by a drill.
struct ArchiveDrill {
  std::string set;
  // The time up to which the log was restored. Empty: the drill did not restore
  // up to a time.
  std::string time;
  // Name of the newer set to which this set and its log were compared. The
  // entries were equal. Empty: the drill did not compare two sets.
  std::string same_as;
  // Last sequence number of the opened database, and number of its entries.
  // Families that cannot be compared are not counted.
  uint64_t sequence = 0;
  std::optional<uint64_t> entries;
  uint64_t bytes = 0;
  // Seconds until the restored database was durable and open. Excludes the time
  // to compare it.
  double seconds = 0;
  // False if the linked RocksDB cannot open this database. ArchiveReport::notes
  // then say why.
  bool is_opened = false;
  rocksdb::Status status;
};

// Files that a push or a repair uploaded or reused.
struct ArchiveUploads {
  uint64_t uploaded_files = 0;
  uint64_t uploaded_bytes = 0;
  // Files that the archive already had, from earlier sets or from a crashed
  // push.
  uint64_t reused_files = 0;
  uint64_t reused_bytes = 0;
};

// Counts and findings of a check.
struct ArchiveCheckCounts {
  // Number of objects in files/ and parts/.
  uint64_t objects = 0;
  uint64_t bytes = 0;
  // Number of objects that belong to no set.
  uint64_t orphans = 0;
  uint64_t orphan_bytes = 0;
  // Number of objects whose names sstferry does not know.
  uint64_t foreign = 0;
  uint64_t read_files = 0;
  uint64_t read_bytes = 0;
  // A check with read_percent divides the objects into `read_parts` parts and
  // reads one part per day, in a pseudo-random order. read_part is the number
  // of the part that was read, from 1. 0: no part was read.
  uint64_t read_part = 0;
  uint64_t read_parts = 0;
  // Describes each faulty object in one sentence, up to a maximum number.
  std::vector<std::string> problems;
};

// Counts of a prune.
struct ArchivePruneCounts {
  // Number of whole sets that stay.
  uint64_t kept_sets = 0;
  // Number of damaged sets that stay; not included in kept_sets.
  uint64_t damaged_sets = 0;
  // Number of sets that this run has deleted.
  uint64_t dropped_sets = 0;
  // Number of files that marks name and that this run has deleted. Some of them
  // may have been missing before; deleted_bytes does not include these.
  uint64_t deleted_files = 0;
  uint64_t deleted_bytes = 0;
  // Number of sets and files that this run has marked, and size of these files.
  uint64_t marked_sets = 0;
  uint64_t marked_files = 0;
  uint64_t marked_bytes = 0;
  // Number of marks that are too young: their grace period has not passed.
  uint64_t waiting_marks = 0;
  // Number of marks whose grace period has passed, but whose files a set or a
  // push still uses.
  uint64_t held_marks = 0;
  uint64_t aborted_uploads = 0;
  // Number of deleted segments of the log. Not included in deleted_files.
  uint64_t deleted_segments = 0;
  uint64_t marked_segments = 0;
};

struct ArchiveReport : ArchiveUploads, ArchiveCheckCounts, ArchivePruneCounts {
  rocksdb::Status status;
  double seconds = 0;  // total duration
  std::vector<std::string> notes;
  // Problems that did not make the command fail, such as a wrong clock.
  std::vector<std::string> warnings;
  // kList, kCheck and kPrune: all sets, oldest first. kPush: the new set.
  // kRepair: the new sets, and the sets that are still damaged.
  std::vector<ArchivedSet> sets;
  // kList and kCheck: the restorable periods, oldest first.
  std::vector<ArchiveWindow> windows;

  // The next four members are set by kInit, kList and kCheck.
  std::string archive_id;
  uint64_t grace_seconds = 0;
  bool has_if_absent = false;
  bool refuses_old_signatures = false;

  // kRepair: number of sets in which the repair found no damage.
  uint64_t whole_sets = 0;

  // The members from here to continued_drill are set by kCheck. check_status
  // does not include the result of the drill.
  rocksdb::Status check_status;
  // True if the check was complete, even if it found damage.
  bool is_checked = false;
  // Restore of the newest set.
  std::optional<ArchiveDrill> drill;
  // Restore of a random time from the log.
  std::optional<ArchiveDrill> log_drill;
  // Restore of the second newest set with its log, up to the newest set's
  // sequence number. The result must have the same entries as the newest set.
  std::optional<ArchiveDrill> continued_drill;
  // kList: seconds since the last check that stored its findings. Not set: no
  // such check is known. The two other ages below are also not set if they are
  // unknown (see KnownAge()).
  std::optional<uint64_t> checked_age_seconds;
  // Seconds since the newest complete set was pushed. Not set: no set is
  // complete, or the age is unknown (see KnownAge()).
  std::optional<uint64_t> newest_age_seconds;
  // Number and size of all segments of the log.
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;
  // Number of segments of logs that do not begin after a finished set.
  uint64_t orphan_segments = 0;
  // Seconds since the latest time that can be restored from the log. Not set:
  // no time can be restored from it.
  std::optional<uint64_t> log_age_seconds;
};

// Runs one command on an archive.
//
// Threads: Run() may be called once. It blocks, and joins all threads that it
// starts. Cancel() may be called from any thread. It makes Run() return
// kCancelled within seconds.
class ArchiveJob {
 public:
  virtual ~ArchiveJob() = default;
  // Runs the command. report->status equals the returned status.
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
  // Returns the progress in bytes: sent by a push, read by a check or a repair,
  // or restored by a drill. May be called from any thread.
  virtual Progress progress() const = 0;
};
std::unique_ptr<ArchiveJob> MakeArchiveJob(const ArchiveOptions& options);

}  // namespace sstferry
