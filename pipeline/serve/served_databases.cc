#include "pipeline/serve/served_databases.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "format/quantity.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/snapshot_place.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr int kLookShare = 10;
constexpr std::chrono::seconds kMostWait{1};

// Returns the CPU time of the calling thread. A search costs this time. The
// elapsed time is longer on a busy machine.
std::chrono::nanoseconds CpuTime() {
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return std::chrono::seconds(cpu.tv_sec) +
         std::chrono::nanoseconds(cpu.tv_nsec);
}

std::set<std::string> SetOf(const std::vector<std::string>& list) {
  return {list.begin(), list.end()};
}

bool Allows(const std::set<std::string>& allowed, const PeerIdentity* peer) {
  return allowed.empty() || allowed.contains(kEveryPeer) ||
         (peer != nullptr &&
          std::any_of(
              peer->names.begin(), peer->names.end(),
              [&](const std::string& one) { return allowed.contains(one); }));
}

void AddDatabase(const ServedDatabase& database, const ServeOptions& options,
                 ServedSet* set) {
  if (!database.directory.empty()) {
    const std::string real = RealPath(database.directory);
    set->directories[database.name] = real;
    set->snapshot_parents.insert(
        SnapshotParent(real, SnapshotDirOf(database, options.snapshot_dir)));
  }
  set->places[database.name] = set->databases.size();
  set->databases.push_back(database);
}

// Returns the snapshot directory for a database of the tree: the top of the
// tree if possible. A directory next to the database would be less safe,
// because an application may remove the database with everything around it.
std::string SnapshotDirOfTree(const DatabaseTree& tree,
                              const std::string& directory) {
  const bool is_possible =
      access((tree.directory + "/").c_str(), W_OK | X_OK) == 0 &&
      AreOnOneMount(tree.directory, directory);
  return is_possible ? tree.directory : "";
}

}  // namespace

const std::string& SnapshotDirOf(const ServedDatabase& database,
                                 const std::string& of_server) {
  return of_server.empty() ? database.snapshot_dir : of_server;
}

std::string NameOfPeer(const PeerIdentity* peer) {
  return peer == nullptr ? "a peer without a certificate" : peer->subject;
}

const ServedDatabase* ServedSet::Find(const std::string& name) const {
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &databases[found->second];
}

ServedDatabases::ServedDatabases(const ServeOptions* options)
    : options_(options) {
  SetAllowed(*options);
  Look();
}

// Searches use at most a tenth of a CPU. Any peer that can connect can cause a
// search, which reads every directory of the tree.
std::shared_ptr<const ServedSet> ServedDatabases::Now(
    std::chrono::seconds max_age) {
  const std::lock_guard<std::mutex> lock(mu_);
  if (!options_->tree.directory.empty() &&
      Clock::now() - looked_ >=
          std::max<Clock::duration>(max_age, kLookShare * took_)) {
    LookLocked();
  }
  return set_;
}

std::shared_ptr<const ServedSet> ServedDatabases::AfterNow() {
  const Clock::time_point asked = Clock::now();
  std::unique_lock<std::mutex> lock(mu_);
  if (options_->tree.directory.empty()) {
    return set_;
  }
  const Clock::time_point turn =
      std::min(looked_ + kLookShare * took_, asked + kMostWait);
  lock.unlock();
  std::this_thread::sleep_until(turn);
  lock.lock();
  // Several threads may have waited until this time. The first of them
  // searches, and the others use its result.
  if (began_ < asked && Clock::now() - looked_ >= kLookShare * took_) {
    LookLocked();
  }
  return set_;
}

void ServedDatabases::Look() {
  const std::lock_guard<std::mutex> lock(mu_);
  LookLocked();
}

// Searches the tree. If the tree cannot be read now, keeps the result of the
// last search; a transfer reports if its database cannot be read.
void ServedDatabases::LookLocked() {
  began_ = Clock::now();
  const std::chrono::nanoseconds cpu_before = CpuTime();
  auto next = std::make_shared<ServedSet>();
  const std::string& top = options_->tree.directory;
  next->is_complete = top.empty();
  DatabaseTree tree;
  if (!top.empty()) {
    const Status status = FindDatabases(top, &tree);
    const std::string problem = status.ok() ? "" : MessageOf(status);
    if (problem != directory_problem_ && !status.ok()) {
      Log(LogLevel::kWarning, "--db-dir: " + problem);
    }
    directory_problem_ = problem;
    if (!status.ok() && set_ != nullptr) {
      next = std::make_shared<ServedSet>(*set_);
      next->is_complete = false;
      set_ = std::move(next);
      looked_ = Clock::now();
      took_ = CpuTime() - cpu_before;
      return;
    }
    next->file_system = tree.file_system;
    next->is_complete = tree.is_complete;
    next->others = std::move(tree.others);
  }
  for (const ServedDatabase& database : options_->databases) {
    if (database.directory.empty() || database.directory != top ||
        tree.names.empty()) {
      AddDatabase(database, *options_, next.get());
    }  // else DIR of --stdio DIR is no database itself
  }
  if (!top.empty()) {
    for (const std::string& name : tree.names) {
      ServedDatabase database;
      database.name = name;
      database.directory = tree.directory + "/" + name;
      database.snapshot_dir = SnapshotDirOfTree(tree, database.directory);
      if (next->Find(name) == nullptr) {  // else --db uses it
        AddDatabase(database, *options_, next.get());
      }
    }
    const std::set<std::string> problems = SetOf(tree.problems);
    for (const std::string& one : problems) {
      if (!problems_.contains(one)) {
        Log(LogLevel::kWarning, "--db-dir " + top + ": " + one);
      }
    }
    problems_ = problems;
  }
  LogChanges(*next);
  set_ = std::move(next);
  looked_ = Clock::now();
  took_ = CpuTime() - cpu_before;
}

void ServedDatabases::LogChanges(const ServedSet& next) {
  if (set_ == nullptr) {
    if (!options_->tree.directory.empty()) {
      Log(LogLevel::kInfo,
          "serves " + FormatCount(next.databases.size(), "database") +
              ", including those below " +
              options_->tree.directory);
    }
    return;
  }
  for (const ServedDatabase& database : next.databases) {
    if (set_->Find(database.name) == nullptr) {
      Log(LogLevel::kInfo, "now serves " + database.name);
    }
  }
  for (const ServedDatabase& database : set_->databases) {
    if (next.Find(database.name) == nullptr) {
      Log(LogLevel::kInfo,
          "no longer serves " + database.name + ": not found");
    }
  }
}

void ServedDatabases::Log(LogLevel level, const std::string& line) {
  if (!options_->log) {
    return;
  }
  if (const std::optional<std::string> admitted = log_.Admit(line)) {
    options_->log(level, *admitted);
  }
}

void ServedDatabases::SetAllowed(const ServeOptions& options) {
  const std::lock_guard<std::mutex> lock(mu_);
  for (const ServedDatabase& database : options.databases) {
    allowed_[database.name] = SetOf(database.allowed);
  }
  tree_allowed_ = SetOf(options.tree.allowed);
}

bool ServedDatabases::MayRead(const std::string& name,
                              const PeerIdentity* peer) {
  const std::lock_guard<std::mutex> lock(mu_);
  const auto own = allowed_.find(name);
  return Allows(own != allowed_.end() ? own->second : tree_allowed_, peer);
}

}  // namespace sstferry
