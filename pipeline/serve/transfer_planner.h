// Plans a transfer: its families, its parts, and what a refresh leaves out.
#pragma once

#include <functional>
#include <vector>

#include "format/messages.h"
#include "format/source_record.h"
#include "pipeline/parts/interval_plan.h"
#include "pipeline/parts/planner.h"
#include "pipeline/parts/refresh_changes.h"
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
};

// Makes one plan. Ownership: borrows the constructor's arguments. Threads: one.
class TransferPlanner {
 public:
  TransferPlanner(const Snapshot& snapshot, const PlanOrder& asked,
                  TransferPlan* plan)
      : snapshot_(snapshot), asked_(asked), plan_(plan) {}

  // Fills the plan. Refuses everything that cannot be moved faithfully, as far
  // as that can be known without reading the data.
  //   kRefused, kIncompatible  the snapshot cannot be moved in the requested
  //                            way.
  //   kCancelled               ended() returned true.
  //   kSourceError, kCorrupt   OPTIONS or a table could not be read.
  [[nodiscard]] rocksdb::Status Run();

 private:
  struct FilePart {
    const FilePlan* file = nullptr;
    uint64_t of = 1;  // number of segments that share the file
  };

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
  [[nodiscard]] rocksdb::Status CutSegment(const PlanSegment& segment,
                                           const std::vector<FilePart>& files,
                                           uint64_t target_bytes,
                                           TransferFamily* family);
  // Finds the changed intervals of a family.
  [[nodiscard]] rocksdb::Status CompareFamilyAt(size_t index);
  // Cuts a segment whose changed keys are looked up.
  void CutLookup(const PlanSegment& segment, TransferFamily* family);
  // Adds the family to record_, and keeps the keys that may have changed.
  //   kRefused  a refresh, and the application uses SingleDelete
  [[nodiscard]] rocksdb::Status FindChangesOf(size_t index,
                                              FamilyChanges* changes);
  const SourceRecordFamily* FamilyThen(const std::string& name) const;
  // Returns the backings of `files`, or of all files of the family.
  Backings BackingsOf(size_t index,
                      const std::vector<FilePlan>* files = nullptr) const;
  // Returns true for a pull of whole families: the target keeps no other
  // record.
  bool keeps_record() const {
    return asked_.request.purpose == Purpose::kPull &&
           asked_.request.interval == KeyInterval();
  }
  uint64_t BytesToRebuild(const TransferFamily& family) const;
  std::vector<std::vector<FilePart>> PartsOf(
      const TransferFamily& family) const;
  uint64_t ComparedBytes(const TransferFamily& family) const;
  void AddUnchanged(const PlanSegment& segment,
                    const std::vector<FilePart>& files,
                    TransferFamily* family);
  void AddIntervals(const PlanSegment& segment, size_t first_part,
                 const Backings& backings);
  // For `plan`: adds the action for each file or interval.
  void AddPlanItems(const TransferFamily& family);
  void AddSegmentItem(const TransferFamily& family,
                      const PlanSegment& segment, size_t first_part);
  // Returns what the target is told of the family.
  Family& told(const TransferFamily& family) const {
    return plan_->families[family.index];
  }
  bool is_refresh() const {
    return asked_.request.mode == TransferMode::kRefresh;
  }
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
  PlannerOptions planner_options() const;
  PlannerFamily planner_family(const TransferFamily& family) const;

  const Snapshot& snapshot_;
  const PlanOrder& asked_;
  TransferPlan* const plan_;
  uint64_t nonce_ = 0;  // of this plan; 0: not yet made
  SourceRecord then_;   // that the target gave back
  SourceRecord record_; // for the target to keep
  uint64_t changed_bytes_ = 0;  // of keys to look up, so far
  uint64_t kept_bytes_ = 0;     // of keys in record_
};

}  // namespace sstferry
