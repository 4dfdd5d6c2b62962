// Public interface of a command on all databases of a source: a mirror pulls
// them into one directory; others plan, verify or push each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sstferry/options.h"
#include "sstferry/target.h"

namespace sstferry {

inline constexpr uint32_t kMaxFleetJobs = 64;

struct FleetOptions {
  // Options of each pull. The source is a server without a name, or a directory
  // that contains databases. Below target_dir each replica gets its name as its
  // path. The rate limits all pulls together. Choosing snapshots and selecting
  // families or keys are not supported.
  PullOptions pull;
  uint32_t jobs = 4;  // number of concurrent pulls
  // Moves the replica of a database that was missing in two runs in a row to
  // NAME.old-TIME. Nothing is moved if the source lists nothing, if its
  // directory is on another file system than in the last run, or if more than
  // half of the databases are missing.
  bool delete_vanished = false;
  // Makes the operation that runs for a pull; null: the pull itself. The
  // options contain the database's own source and directory.
  std::function<std::unique_ptr<Operation>(const PullOptions& options,
                                           std::unique_ptr<Operation> pull)>
      wrap;
  // `wrap` makes another operation than a pull, such as a verify. Nothing is
  // locked or created in target_dir, which may be empty, and the databases are
  // not pinned together.
  bool has_own_operations = false;
};

// Returns the address of one of the databases of `all`.
SourceAddress AddressOfDatabase(const SourceAddress& all,
                                const std::string& name);

struct FleetMember {
  std::string name;
  std::string target_dir;  // empty without a target_dir of all
  // PullMode::kPull only: a database is already there. It stays as it is, and
  // `summary` is empty.
  bool is_present = false;
  // The pull failed, and the source no longer lists the database. The mirror
  // does not count this as a failure.
  bool is_gone = false;
  Summary summary;
  // Maximum time between the first snapshot and this one. Absent: it was not
  // taken together with the others.
  std::optional<uint64_t> behind_micros;
};

struct VanishedDatabase {
  std::string name;
  uint32_t runs = 0;     // in a row without it, including this one
  std::string moved_to;  // empty: its replica was not moved
  std::string problem;   // why it could not be moved
};

struct FleetReport {
  std::vector<FleetMember> members;  // by name
  std::vector<VanishedDatabase> vanished;
  // Maximum distance between the snapshots that were taken together.
  std::optional<uint64_t> spread_micros;
  // Why nothing was moved although this was requested; empty: not refused.
  std::string delete_refused;
};

// A mirror run. report() is complete whatever Run() returns. The summary of
// Run() contains the sums over all pulls.
//   OK        every database was pulled, or was already there
//   kBusy     another mirror uses the directory
//   kRefused  the source serves nothing; or nothing was moved (delete_refused)
//   others    from the operation that failed worst, whose database the message
//             names; the other operations were completed
class Fleet : public Operation {
 public:
  virtual const FleetReport& report() const = 0;  // after Run()
};
std::unique_ptr<Fleet> MakeFleet(const FleetOptions& options);

}  // namespace sstferry
