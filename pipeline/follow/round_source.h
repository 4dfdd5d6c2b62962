// The source of a standby's rounds.
#pragma once

#include "pipeline/follow/round.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: Ask() from one thread at a time; Close() from any.
class RoundSource {
 public:
  virtual ~RoundSource() = default;
  // Asks for the bytes after the position of `request`, and waits for them as
  // long as the request says. OK with only an end in *round: nothing was
  // written. While this object lives, the source keeps what is written after an
  // answer that asks for a cut, as far as it can. So ask before a first cut,
  // too.
  //   kCancelled  Close() was called
  //   kRefused    the source cannot be followed
  //   others      retry later
  [[nodiscard]] virtual rocksdb::Status Ask(const FollowRequest& request,
                                            Round* round) = 0;
  // Makes Ask() return.
  virtual void Close() = 0;
};

}  // namespace sstferry
