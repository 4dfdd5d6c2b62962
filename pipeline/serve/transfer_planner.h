// Plans a transfer: its families and its parts. RefreshAtSource decides how a
// refresh handles a family.
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
  uint32_t lanes = 1;
  std::function<bool()> ended;  // returns true if the plan is no longer needed

  bool is_refresh() const { return request.mode == TransferMode::kRefresh; }
};

// Return the input of CutFamily().
PlannerOptions PlannerOptionsOf(const PlanOrder& order);
PlannerFamily PlannerFamilyOf(const TransferFamily& family, const Family& told);

// Makes one plan. Ownership: borrows the constructor's arguments. Threads: one.
class TransferPlanner {
 public:
  // `make_refresh` may be null: then Run() refuses refreshes.
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
  [[nodiscard]] rocksdb::Status DescribeFamilies();
  // Checks the format_version of tables that the source's application will
  // write; its present files may have a lower one.
  //   kIncompatible  it is a seed, and the linked RocksDB cannot read such
  //                  tables
  [[nodiscard]] rocksdb::Status CheckNextTables(
      const FamilyDescription& family);
  // Checks for options with which the replica's application opens only tables
  // that have a user-defined index.
  //   kRefused  the family has such options: chunks have no such index, so
  //             RocksDB could not open their tables
  [[nodiscard]] rocksdb::Status CheckOwnIndex(
      const FamilyDescription& family) const;
  // Checks an option of `where` with which the application ingests older data
  // below all that the database has (IngestExternalFileOptions::ingest_behind).
  //   kRefused  the application has set that option
  [[nodiscard]] static rocksdb::Status CheckIngestsBehind(
      const std::string& where, const std::string& option,
      const std::vector<NamedValue>& options);
  [[nodiscard]] rocksdb::Status PlanFamilies();
  [[nodiscard]] rocksdb::Status PlanFilesOf(size_t index);
  [[nodiscard]] rocksdb::Status ChooseFormat(TransferFamily* family);
  [[nodiscard]] rocksdb::Status CutFamilyAt(size_t index,
                                            uint64_t target_bytes);
  // Keeps the list of files that lanes need, and drops the rest.
  void EndFiles(TransferFamily* family) const;
  // Adds a plan item for each file. Called for `sstferry plan`.
  void AddPlanItems(const TransferFamily& family);
  // Returns the description of the family that is sent to the target.
  Family& told(const TransferFamily& family) const {
    return plan_->families[family.index];
  }
  bool is_refresh() const { return asked_.is_refresh(); }
  // Returns true if the snapshot is open read-only and has replayed a WAL.
  bool entries_are_in_memory() const {
    return snapshot_.wal_not_flushed() &&
           snapshot_.counters().wal_bytes_copied > 0;
  }
  bool CanMerge(const FamilyPlan& plan) const;
  // Decides for which RocksDB release chunks are built: the release of the
  // application that will open the replica.
  [[nodiscard]] rocksdb::Status ChooseApplication();
  // Returns the highest format_version that this application and the RocksDB of
  // both processes can read.
  uint32_t MaxChunkFormatVersion() const;
  // Returns true if chunks may have blocks that RocksDB reads only since 11.1.
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
