// Reports the snapshots that a source retains and the state of a TARGET_DIR.
// Only ReleaseSnapshot() changes anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/types.h"
#include "sstferry/follow.h"
#include "sstferry/options.h"

namespace sstferry {

// Options of a query. A query does not retry.
struct StatusOptions : SourceAccess {
  // A server (without a name: all databases that the caller may read), or a
  // directory: a source, a TARGET_DIR, or both.
  SourceAddress where;
};

// Contents of TARGET_DIR/last_transfer.json.
struct CompletedPull {
  std::string transfer_id;
  std::string source;
  std::optional<uint64_t> snapshot_sequence;
  std::string finished_at;  // RFC 3339
  // RFC 3339; empty: it was not promoted. An application owns a promoted
  // database, so that it has no age.
  std::string promoted_at;
  std::string snapshot_taken_at;  // RFC 3339; empty: unknown
  // The earlier of snapshot_taken_at, by the source's clock, and finished_at,
  // by this machine's clock, in seconds since 1970; not set: unknown.
  std::optional<uint64_t> as_of_seconds;
  // Time since as_of_seconds by this machine's clock (KnownAge()); not set:
  // unknown.
  std::optional<uint64_t> age_seconds;
  // Time from finished_at to snapshot_taken_at: the source's clock was at least
  // this much ahead of this machine's. 0: not known to be ahead.
  uint64_t source_ahead_seconds = 0;
};

// State of the unfinished pull in TARGET_DIR.sstferry/.
struct UnfinishedPull {
  bool running = false;    // a pull is running there now
  std::string transfer_id; // empty: no record; no field below is set
  std::string source;
  uint64_t snapshot_sequence = 0;
  std::string snapshot_taken_at;    // RFC 3339; empty: unknown
  uint64_t planned_bytes = 0;       // an estimate
  uint64_t planned_bytes_done = 0;  // recorded portion of planned_bytes
  uint64_t chunks = 0;
  uint64_t sst_bytes = 0;
  bool all_received = false;  // only the final steps remain
  std::string damage;         // why the pull cannot be resumed
  // Returns the percentage of planned_bytes; 100 only if everything was
  // received.
  double percent() const;
};

// End of a message about a database that may lose entries: "it is " + kAtZero.
inline constexpr char kAtZero[] =
    "at RocksDB's last sequence 0, where RocksDB before 9.10 loses entries "
    "that "
    "it compacts beside a snapshot";

// State of TARGET_DIR. FORMAT.md's "Health" describes the record of a fault.
enum class ReplicaHealth {
  kComplete,
  kUnfinished,  // a pull or refresh of it is unfinished
  kDifferent,   // found to differ from its source
  kDamaged,     // a file is missing or has wrong bytes
};
// Returns "complete", "unfinished", "different" or "damaged".
const char* ReplicaHealthName(ReplicaHealth health);

// A directory next to TARGET_DIR with files that TARGET_DIR once had. It is a
// database that a swap replaced, or that a standby adopted and replaced; or it
// has data that a standby received before its source lost them.
struct OldDirectory {
  std::string path;
  std::string replaced_at;  // RFC 3339
  // Bytes of its files that have no other name, so that its removal frees them.
  uint64_t own_bytes = 0;
};

struct TargetState {
  ReplicaHealth health = ReplicaHealth::kComplete;
  // Description of the fault and its time (RFC 3339), if kDifferent or
  // kDamaged.
  std::string fault;
  std::string fault_found_at;
  std::optional<CompletedPull> complete;      // TARGET_DIR is complete
  // Set instead of `complete` while a refresh in place is unfinished and either
  // has changed nothing yet or has just changed everything.
  std::optional<CompletedPull> previous;
  std::optional<UnfinishedPull> unfinished;
  // TARGET_DIR has entries although its last sequence number is 0 (see
  // kAtZero). A refresh repairs this.
  bool stands_at_zero = false;
  // A swap has exchanged TARGET_DIR, but its after_swap failed or has not run.
  bool awaits_after_swap = false;
  // The pull that made `complete` did not remove its workspace.
  bool has_leftover = false;
  // First databases that standbys in TARGET_DIR replaced, then directories with
  // data that sources of standbys lost, then databases that swaps kept; each
  // group newest first.
  std::vector<OldDirectory> old_directories;
  // The command line of the unfinished pull; empty: unknown, or nothing needs
  // to be done.
  std::string next;
};

// A database that the caller may read from a server, according to its MANIFEST.
struct ServedState {
  std::string name;
  uint64_t families = 0;
  uint64_t files = 0;  // tables and blob files
  uint64_t bytes = 0;  // size of these files
  uint64_t sequence = 0;
  uint64_t age_seconds = 0;  // since its last write
  std::string problem;  // why a pull would fail; then all numbers are 0
};

// A replica that a mirror's directory has, or should have.
struct ReplicaStatus {
  std::string name;
  // Not OK if its state cannot be read, or if there is no replica although the
  // last run's source has its database.
  rocksdb::Status status;
  TargetState state;
};

struct StatusReport {
  rocksdb::Status status;
  bool is_source = false;
  bool is_target = false;
  std::vector<RetainedSnapshot> snapshots;  // oldest first
  // Followers of a server; the one that lags most is first. A directory does
  // not know its followers.
  std::vector<FollowerState> followers;
  bool is_server = false;  // false for a directory that is reached through ssh
  // Number of snapshots next to a source directory that belong to other users,
  // and the name of one of these users.
  uint64_t foreign_snapshots = 0;
  std::string foreign_owner;
  TargetState target;
  bool is_mirror = false;  // a directory of several replicas (FleetOptions)
  std::vector<ReplicaStatus> replicas;  // the mirror's, sorted by name
  std::optional<StandbyState> standby;  // the directory is a standby
  std::vector<ServedState> served;  // set only by MakeServedQuery()
  // `served` has every database: the source could search all directories.
  bool served_all = false;
};

// Queries the status of one source or target directory, or of one server.
//
// Threads: Run() from one thread, once; Cancel() from any.
class StatusQuery {
 public:
  virtual ~StatusQuery() = default;
  // report->status equals the returned status. After an error, the report of a
  // mirror has the replicas that could be found.
  //   kRefused   neither a source nor a TARGET_DIR; no such database name
  //   kDenied    this side may not read the database, or a part of the mirror
  //   kCorrupt   a record of the directory is damaged
  //   kDeadPeer  the server does not answer
  [[nodiscard]] virtual rocksdb::Status Run(StatusReport* report) = 0;
  virtual void Cancel() = 0;
};
std::unique_ptr<StatusQuery> MakeStatusQuery(const StatusOptions& options);

// Makes a query that lists databases in StatusReport::served, in the server's
// order: those that a server serves, or a directory that is a database (under
// the directory's name), or the databases below a directory. With a name in
// `where`: only this database.
//   kRefused   the directory is no database, and has no databases below it
std::unique_ptr<StatusQuery> MakeServedQuery(const StatusOptions& options);

// Releases the snapshot that a source directory retains for the transfer whose
// id begins with `id` (8 to 32 hex digits). If a running server uses the
// snapshot, tells this server to release it.
//   kRefused  no such snapshot, or several: the message lists them
//   kBusy     a target is connected to the snapshot
[[nodiscard]] rocksdb::Status ReleaseSnapshot(const std::string& directory,
                                              const std::string& snapshot_dir,
                                              const std::string& id,
                                              RetainedSnapshot* released);

}  // namespace sstferry
