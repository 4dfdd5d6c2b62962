// The source's side of the comparisons on one lane. Sends group digests to the
// target. After the target has sent its entries of the groups that differ,
// builds a delta chunk.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "format/messages.h"
#include "pipeline/refresh/delta_builder.h"
#include "pipeline/refresh/group_index.h"
#include "pipeline/refresh/refresh_source.h"
#include "rocksdb/status.h"

namespace sstferry {

// The deltas of one lane.
//
// Ownership: borrows `source`.
// Threads:   the lane's serving thread.
// Memory:    the indexes of three parts, and the target's entries of one part;
//            while sifting, 20 bytes for each of up to kMaxMarks entries per
//            side.
class GroupDeltas : public LaneDeltas {
 public:
  GroupDeltas(const RefreshSource* source, const TransferId& salt)
      : source_(source), salt_(salt) {}

  [[nodiscard]] rocksdb::Status Index(const Part& part,
                                      const GroupRequest& request,
                                      const std::function<bool()>& cancelled,
                                      GroupReply* reply) override;
  [[nodiscard]] rocksdb::Status Sift(const Part& part,
                                     const SiftRequest& request,
                                     const std::function<bool()>& cancelled,
                                     SiftReply* reply) override;
  [[nodiscard]] rocksdb::Status Add(const Part& part,
                                    DeltaRequest request) override;
  const DeltaRequest& asked() const override { return asked_; }
  [[nodiscard]] rocksdb::Status Build(const Part& part,
                                      const ChunkBuilderOptions& options,
                                      ChunkSink* sink) override;

 private:
  // The digests of a part that were sent to the target.
  struct Told {
    uint32_t part_id = 0;
    std::unique_ptr<GroupIndex> index;
    // The groups of the target's newest SiftRequest, and for each source entry
    // in these groups: true if the target has it, too.
    std::vector<uint32_t> sifted;
    std::vector<bool> common;
  };

  Told* FindTold(uint32_t part_id);
  // Fills piece->spans and piece->between.
  [[nodiscard]] static rocksdb::Status TakeGroups(
      const GroupIndex& index, const std::vector<uint32_t>& groups,
      PieceDifference* piece);
  // Computes the digests of the entries in the spans, at most kMaxMarks. Sets
  // *fit to false if the spans have more entries.
  [[nodiscard]] rocksdb::Status ReadSpans(
      const Part& part, const std::vector<KeyInterval>& spans,
      const std::function<bool()>& cancelled, std::vector<Digest128>* digests,
      bool* fit) const;

  const RefreshSource* const source_;
  const TransferId salt_;
  std::deque<Told> told_;
  DeltaRequest asked_;
  uint64_t asked_bytes_ = 0;
};

}  // namespace sstferry
