// Public interface of the source: serves databases to targets. The source never
// writes into a served database.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/types.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
}

namespace sstferry {

class SnapshotOrigin;

// In ServedDatabase::allowed: every target that may connect.
inline constexpr char kEveryPeer[] = "*";

// A database to serve: a directory (closed, a checkpoint, or open and written
// by another process, all treated alike), or an application's open database.
struct ServedDatabase {
  std::string name;
  std::string directory;       // set, or:
  rocksdb::DB* db = nullptr;   // borrowed; flushed, then read as a directory
  // For db: handles of the families whose operators RocksDB cannot find by
  // name.
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  // A target's certificate must have one of these names (PeerIdentity::names),
  // compared byte for byte. Empty or kEveryPeer: every target that may connect.
  std::vector<std::string> allowed{};
  // For a directory: its WAL directory, which overrides OPTIONS. Empty: found
  // from OPTIONS and MANIFEST.
  std::string wal_dir{};
  // As ServeOptions::snapshot_dir, which takes precedence.
  std::string snapshot_dir{};
  // An archive. Set by the library only, instead of directory and db.
  std::shared_ptr<SnapshotOrigin> origin{};
};

// A directory below which databases appear and disappear. Each is served under
// its path from there, unless a ServedDatabase has that name. A path that is no
// valid name, and everything below a symbolic link, is left out and logged. A
// database that cannot be read does not affect the others.
struct ServedTree {
  std::string directory;                // empty: none
  std::vector<std::string> allowed{};   // of each, as ServedDatabase::allowed
};

// A database as recorded in its MANIFEST. Its WALs may hold more.
struct DatabaseFacts {
  uint64_t families = 0;
  uint64_t files = 0;  // tables and blob files
  uint64_t bytes = 0;  // of these files
  uint64_t sequence = 0;
  // Estimated bytes of chunks built from these files: the files without
  // obsolete data. 0: not requested.
  uint64_t chunk_bytes = 0;
  // Why these files cannot be the new database of a pull; empty: no reason is
  // known, or not requested.
  std::string no_clone;
  // When its MANIFEST or a WAL was last written, in seconds since 1970.
  uint64_t written_seconds = 0;
  std::string database_id;  // empty: none
};

// Options of DescribeDatabase().
struct FactsOptions {
  std::string snapshot_dir;           // as in ServeOptions
  std::vector<std::string> families;  // to count; empty: all
  // Sets chunk_bytes and no_clone; reads the properties of some tables.
  bool for_pull = false;
  // Release of RocksDB of the application that will open the files, "8.11.4";
  // no_clone then depends on all tables. Empty: any.
  std::string application;
};

// Describes a directory and checks that a target could open it now, as far as
// this is visible without a snapshot. Changes nothing. REQUIRES:
// database.directory is set.
//   kSourceError  not a database, not readable, or no private snapshot could be
//                 made
//   kCorrupt      its CURRENT or MANIFEST is damaged
//   kRefused      its WAL directory cannot be determined
[[nodiscard]] rocksdb::Status DescribeDatabase(const ServedDatabase& database,
                                               const FactsOptions& options,
                                               DatabaseFacts* facts);

// Report on the end of a target's connection. For the log and for --once.
struct TransferReport {
  // 0: the transfer has ended and its snapshot is removed. Otherwise only the
  // connection has ended, the source retains the snapshot for this time, and
  // another report follows, unless another transfer takes its place.
  std::chrono::seconds kept_for{0};
  bool lost = false;  // the connection closed without an end state
  std::string transfer_id;
  std::string name;
  std::string peer;
  rocksdb::Status status;
  std::string error_where;
  uint64_t entries = 0;
  uint64_t sst_bytes = 0;
  uint64_t wire_bytes = 0;
  double seconds = 0;
  bool connected = false;  // a target is connected now
  // Stage (snapshot, plan, read_build, send_wait, idle) -> seconds, summed over
  // all lanes.
  std::map<std::string, double> stage_seconds;
  // Number of options in the database's OPTIONS file that this version does not
  // know; unset: not read yet.
  std::optional<uint64_t> unknown_options;
};

// A database that standbys follow.
struct FollowedState {
  std::string database;        // name of the database
  std::vector<FollowerState> followers;
  uint64_t held_bytes = 0;     // of WALs, shared by all followers
  uint64_t read_bytes = 0;     // of WALs, counted once
};

// State of a server at one moment. For monitoring.
struct ServerState {
  // Databases that are served now, including those of the tree.
  std::vector<ServedDatabase> databases;
  // Unfinished transfers, with what they have sent so far. Without those that
  // an earlier process began and no target has resumed.
  std::vector<TransferReport> transfers;
  // As listed by a status query, including the ids of cuts.
  std::vector<RetainedSnapshot> snapshots;
  // Databases that were followed within the last minute.
  std::vector<FollowedState> followed;
  // Numbers of chunks since the server started: built, and sent again from its
  // files because several targets read one plan (--spool).
  uint64_t chunks_built = 0;
  uint64_t chunks_from_store = 0;
};

// Clocks and free disk space that a server uses; unset: those of the system.
// For tests.
struct LeaseEnvironment {
  std::function<uint64_t()> steady_seconds;
  std::function<uint64_t()> wall_seconds;  // since 1970
  // Free space in percent of the file system that holds the directory.
  std::function<double(const std::string& directory)> free_percent;
  // Interval between two checks of the retained snapshots.
  std::chrono::milliseconds tick{1000};
};

struct ServeOptions {
  std::vector<ServedDatabase> databases;
  ServedTree tree;
  uint32_t max_lanes = 16;              // per transfer
  uint64_t max_rate_bytes_per_sec = 0;  // wire bytes of all transfers together
  // Never holds back for a database's application that waits for CPUs or its
  // disk.
  bool full_rate = false;
  // Directory for snapshots, on the file system of each database that can be
  // written to. Empty: beside each database.
  std::string snapshot_dir;
  // Maximum number of concurrent transfers. Further targets are told when to
  // retry.
  uint32_t max_transfers = 64;
  uint32_t max_connections = 1024;      // handshakes and lanes included
  uint32_t max_connections_per_address = 256;
  // Maximum number of connections that have not finished their handshake, or
  // have not asked for a database. When it is exceeded, or all places are
  // taken, the server closes the oldest of them.
  uint32_t max_half_open = 256;
  uint32_t max_half_open_per_address = 128;  // enough for two 64-lane pulls
  std::chrono::milliseconds handshake_timeout{10'000};
  // Time for a control connection to ask for a transfer.
  std::chrono::milliseconds request_timeout{60'000};
  // A target that answers, but takes no byte of a lane for timeouts.stall, gets
  // TOO_SLOW and is disconnected. It may resume as after a lost connection.
  Timeouts timeouts;
  // Time for which the source retains the snapshot of an unfinished pull while
  // no target is connected, also across a restart of the source. 0: not at all.
  std::chrono::seconds snapshot_ttl{3600};
  // Pulls that ask for the latest snapshot within this time of each other get
  // the same one, which is retained for this time. 0: each gets its own.
  std::chrono::seconds share_snapshots{60};
  // Maximum bytes of rebuilt chunks kept for the other targets of a shared
  // snapshot, in files beside it. 0: chunks are built for each target.
  uint64_t spool_bytes = 2'000'000'000;
  // Minimum free space on the file system that holds the snapshots, in percent.
  // Below it the source releases idle snapshots, the oldest first, then those
  // in use, the largest first.
  double min_free_percent = 5;
  // Maximum bytes of a followed database's WALs that stay readable for lagging
  // followers after RocksDB has deleted them. A follower that needs more takes
  // a cut.
  uint64_t max_held_bytes = 1'000'000'000;
  // If another process uses the snapshot that a target asks for, the target is
  // asked to retry as long as this server is younger than this: the process may
  // be an earlier server that has not noticed that the target disconnected. 0:
  // the target gets BUSY.
  std::chrono::seconds other_process_limit{0};
  LeaseEnvironment leases;
  OperatorRegistry registry;
  LogFunction log;
  // Called for each lost connection of a pull's target while the snapshot is
  // retained, and then once for the ended pull, except for a pull that its
  // target drops to start over or to clone instead. Called from a thread of the
  // server.
  std::function<void(const TransferReport&)> on_transfer_end;
};

// Serves databases to targets until Stop().
//
// Ownership: owns the listener and all snapshots. The destructor removes the
// snapshots except those with a lease, with which the next server resumes.
// Threads:   Run() blocks until Stop() and joins every thread before it
// returns. Stop() may be called from any thread and takes at most five seconds.
class SourceServer {
 public:
  virtual ~SourceServer() = default;
  [[nodiscard]] virtual rocksdb::Status Run() = 0;
  virtual void Stop() = 0;
  // Sets the limit for all transfers together from now on; 0: no limit. May be
  // called from any thread.
  virtual void SetMaxRate(uint64_t wire_bytes_per_sec) = 0;
  // May be called from any thread. Reads the leases beside the databases.
  virtual ServerState state() = 0;
  // Replaces `allowed` by that of options.databases, by name, and of
  // options.tree. Affects later requests; a transfer that moves data continues
  // until its connection ends. May be called from any thread.
  virtual void SetAllowed(const ServeOptions& options) = 0;
  // Searches the tree for databases now. The server also does so before it
  // answers a target, and every ten seconds. May be called from any thread.
  virtual void LookForDatabases() = 0;
  // Blocks until no connection is open. Returns false after `limit`.
  virtual bool AwaitIdle(std::chrono::milliseconds limit) = 0;
  virtual const std::string& address() const = 0;
};

// Makes a server, and removes the leftovers of dead processes in the snapshot
// directories.
//   kRefused  a name is invalid or given twice
[[nodiscard]] rocksdb::Status MakeSourceServer(
    const ServeOptions& options, std::unique_ptr<Listener> listener,
    std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
