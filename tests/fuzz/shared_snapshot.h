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
      : snapshot_(snapshot), gate_(gate) {}
  void set_gate(Gate* gate) { gate_ = gate; }
  rocksdb::DB* db() const override { return snapshot_->db(); }
  const std::vector<SnapshotFamily>& families() const override {
    Await();
    return snapshot_->families();
  }
  uint64_t sequence() const override { return snapshot_->sequence(); }
  const std::string& database_id() const override {
    Await();
    return snapshot_->database_id();
  }
  const std::string& directory() const override {
    return snapshot_->directory();
  }
  const std::string& own_path() const override { return snapshot_->own_path(); }
  // Returns a short text: a complete OPTIONS file would take as long as the
  // rest of planning, and is fuzzed separately.
  const std::string& options_text() const override { return kOptionsText; }
  const std::vector<std::string>& notes() const override {
    return snapshot_->notes();
  }
  bool wal_not_flushed() const override { return snapshot_->wal_not_flushed(); }
  bool wal_holds_entries() const override {
    return snapshot_->wal_holds_entries();
  }
  const Counters& counters() const override { return snapshot_->counters(); }

 private:
  static inline const std::string kOptionsText =
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
