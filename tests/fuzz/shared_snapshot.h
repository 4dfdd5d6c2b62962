// One snapshot for the transfers of all inputs, because opening one takes
// longer than everything else in an input.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/snapshot.h"
#include "tests/fuzz/gate.h"

namespace sstferry::fuzz {

// Ownership: borrows the snapshot and the gate (may be null). A thread that
// plans or announces the snapshot waits at the gate.
class SharedSnapshot final : public Snapshot {
 public:
  explicit SharedSnapshot(const Snapshot* snapshot, Gate* gate = nullptr)
      : Snapshot(snapshot->directory(), snapshot->own_path()),
        snapshot_(snapshot),
        gate_(gate) {
    *mutable_facts() = snapshot->facts();
    mutable_facts()->options_text = kOptionsText;
  }
  void set_gate(Gate* gate) { gate_ = gate; }
  rocksdb::DB* db() const override { return snapshot_->db(); }
  const std::vector<SnapshotFamily>& families() const override {
    Await();
    return Snapshot::families();
  }
  const std::string& database_id() const override {
    Await();
    return Snapshot::database_id();
  }

 private:
  // A short text: a complete OPTIONS file would take as long as the rest of
  // planning, and is fuzzed separately.
  static constexpr char kOptionsText[] =
      "[Version]\n  rocksdb_version=7.8.3\n[DBOptions]\n"
      "  max_open_files=12\n"
      "[CFOptions \"default\"]\n  num_levels=3\n"
      "  comparator=leveldb.BytewiseComparator\n"
      "  table_factory=BlockBasedTable\n"
      "[TableOptions/BlockBasedTable \"default\"]\n  block_size=4096\n"
      "[CFOptions \"reverse\"]\n  num_levels=7\n"
      "  comparator=rocksdb.ReverseBytewiseComparator\n"
      "  table_factory=BlockBasedTable\n"
      "[TableOptions/BlockBasedTable \"reverse\"]\n  block_size=4096\n";

  void Await() const {
    if (gate_ != nullptr) {
      gate_->AwaitRelease();
    }
  }

  const Snapshot* const snapshot_;
  Gate* gate_;
};

}  // namespace sstferry::fuzz
