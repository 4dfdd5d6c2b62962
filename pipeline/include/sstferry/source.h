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

// In ServedDatabase::allowed: any target that may connect.
inline constexpr char kEveryPeer[] = "*";

// A database to serve: a directory (closed, a checkpoint, or open and written
// by another process, all treated alike), or an application's open database.
struct ServedDatabase {
  std::string name;
  std::string directory;       // set, or:
  rocksdb::DB* db = nullptr;   // borrowed; flushed, then read as a directory
  // For db: handles of families whose operators RocksDB does not know by name.
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  // Names (PeerIdentity::names) of which a target's certificate must have one;
  // empty or kEveryPeer: any target that may connect. Compared byte for byte.
  std::vector<std::string> allowed{};
  // For a directory: its WAL directory, which overrides OPTIONS. Empty: found
  // from OPTIONS and MANIFEST.
  std::string wal_dir{};
  // As ServeOptions::snapshot_dir, where that is empty.
  std::string snapshot_dir{};
  // Set instead of directory and db, by the library alone: an archive.
  std::shared_ptr<SnapshotOrigin> origin{};
};

// A directory below which databases come and go. Each is served by its path
// from there, unless a ServedDatabase has that name. A path that is no valid
// name, and what is behind a symbolic link, is left out, with a line in the
// log. One that cannot be read stops no other.
struct ServedTree {
  std::string directory;                // empty: none
  std::vector<std::string> allowed{};   // of each, as ServedDatabase::allowed
};

// A database as its MANIFEST records it. Its WALs may hold more.
struct DatabaseFacts {
  uint64_t families = 0;
  uint64_t files = 0;  // tables and blob files
  uint64_t bytes = 0;  // of these files
  uint64_t sequence = 0;
  // Estimate of what chunks of these files would hold: the same without
  // obsolete data. 0: not asked for.
  uint64_t chunk_bytes = 0;
  // When its MANIFEST or a WAL was last written to, since 1970.
  uint64_t written_seconds = 0;
  std::string database_id;  // empty: it has none
};

// Says what DescribeDatabase() is to describe.
struct FactsOptions {
  std::string snapshot_dir;           // as in ServeOptions
  std::vector<std::string> families;  // counted are these; empty: all
  // Sets chunk_bytes; reads the properties of some tables for it.
  bool estimates_chunks = false;
};

// Describes a directory and checks that a target could open it now, as far as
// that shows without taking a snapshot. Changes nothing. REQUIRES:
// database.directory is set.
//   kSourceError  not a database, not readable, or no private snapshot could be
//                 made
//   kCorrupt      its CURRENT or MANIFEST is damaged
//   kRefused      the place of its WALs is not certain
[[nodiscard]] rocksdb::Status DescribeDatabase(const ServedDatabase& database,
                                               const FactsOptions& options,
                                               DatabaseFacts* facts);

// How a target's connection ended. For the log and for --once.
struct TransferReport {
  // 0: the transfer has ended and its snapshot is removed. Otherwise only the
  // target's connection has ended, the source retains the snapshot for this
  // time, and another report follows, unless another transfer takes the place.
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
  // Time by stage (snapshot, plan, read_build, send_wait, idle), that of all
  // lanes added up.
  std::map<std::string, double> stage_seconds;
  // Options in the database's OPTIONS that this version does not know; unset:
  // not read yet.
  std::optional<uint64_t> unknown_options;
};

// A database that standbys follow.
struct FollowedState {
  std::string database;        // its name
  std::vector<FollowerState> followers;
  uint64_t held_bytes = 0;     // of WALs, for all followers
  uint64_t read_bytes = 0;     // of WALs, once for all followers
};

// Tells what a server does and holds at one moment. For monitoring.
struct ServerState {
  // The databases that are served now, with those of the tree.
  std::vector<ServedDatabase> databases;
  // Transfers that have not ended, with what they have sent so far. Not those
  // that an earlier process began and nobody has resumed.
  std::vector<TransferReport> transfers;
  // As a status query lists them, with cut ids.
  std::vector<RetainedSnapshot> snapshots;
  // The databases that were followed within the last minute.
  std::vector<FollowedState> followed;
  // Chunks that the server built since it started, and those that it sent
  // again from its files because several targets read one plan (--spool).
  uint64_t chunks_built = 0;
  uint64_t chunks_from_store = 0;
};

// Clocks and disk space as a server reads them; unset: from the system. For
// tests.
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
  // Does not hold back where a database's application waits for CPUs or its
  // disk.
  bool full_rate = false;
  // On the file system of each database that can be written to. Empty: beside
  // each database.
  std::string snapshot_dir;
  // Further targets are told when to ask again.
  uint32_t max_transfers = 64;
  uint32_t max_connections = 1024;      // handshakes and lanes included
  uint32_t max_connections_per_address = 256;
  // Maximum of connections that were given nothing: they have not finished
  // their handshake, or did not ask for a database. For a further one, and where
  // all places are taken, the server closes the oldest of them.
  uint32_t max_half_open = 256;
  uint32_t max_half_open_per_address = 128;  // enough for two 64-lane pulls
  std::chrono::milliseconds handshake_timeout{10'000};
  // Deadline for a control connection to ask for a transfer.
  std::chrono::milliseconds request_timeout{60'000};
  // A target that answers but takes no byte of a lane for timeouts.stall is
  // told TOO_SLOW and disconnected. It may resume, as if it had been lost.
  Timeouts timeouts;
  // Time for which the source retains the snapshot of an unfinished pull while
  // no target is connected, also across a restart of the source. 0: not at all.
  std::chrono::seconds snapshot_ttl{3600};
  // Pulls that ask for the latest snapshot within this time of each other get
  // the same one, which is kept for so long. 0: each gets its own.
  std::chrono::seconds share_snapshots{60};
  // Bytes of rebuilt chunks that are kept for the other targets of a shared
  // snapshot, in files beside it. 0: each target gets chunks of its own.
  uint64_t spool_bytes = 2'000'000'000;
  // Minimum of free space on the file system that holds the snapshots. Below it
  // the source releases idle snapshots, the oldest first, then the largest in
  // use.
  double min_free_percent = 5;
  // Bytes of a followed database's WALs that stay readable for followers that
  // are behind, once RocksDB has deleted them. One that needs more takes a cut.
  uint64_t max_held_bytes = 1'000'000'000;
  // A target whose snapshot another process has is asked to come again, while
  // this server is not older: that process may be an earlier server that has
  // not noticed that the target left it. 0: it is told BUSY.
  std::chrono::seconds other_process_limit{0};
  LeaseEnvironment leases;
  OperatorRegistry registry;
  LogFunction log;
  // Called once per ended pull, except for one that its target drops to start
  // over or to clone instead. Before that, called for each lost connection of
  // the pull's target while the snapshot is retained. Called from a thread of
  // the server.
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
  // Takes `allowed` of options.databases, by name, and of options.tree. Counts
  // for what a target asks for from now on; a transfer that moves data goes on
  // until its connection ends. May be called from any thread.
  virtual void SetAllowed(const ServeOptions& options) = 0;
  // Looks for databases of the tree now. The server does so by itself before it
  // answers a target, and every ten seconds. May be called from any thread.
  virtual void LookForDatabases() = 0;
  // Waits until no connection is open. Returns false after `limit`.
  virtual bool AwaitIdle(std::chrono::milliseconds limit) = 0;
  virtual const std::string& address() const = 0;
};

// kRefused: a name is invalid or given twice. Removes the leftovers of dead
// processes in the snapshot directories.
[[nodiscard]] rocksdb::Status MakeSourceServer(
    const ServeOptions& options, std::unique_ptr<Listener> listener,
    std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
