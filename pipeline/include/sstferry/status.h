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
  // The source to query. It is a server (without a database name: all databases
  // that the caller may read) or a directory. A directory may be a database,
  // the TARGET_DIR of a pull, or both.
  SourceAddress where;
};

// Contents of TARGET_DIR/last_transfer.json.
struct CompletedPull {
  std::string transfer_id;
  std::string source;
  std::optional<uint64_t> snapshot_sequence;
  std::string finished_at;
  // Time of the promotion, in RFC 3339 form. Empty: the database was not
  // promoted. A promoted database has no age, because its application writes to
  // it.
  std::string promoted_at;
  std::string snapshot_taken_at;
  // Time to which the data belongs, in seconds since 1970. It is the earlier of
  // snapshot_taken_at (by the source's clock) and finished_at (by this
  // machine's clock). Not set: unknown.
  std::optional<uint64_t> as_of_seconds;
  // Seconds since as_of_seconds by this machine's clock (see KnownAge()). Not
  // set: unknown.
  std::optional<uint64_t> age_seconds;
  // Seconds by which snapshot_taken_at is later than finished_at. The source's
  // clock was at least this much ahead of this machine's clock. 0: it is not
  // known to be ahead.
  uint64_t source_ahead_seconds = 0;
};

// State of the unfinished pull in TARGET_DIR.sstferry/.
struct UnfinishedPull {
  // True while a pull is running.
  bool running = false;
  // Id of the unfinished pull. Empty: it has no record, and no field below is
  // set.
  std::string transfer_id;
  std::string source;
  uint64_t snapshot_sequence = 0;
  std::string snapshot_taken_at;
  // Estimated size of the complete pull.
  uint64_t planned_bytes = 0;
  // Portion of planned_bytes that the pull has recorded as received.
  uint64_t planned_bytes_done = 0;
  uint64_t chunks = 0;
  uint64_t sst_bytes = 0;
  // True if only the final steps of the pull remain.
  bool all_received = false;
  // Why the pull cannot be resumed. Otherwise empty.
  std::string damage;
  // Returns the percentage of planned_bytes that was received. Returns 100 only
  // if everything was received.
  double percent() const;
};

// Second half of a message about a database whose last sequence number is 0;
// "it is " comes before it. Such a database may lose entries.
inline constexpr char kAtZero[] =
    "at RocksDB's last sequence number 0, where RocksDB before 9.10 loses "
    "entries that it compacts while a snapshot is held";

// State of TARGET_DIR. FORMAT.md's "Health" describes the record of a fault.
enum class ReplicaHealth {
  kComplete,
  kUnfinished,  // a pull or refresh of it is unfinished
  kDifferent,   // found to differ from its source
  kDamaged,     // a file is missing or has wrong bytes
};
// Returns "complete", "unfinished", "different" or "damaged".
const char* ReplicaHealthName(ReplicaHealth health);

// A directory next to TARGET_DIR that has files of an earlier state of
// TARGET_DIR. It has one of these origins:
// - a swap replaced the database and kept it
// - a standby took the place of the database
// - the standby's source lost data, and the standby kept what it had received
struct OldDirectory {
  std::string path;
  std::string replaced_at;
  // Bytes of files that have no hard link elsewhere. The removal of the
  // directory frees them.
  uint64_t own_bytes = 0;
};

struct TargetState {
  ReplicaHealth health = ReplicaHealth::kComplete;
  // kDifferent and kDamaged only: a description of the fault, and the time at
  // which it was found (RFC 3339).
  std::string fault;
  std::string fault_found_at;
  // The pull that made TARGET_DIR. Not set if TARGET_DIR is not complete.
  std::optional<CompletedPull> complete;
  // The pull that made TARGET_DIR before an unfinished refresh in place. Set
  // instead of `complete` if this refresh has changed nothing yet, or has just
  // changed everything.
  std::optional<CompletedPull> previous;
  std::optional<UnfinishedPull> unfinished;
  // True if TARGET_DIR has entries although its last sequence number is 0 (see
  // kAtZero). A refresh corrects this.
  bool stands_at_zero = false;
  // True if a swap has exchanged TARGET_DIR, but its after_swap hook failed or
  // was not called.
  bool awaits_after_swap = false;
  // True if the workspace of the pull that `complete` describes still exists.
  bool has_leftover = false;
  // Three groups, each with the newest directory first: databases that standbys
  // have replaced, data that the sources of standbys have lost, and databases
  // that swaps have kept.
  std::vector<OldDirectory> old_directories;
  // The command line that resumes the unfinished pull, or repairs a fault.
  // Empty: it is unknown, another account (not root) has recorded it, or no
  // command is needed.
  std::string next;
};

// Facts about a database of a server that the caller may read, from its
// MANIFEST.
struct ServedState {
  std::string name;
  uint64_t families = 0;
  // Number and size of the tables and blob files.
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t sequence = 0;
  // Seconds since its last write.
  uint64_t age_seconds = 0;
  // Why a pull of this database would fail. All numbers are then 0.
  std::string problem;
};

// A replica in the directory of a mirror, or one that is missing there.
struct ReplicaStatus {
  std::string name;
  // Not OK in two cases: the replica's state cannot be read, or the replica is
  // missing although the source had its database in the mirror's last run.
  rocksdb::Status status;
  TargetState state;
};

struct StatusReport {
  rocksdb::Status status;
  bool is_source = false;
  bool is_target = false;
  std::vector<RetainedSnapshot> snapshots;  // oldest first
  // Followers of a server, with the one that lags most first. Empty for a
  // directory, because nothing there shows which followers it has.
  std::vector<FollowerState> followers;
  // False also for a directory that is reached through ssh.
  bool is_server = false;
  // Number of snapshots next to a source directory that belong to other users.
  // foreign_owner is the name of one of these users.
  uint64_t foreign_snapshots = 0;
  std::string foreign_owner;
  TargetState target;
  // True if the directory is that of a mirror (see FleetOptions).
  bool is_mirror = false;
  // Replicas of the mirror, sorted by name.
  std::vector<ReplicaStatus> replicas;
  // Set if the directory is a standby.
  std::optional<StandbyState> standby;
  // Set only by MakeServedQuery().
  std::vector<ServedState> served;
  // True if `served` has all databases of the source, because every directory
  // could be read.
  bool served_all = false;
};

// Queries the state of one server, or of one source or target directory.
//
// Threads: Run() may be called once. Cancel() may be called from any thread.
class StatusQuery {
 public:
  virtual ~StatusQuery() = default;
  // Runs the query. report->status equals the returned status. If the query of
  // a mirror fails, the report has the replicas that were found.
  //   kRefused   neither a source nor a TARGET_DIR; no such database name
  //   kDenied    this side may not read the database, or a part of the mirror
  //   kCorrupt   a record of the directory is damaged
  //   kDeadPeer  the server does not answer
  [[nodiscard]] virtual rocksdb::Status Run(StatusReport* report) = 0;
  virtual void Cancel() = 0;
};
std::unique_ptr<StatusQuery> MakeStatusQuery(const StatusOptions& options);

// Makes a query that writes a list of databases to StatusReport::served. For a
// server, the list has the databases that it serves, in the server's order. If
// a directory is a database, the list has only this database, with the name of
// the directory. For another directory, the list has the databases below it. If
// `where` has a database name, the list has only this database.
//   kRefused   the directory is no database, and has no databases below it
std::unique_ptr<StatusQuery> MakeServedQuery(const StatusOptions& options);

// Releases a snapshot that a source directory retains for a transfer. `id` is
// a prefix of the transfer's id (8 to 32 hex digits). If a running server uses
// the snapshot, this function asks that server to release it.
//   kRefused  no such snapshot, or several: the message lists them
//   kBusy     a target is connected to the snapshot
[[nodiscard]] rocksdb::Status ReleaseSnapshot(const std::string& directory,
                                              const std::string& snapshot_dir,
                                              const std::string& id,
                                              RetainedSnapshot* released);

}  // namespace sstferry
