#include "pipeline/wire/wait_deadline.h"

#include <algorithm>

#include "format/end_state.h"
#include "pipeline/base/duration.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::chrono::hours kLongestSleep{1};
// A longer limit means no limit. Adding it to a time could overflow.
constexpr std::chrono::hours kForever{24 * 365};

}  // namespace

WaitDeadline::WaitDeadline(const WaitLimit& limit) : limit_(limit) {}

Clock::time_point WaitDeadline::Deadline() {
  if (!idle_until_known_) {
    idle_until_ = limit_.idle > kForever ? Clock::time_point::max()
                                         : Clock::now() + limit_.idle;
    idle_until_known_ = true;
    seen_ = ProgressElsewhere();
  }
  return std::min(idle_until_, limit_.until);
}

Clock::time_point WaitDeadline::WakeAt() {
  const Clock::time_point deadline = Deadline();
  return std::min(deadline, Clock::now() + kLongestSleep);
}

int WaitDeadline::PollMillis() {
  const Clock::duration left = WakeAt() - Clock::now();
  if (left <= Clock::duration::zero()) {
    return 0;
  }
  return static_cast<int>(std::chrono::ceil<milliseconds>(left).count());
}

uint64_t WaitDeadline::ProgressElsewhere() const {
  return limit_.progress != nullptr
             ? limit_.progress->load(std::memory_order_relaxed)
             : 0;
}

bool WaitDeadline::Expired() {
  if (Clock::now() < Deadline()) {
    return false;
  }
  if (idle_until_known_ && seen_ != ProgressElsewhere()) {
    Progress();
  }
  return Clock::now() >= Deadline();
}

Status WaitDeadline::Timeout(const std::string& what) const {
  if (idle_until_ <= limit_.until) {
    return MakeStatus(EndState::kDeadPeer,
                      what + ": no byte for " +
                          FormatDuration(limit_.idle));
  }
  return MakeStatus(EndState::kDeadPeer,
                    what + ": not done in the time allowed");
}

Status PeerGone(const std::string& what) {
  return Status::IOError(EndStateName(EndState::kDeadPeer), what);
}

Status ClosedHere(const std::string& what) {
  return MakeStatus(EndState::kCancelled, what + ": closed by this side");
}

}  // namespace sstferry
