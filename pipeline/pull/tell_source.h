// Tells a source on the control connection what the target has received.
#pragma once

#include <chrono>
#include <vector>

#include "format/messages.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Time limit of sends on the control connection. The messages are small, and a
// request to stop must not wait longer for a send.
inline constexpr std::chrono::milliseconds kSendLimit{4'000};

// Sends the parts that are complete at the target. After a reconnect the source
// may be another process, which has not sent these parts itself. The reader of
// the connection notices a failed send.
void SendReceived(Channel* channel, const std::vector<ReceivedPart>& parts);

}  // namespace sstferry
