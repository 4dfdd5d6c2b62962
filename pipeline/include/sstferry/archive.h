// Public interface of archives: sets of a database's files in a store, which is
// a bucket or a directory. See docs/archive.md.
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
// "init", "push", ...
const char* ArchiveActionName(ArchiveAction action);

struct ArchiveOptions {
  ArchiveAction action = ArchiveAction::kList;
  StoreOptions store;
  LogFunction log;  // may be null
  // Limit for the whole command, which then ends with kDeadline. 0: no limit.
  std::chrono::milliseconds deadline{0};

  // kInit and kPrune. Not set: one day, or the archive's value.
  std::optional<std::chrono::seconds> grace;

  // kPush: the database. kRepair: where undamaged bytes of damaged files may
  // be; with an empty directory only the archive is searched.
  SourceAddress source;
  std::string label;
  bool adopt = false;  // allow a database that the newest set does not know
  bool init_if_absent = false;  // kPush: makes a missing archive
  uint32_t lanes = 8;  // files transferred at once; kCheck, too
  std::string snapshot_dir;
  std::string wal_dir;
  TlsFiles tls;     // for a source that is not a directory
  SshCommands ssh;  // likewise
  Timeouts timeouts;  // likewise

  // kCheck: percentage of all bytes to read, different ones each day.
  double read_percent = 0;
  // kCheck: restores the newest set beside this directory, which must be absent
  // or empty and stays so; opens it, compares it with the set, and removes it.
  // Empty: no drill. A check that found damage still drills.
  std::string drill_dir;

  // kPrune: a set is kept if any of these asks for it.
  uint32_t keep_last = 3;
  uint32_t keep_daily = 0;
  uint32_t keep_weekly = 0;
  uint32_t keep_monthly = 0;
  // kPrune: keeps the log of this period, and the sets that it needs, and drops
  // the older log. Not set: keeps the log after every kept set.
  std::optional<std::chrono::seconds> keep_log;
  // kPrune: changes nothing, and reports what would be done.
  bool dry_run = false;

  // kRemove: the name of a set, or the id of a mark or an intent. kRepair: the
  // name of a set; empty: all sets that count.
  std::string set;
  bool force = false;  // kRemove: even the last whole set
};

// A period in which every moment can be restored.
struct ArchiveWindow {
  std::string begin;  // "2026-11-24T14:03:20.000123Z"
  std::string end;
  std::string why;    // reason of its end: "outage", "barrier: ...", ...;
                      // empty: the log continues
};

// Returns true if the directory is an archive.
bool IsArchiveDirectory(const std::string& directory);

// A set, as described by its record and a listing of the store.
struct ArchivedSet {
  std::string name;      // "20261124T030000Z-0123456789abcdef"
  std::string pushed_at;  // RFC 3339, from its name
  std::string host_time;  // RFC 3339, by the host's own clock; empty: unknown
  // "whole", "expiring", "unfinished", "damaged", "unsealed" or "other key"; in
  // a prune "stays", "marked", "expiring" or "deleted".
  std::string state;
  std::string why;       // kPrune: why it is kept or removed
  std::string until;     // expiring: earliest time of its removal; RFC 3339
  std::string problem;   // damaged: what is wrong
  std::string repairs;   // the damaged set that it was made from; or empty
  std::string label;
  std::string host;
  std::string database_id;
  uint64_t sequence = 0;
  uint64_t families = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t own_bytes = 0;  // first uploaded by this set
  bool is_sealed = false;
};

// The result of a drill.
struct ArchiveDrill {
  std::string set;
  std::string time;  // of the restored log; empty: see same_as
  // The newer set, if this set and its log had all entries of it and no other;
  // empty: it was not compared.
  std::string same_as;
  // Sequence and number of entries of the opened database, without the families
  // that cannot be compared.
  uint64_t sequence = 0;
  std::optional<uint64_t> entries;  // not set: they were not counted
  uint64_t bytes = 0;
  // Time until the database was restored, durable and open, without the
  // comparison.
  double seconds = 0;
  // False: the linked RocksDB cannot open such a database; see the notes.
  bool is_opened = false;
  rocksdb::Status status;
};

struct ArchiveReport {
  rocksdb::Status status;
  double seconds = 0;  // total duration
  std::vector<std::string> notes;
  std::vector<std::string> warnings;  // such as damaged sets and wrong clocks
  // kList, kCheck and kPrune: all sets, the oldest first. kPush: the new set.
  // kRepair: sets that were made, and sets that remain damaged.
  std::vector<ArchivedSet> sets;
  std::vector<ArchiveWindow> windows;  // kList and kCheck, the oldest first

  // kInit, kList and kCheck.
  std::string archive_id;
  uint64_t grace_seconds = 0;
  bool has_if_absent = false;
  bool refuses_old_signatures = false;

  // kPush and kRepair.
  uint64_t uploaded_files = 0;
  uint64_t uploaded_bytes = 0;
  uint64_t reused_files = 0;
  uint64_t reused_bytes = 0;

  // kRepair: number of sets that were found whole.
  uint64_t whole_sets = 0;

  // kCheck.
  rocksdb::Status check_status;  // without the result of the drill
  bool is_checked = false;       // everything was examined, whatever was found
  uint64_t objects = 0;
  uint64_t bytes = 0;
  uint64_t orphans = 0;
  uint64_t orphan_bytes = 0;
  uint64_t foreign = 0;
  uint64_t read_files = 0;
  uint64_t read_bytes = 0;
  // The number of the part that was read, and of all parts; 0: none.
  uint64_t read_part = 0;
  uint64_t read_parts = 0;
  std::optional<ArchiveDrill> drill;      // of the newest set
  std::optional<ArchiveDrill> log_drill;  // of a random time of the log
  // The set before the newest one, with its log up to the newest one's
  // sequence: both must have the same entries.
  std::optional<ArchiveDrill> continued_drill;
  // kList: seconds since the last check that stored its findings; not set:
  // none.
  std::optional<uint64_t> checked_age_seconds;
  // Seconds since the newest whole set was pushed; not set: there is none.
  std::optional<uint64_t> newest_age_seconds;
  std::vector<std::string> problems;
  uint64_t segments = 0;       // of the log
  uint64_t segment_bytes = 0;
  uint64_t orphan_segments = 0;  // after no set that counts
  // Seconds since the newest restorable time of the log; not set: there is
  // none.
  std::optional<uint64_t> log_age_seconds;

  // kPrune.
  uint64_t kept_sets = 0;     // whole sets that the options ask for
  uint64_t damaged_sets = 0;  // kept, without counting for an option
  uint64_t dropped_sets = 0;
  uint64_t deleted_files = 0;
  uint64_t deleted_bytes = 0;
  uint64_t marked_sets = 0;
  uint64_t marked_files = 0;
  uint64_t marked_bytes = 0;
  uint64_t waiting_marks = 0;
  uint64_t held_marks = 0;
  uint64_t aborted_uploads = 0;
  uint64_t deleted_segments = 0;
  uint64_t marked_segments = 0;
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
  //   kRefused   there is no archive (kInit: there is one already); kPush: the
  //              source cannot be pushed; kCheck: there is no whole set, or the
  //              newest one has another key or a date in the future
  //   kBusy      kPush: objects that it used were deleted meanwhile; push again
  //   kCorrupt   kCheck: a file is missing or damaged; other commands: a
  //              record, a mark or an intent is damaged
  //   others     kCheck: nothing is damaged, but the drill failed
  //   others     errors of the source or the store, see EndState
  [[nodiscard]] virtual rocksdb::Status Run(ArchiveReport* report) = 0;
  virtual void Cancel() = 0;
  // Returns the progress: bytes of a push, bytes that a check or a repair
  // reads, or bytes of a drill's database. May be called from any thread.
  virtual Progress progress() const = 0;
};
std::unique_ptr<ArchiveJob> MakeArchiveJob(const ArchiveOptions& options);

}  // namespace sstferry
