#include "pipeline/pull/stall_guard.h"

#include "pipeline/base/duration.h"

namespace sstferry {

using rocksdb::Status;

Status StallGuard::Stalled(const Channel& channel,
                           std::chrono::milliseconds limit) {
  return MakeStatus(EndState::kTooSlow,
                    "source " + channel.peer() +
                        ": is connected, but read and sent nothing for " +
                        FormatDuration(limit));
}

Status StallGuard::Wait(
    const Channel& channel, Clock::time_point until,
    const std::function<Status(const WaitLimit&)>& receive) const {
  const WaitLimit limit{limit_, until};
  uint64_t seen = progress_();
  while (true) {
    const Status status = receive(limit);
    if (!status.IsTimedOut()) {
      return status;
    }
    if (Clock::now() >= until) {
      return MakeStatus(EndState::kDeadPeer,
                        "source " + channel.peer() +
                            ": a chunk took too long on this connection");
    }
    const uint64_t now = progress_();
    if (now == seen || !channel.can_receive()) {
      return Stalled(channel, limit_);
    }
    seen = now;
  }
}

Status StallGuard::Receive(Channel* channel, Frame* frame,
                           Clock::time_point until) const {
  FrameHeader header;
  RETURN_IF_ERROR(ReceiveHeader(channel, &header, until));
  return ReceivePayload(channel, nullptr, frame);
}

Status StallGuard::ReceiveHeader(Channel* channel, FrameHeader* header,
                                 Clock::time_point until) const {
  return Wait(*channel, until, [channel, header](const WaitLimit& limit) {
    return channel->ReceiveHeader(limit, header);
  });
}

Status StallGuard::ReceivePayload(Channel* channel, char* into,
                                  Frame* frame) const {
  const WaitLimit limit{frame_limit_, Clock::time_point::max()};
  const Status status = channel->ReceivePayload(limit, into, frame);
  return status.IsTimedOut() ? Stalled(*channel, frame_limit_) : status;
}

}  // namespace sstferry
