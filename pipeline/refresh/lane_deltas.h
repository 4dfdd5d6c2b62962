// The source's side of the comparisons on one lane. Sends digests of groups of
// entries to the target. The target then lists its entries in the groups that
// differ, and the source builds a delta chunk.
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

// Compares parts and builds their delta chunks, on one lane.
//
// Ownership: borrows `source`.
// Threads:   only the thread that serves the lane.
// Memory:    the indexes of three parts, and the target's entries of one part.
//            During Sift(), also 20 bytes for each entry; each side has at most
//            kMaxMarks entries.
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
  // The digests of one part's groups, which were sent to the target.
  struct Told {
    uint32_t part_id = 0;
    std::unique_ptr<GroupIndex> index;
    // sifted: the groups of the target's last SiftRequest. common: one value
    // for each of the source's entries in these groups; true if the target has
    // the entry, too.
    std::vector<uint32_t> sifted;
    std::vector<bool> common;
  };

  Told* FindTold(uint32_t part_id);
  // Sets piece->spans to the key intervals of `groups`, and piece->between to
  // the first keys of all other groups.
  [[nodiscard]] static rocksdb::Status TakeGroups(
      const GroupIndex& index, const std::vector<uint32_t>& groups,
      PieceDifference* piece);
  // Computes the digests of the entries in the spans. If there are more than
  // kMaxMarks entries, stops and sets *fit to false.
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
