// The source's half of a refresh in place: finds what may have changed since
// the target's last refresh, and decides how each interval is transferred.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/source_record.h"
#include "pipeline/refresh/changed_keys.h"
#include "pipeline/refresh/interval_plan.h"
#include "pipeline/refresh/key_lookup.h"
#include "pipeline/refresh/refresh_changes.h"
#include "pipeline/serve/refresh_at_source.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/serve/transfer_planner.h"
#include "rocksdb/options.h"

namespace sstferry {

class RefreshSource : public RefreshAtSource {
 public:
  RefreshSource(const Snapshot& snapshot, TransferPlan* plan);

  [[nodiscard]] rocksdb::Status Decide(const PlanOrder& order,
                                       const TransferFamily& family) override;
  uint64_t BytesToSend(const TransferFamily& family) const override;
  [[nodiscard]] rocksdb::Status Cut(const PlanOrder& order,
                                    uint64_t target_bytes,
                                    TransferFamily* family) override;
  [[nodiscard]] rocksdb::Status Record(const PlanOrder& order) override;
  [[nodiscard]] rocksdb::Status BuildLookups(
      const Part& part, const ChunkBuilderOptions& options,
      ChunkSink* sink) const override;
  std::unique_ptr<LaneDeltas> MakeDeltas(
      const TransferId& salt) const override;

  // --- for lanes -------------------------------------------------------------
  rocksdb::DB* db() const { return snapshot_.db(); }
  const TransferFamily& family(const Part& part) const {
    return plan_->sources[part.family];
  }
  // Returns the options of chunks that are ingested above others.
  const rocksdb::Options& delta_options(const Part& part) const {
    return families_[part.family].delta_options;
  }

 private:
  // A family, and the decisions about it.
  struct Decided {
    rocksdb::Options delta_options;
    std::vector<PlanSegment> segments;  // until the family is cut
    // If parts are looked up: all keys that may have changed.
    std::shared_ptr<const ChangedKeys> changed;
    LookupFiles lookup_files;
    uint64_t changed_entry_bytes = 0;  // mean, of the files with these keys
    bool searched = false;             // its files hold no SingleDelete
  };
  struct FilePart {
    const FilePlan* file = nullptr;
    uint64_t of = 1;  // number of segments that share the file
  };

  // Finds the keys that may have changed.
  //   kRefused  the application uses SingleDelete
  [[nodiscard]] rocksdb::Status FindChangesOf(const PlanOrder& order,
                                              const TransferFamily& family,
                                              FamilyChanges* changes);
  ChangeQuestion QuestionOf(const PlanOrder& order,
                            const TransferFamily& family) const;
  const SourceRecordFamily* FamilyThen(const std::string& name) const;
  // Returns the backings of `files`, or of all files of the family.
  Backings BackingsOf(const TransferFamily& family,
                      const std::vector<FilePlan>* files = nullptr) const;
  // Returns the family as described to the target.
  const Family& told(const TransferFamily& family) const {
    return plan_->families[family.index];
  }
  // Returns, by segment, the files with keys in it, and the number of segments
  // that share each file.
  std::vector<std::vector<FilePart>> PartsOf(
      const TransferFamily& family) const;
  [[nodiscard]] rocksdb::Status CutSegment(const PlanOrder& order,
                                           const PlanSegment& segment,
                                           const std::vector<FilePart>& files,
                                           uint64_t target_bytes,
                                           TransferFamily* family);
  // Adds one unchanged part; estimates its size from file sizes only.
  void AddUnchanged(const PlanSegment& segment,
                    const std::vector<FilePart>& files,
                    TransferFamily* family);
  // Cuts a segment whose changed keys are looked up.
  void CutLookup(const PlanOrder& order, const PlanSegment& segment,
                 TransferFamily* family);
  // Adds the interval records for the target: the segment's own records if it
  // has some, else one for each part.
  void AddIntervals(const PlanSegment& segment, size_t first_part,
                    const Backings& backings);
  void AddRecordOf(const Part& part, const Backings& backings);
  // For `plan`: adds the action for each interval.
  void AddItems(const PlanSegment& segment, size_t first_part);

  const Snapshot& snapshot_;
  TransferPlan* const plan_;
  const uint64_t nonce_;
  SourceRecord then_;              // returned by the target
  std::vector<Decided> families_;  // of a refresh; by index
  uint64_t changed_bytes_ = 0;     // of keys to look up, so far
};

}  // namespace sstferry
