#include "pipeline/target/stall_guard.h"

namespace sstferry {

using rocksdb::Status;

Status StallGuard::Receive(Channel* channel, Frame* frame) const {
  const WaitLimit limit{limit_, Clock::time_point::max()};
  uint64_t seen = progress_();
  while (true) {
    const Status status = channel->Receive(limit, frame);
    if (!status.IsTimedOut()) {
      return status;
    }
    const uint64_t now = progress_();
    if (now == seen || !channel->can_receive()) {
      return MakeStatus(EndState::kTooSlow,
                        "source " + channel->peer() +
                            ": is there, but read and sent nothing for " +
                            std::to_string(limit_.count()) + " ms");
    }
    seen = now;
  }
}

}  // namespace sstferry
