// Real processes that are killed: a server of databases that are written all
// the time, a relay, and pulls of these databases through the relay.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/live_history.h"
#include "tests/support/process.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry {

// A database with a family that never changes and two that a thread of this
// process writes. Its contents at any sequence number are known.
class WrittenDatabase {
 public:
  explicit WrittenDatabase(const std::string& path);
  ~WrittenDatabase();  // stops writing
  void StopWriting();

  const std::string& path() const { return path_; }
  // Requires that `target` has this database's contents at the target's
  // sequence number. That number must not be below the one of the previous
  // call, unless the target may share an older snapshot. Returns the number.
  uint64_t RequireEqualSnapshot(const std::string& target, bool shares);
  // Return the numbers over all compared targets.
  uint64_t chunks_built() const { return chunks_built_; }
  uint64_t chunks_cloned() const { return chunks_cloned_; }

 private:
  void WriteUntilStopped();

  const std::string path_;
  test::Families families_;
  std::unique_ptr<test::OpenDb> db_;
  uint64_t sequence_at_rest_ = 0;
  HistoryModel model_{2};
  uint64_t compared_ = 0;  // sequence number of model_
  uint64_t chunks_built_ = 0;
  uint64_t chunks_cloned_ = 0;
  std::mutex mu_;
  std::condition_variable stop_changed_;
  bool stop_ = false;  // under mu_
  std::thread writer_;
};

// A target that is pulled again and again.
struct KilledTarget {
  std::string database;  // the name of its database
  std::string name;
  std::string method;
  bool shares = false;  // --snapshot latest
};

// One pull, which is restarted until it is complete.
class KilledPull {
 public:
  KilledPull(WrittenDatabase* database, const KilledTarget& what,
             const std::string& target, const std::string& url);

  void Start();  // with an empty TARGET_DIR
  void Kill();   // kills it with SIGKILL and restarts it
  // Restarts the pull if it ended without a peer. Waits at most `limit` for its
  // end; returns true if the target is complete.
  bool Step(std::chrono::milliseconds limit);
  bool done() const { return done_; }
  uint64_t starts() const { return starts_; }
  // Requires that the target equals its snapshot and that nothing is beside it.
  // Returns the snapshot's sequence number.
  uint64_t RequireComplete();
  const std::string& target() const { return target_; }
  const KilledTarget& what() const { return what_; }

  const std::string& last_words() const { return last_words_; }

 private:
  void Launch();

  WrittenDatabase* const database_;
  const KilledTarget what_;
  const std::string target_;
  const std::string url_;
  std::unique_ptr<Process> process_;
  std::string last_words_;  // output of the last failed run
  bool done_ = false;
  uint64_t starts_ = 0;
};

class KillWorld {
 public:
  // A server of the databases that `targets` name.
  KillWorld(uint64_t seed, const std::vector<KilledTarget>& targets);

  // Starts all pulls into empty directories, kills random processes `kills`
  // times at random moments, waits for the ends of all pulls and compares the
  // targets.
  void Round(int kills);
  // Stops all writers, pulls everything once more and compares with `sstferry
  // verify`. Requires that the end of the server leaves no snapshot.
  void Finish();
  uint64_t cycles() const { return cycles_; }
  uint64_t chunks_built() const;
  uint64_t chunks_cloned() const;
  // Returns the number of targets that used the snapshot of another one.
  uint64_t shared() const { return shared_; }
  void Report();

 private:
  void StartServer();
  void StartRelay();
  void KillOne();
  void WaitUpTo(uint64_t milliseconds);
  void FinishPulls();
  std::vector<std::string> Leftovers() const;

  std::mt19937_64 random_;
  ScratchDir dir_;
  uint16_t server_port_ = 0;
  uint16_t relay_port_ = 0;
  std::map<std::string, std::unique_ptr<WrittenDatabase>> databases_;
  std::unique_ptr<ServeProcess> server_;
  std::unique_ptr<Process> relay_;
  std::vector<std::unique_ptr<KilledPull>> pulls_;
  uint64_t cycles_ = 0;
  uint64_t shared_ = 0;
  uint64_t kills_[3] = {0, 0, 0};  // source, relay, target
};

}  // namespace sstferry
