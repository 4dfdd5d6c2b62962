#include "pipeline/pull/part_compare.h"

namespace sstferry {

using rocksdb::Status;

Status PartCompare::Ask(const Part& part, uint32_t group_entries,
                        const WaitLimit& limit, Channel* channel) {
  GroupRequest request;
  request.part_id = part.id;
  request.group_entries = group_entries;
  return channel->SendMessage(FrameType::kGroupRequest, request, limit);
}

Status PartCompare::AskForDelta(const std::vector<DeltaRequest>& delta,
                                const WaitLimit& limit, Channel* channel) {
  for (const DeltaRequest& one : delta) {
    RETURN_IF_ERROR(
        channel->SendMessage(FrameType::kDeltaRequest, one, limit));
  }
  return Status::OK();
}

}  // namespace sstferry
