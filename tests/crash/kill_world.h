// Real processes that are killed: a server of databases that are written all
// the time, a relay, and pulls of these databases through it.
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

// A database with a family that is at rest, and two that a thread of this
// process writes: what it held at any sequence number is known.
class WrittenDatabase {
 public:
  explicit WrittenDatabase(const std::string& path);
  ~WrittenDatabase();  // stops writing
  void StopWriting();

  const std::string& path() const { return path_; }
  // Requires that `target` holds what this held at its snapshot's sequence
  // number, which must not be below that of the call before, unless the target
  // may share an older snapshot. Returns that number.
  uint64_t RequireEqualSnapshot(const std::string& target, bool shares);
  // Of all targets compared.
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
  std::string database;  // its name
  std::string name;
  std::string method;
  bool shares = false;  // --snapshot latest
};

// One pull, started again until it is done.
class KilledPull {
 public:
  KilledPull(WrittenDatabase* database, const KilledTarget& what,
             const std::string& target, const std::string& url);

  void Start();  // to an empty place
  void Kill();   // -9, and starts it again
  // Starts it again when it ended for want of a peer. Waits so long for its
  // end; true when the target is complete.
  bool Step(std::chrono::milliseconds limit);
  bool done() const { return done_; }
  uint64_t starts() const { return starts_; }
  // Requires a target equal to its snapshot and nothing beside it. Returns the
  // snapshot's sequence number.
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
  std::string last_words_;  // of the last one that ended by itself
  bool done_ = false;
  uint64_t starts_ = 0;
};

class KillWorld {
 public:
  // A server of the databases that `targets` name.
  KillWorld(uint64_t seed, const std::vector<KilledTarget>& targets);

  // All pulls to empty places, with that many kills of whatever in between
  // at random moments; then to their ends, which are compared.
  void Round(int kills);
  // With nobody writing: pulls all once more, and has `sstferry verify`
  // compare. Requires that the server's end leaves no snapshot.
  void Finish();
  uint64_t cycles() const { return cycles_; }
  uint64_t chunks_built() const;
  uint64_t chunks_cloned() const;
  // Targets that were complete with the snapshot of another one.
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
