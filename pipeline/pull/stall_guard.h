// Waits for a source that is working, but may send nothing for a long time. For
// example, it reads a run of tombstones or computes a digest.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "format/messages.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Limits the waits for one source. Threads: any; one receiver per channel.
class StallGuard {
 public:
  // `progress` returns a number that grows while the source does anything for
  // this transfer, on any lane. It is called from any thread. `frame_limit`, if
  // it is smaller than `limit`, limits the wait for the rest of a frame. A
  // frame whose length was damaged on the way announces bytes that never
  // arrive.
  StallGuard(std::chrono::milliseconds limit,
             std::function<uint64_t()> progress,
             std::chrono::milliseconds frame_limit =
                 std::chrono::milliseconds::max())
      : limit_(limit),
        frame_limit_(std::min(limit, frame_limit)),
        progress_(std::move(progress)) {}

  // Receives a frame.
  //   kTooSlow   for the time limit, the source sent no byte on this channel
  //              and made no progress elsewhere; or it stopped inside a frame,
  //              and the channel can receive no more
  //   kDeadPeer  `until` has passed, regardless of progress elsewhere
  // Only the control connection detects that the source is gone.
  [[nodiscard]] rocksdb::Status Receive(
      Channel* channel, Frame* frame,
      Clock::time_point until = Clock::time_point::max()) const;

  // Receive the header and the payload of a frame separately. After a header,
  // progress elsewhere does not extend the wait for the payload.
  [[nodiscard]] rocksdb::Status ReceiveHeader(
      Channel* channel, FrameHeader* header,
      Clock::time_point until = Clock::time_point::max()) const;
  [[nodiscard]] rocksdb::Status ReceivePayload(Channel* channel, char* into,
                                               Frame* frame) const;

  // Calls Channel::ReceiveMessage() with the limits of Receive().
  template <typename Message>
  [[nodiscard]] rocksdb::Status ReceiveMessage(Channel* channel,
                                               FrameType type,
                                               Message* message) const {
    Frame frame;
    RETURN_IF_ERROR(Receive(channel, &frame));
    RETURN_IF_ERROR(channel->ExpectType(frame, type));
    return Decode(frame.payload, message);
  }

 private:
  [[nodiscard]] rocksdb::Status Wait(
      const Channel& channel, Clock::time_point until,
      const std::function<rocksdb::Status(const WaitLimit&)>& receive) const;
  [[nodiscard]] static rocksdb::Status Stalled(
      const Channel& channel, std::chrono::milliseconds limit);

  const std::chrono::milliseconds limit_;
  const std::chrono::milliseconds frame_limit_;
  const std::function<uint64_t()> progress_;
};

}  // namespace sstferry
