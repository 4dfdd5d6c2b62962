#include "pipeline/pull/tell_source.h"

#include "format/for_each_batch.h"

namespace sstferry {

using rocksdb::Status;

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
