// The databases that a server serves: the databases in its options, and those
// that it finds below a directory (the tree).
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

// Returns the snapshot directory of a database, which is passed to
// SnapshotParent(). If `of_server` (ServeOptions::snapshot_dir) is not empty,
// returns it.
const std::string& SnapshotDirOf(const ServedDatabase& database,
                                 const std::string& of_server);

// Returns the subject of the peer's certificate for a message. If `peer` is
// null, returns "a peer without a certificate".
std::string NameOfPeer(const PeerIdentity* peer);

// The databases that a server serves at one moment.
struct ServedSet {
  std::vector<ServedDatabase> databases;
  std::map<std::string, size_t> places;  // name -> index in `databases`
  std::map<std::string, std::string> directories;  // name -> real path
  // The directories that contain the private directories with snapshots.
  std::set<std::string> snapshot_parents;
  uint64_t file_system = 0;  // file system of the tree; 0: no tree
  bool is_complete = false;      // result of the last search
  std::set<std::string> others;  // directories and links without a database
  // Returns the database with this name; null if it is missing.
  const ServedDatabase* Find(const std::string& name) const;
};

// Tracks which databases are served.
//
// Ownership: borrows the options. Threads:   any.
class ServedDatabases {
 public:
  explicit ServedDatabases(const ServeOptions* options);

  // Returns the served databases. First searches the tree again if the last
  // search is older than `max_age`, and also older than ten times its own CPU
  // time.
  std::shared_ptr<const ServedSet> Now(
      std::chrono::seconds max_age = std::chrono::seconds(0));
  // Returns the result of a search that began after the call. The result
  // contains every database that existed before the call. If a search may not
  // start yet, because the last one took much CPU time, first waits for at most
  // a second. If it may not start even then, returns the result of the last
  // search.
  std::shared_ptr<const ServedSet> AfterNow();
  // Searches the tree now.
  void Look();
  // Replaces the names of the peers that may read each database.
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
  std::string directory_problem_;         // the last problem that was logged
  std::set<std::string> problems_;        // found by the last search
  Clock::time_point began_{};   // start of the last search
  Clock::time_point looked_{};  // end of the last search
  std::chrono::nanoseconds took_{};  // CPU time of the last search
  std::map<std::string, std::set<std::string>> allowed_;
  std::set<std::string> tree_allowed_;
  RateLimitedLog log_;
};

}  // namespace sstferry
