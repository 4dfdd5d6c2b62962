// Sends a source what its target tells in many messages.
#pragma once

#include <chrono>
#include <vector>

#include "format/messages.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Sends on the control connection are small; a request to stop must not wait
// for one longer than this.
inline constexpr std::chrono::milliseconds kSendLimit{4'000};

// Says in the request what of SendReplicaRecord() will follow it.
void AnnounceReplicaRecord(const ReplicaRecord& replica, OpenRequest* request);

// Follows an OpenRequest for a refresh: what the target holds and remembers.
[[nodiscard]] rocksdb::Status SendReplicaRecord(Channel* channel,
                                         const ReplicaRecord& replica);

// Parts that are whole at the target. A source that was asked again on another
// connection, perhaps another process, need not have sent them. The reader of
// the connection finds a send that fails.
void SendReceived(Channel* channel, const std::vector<ReceivedPart>& parts);

}  // namespace sstferry
