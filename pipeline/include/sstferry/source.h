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

// In ServedDatabase::allowed: allows every target that may connect.
inline constexpr char kEveryPeer[] = "*";

// A database to serve: either a directory or an application's open database. A
// directory may be closed, a checkpoint, or open and written by another
// process; all are treated alike.
struct ServedDatabase {
  std::string name;
  std::string directory;       // set, or:
  rocksdb::DB* db = nullptr;   // borrowed; flushed, then read as a directory
  // For db: handles of the families whose operators RocksDB cannot find by
  // name.
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  // A target's certificate must have one of these names (PeerIdentity::names),
  // byte for byte. Empty or kEveryPeer: allows every target that may connect.
  std::vector<std::string> allowed{};
  // For a directory: its WAL directory, which overrides OPTIONS. Empty: found
  // from OPTIONS and MANIFEST.
  std::string wal_dir{};
  // Like ServeOptions::snapshot_dir, but takes precedence over it.
  std::string snapshot_dir{};
  // An archive, instead of directory and db. Set only by the library.
  std::shared_ptr<SnapshotOrigin> origin{};
};

// A directory below which databases appear and disappear. Each is served under
// its relative path, unless a ServedDatabase has this name. Paths that are not
// valid names, and everything below a symbolic link, are skipped and logged. An
// unreadable database does not affect the others.
struct ServedTree {
  std::string directory;                // empty: no tree
  std::vector<std::string> allowed{};   // like ServedDatabase::allowed
};

// A database according to its MANIFEST. Its WALs may contain newer writes.
struct DatabaseFacts {
  uint64_t families = 0;
  uint64_t files = 0;  // tables and blob files
  uint64_t bytes = 0;  // size of these files
  uint64_t sequence = 0;
  // Estimated bytes of chunks built from these files, that is, without obsolete
  // data. 0: not requested.
  uint64_t chunk_bytes = 0;
  // Why a pull cannot clone these files; empty: no known reason, or not
  // requested.
  std::string no_clone;
  // Time of the last write to its MANIFEST or a WAL, in seconds since 1970.
  uint64_t written_seconds = 0;
  std::string database_id;  // empty: it has no id
};

// Options of DescribeDatabase().
struct FactsOptions {
  std::string snapshot_dir;           // like ServeOptions::snapshot_dir
  std::vector<std::string> families;  // families to count; empty: all
  // Sets chunk_bytes and no_clone; reads the properties of some tables.
  bool for_pull = false;
  // RocksDB release of the application that will open the files, "8.11.4"; to
  // set no_clone, all tables are then read. Empty: any release.
  std::string application{};
};

// Describes a database directory and checks that a target could read it now, as
// far as possible without a snapshot. Changes nothing. REQUIRES:
// database.directory is set.
//   kSourceError  not a database, not readable, or no private snapshot could be
//                 made
//   kCorrupt      its CURRENT or MANIFEST is damaged
//   kRefused      its WAL directory cannot be determined
[[nodiscard]] rocksdb::Status DescribeDatabase(const ServedDatabase& database,
                                               const FactsOptions& options,
                                               DatabaseFacts* facts);

// Report after a target's connection has ended. For the log and for --once.
struct TransferReport {
  // 0: the transfer has ended and its snapshot is removed. Otherwise only the
  // connection has ended, and the source retains the snapshot for this time;
  // another report follows, unless another transfer takes over the snapshot.
  std::chrono::seconds kept_for{0};
  bool lost = false;  // connection closed without an end state
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
  // Seconds by stage (snapshot, plan, read_build, send_wait, idle), summed over
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
  uint64_t held_bytes = 0;     // WAL bytes kept for all followers together
  uint64_t read_bytes = 0;     // WAL bytes read, counted once
};

// State of a server at one moment, for monitoring.
struct ServerState {
  // Databases that are served now, including those of the tree.
  std::vector<ServedDatabase> databases;
  // Unfinished transfers, with the amounts sent so far. Transfers of an earlier
  // process are included only after a target has resumed them.
  std::vector<TransferReport> transfers;
  // Like the list of a status query, but includes the ids of cuts.
  std::vector<RetainedSnapshot> snapshots;
  // Databases that were followed within the last minute.
  std::vector<FollowedState> followed;
  // Numbers of chunks since the server started: built, and sent again from
  // spool files because several targets read one plan (--spool).
  uint64_t chunks_built = 0;
  uint64_t chunks_from_store = 0;
};

// Clocks and free disk space that a server uses, for tests; unset: the
// system's.
struct LeaseEnvironment {
  std::function<uint64_t()> steady_seconds;
  std::function<uint64_t()> wall_seconds;  // since 1970
  // Free space of the file system that holds the directory, in percent.
  std::function<double(const std::string& directory)> free_percent;
  // Interval between two checks of the retained snapshots.
  std::chrono::milliseconds tick{1000};
};

struct ServeOptions {
  std::vector<ServedDatabase> databases;
  ServedTree tree;
  uint32_t max_lanes = 16;              // per transfer
  uint64_t max_rate_bytes_per_sec = 0;  // wire bytes of all transfers together
  // Never slows down for a database's application that waits for CPUs or its
  // disk.
  bool full_rate = false;
  // Directory for snapshots, on the same file system as each database, and
  // writable. Empty: next to each database.
  std::string snapshot_dir;
  // Maximum number of concurrent transfers. The server tells further targets
  // when to retry.
  uint32_t max_transfers = 64;
  uint32_t max_connections = 1024;      // handshakes and lanes included
  uint32_t max_connections_per_address = 256;
  // Maximum number of connections that have not finished their handshake or not
  // yet requested a database. When there are more, or max_connections is
  // reached, the server closes the oldest of them.
  uint32_t max_half_open = 256;
  uint32_t max_half_open_per_address = 128;  // enough for two 64-lane pulls
  std::chrono::milliseconds handshake_timeout{10'000};
  // Time within which a control connection must request a transfer.
  std::chrono::milliseconds request_timeout{60'000};
  // A target that answers, but reads no byte of a lane for timeouts.stall, gets
  // TOO_SLOW and is disconnected. It may resume as after a lost connection.
  Timeouts timeouts;
  // How long the source retains the snapshot of an unfinished pull while no
  // target is connected, also across a restart of the source. 0: does not
  // retain it.
  std::chrono::seconds snapshot_ttl{3600};
  // Pulls that request the latest snapshot within this time share one snapshot,
  // which is retained for this time. 0: each pull gets its own snapshot.
  std::chrono::seconds share_snapshots{60};
  // Maximum bytes of rebuilt chunks that are kept for the other targets of a
  // shared snapshot, in files next to it. 0: builds chunks for each target.
  uint64_t spool_bytes = 2'000'000'000;
  // Minimum free space on the snapshots' file system, in percent. With less,
  // the source releases idle snapshots, oldest first, then snapshots in use,
  // largest first.
  double min_free_percent = 5;
  // Maximum bytes of a followed database's WALs that stay readable for lagging
  // followers after RocksDB has deleted them. A follower that needs more WALs
  // takes a cut instead.
  uint64_t max_held_bytes = 1'000'000'000;
  // If another process uses the requested snapshot, it may be an earlier server
  // that has not noticed that the target disconnected. While this server is
  // younger than this limit, it tells the target to retry; afterwards, or if 0,
  // the target gets BUSY.
  std::chrono::seconds other_process_limit{0};
  LeaseEnvironment leases;
  OperatorRegistry registry;
  LogFunction log;
  // Called for each lost connection of a pull's target while the snapshot is
  // retained, and once when the pull has ended. Not called for a pull that its
  // target abandons to start over or to clone instead. Called from a thread of
  // the server.
  std::function<void(const TransferReport&)> on_transfer_end;
};

// Serves databases to targets until Stop().
//
// Ownership: owns the listener and all snapshots. The destructor removes all
// snapshots except those with a lease; the next server resumes with these.
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
  // Returns the current state. Reads the leases next to the databases. May be
  // called from any thread.
  virtual ServerState state() = 0;
  // Replaces each database's `allowed` list with that of the same name in
  // options.databases, and the tree's list with that of options.tree. Affects
  // later requests; a running transfer continues until its connection ends. May
  // be called from any thread.
  virtual void SetAllowed(const ServeOptions& options) = 0;
  // Searches the tree for databases now. The server also does so before it
  // answers a target, and every ten seconds. May be called from any thread.
  virtual void LookForDatabases() = 0;
  // Blocks until no connection is open. Returns false after `limit`.
  virtual bool AwaitIdle(std::chrono::milliseconds limit) = 0;
  virtual const std::string& address() const = 0;
};

// Makes a server. Removes snapshots without a lease that crashed processes left
// in the snapshot directories.
//   kRefused  a name is invalid or given twice
[[nodiscard]] rocksdb::Status MakeSourceServer(
    const ServeOptions& options, std::unique_ptr<Listener> listener,
    std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
