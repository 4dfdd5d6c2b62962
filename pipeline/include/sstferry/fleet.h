// Public interface for commands on all databases of a source. A mirror pulls
// all databases into one directory. Other commands run a plan, a verify or a
// push for each database.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sstferry/options.h"
#include "sstferry/store_options.h"
#include "sstferry/target.h"

namespace sstferry {

inline constexpr uint32_t kMaxFleetJobs = 64;

struct FleetOptions {
  // Options of each pull. The source is a directory that contains databases, or
  // a server address without a database name. Each replica is at
  // target_dir/NAME. max_rate_bytes_per_sec limits all pulls together. Options
  // that choose a snapshot, families or keys are not supported.
  PullOptions pull;
  uint32_t jobs = 4;  // number of concurrent pulls
  // Moves a replica to NAME.old-TIME if the source did not list its database in
  // two consecutive runs. Moves nothing in these cases:
  // - the source's list may lack databases, or is empty
  // - the run has another source than the last run, or the source's directory
  //   is on another file system
  // - more than half of the databases are missing
  bool delete_vanished = false;
  // Returns the operation to run for one database, for example a verify.
  // `options` has the address and the directory of this database, and `pull` is
  // the default operation. Null: runs `pull`.
  std::function<std::unique_ptr<Operation>(const PullOptions& options,
                                           std::unique_ptr<Operation> pull)>
      wrap;
  // True if `wrap` replaces the pulls, for example by a verify. The run then
  // locks, creates and moves nothing in target_dir, and target_dir may be
  // empty. The databases' snapshots are not taken together. With
  // delete_vanished, the report lists the replicas that a mirror would move.
  bool has_own_operations = false;
  // Two places to search for databases that the source must list. Used only
  // with has_own_operations, and only read. replicas_dir is a directory that
  // has a replica of each database, by name. archives is an address below which
  // each database has its archive, by name. The run fails at its end if the
  // source does not list one of these databases and the database may still
  // exist, or if the search fails.
  std::string replicas_dir;
  std::optional<StoreOptions> archives;
};

// Returns the address of one database of the source `all`.
SourceAddress AddressOfDatabase(const SourceAddress& all,
                                const std::string& name);

struct FleetMember {
  std::string name;
  std::string target_dir;  // empty if the fleet's target_dir is empty
  // PullMode::kPull only: true if the directory already had a database, which
  // stays unchanged. If a fault of that database is known, the pull fails, as
  // with PullOptions::if_absent.
  bool is_present = false;
  // True if the pull failed because the source no longer has the database. A
  // mirror does not count this as a failure.
  bool is_gone = false;
  Summary summary;
  // Maximum time between the first snapshot and this one. Not set if this
  // snapshot was not taken together with the others.
  std::optional<uint64_t> behind_micros;
};

struct VanishedDatabase {
  std::string name;
  // Number of consecutive runs in which the source did not list the database.
  // Includes this run.
  uint32_t runs = 0;
  // Set only by a plan: a mirror would move the replica.
  bool would_move = false;
  // New path of the replica. Empty: it was not moved.
  std::string moved_to;
  // Why the replica could not be moved. Otherwise empty.
  std::string problem;
};

struct FleetReport {
  std::vector<FleetMember> members;  // sorted by name
  std::vector<VanishedDatabase> vanished;
  // Time between the first and the last of the snapshots that were taken
  // together.
  std::optional<uint64_t> spread_micros;
  // Why this run must not move any replica. Empty: no such reason.
  std::string delete_refused;
  // OK if `members` has all databases of the source. Otherwise, why the
  // source's list may lack databases, or why replicas_dir or archives could not
  // be searched.
  rocksdb::Status list_status;
};

// Runs an operation for each database of a source. report() is complete even if
// Run() fails. The summary of Run() contains the sums over all operations.
//   OK        every database was pulled, or already present without a known
//             fault
//   kBusy     another mirror uses the directory
//   kRefused  the source serves no database; or nothing was moved
//             (delete_refused)
//   kSourceError  the source's list may lack databases; all that it lists were
//                 completed
//   others    the worst error of all operations, with the name of its database,
//             or why replicas_dir or archives could not be searched; the other
//             operations were completed
class Fleet : public Operation {
 public:
  // Returns the report. Valid after Run().
  virtual const FleetReport& report() const = 0;
};
std::unique_ptr<Fleet> MakeFleet(const FleetOptions& options);

}  // namespace sstferry
