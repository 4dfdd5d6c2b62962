// An open source that tests write to, and a standby of it. Tests do step by
// step what a follower and its server would do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/api/standby_cut.h"
#include "pipeline/disk/durable.h"
#include "pipeline/follow/standby.h"
#include "sstferry/follow.h"
#include "tests/support/catch.h"
#include "tests/support/live_history.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

// Blocks until `holds` returns true, for `limit` at most; returns false if it
// never did. Pauses after each call, to leave the CPU to the code that the test
// waits for.
bool AwaitThat(const std::function<bool()>& holds,
               std::chrono::seconds limit = std::chrono::minutes(1));
// Reads the records after a position in the WALs in `source_dir`, but at most
// `most_records`.
Round ReadRoundOf(const std::string& source_dir, const FollowPosition& at,
                  uint64_t most_records = UINT64_MAX);
// Takes a cut into the standby, and begins `audit` unless it is null.
rocksdb::Status CutStandby(const PullOptions& options,
                           const CutRequest& request, Standby* standby,
                           StandbyAudit* audit = nullptr);
// Makes a database of the standby in `dir`.
rocksdb::Status PromoteIn(const std::string& dir,
                          rocksdb::FileSystem* file_system);
// Opens a database, requires that it has the contents of StandbyWorld's history
// at the database's sequence, and returns that sequence. The database may also
// have other families.
uint64_t RequirePrefixIn(const std::string& path,
                         const rocksdb::DBOptions& options = {});

// Opens a database as a reader of a view does: resolves `link` first, opens the
// database read-only, and reads all of it. Returns "" if it contains what the
// history has at its sequence, and the sequence is not before that of `model`;
// otherwise describes the problem. Threads: any.
std::string ReadView(const std::string& link, HistoryModel* model,
                     uint64_t* sequence);
// Requires that ReadView() finds nothing wrong; returns the sequence.
uint64_t RequireView(const std::string& link);

// A follower that runs in this process until Stop(), which also removes the
// fault hook.
class RunningFollower {
 public:
  explicit RunningFollower(const FollowOptions& options)
      : job_(MakeFollow(options)),
        runs_(std::async(std::launch::async, [this] {
          StandbyState state;
          return job_->Run(&state);
        })) {}
  ~RunningFollower() { Stop().PermitUncheckedError(); }
  // Blocks until the follower has ended by itself; returns false if it does not
  // end in time.
  bool AwaitEnd(std::chrono::seconds limit = std::chrono::seconds(60)) {
    return runs_.wait_for(limit) == std::future_status::ready;
  }
  rocksdb::Status Stop() {
    if (job_ != nullptr) job_->Cancel();
    if (runs_.valid()) status_ = runs_.get();
    job_.reset();  // and with it the lock of the standby
    TEST_SetFaultHook(nullptr);
    return status_;
  }

 private:
  std::unique_ptr<StandbyJob> job_;
  rocksdb::Status status_;
  std::future<rocksdb::Status> runs_;
};

// DIR/disk/standby follows DIR/source. Threads: one.
class StandbyWorld {
 public:
  explicit StandbyWorld(const rocksdb::DBOptions& options = {});

  OpenDb* source() { return db_.get(); }
  void CloseSource() { db_.reset(); }
  void OpenSource();
  // Writes `batches` batches of the history (live_history.h) in two families.
  void Write(uint64_t batches);

  // Reads the source's WALs after the standby's position.
  Round Read() const {
    return ReadRoundOf(source_dir(), standby_->position());
  }
  // Follows once: reads and appends.
  rocksdb::Status Follow() {
    const rocksdb::Status status =
        standby_->Append(standby_->position(), Read());
    const Gap gap = standby_->gap();
    return gap.reason == CutReason::kNone
               ? status
               : rocksdb::Status::Incomplete("a gap: " + gap.note);
  }
  rocksdb::Status Open();
  rocksdb::Status Cut(CutReason reason = CutReason::kFirst);
  Standby* standby() { return standby_.get(); }
  void CloseStandby() { standby_.reset(); }
  // Makes later calls of Open() and Cut() write to `disk`; null: the default.
  void UseDisk(std::shared_ptr<rocksdb::FileSystem> disk) {
    disk_ = std::move(disk);
  }
  // Makes a database of the standby. REQUIRES: the standby is closed.
  rocksdb::Status Promote() const;
  uint64_t RequirePrefix(const std::string& path) const {
    return RequirePrefixIn(path, options_);
  }

  std::string root() const { return dir_ / "disk"; }
  std::string dir() const { return root() + "/standby"; }
  std::string source_dir() const { return dir_ / "source"; }
  std::string newest_wal() const;
  uint64_t sequence() const { return (*db_)->GetLatestSequenceNumber(); }
  PullOptions Options() const;

 private:
  ScratchDir dir_;
  const rocksdb::DBOptions options_;
  std::shared_ptr<rocksdb::FileSystem> disk_;
  std::unique_ptr<OpenDb> db_;
  std::unique_ptr<Standby> standby_;
  uint64_t next_batch_ = 0;
};

// The state after a failover: a former primary with batches that its standby
// never had, and a new primary, which was written to since. Both are closed.
class FailedOver {
 public:
  FailedOver();

  std::string old_dir() const { return world_.source_dir(); }
  std::string new_dir() const { return world_.dir(); }
  // Returns the directories beside `dir` in which adopted databases are kept.
  static std::vector<std::string> KeptBeside(const std::string& dir);
  // Requires that the database in `dir` has all data of the former primary.
  void RequireOld(const std::string& dir) const {
    REQUIRE(world_.RequirePrefix(dir) == old_sequence_);
  }
  // Requires that both databases have the same entries.
  static void RequireSame(const std::string& a, const std::string& b);

 private:
  StandbyWorld world_;
  uint64_t old_sequence_ = 0;
};

}  // namespace sstferry::test
