#include "pipeline/pull/tell_source.h"

#include "format/for_each_batch.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Status;

void AnnounceReplicaRecord(const ReplicaRecord& replica, OpenRequest* request) {
  request->target_families = static_cast<uint32_t>(replica.families.size());
  request->target_intervals = static_cast<uint32_t>(replica.intervals.size());
}

Status SendReplicaRecord(Channel* channel, const ReplicaRecord& replica) {
  const WaitLimit limit = WaitLimit::Within(kSendLimit);
  Status status;
  // Send this before the families: the source counts these to know when it has
  // everything.
  for (size_t at = 0; status.ok() && at < replica.source_record.size();
       at += kMaxSourceRecordPartBytes) {
    status = channel->SendMessage(
        FrameType::kSourceRecordPart,
        SourceRecordPart{
            replica.source_record.substr(at, kMaxSourceRecordPartBytes)},
        limit);
  }
  if (!status.ok()) {
    return status;
  }
  status = ForEachBatch(
      replica.families, [&](std::vector<TargetFamily> batch) {
        return channel->SendMessage(FrameType::kTargetFamilies,
                                    TargetFamilies{std::move(batch)}, limit);
      });
  if (status.ok()) {
    status =
        ForEachBatch(replica.intervals, [&](std::vector<IntervalRecord> batch) {
          return channel->SendMessage(FrameType::kIntervalRecords,
                                      IntervalRecords{std::move(batch)}, limit);
        });
  }
  return status;
}

void SendReceived(Channel* channel, const std::vector<ReceivedPart>& parts) {
  const Status status =
      ForEachBatch(parts, [channel](std::vector<ReceivedPart> batch) {
        return channel->SendMessage(FrameType::kReceived,
                                    Received{std::move(batch)},
                                    WaitLimit::Within(kSendLimit));
      });
  // The reader notices a failed send.
  status.PermitUncheckedError();
}

}  // namespace sstferry
