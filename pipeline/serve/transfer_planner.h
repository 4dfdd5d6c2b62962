// Plans a transfer: finds its column families and divides them into parts. For
// a refresh, RefreshAtSource decides how each family is sent.
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

// The facts about a transfer that a planner needs.
//
// Ownership: borrows all members.
struct PlanOrder {
  const OpenRequest& request;
  const Hello& target;
  uint32_t lanes = 1;
  std::function<bool()> ended;  // true: nobody needs the plan any more

  bool is_refresh() const { return request.mode == TransferMode::kRefresh; }
};

// Return the arguments for CutFamily().
PlannerOptions PlannerOptionsOf(const PlanOrder& order);
PlannerFamily PlannerFamilyOf(const TransferFamily& family, const Family& told);

// Makes one plan.
//
// Ownership: borrows the constructor's arguments. Threads: one.
class TransferPlanner {
 public:
  // If `make_refresh` is null, Run() refuses refreshes.
  TransferPlanner(const Snapshot& snapshot, const PlanOrder& asked,
                  const RefreshFactory& make_refresh, TransferPlan* plan)
      : snapshot_(snapshot),
        asked_(asked),
        make_refresh_(make_refresh),
        plan_(plan) {}

  // Makes the plan. Refuses what cannot be copied exactly, as far as this is
  // known without reading the data.
  //   kRefused, kIncompatible  the snapshot cannot be moved in the requested
  //                            way.
  //   kCancelled               ended() returned true.
  //   kSourceError, kCorrupt   OPTIONS or a table could not be read.
  [[nodiscard]] rocksdb::Status Run();

 private:
  [[nodiscard]] rocksdb::Status DescribeFamilies();
  // Checks whether this RocksDB can read the tables that the source's
  // application will write according to its OPTIONS. The present tables may
  // have a lower format_version. For a refresh, only adds a note.
  //   kIncompatible  it is a seed, and RocksDB cannot read such tables
  [[nodiscard]] rocksdb::Status CheckNextTables(
      const FamilyDescription& family);
  // With some options, the application opens only tables that have a
  // user-defined index. Chunks have no such index.
  //   kRefused  the family has such an option; the application could not open
  //             the replica's tables
  [[nodiscard]] rocksdb::Status CheckOwnIndex(
      const FamilyDescription& family) const;
  // Checks the option with which an application may ingest older data below the
  // existing data (IngestExternalFileOptions::ingest_behind). `where` says
  // whose options these are.
  //   kRefused  the application has set that option
  [[nodiscard]] static rocksdb::Status CheckIngestsBehind(
      const std::string& where, const std::string& option,
      const std::vector<NamedValue>& options);
  [[nodiscard]] rocksdb::Status PlanFamilies();
  [[nodiscard]] rocksdb::Status PlanFilesOf(size_t index);
  [[nodiscard]] rocksdb::Status ChooseFormat(TransferFamily* family);
  [[nodiscard]] rocksdb::Status CutFamilyAt(size_t index,
                                            uint64_t target_bytes);
  // Called when the family is planned. Copies the list of its files to
  // merged_files if lanes need it, and frees the list in the plan.
  void EndFiles(TransferFamily* family) const;
  // Adds a plan item for each file. Called for the command `sstferry plan`.
  void AddPlanItems(const TransferFamily& family);
  // Returns the description of the family that the target gets.
  Family& told(const TransferFamily& family) const {
    return plan_->families[family.index];
  }
  bool is_refresh() const { return asked_.is_refresh(); }
  // Returns true if entries of the snapshot are only in memory: RocksDB has
  // opened it read-only and replayed WALs.
  bool entries_are_in_memory() const {
    return snapshot_.wal_not_flushed() &&
           snapshot_.counters().wal_bytes_copied > 0;
  }
  bool CanMerge(const FamilyPlan& plan) const;
  // Chooses the RocksDB release for which chunks are built: the release of the
  // application that will open the replica.
  [[nodiscard]] rocksdb::Status ChooseApplication();
  // Returns the highest format_version that can be read by the application and
  // by sstferry on both sides.
  uint32_t MaxChunkFormatVersion() const;
  // Returns true if chunks may contain blocks that RocksDB reads only since
  // 11.1.
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
