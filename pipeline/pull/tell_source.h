// Tells a source on the control connection what the target has received.
#pragma once

#include <chrono>
#include <vector>

#include "format/messages.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Time limit of sends on the control connection. They are small, and a request
// to stop must not wait longer for one.
inline constexpr std::chrono::milliseconds kSendLimit{4'000};

// Sends the parts that are complete at the target. A source that was asked
// again on another connection may be another process, and need not have sent
// them. The reader of the connection notices a failed send.
void SendReceived(Channel* channel, const std::vector<ReceivedPart>& parts);

}  // namespace sstferry
