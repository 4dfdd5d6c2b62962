#include "pipeline/pull/tell_source.h"

#include "format/for_each_batch.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Status;

void AnnounceMemory(const TargetMemory& memory, OpenRequest* request) {
  request->target_families = static_cast<uint32_t>(memory.families.size());
  request->target_covers = static_cast<uint32_t>(memory.covers.size());
}

Status SendMemory(Channel* channel, const TargetMemory& memory) {
  const WaitLimit limit = WaitLimit::Within(kSendLimit);
  Status status;
  // Before the families, whose number tells the source when it has all.
  for (size_t at = 0; status.ok() && at < memory.source_record.size();
       at += kMaxSourceRecordPartBytes) {
    status = channel->SendMessage(
        FrameType::kSourceRecordPart,
        SourceRecordPart{
            memory.source_record.substr(at, kMaxSourceRecordPartBytes)},
        limit);
  }
  if (!status.ok()) {
    return status;
  }
  status = ForEachBatch(
      memory.families, [&](std::vector<TargetFamily> batch) {
        return channel->SendMessage(FrameType::kTargetFamilies,
                                    TargetFamilies{std::move(batch)}, limit);
      });
  if (status.ok()) {
    status = ForEachBatch(memory.covers, [&](std::vector<Cover> batch) {
      return channel->SendMessage(FrameType::kCovers,
                                  Covers{std::move(batch)}, limit);
    });
  }
  return status;
}

void SendHeld(Channel* channel, const std::vector<HeldPart>& parts) {
  const Status status =
      ForEachBatch(parts, [channel](std::vector<HeldPart> batch) {
        return channel->SendMessage(FrameType::kHeld, Held{std::move(batch)},
                                    WaitLimit::Within(kSendLimit));
      });
  // A send that fails is found by the reader.
  status.PermitUncheckedError();
}

}  // namespace sstferry
