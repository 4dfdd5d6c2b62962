// The source's public face: serve databases to targets. Never writes into a
// served database.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
}

namespace sstferry {

// A directory (closed, a checkpoint, or open and written by another process:
// the same), or an application's open database.
struct ServedDatabase {
  std::string name;
  std::string directory;       // set, or:
  rocksdb::DB* db = nullptr;   // borrowed; flushed, then as a directory
  // Of db: families whose operators RocksDB does not know by name.
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  // Names (PeerIdentity::names), one of which a target's certificate must
  // have; empty: any target that may connect. Compared byte for byte.
  std::vector<std::string> allowed{};
  // Of a directory: where its WALs are, whatever its OPTIONS say; empty: where
  // its OPTIONS and MANIFEST tell.
  std::string wal_dir{};
};

// How a target's connection ended, for the log and for --once.
struct TransferReport {
  // 0: the transfer is over, its snapshot is gone. Otherwise only its target's
  // connection is, and the snapshot is kept for so long: another report comes.
  std::chrono::seconds kept_for{0};
  bool lost = false;  // the connection went, and the target did not say why
  std::string transfer_id;
  std::string name;
  std::string peer;
  rocksdb::Status status;
  std::string error_where;
  uint64_t entries = 0;
  uint64_t sst_bytes = 0;
  uint64_t wire_bytes = 0;
  double seconds = 0;
};

// How a server sees time pass; unset: as the system does. For tests.
struct LeaseEnvironment {
  std::function<uint64_t()> steady_seconds;
  std::function<uint64_t()> wall_seconds;  // since 1970
  // Of the file system that holds the directory, in percent of its size.
  std::function<double(const std::string& directory)> free_percent;
  // Between two looks at what is held.
  std::chrono::milliseconds tick{1000};
};

struct ServeOptions {
  std::vector<ServedDatabase> databases;
  uint32_t max_lanes = 16;              // per transfer
  uint64_t max_rate_bytes_per_sec = 0;  // wire bytes of all transfers together
  std::string snapshot_dir;             // empty: beside each database
  uint32_t max_transfers = 64;
  uint32_t max_connections = 1024;      // handshakes and lanes included
  uint32_t max_connections_per_address = 256;
  // Connections that have not shaken hands: one more, and the oldest goes.
  uint32_t max_half_open = 256;
  uint32_t max_half_open_per_address = 128;  // two pulls of 64 lanes
  std::chrono::milliseconds handshake_timeout{10'000};
  // A control connection that asks for no transfer.
  std::chrono::milliseconds request_timeout{60'000};
  std::chrono::milliseconds peer_timeout{10'000};  // two silent intervals
  std::chrono::milliseconds ping_interval{5'000};
  // A target that answers but takes no byte of a lane for so long: TOO_SLOW.
  std::chrono::milliseconds stall_timeout{120'000};
  // How long a snapshot of an unfinished pull is kept with no target connected,
  // over a restart of the source, too; 0: not at all.
  std::chrono::seconds snapshot_ttl{3600};
  // Of the file system that holds the snapshots: below it idle ones are
  // released, the oldest first, then the largest in use.
  double min_free_percent = 5;
  LeaseEnvironment leases;
  OperatorRegistry registry;
  LogFunction log;
  // Called once per ended pull (but not for one that its target drops to begin
  // anew), and before that for each connection of its target that was lost
  // while its snapshot is kept; from a thread of the
  // server.
  std::function<void(const TransferReport&)> on_transfer_end;
};

// Ownership: owns the listener and all snapshots; when it is gone, so are they,
//   but for those whose lease the next server goes on with.
// Threads:   Run() blocks until Stop() and joins every thread before it
//   returns; Stop() from any thread, within five seconds.
class SourceServer {
 public:
  virtual ~SourceServer() = default;
  [[nodiscard]] virtual rocksdb::Status Run() = 0;
  virtual void Stop() = 0;
  // Of all transfers together, from now on; 0: no limit. From any thread.
  virtual void SetMaxRate(uint64_t wire_bytes_per_sec) = 0;
  // Waits until no connection is open; false after `limit`.
  virtual bool AwaitIdle(std::chrono::milliseconds limit) = 0;
  virtual const std::string& address() const = 0;
};

// kRefused for a doubled or bad name; removes what dead processes left in the
// snapshot directories.
[[nodiscard]] rocksdb::Status MakeSourceServer(
    const ServeOptions& options, std::unique_ptr<Listener> listener,
    std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
