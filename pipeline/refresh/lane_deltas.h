// Deltas of one lane at the source: digests of groups for the target, and the
// delta chunk once the target has said what it has in groups that differ.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "format/messages.h"
#include "pipeline/refresh/delta_builder.h"
#include "pipeline/refresh/group_index.h"
#include "pipeline/refresh/refresh_source.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the source's half. Threads: the lane's serving thread.
// Memory:    the indexes of three parts, and what the target has said of one.
class GroupDeltas : public LaneDeltas {
 public:
  GroupDeltas(const RefreshSource* source, const TransferId& salt)
      : source_(source), salt_(salt) {}

  [[nodiscard]] rocksdb::Status Index(const Part& part,
                                      const GroupRequest& request,
                                      const std::function<bool()>& cancelled,
                                      GroupReply* reply) override;
  [[nodiscard]] rocksdb::Status Add(const Part& part,
                                    DeltaRequest request) override;
  const DeltaRequest& asked() const override { return asked_; }
  [[nodiscard]] rocksdb::Status Build(const Part& part,
                                      const ChunkBuilderOptions& options,
                                      ChunkSink* sink) override;

 private:
  const GroupIndex* FindIndex(uint32_t part_id) const;
  // Fills spans and between.
  [[nodiscard]] rocksdb::Status TakeGroups(const GroupIndex& index,
                                           PieceDifference* piece) const;

  const RefreshSource* const source_;
  const TransferId salt_;
  std::deque<std::pair<uint32_t, std::unique_ptr<GroupIndex>>> indexes_;
  DeltaRequest asked_;
  uint64_t asked_bytes_ = 0;
};

}  // namespace sstferry
