// Public interface of commands on all databases of a source. A mirror pulls all
// databases into one directory; other commands plan, verify or push each
// database.
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
  // Options of each pull. The source is a server address without a database
  // name, or a directory that contains databases. Each replica is at
  // target_dir/NAME. The rate limits all pulls together. Choosing snapshots and
  // selecting families or keys are not supported.
  PullOptions pull;
  uint32_t jobs = 4;  // number of concurrent pulls
  // Moves a replica to NAME.old-TIME if its database was missing from the
  // source in two consecutive runs. Moves nothing if the source's list may lack
  // databases or is empty, if its directory is on another file system than in
  // the last run, or if more than half of the databases are missing.
  bool delete_vanished = false;
  // Returns the operation to run instead of `pull`; null: runs `pull` itself.
  // The options contain the database's own source and directory.
  std::function<std::unique_ptr<Operation>(const PullOptions& options,
                                           std::unique_ptr<Operation> pull)>
      wrap;
  // `wrap` returns something other than a pull, such as a verify. Then nothing
  // in target_dir is locked, created or moved, target_dir may be empty, and the
  // databases' snapshots are not taken together. With delete_vanished, the
  // report lists what a run would move.
  bool has_own_operations = false;
  // Only with has_own_operations. replicas_dir: a directory with a replica of
  // each database, by name. archives: an address below which each database has
  // its archive, by name. Both are only read. The run fails at its end if the
  // source's list lacks such a database that may still exist, or if the replicas
  // or archives cannot be listed.
  std::string replicas_dir;
  std::optional<StoreOptions> archives;
};

// Returns the address of database `name` of the source `all`.
SourceAddress AddressOfDatabase(const SourceAddress& all,
                                const std::string& name);

struct FleetMember {
  std::string name;
  std::string target_dir;  // empty if the fleet's target_dir is empty
  // PullMode::kPull only: the directory already holds a database, which was not
  // changed. A known fault of that database is a failure, as with
  // PullOptions::if_absent.
  bool is_present = false;
  // The pull failed because the source no longer has the database. The mirror
  // does not count this as a failure.
  bool is_gone = false;
  Summary summary;
  // Maximum time between the first snapshot and this one. Absent: this snapshot
  // was not taken together with the others.
  std::optional<uint64_t> behind_micros;
};

struct VanishedDatabase {
  std::string name;
  uint32_t runs = 0;     // consecutive runs without it, including this one
  bool would_move = false;  // only a plan: a run would move its replica
  std::string moved_to;  // empty: its replica was not moved
  std::string problem;   // why the replica could not be moved
};

struct FleetReport {
  std::vector<FleetMember> members;  // sorted by name
  std::vector<VanishedDatabase> vanished;
  // Maximum time between the snapshots that were taken together.
  std::optional<uint64_t> spread_micros;
  // Why delete_vanished was refused; empty: it was not.
  std::string delete_refused;
  // OK: `members` has all databases of the source. Otherwise, the reason why it
  // may lack some.
  rocksdb::Status list_status;
};

// A mirror run. report() is complete even if Run() fails. The summary of Run()
// contains the sums over all pulls.
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
  virtual const FleetReport& report() const = 0;  // after Run()
};
std::unique_ptr<Fleet> MakeFleet(const FleetOptions& options);

}  // namespace sstferry
