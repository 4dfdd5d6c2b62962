// Plans a transfer: its families and its parts. What a refresh does with a
// family, it asks RefreshAtSource.
#pragma once

#include <functional>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/planner.h"
#include "pipeline/serve/refresh_at_source.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Input of a plan. Ownership: borrows all members; polls `ended`.
struct PlanOrder {
  const OpenRequest& request;
  const Hello& target;
  const ReplicaRecord& replica;  // refresh only
  uint32_t lanes = 1;
  std::function<bool()> ended;  // true: the plan is no longer needed

  bool is_refresh() const { return request.mode == TransferMode::kRefresh; }
};

// Return what CutFamily() needs to know.
PlannerOptions PlannerOptionsOf(const PlanOrder& order);
PlannerFamily PlannerFamilyOf(const TransferFamily& family, const Family& told);

// Makes one plan. Ownership: borrows the constructor's arguments. Threads: one.
class TransferPlanner {
 public:
  // `make_refresh` may be null for a verify.
  TransferPlanner(const Snapshot& snapshot, const PlanOrder& asked,
                  const RefreshFactory& make_refresh, TransferPlan* plan)
      : snapshot_(snapshot),
        asked_(asked),
        make_refresh_(make_refresh),
        plan_(plan) {}

  // Fills the plan. Refuses everything that cannot be moved faithfully, as far
  // as that can be known without reading the data.
  //   kRefused, kIncompatible  the snapshot cannot be moved in the requested
  //                            way.
  //   kCancelled               ended() returned true.
  //   kSourceError, kCorrupt   OPTIONS or a table could not be read.
  [[nodiscard]] rocksdb::Status Run();

 private:
  [[nodiscard]] rocksdb::Status CheckNames() const;
  [[nodiscard]] rocksdb::Status DescribeFamilies();
  // Looks at the format_version of tables that the source's application will
  // write, which its files may not have yet.
  //   kIncompatible  a seed, and the linked RocksDB does not read them
  [[nodiscard]] rocksdb::Status CheckNextTables(
      const FamilyDescription& family);
  // Looks for options by which the replica's application opens only tables that
  // have an index of its own.
  //   kRefused  it does: chunks have none, and no table of them would open
  [[nodiscard]] rocksdb::Status CheckOwnIndex(
      const FamilyDescription& family) const;
  [[nodiscard]] rocksdb::Status PlanFamilies();
  [[nodiscard]] rocksdb::Status PlanFilesOf(size_t index);
  [[nodiscard]] rocksdb::Status ChooseFormat(TransferFamily* family);
  [[nodiscard]] rocksdb::Status CutFamilyAt(size_t index,
                                            uint64_t target_bytes);
  // Keeps what lanes need of a family's files, and drops the rest.
  void EndFiles(TransferFamily* family) const;
  // For `plan`: adds each file.
  void AddPlanItems(const TransferFamily& family);
  // Returns what the target is told of the family.
  Family& told(const TransferFamily& family) const {
    return plan_->families[family.index];
  }
  bool is_refresh() const { return asked_.is_refresh(); }
  // True if the snapshot is open read-only and has replayed a WAL.
  bool entries_are_in_memory() const {
    return snapshot_.wal_not_flushed() &&
           snapshot_.counters().wal_bytes_copied > 0;
  }
  bool CanMerge(const FamilyPlan& plan) const;
  // Decides for which release of RocksDB is built: that of the application
  // which will open the replica.
  [[nodiscard]] rocksdb::Status ChooseApplication();
  // Returns the highest format_version that it reads, and RocksDB in both
  // processes.
  uint32_t MaxChunkFormatVersion() const;
  // True if chunks may have blocks that only RocksDB 11.1 and later reads.
  bool reads_marked_blocks() const {
    return (asked_.target.features & kFeatureMarkedBlocks) != 0 &&
           (!plan_->application.is_known() ||
            plan_->application >= kReadsMarkedBlocks);
  }
  PlannerOptions planner_options() const { return PlannerOptionsOf(asked_); }
  PlannerFamily planner_family(const TransferFamily& family) const {
    return PlannerFamilyOf(family, told(family));
  }

  const Snapshot& snapshot_;
  const PlanOrder& asked_;
  const RefreshFactory& make_refresh_;
  TransferPlan* const plan_;
  std::unique_ptr<RefreshAtSource> refresh_;
};

}  // namespace sstferry
