// Public interface of a mirror: pulls all databases that a source serves below
// a directory.
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
  // Options of each pull. The source is a server without a name, or a
  // directory with databases below it; target_dir is the directory below which
  // each replica gets the path that its name is; the rate is that of all
  // together; snapshots are not chosen, and there is no selection.
  PullOptions pull;
  uint32_t jobs = 4;  // pulls that run at once
  // Moves the replica of a database that two runs in a row did not find to
  // NAME.old-TIME. Not if the source lists nothing, if its directory is on
  // another file system than at the last run, or if more than half are gone.
  bool delete_vanished = false;
  // Makes what runs of a pull; null: the pull itself. Its options have the
  // database's own source and directory.
  std::function<std::unique_ptr<Operation>(const PullOptions& options,
                                           std::unique_ptr<Operation> pull)>
      wrap;
};

struct FleetMember {
  std::string name;
  std::string target_dir;
  // By PullMode::kPull, where a database is there already: it stays as it is,
  // and `summary` has nothing.
  bool is_present = false;
  // It failed, and the source lists it no longer: that is no failure of the
  // mirror.
  bool is_gone = false;
  Summary summary;
  // How long after the first one its point in time is, at most. Absent: it was
  // not taken together with those of the others.
  std::optional<uint64_t> behind_micros;
};

struct VanishedDatabase {
  std::string name;
  uint32_t runs = 0;     // that did not find it, this one included
  std::string moved_to;  // empty: its replica stays where it is
  std::string problem;   // why it could not be moved
};

struct FleetReport {
  std::vector<FleetMember> members;  // by name
  std::vector<VanishedDatabase> vanished;
  // All points in time that were taken together lie within this.
  std::optional<uint64_t> spread_micros;
  // Why nothing was moved although that was asked for; empty: no reason.
  std::string delete_refused;
};

// The report of Run() is complete whatever that returns. Run()'s summary has
// the sums of all pulls.
//   OK        every database was pulled, or was there already
//   kBusy     another mirror uses the directory
//   kRefused  the source serves nothing; or nothing was moved (delete_refused)
//   others    of the pull that failed; the message says which. The others went
//             on.
class Fleet : public Operation {
 public:
  virtual const FleetReport& report() const = 0;  // after Run()
};
std::unique_ptr<Fleet> MakeFleet(const FleetOptions& options);

}  // namespace sstferry
