// Where a standby asks for what comes next.
#pragma once

#include "pipeline/follow/round.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: Ask() by one at a time; Close() from any.
class RoundSource {
 public:
  virtual ~RoundSource() = default;
  // Finds what is behind the position of `request`; waits so long for anything
  // as it says. OK with nothing in *round but its end: nothing came. The source
  // holds what comes behind an answer that asks for a cut, as long as this
  // object lives and as far as it can: so ask before a first cut, too.
  //   kCancelled  it was closed
  //   kRefused    the source cannot be followed
  //   others      ask again later
  [[nodiscard]] virtual rocksdb::Status Ask(const FollowRequest& request,
                                            Round* round) = 0;
  // Makes Ask() return.
  virtual void Close() = 0;
};

}  // namespace sstferry
