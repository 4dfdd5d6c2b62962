// A source that changes, a replica of it, and an application that serves the
// replica.
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

  // Returns the options of a swap, with hooks that note their calls.
  PullOptions Options();
  // Changes the source's entries: adds some, changes some, removes some.
  void ChangeSource();
  void RemoveSource();

  void Note(const std::string& call) { calls_.push_back(call); }
  void Forget() { calls_.clear(); }
  // Returns in order "before", "after exchanged" or "after as it was".
  const std::vector<std::string>& calls() const { return calls_; }
  // Requires that there is nothing beside source and target.
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
