// A source that changes, a replica of it, and who serves that.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "sstferry/options.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {

// Threads: one.
class ReplicaWorld {
 public:
  ReplicaWorld();

  // For a refresh by swap, with hooks that note their calls.
  PullOptions Options();
  // Other entries each time: some new, some changed, some gone.
  void ChangeSource();
  void RemoveSource();

  void Note(const std::string& call) { calls_.push_back(call); }
  void Forget() { calls_.clear(); }
  // "before", "after exchanged" or "after as it was", in order.
  const std::vector<std::string>& calls() const { return calls_; }
  // Requires that source and target have no neighbours.
  void RequireNothingLeft() const;

  std::string source() const { return dir_ / "source"; }
  std::string target() const { return dir_ / "target"; }
  std::string root() const { return dir_.path(); }

 private:
  ScratchDir dir_;
  int changes_ = 0;
  std::vector<std::string> calls_;
};

// A process's own database, closed and opened by hooks. Threads: one.
class ServingApplication {
 public:
  explicit ServingApplication(const std::string& dir);

  SwapHook CloseHook();
  SwapHook OpenHook();
  void Close() { db_.reset(); }
  bool is_open() const { return db_ != nullptr; }
  std::string Get(const std::string& key) const;  // empty: not there

 private:
  void Open();

  const std::string dir_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace sstferry
