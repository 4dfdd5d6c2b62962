// Deltas of one lane: digests of groups for the target, and the delta chunk
// once the target has said what it has in groups that differ.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/delta_builder.h"
#include "pipeline/parts/group_index.h"
#include "pipeline/serve/transfer.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the transfer. Threads: the lane's serving thread.
// Memory:    the indexes of three parts, and what the target has said of one.
class LaneDeltas {
 public:
  explicit LaneDeltas(Transfer* transfer) : transfer_(transfer) {}

  // Reads the part and fills the reply.
  [[nodiscard]] rocksdb::Status Index(const GroupRequest& request,
                                      const std::function<bool()>& cancelled,
                                      GroupReply* reply);
  // Adds one message of a request.
  //   kCorrupt  it does not follow the one before it
  //   kDenied   the request is too large
  [[nodiscard]] rocksdb::Status Add(DeltaRequest request);
  // The request that is being received, or is complete.
  const DeltaRequest& asked() const { return asked_; }
  // Sends the delta chunk of the complete request. kCorrupt: its groups are
  // none that Index() told.
  [[nodiscard]] rocksdb::Status Build(const Part& part,
                                      const ChunkBuilderOptions& options,
                                      ChunkSink* sink);

 private:
  [[nodiscard]] rocksdb::Status FindPart(uint32_t part_id,
                                          const Part** part) const;
  const GroupIndex* FindIndex(uint32_t part_id) const;
  // Fills spans and between.
  [[nodiscard]] rocksdb::Status TakeGroups(const GroupIndex& index,
                                           PieceDifference* piece) const;

  Transfer* const transfer_;
  std::deque<std::pair<uint32_t, std::unique_ptr<GroupIndex>>> indexes_;
  DeltaRequest asked_;
  uint64_t asked_bytes_ = 0;
};

}  // namespace sstferry
