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

// Says in the request what of SendMemory() will follow it.
void AnnounceMemory(const TargetMemory& memory, OpenRequest* request);

// Follows an OpenRequest for a refresh: what the target holds and remembers.
[[nodiscard]] rocksdb::Status SendMemory(Channel* channel,
                                         const TargetMemory& memory);

// Parts that are whole at the target. A source that was asked again on another
// connection, perhaps another process, need not have sent them. The reader of
// the connection finds a send that fails.
void SendHeld(Channel* channel, const std::vector<HeldPart>& parts);

}  // namespace sstferry
