// The databases that a server serves: those that it was given, and those that
// are below a directory at the moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "pipeline/snapshot/database_tree.h"
#include "sstferry/rate_limited_log.h"
#include "sstferry/source.h"

namespace sstferry {

// Returns the parent of a database's private snapshots, as SnapshotParent()
// takes it. `of_server`: ServeOptions::snapshot_dir.
const std::string& SnapshotDirOf(const ServedDatabase& database,
                                 const std::string& of_server);

// The databases that are served at one moment.
struct ServedSet {
  std::vector<ServedDatabase> databases;
  std::map<std::string, size_t> places;  // in `databases`, by name
  std::map<std::string, std::string> directories;  // real paths, by name
  std::set<std::string> snapshot_parents;          // of private directories
  uint64_t file_system = 0;  // of the directory that is looked through; 0: none
  // Null: there is none of that name.
  const ServedDatabase* Find(const std::string& name) const;
};

// Ownership: borrows the options.
// Threads:   any.
class ServedDatabases {
 public:
  explicit ServedDatabases(const ServeOptions* options);

  // Returns what is served, of a look that is not older than that, or than ten
  // times what the look took.
  std::shared_ptr<const ServedSet> Now(
      std::chrono::seconds max_age = std::chrono::seconds(0));
  // Returns what is served, of a look that began after the call: what was made
  // before is in it. Blocks until it is time for one, for a second at most;
  // where looks cost more than a tenth of that, the last one must do.
  std::shared_ptr<const ServedSet> AfterNow();
  // Looks now.
  void Look();
  // Replaces who may read what.
  void SetAllowed(const ServeOptions& options);
  bool MayRead(const std::string& name, const PeerIdentity* peer);

 private:
  using Clock = std::chrono::steady_clock;

  void LookLocked();
  void LogChanges(const ServedSet& next);
  void Log(LogLevel level, const std::string& line);

  const ServeOptions* const options_;
  std::mutex mu_;
  std::shared_ptr<const ServedSet> set_;  // under mu_, and all below
  std::string directory_problem_;         // the last that was logged
  std::set<std::string> problems_;        // the same, of the last look
  Clock::time_point began_{};   // the last look
  Clock::time_point looked_{};  // it ended
  std::chrono::nanoseconds took_{};  // of CPU time
  std::map<std::string, std::set<std::string>> allowed_;
  std::set<std::string> tree_allowed_;
  RateLimitedLog log_;
};

}  // namespace sstferry
