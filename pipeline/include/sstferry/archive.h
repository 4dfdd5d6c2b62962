// Public interface of archives: sets of a database's files in a store, which is
// a bucket or a directory. docs/archive.md explains them.
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
  // All of it takes no longer, else kDeadline. 0: as long as it takes.
  std::chrono::milliseconds deadline{0};

  // kInit and kPrune. Not set: a day, or the archive's.
  std::optional<std::chrono::seconds> grace;

  // kPush. kRepair: where bytes of damaged files may be; an empty directory: in
  // the archive alone.
  SourceAddress source;
  std::string label;
  bool adopt = false;  // a database that the newest set does not know
  uint32_t lanes = 8;  // files at once; kCheck, too
  std::string snapshot_dir;
  std::string wal_dir;
  TlsFiles tls;     // to a source that is no directory
  SshCommands ssh;  // likewise
  Timeouts timeouts;  // likewise

  // kCheck: how much of all bytes is read, each day others.
  double read_percent = 0;
  // Restores the newest set beside this directory, which must be absent or
  // empty and stays so; opens it, compares it with the set and removes it.
  // Empty: no drill. A check that finds damage drills, too.
  std::string drill_dir;

  // kPrune: a set stays if any of these asks for it.
  uint32_t keep_last = 3;
  uint32_t keep_daily = 0;
  uint32_t keep_weekly = 0;
  uint32_t keep_monthly = 0;
  // kPrune: the log of this time is kept, and the sets that it needs, but not
  // that of the time before; not set: that behind all sets that stay is.
  std::optional<std::chrono::seconds> keep_log;
  // kPrune: changes nothing, and tells what it would do.
  bool dry_run = false;

  // kRemove: the name of a set, or the id of a mark or an intent. kRepair: the
  // name of a set; empty: all that count.
  std::string set;
  bool force = false;  // the last set that is whole, too
};

// Times between which every moment can be restored.
struct ArchiveWindow {
  std::string begin;  // "2026-11-24T14:03:20.000123Z"
  std::string end;
  std::string why;    // it ends there: "outage", "barrier: ...", ...; empty: the
                      // log continues
};

// Returns true for a directory that is an archive.
bool IsArchiveDirectory(const std::string& directory);

// A set, as its record and a list of the store tell.
struct ArchivedSet {
  std::string name;      // "20261124T030000Z-0123456789abcdef"
  std::string pushed_at;  // RFC 3339: its name's time
  std::string host_time;  // likewise: by the host's own clock; empty: not known
  // "whole", "expiring", "unfinished", "damaged", "unsealed", "other key"; of a
  // prune: "stays", "marked", "expiring", "deleted".
  std::string state;
  std::string why;       // kPrune: it stays, or goes
  std::string until;     // of an expiring one: it goes then, or later; RFC 3339
  std::string problem;   // of a damaged one
  std::string repairs;   // the damaged one that it was made of; or empty
  std::string label;
  std::string host;
  std::string database_id;
  uint64_t sequence = 0;
  uint64_t families = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t own_bytes = 0;  // that it was the first to upload
  bool is_sealed = false;
};

// The result of a drill.
struct ArchiveDrill {
  std::string set;
  std::string time;  // of the log behind it; empty: see same_as
  // The newer set whose entries this set and its log had, all of them; empty: it
  // was compared with none.
  std::string same_as;
  // Of the opened database: its sequence, and its entries, but for those of
  // families of which no two copies need to be alike.
  uint64_t sequence = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  // From its begin until the database was restored, durable and open, without
  // the time for the comparison.
  double seconds = 0;
  // False: the linked RocksDB cannot open such a database, see the notes.
  bool is_opened = false;
  rocksdb::Status status;
};

struct ArchiveReport {
  rocksdb::Status status;
  double seconds = 0;  // that all of it took
  std::vector<std::string> notes;
  std::vector<std::string> warnings;  // damaged sets, clocks that are wrong
  // kList, kCheck and kPrune: all, the oldest first; kPush: the one; kRepair:
  // those that were made, and those that stay damaged.
  std::vector<ArchivedSet> sets;
  std::vector<ArchiveWindow> windows;  // kList and kCheck, the oldest first

  // kInit; kList and kCheck, too.
  std::string archive_id;
  uint64_t grace_seconds = 0;
  bool has_if_absent = false;
  bool refuses_old_signatures = false;

  // kPush.
  uint64_t uploaded_files = 0;
  uint64_t uploaded_bytes = 0;
  uint64_t reused_files = 0;
  uint64_t reused_bytes = 0;

  // kRepair, too: sets that were found whole.
  uint64_t whole_sets = 0;

  // kCheck.
  rocksdb::Status check_status;  // without the drill's
  bool is_checked = false;       // all was looked at, whatever was found
  uint64_t objects = 0;
  uint64_t bytes = 0;
  uint64_t orphans = 0;
  uint64_t orphan_bytes = 0;
  uint64_t foreign = 0;
  uint64_t read_files = 0;
  uint64_t read_bytes = 0;
  // The part of how many that it read; 0 of 0: none.
  uint64_t read_part = 0;
  uint64_t read_parts = 0;
  std::optional<ArchiveDrill> drill;      // of the newest set
  std::optional<ArchiveDrill> log_drill;  // of a random time of the log
  // Of the set before the newest one, with its log up to the newest one's
  // sequence: both must have the same entries.
  std::optional<ArchiveDrill> continued_drill;
  // kList: since the last check that kept its findings; not set: none has.
  std::optional<uint64_t> checked_age_seconds;
  // Since the newest whole set was pushed; not set: there is none.
  std::optional<uint64_t> newest_age_seconds;
  std::vector<std::string> problems;
  uint64_t segments = 0;       // of the log
  uint64_t segment_bytes = 0;
  uint64_t orphan_segments = 0;  // behind no set that counts
  // Since the newest time that the log restores; not set: there is none.
  std::optional<uint64_t> log_age_seconds;

  // kPrune.
  uint64_t kept_sets = 0;     // whole ones that the options ask for
  uint64_t damaged_sets = 0;  // that stay, and count for no option
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
// Threads: Run() from one thread, once; it blocks, and joins what it starts.
// Cancel() from any: Run() then returns kCancelled within seconds.
class ArchiveJob {
 public:
  virtual ~ArchiveJob() = default;
  // report->status equals the returned status.
  //   kRefused   there is no archive (kInit: there is one); a source that
  //              cannot be pushed
  //   kBusy      kPush: what it used was deleted meanwhile; push again
  //              kCheck: there is no whole set, or one of a time to come
  //   kCorrupt   kCheck: a file is gone or damaged; others: a record, a mark or
  //              an intent is
  //   others     kCheck: if nothing is damaged, why the drill failed
  //   others     the source's and the store's, see EndState
  [[nodiscard]] virtual rocksdb::Status Run(ArchiveReport* report) = 0;
  virtual void Cancel() = 0;
  // Tells how far it is: bytes of a push, of what a check or a repair reads, of
  // the database of a drill. From any thread.
  virtual Progress progress() const = 0;
};
std::unique_ptr<ArchiveJob> MakeArchiveJob(const ArchiveOptions& options);

}  // namespace sstferry
