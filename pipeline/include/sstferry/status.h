// Reports the snapshots that a source retains and the state of a TARGET_DIR.
// Read-only except for ReleaseSnapshot().
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

struct StatusOptions {
  // A server (without a name: all databases that it lets the caller read), or a
  // directory: a source, a TARGET_DIR, or both.
  SourceAddress where;
  std::string snapshot_dir;  // of a source directory; empty: beside it
  TlsFiles tls;
  SshCommands ssh;
  Timeouts timeouts;  // nothing is tried again
};

// Contents of TARGET_DIR/last_transfer.json.
struct CompletedPull {
  std::string transfer_id;
  std::string source;
  std::optional<uint64_t> snapshot_sequence;
  std::string finished_at;  // RFC 3339
  std::string snapshot_taken_at;  // the same; empty: not known
};

// State of the unfinished pull in TARGET_DIR.sstferry/.
struct UnfinishedPull {
  bool running = false;    // a pull is running there now
  std::string transfer_id; // empty: no record, then all below is empty
  std::string source;
  uint64_t snapshot_sequence = 0;
  std::string snapshot_taken_at;    // RFC 3339; empty: not known
  uint64_t planned_bytes = 0;       // an estimate
  uint64_t planned_bytes_done = 0;  // the part of these that is recorded
  uint64_t chunks = 0;
  uint64_t sst_bytes = 0;
  bool all_received = false;  // only the final steps are missing
  std::string damage;         // why the pull cannot be resumed
  // Percentage of planned_bytes; 100 only if all is received.
  double percent() const;
};

// Text on a database that may lose entries, for people: "it stands " + kAtZero.
inline constexpr char kAtZero[] =
    "at RocksDB's last sequence 0, where RocksDB before 9.10 loses entries "
    "that "
    "it compacts beside a snapshot";

// How TARGET_DIR is. The record of a fault is FORMAT.md's "Health".
enum class ReplicaHealth {
  kComplete,
  kUnfinished,  // a pull into it, or a refresh of it, has not ended
  kDifferent,   // found to differ from its source
  kDamaged,     // a file of it is missing, or its bytes are wrong
};
// "complete", "unfinished", "different", "damaged".
const char* ReplicaHealthName(ReplicaHealth health);

// A database that a swap, or a standby that adopted it, took from TARGET_DIR and
// kept beside it.
struct OldDirectory {
  std::string path;
  std::string replaced_at;  // RFC 3339
};

struct TargetState {
  ReplicaHealth health = ReplicaHealth::kComplete;
  // The finding and its time (RFC 3339), if kDifferent or kDamaged.
  std::string fault;
  std::string fault_found_at;
  std::optional<CompletedPull> complete;      // TARGET_DIR is complete
  // Instead of `complete`, while a refresh in place has not ended: it has
  // changed nothing yet, or just now everything.
  std::optional<CompletedPull> previous;
  std::optional<UnfinishedPull> unfinished;
  // TARGET_DIR has entries and stands at sequence 0: kAtZero says what that may
  // cost. A refresh mends it.
  bool stands_at_zero = false;
  // The pull that made `complete` has not removed its workspace.
  bool has_leftover = false;
  // Databases that became standbys in TARGET_DIR, and those that swaps of it have
  // kept, each the newest first.
  std::vector<OldDirectory> old_directories;
  // The command that the unfinished pull was asked for with; empty: it is not
  // known, or there is nothing to do but to wait.
  std::string next;
};

// A database that a server lets the caller read, as its MANIFEST records it.
struct ServedState {
  std::string name;
  uint64_t families = 0;
  uint64_t files = 0;  // tables and blob files
  uint64_t bytes = 0;  // of these files
  uint64_t sequence = 0;
  uint64_t age_seconds = 0;  // since it was last written to
  std::string problem;  // why a pull would fail; then all numbers are 0
};

// A replica below a mirror's directory.
struct ReplicaStatus {
  std::string name;
  rocksdb::Status status;  // if its state cannot be read
  TargetState state;
};

struct StatusReport {
  rocksdb::Status status;
  bool is_source = false;
  bool is_target = false;
  std::vector<RetainedSnapshot> snapshots;  // retained ones, the oldest first
  // Followers of a server, the furthest behind first.
  std::vector<FollowerState> followers;
  // Number of snapshots beside a source directory that belong to another user,
  // and the name of one such account.
  uint64_t foreign_snapshots = 0;
  std::string foreign_owner;
  TargetState target;
  bool is_mirror = false;  // of several databases (FleetOptions)
  std::vector<ReplicaStatus> replicas;  // of a mirror, by name
  std::optional<StandbyState> standby;  // the directory is one
  std::vector<ServedState> served;  // MakeServedQuery() only
};

// Queries the status of one source or target directory, or of one server.
//
// Threads: Run() from one thread, once; Cancel() from any.
class StatusQuery {
 public:
  virtual ~StatusQuery() = default;
  // report->status equals the returned status.
  //   kRefused   neither a source nor a TARGET_DIR; no such name
  //   kDenied    this side may not read that name
  //   kDeadPeer  the server does not answer
  [[nodiscard]] virtual rocksdb::Status Run(StatusReport* report) = 0;
  virtual void Cancel() = 0;
};
std::unique_ptr<StatusQuery> MakeStatusQuery(const StatusOptions& options);

// The same for what a server serves: fills StatusReport::served, in the
// server's order. With a name in `where`: only that database.
std::unique_ptr<StatusQuery> MakeServedQuery(const StatusOptions& options);

// Releases the snapshot that a source directory retains for the transfer whose
// id begins with `id`, 8 to 32 hex digits. Asks a running server that has it.
//   kRefused  no such snapshot, or more than one: the message lists them
//   kBusy     a target is connected to it
[[nodiscard]] rocksdb::Status ReleaseSnapshot(const std::string& directory,
                                              const std::string& snapshot_dir,
                                              const std::string& id,
                                              RetainedSnapshot* released);

}  // namespace sstferry
