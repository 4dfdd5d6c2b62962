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

// As an entry of ServedDatabase::allowed: allows every target that may connect.
inline constexpr char kEveryPeer[] = "*";

// A database to serve: either a directory, or a database that the application
// has open. A directory may be closed, or a checkpoint, or another process may
// have it open and write to it. All three are served in the same way.
struct ServedDatabase {
  std::string name;
  // Path of the database. Empty if `db` or `origin` is set.
  std::string directory;
  // A database that this process has open. Serving it flushes it, then reads
  // its directory. The caller keeps ownership.
  rocksdb::DB* db = nullptr;
  // Only with `db`: handles of the column families whose comparators or merge
  // operators RocksDB cannot find by name.
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  // A target may use the database if its certificate has one of these names
  // (PeerIdentity::names), byte for byte. An empty list, or kEveryPeer in it,
  // allows every target that may connect.
  std::vector<std::string> allowed{};
  // Only with `directory`: the database's WAL directory, which overrides
  // OPTIONS. Empty: found from OPTIONS and MANIFEST.
  std::string wal_dir{};
  // Replaces ServeOptions::snapshot_dir for this database, if it is not empty.
  std::string snapshot_dir{};
  // Set by the library for an archive, instead of `directory` and `db`.
  std::shared_ptr<SnapshotOrigin> origin{};
};

// A directory below which databases may be added and removed while they are
// served. The name of each database is its relative path. If a ServedDatabase
// has the same name, that one is served instead. Paths that are not valid
// names, and everything below a symbolic link, are skipped and logged. If one
// database cannot be read, the others are still served.
struct ServedTree {
  // Empty: no tree is served.
  std::string directory;
  // Names of targets, as in ServedDatabase::allowed.
  std::vector<std::string> allowed{};
};

// Facts about a database from its MANIFEST. Its WALs may have newer writes.
struct DatabaseFacts {
  uint64_t families = 0;
  // Number and size of the tables and blob files.
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t sequence = 0;
  // Estimated size of chunks built from these files. Chunks have no obsolete
  // data. 0: the estimate was not requested.
  uint64_t chunk_bytes = 0;
  // Why a pull cannot clone these files. Empty: no reason is known, or the
  // caller did not request it.
  std::string no_clone;
  // Time of the last write to the MANIFEST or a WAL, in seconds since 1970.
  uint64_t written_seconds = 0;
  // Empty: the database has no id.
  std::string database_id;
};

// Options of DescribeDatabase().
struct FactsOptions {
  // Directory for snapshots, as in ServeOptions.
  std::string snapshot_dir;
  // Column families to count. Empty: all.
  std::vector<std::string> families;
  // If true, DescribeDatabase() reads the properties of some tables and sets
  // chunk_bytes and no_clone.
  bool for_pull = false;
  // RocksDB release of the application that will open the files, such as
  // "8.11.4". If it is set and for_pull is true, all tables are read to set
  // no_clone. Empty: any release.
  std::string application{};
};

// Describes a database directory, and changes nothing. Also checks, without
// taking a snapshot, that a target could read the database now. REQUIRES:
// database.directory is set.
//   kSourceError  not a database, not readable, or no private snapshot could be
//                 made
//   kCorrupt      its CURRENT or MANIFEST is damaged
//   kRefused      its WAL directory cannot be determined
[[nodiscard]] rocksdb::Status DescribeDatabase(const ServedDatabase& database,
                                               const FactsOptions& options,
                                               DatabaseFacts* facts);

// Report about a transfer, made after a connection of its target has ended.
// Used for the log and for `serve --once`.
struct TransferReport {
  // 0: the transfer has ended, and the source has removed its snapshot.
  // Otherwise only the connection has ended, and the source retains the
  // snapshot for this time. Another report then follows, unless another
  // transfer takes over the snapshot.
  std::chrono::seconds kept_for{0};
  // True if the connection ended without a final result of the transfer.
  bool lost = false;
  std::string transfer_id;
  std::string name;
  std::string peer;
  rocksdb::Status status;
  std::string error_where;
  uint64_t entries = 0;
  uint64_t sst_bytes = 0;
  uint64_t wire_bytes = 0;
  double seconds = 0;
  // True if a target is connected at the moment.
  bool connected = false;
  // Seconds that all lanes together have spent in each stage: snapshot, plan,
  // read_build, send_wait and idle.
  std::map<std::string, double> stage_seconds;
  // Number of options in the database's OPTIONS file that this version of
  // sstferry does not know. Not set: the file was not read yet.
  std::optional<uint64_t> unknown_options;
};

// A database that standbys follow.
struct FollowedState {
  std::string database;
  std::vector<FollowerState> followers;
  // WAL bytes that are kept for all followers together.
  uint64_t held_bytes = 0;
  // WAL bytes that were read. Bytes for several followers are read and counted
  // once.
  uint64_t read_bytes = 0;
};

// State of a server at one moment, for monitoring.
struct ServerState {
  // Databases that are served at this moment, including those of the tree.
  std::vector<ServedDatabase> databases;
  // Unfinished transfers, with the numbers of bytes and entries that were sent.
  // A transfer that an earlier process began is included after its target has
  // resumed it.
  std::vector<TransferReport> transfers;
  // Retained snapshots, as in the answer to a status query, but also with the
  // ids of cuts.
  std::vector<RetainedSnapshot> snapshots;
  // Databases that were followed within the last minute.
  std::vector<FollowedState> followed;
  // Numbers of chunks since the server started. chunks_built counts chunks that
  // were built. chunks_from_store counts chunks that were sent again from
  // files, because several targets pulled one snapshot (--spool).
  uint64_t chunks_built = 0;
  uint64_t chunks_from_store = 0;
};

// Replaces the clocks and the free space of the system in tests. If a function
// is not set, the server uses the system's.
struct LeaseEnvironment {
  std::function<uint64_t()> steady_seconds;
  // Seconds since 1970.
  std::function<uint64_t()> wall_seconds;
  // Returns the free space of the directory's file system, in percent.
  std::function<double(const std::string& directory)> free_percent;
  // Interval between two checks of the retained snapshots.
  std::chrono::milliseconds tick{1000};
};

struct ServeOptions {
  std::vector<ServedDatabase> databases;
  ServedTree tree;
  // Maximum number of lanes of one transfer.
  uint32_t max_lanes = 16;
  // Maximum rate of all transfers together, in bytes on the wire. 0: no limit.
  uint64_t max_rate_bytes_per_sec = 0;
  // Does not slow down when a database's application waits for CPUs or for its
  // disk.
  bool full_rate = false;
  // Directory for snapshots. It must be writable and on the same file system as
  // each database. Empty: snapshots are made next to each database.
  std::string snapshot_dir;
  // Maximum number of concurrent transfers. If it is reached, the server tells
  // another target when to try again.
  uint32_t max_transfers = 64;
  // Includes connections in a handshake and connections of lanes.
  uint32_t max_connections = 1024;
  uint32_t max_connections_per_address = 256;
  // Maximum number of connections that have not yet finished their handshake
  // and requested a database. If this limit or max_connections is reached, the
  // server closes the oldest of these connections.
  uint32_t max_half_open = 256;
  // Allows two pulls with 64 lanes each to connect at once.
  uint32_t max_half_open_per_address = 128;
  std::chrono::milliseconds handshake_timeout{10'000};
  // Time in which a control connection must request a transfer.
  std::chrono::milliseconds request_timeout{60'000};
  // Limits for waiting. If a target answers, but reads no byte of a lane for
  // timeouts.stall, it is disconnected with TOO_SLOW. It can then resume the
  // pull, as after a lost connection.
  Timeouts timeouts;
  // How long the source retains the snapshot of an unfinished pull while no
  // target is connected. A restart of the source does not change this. 0: the
  // snapshot is not retained.
  std::chrono::seconds snapshot_ttl{3600};
  // If several pulls request the latest snapshot within this time, they share
  // one snapshot, and it is retained for this time. 0: each pull gets its own
  // snapshot.
  std::chrono::seconds share_snapshots{60};
  // Maximum size of the files in which the source keeps built chunks of a
  // shared snapshot, to send them to other targets. 0: chunks are built again
  // for each target.
  uint64_t spool_bytes = 2'000'000'000;
  // Minimum free space on the file system of the snapshots, in percent. If
  // there is less, the source releases snapshots: first idle snapshots, from
  // the oldest, then snapshots in use, from the largest.
  double min_free_percent = 5;
  // Maximum size of a database's WALs that the source keeps for lagging
  // followers after RocksDB has deleted them. A follower that needs older WALs
  // takes a cut instead.
  uint64_t max_held_bytes = 1'000'000'000;
  // If another process uses the snapshot that a target requests, it may be an
  // earlier server that has not noticed that the target disconnected. Until
  // this server has run for this time, it tells the target to try again.
  // Afterwards, or if the limit is 0, the target gets BUSY.
  std::chrono::seconds other_process_limit{0};
  LeaseEnvironment leases;
  OperatorRegistry registry;
  LogFunction log;
  // Called whenever a pull's target has lost its connection while the snapshot
  // is retained, and once when the pull has ended. Not called if the target
  // abandons the pull, to start over or to clone instead. The calling thread
  // belongs to the server. Not called after Run() has returned.
  std::function<void(const TransferReport&)> on_transfer_end;
};

// Serves databases to targets until Stop().
//
// Ownership: owns the listener and all snapshots. The destructor removes the
// snapshots, except those that are retained for an unfinished pull; the next
// server continues with these.
// Threads: Run() blocks until Stop(), and joins all threads before it returns.
// Stop() may be called from any thread and takes at most five seconds.
class SourceServer {
 public:
  virtual ~SourceServer() = default;
  [[nodiscard]] virtual rocksdb::Status Run() = 0;
  virtual void Stop() = 0;
  // Replaces the maximum rate of all transfers together. 0: no limit. May be
  // called from any thread.
  virtual void SetMaxRate(uint64_t wire_bytes_per_sec) = 0;
  // Returns the current state. Reads the records of retained snapshots next to
  // the databases. May be called from any thread.
  virtual ServerState state() = 0;
  // Replaces the `allowed` list of each database and of the tree by the lists
  // in `options`. Databases are matched by name. The new lists apply to later
  // requests. A running transfer continues until its connection ends. May be
  // called from any thread.
  virtual void SetAllowed(const ServeOptions& options) = 0;
  // Searches the tree for databases now. The server also does this every ten
  // seconds, and before it answers a target. May be called from any thread.
  virtual void LookForDatabases() = 0;
  // Blocks until no connection is open. If this takes longer than `limit`,
  // returns false.
  virtual bool AwaitIdle(std::chrono::milliseconds limit) = 0;
  virtual const std::string& address() const = 0;
};

// Makes a server. Removes snapshots that crashed processes left in the snapshot
// directories, unless they are retained for an unfinished pull.
//   kRefused  a name is invalid or given twice
[[nodiscard]] rocksdb::Status MakeSourceServer(
    const ServeOptions& options, std::unique_ptr<Listener> listener,
    std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
