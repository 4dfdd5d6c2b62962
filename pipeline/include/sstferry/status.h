// What is held and how far it came: the snapshots a source keeps, the state of
// a TARGET_DIR. Looks and changes nothing, but for ReleaseSnapshot().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/types.h"
#include "sstferry/options.h"

namespace sstferry {

struct StatusOptions {
  // A server (without a name: all databases that it lets us read), or a
  // directory: a source, a TARGET_DIR, or both.
  SourceAddress where;
  std::string snapshot_dir;  // of a source directory; empty: beside it
  TlsFiles tls;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds peer_timeout{10'000};
  std::chrono::milliseconds stall_timeout{120'000};  // as a pull's
};

// What TARGET_DIR/last_transfer.json says.
struct CompletedPull {
  std::string transfer_id;
  std::string source;
  std::optional<uint64_t> snapshot_sequence;
  std::string finished_at;  // RFC 3339
};

// What TARGET_DIR.sstferry/ holds.
struct UnfinishedPull {
  bool running = false;    // a pull works there now
  std::string transfer_id; // empty: nothing was recorded, and so all below
  std::string source;
  uint64_t snapshot_sequence = 0;
  uint64_t planned_bytes = 0;       // an estimate
  uint64_t planned_bytes_done = 0;  // recorded of these
  uint64_t chunks = 0;
  uint64_t sst_bytes = 0;
  bool all_received = false;  // only the last steps are missing
  std::string damage;         // why the journal cannot be gone on with
  // In percent of planned_bytes; 100 only when all is received.
  double percent() const;
};

struct TargetState {
  std::optional<CompletedPull> complete;      // TARGET_DIR is whole
  std::optional<UnfinishedPull> unfinished;
  // `complete` was filled by a pull that has not removed its workspace.
  bool has_leftover = false;
  std::string next;  // a command; empty: there is nothing to do, or to wait
};

struct StatusReport {
  rocksdb::Status status;
  bool is_source = false;
  bool is_target = false;
  std::vector<HeldSnapshot> snapshots;  // the oldest first
  // Snapshots beside a source directory that are another user's.
  uint64_t foreign_snapshots = 0;
  TargetState target;
};

// Threads: Run() from one thread, once; Cancel() from any.
class StatusQuery {
 public:
  virtual ~StatusQuery() = default;
  // report->status is what it returns.
  //   kRefused   neither a source nor a TARGET_DIR; no such name
  //   kDenied    the name is not for this side
  //   kDeadPeer  nobody answers
  [[nodiscard]] virtual rocksdb::Status Run(StatusReport* report) = 0;
  virtual void Cancel() = 0;
};
std::unique_ptr<StatusQuery> MakeStatusQuery(const StatusOptions& options);

// Lets the snapshot go that a source directory holds for the transfer whose id
// begins with `id`, 8 to 32 hex digits. A server that has it is asked to.
//   kRefused  none is held, or more than one: says which are
//   kBusy     a target is connected to it
[[nodiscard]] rocksdb::Status ReleaseSnapshot(const std::string& directory,
                                              const std::string& snapshot_dir,
                                              const std::string& id,
                                              HeldSnapshot* released);

}  // namespace sstferry
