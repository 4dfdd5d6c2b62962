// The databases that a server serves: those in its options, and those found
// below a directory.
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

// Returns the snapshot directory of a database, for SnapshotParent().
// `of_server` is ServeOptions::snapshot_dir, which takes precedence.
const std::string& SnapshotDirOf(const ServedDatabase& database,
                                 const std::string& of_server);

// Returns the peer's subject for a message, or "a peer without a certificate"
// if `peer` is null.
std::string NameOfPeer(const PeerIdentity* peer);

// The databases that are served at one moment.
struct ServedSet {
  std::vector<ServedDatabase> databases;
  std::map<std::string, size_t> places;  // index in `databases`, by name
  std::map<std::string, std::string> directories;  // real paths, by name
  // Parents of private directories.
  std::set<std::string> snapshot_parents;
  uint64_t file_system = 0;  // id of the tree's file system; 0: no tree
  bool is_complete = false;      // DatabaseTree::is_complete, last search
  std::set<std::string> others;  // DatabaseTree::others, last search
  // Returns null if there is no database of that name.
  const ServedDatabase* Find(const std::string& name) const;
};

// Keeps the set of served databases up to date.
//
// Ownership: borrows the options.
// Threads:   any.
class ServedDatabases {
 public:
  explicit ServedDatabases(const ServeOptions* options);

  // Returns the served databases. Searches the tree again if the last search is
  // older than `max_age` and older than ten times the CPU time that it took.
  std::shared_ptr<const ServedSet> Now(
      std::chrono::seconds max_age = std::chrono::seconds(0));
  // Returns the result of a search that began after the call, so that it
  // contains every database that existed before the call. Blocks until a search
  // may start, at most a second. Returns the last result if a search takes so
  // much CPU time that none may start within that second.
  std::shared_ptr<const ServedSet> AfterNow();
  // Searches the tree now.
  void Look();
  // Replaces the lists of who may read which database.
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
  std::string directory_problem_;         // last one logged
  std::set<std::string> problems_;        // problems of the last search
  Clock::time_point began_{};   // start of the last search
  Clock::time_point looked_{};  // end of the last search
  std::chrono::nanoseconds took_{};  // CPU time of the last search
  std::map<std::string, std::set<std::string>> allowed_;
  std::set<std::string> tree_allowed_;
  RateLimitedLog log_;
};

}  // namespace sstferry
