// Sends data of the target to a source in several messages.
#pragma once

#include <chrono>
#include <vector>

#include "format/messages.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Time limit of sends on the control connection. They are small, and a request
// to stop must not wait longer for one.
inline constexpr std::chrono::milliseconds kSendLimit{4'000};

// Sets in the request what SendReplicaRecord() will send after it.
void AnnounceReplicaRecord(const ReplicaRecord& replica, OpenRequest* request);

// Sends, after the OpenRequest of a refresh, the target's record of itself.
[[nodiscard]] rocksdb::Status SendReplicaRecord(Channel* channel,
                                         const ReplicaRecord& replica);

// Sends the parts that are complete at the target. A source that was asked
// again on another connection may be another process, and need not have sent
// them. The reader of the connection notices a failed send.
void SendReceived(Channel* channel, const std::vector<ReceivedPart>& parts);

}  // namespace sstferry
