// The source of a standby's rounds.
#pragma once

#include <cstdint>

#include "pipeline/follow/round.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: Ask() from one thread at a time; the others from any.
class RoundSource {
 public:
  virtual ~RoundSource() = default;
  // Requests the bytes after the position of `request`, and waits for them as
  // long as the request says. If nothing was written, returns OK, and *round
  // has only an end. If an answer requires a cut, the source keeps the bytes
  // that are written after it, as far as it can, until this object is
  // destroyed. So call Ask() before a first cut, too.
  //   kCancelled  Close() was called
  //   kRefused    the source cannot be followed
  //   others      retry later
  [[nodiscard]] virtual rocksdb::Status Ask(const FollowRequest& request,
                                            Round* round) = 0;
  // Returns a number that grows with each byte from the source.
  virtual uint64_t received_bytes() const = 0;
  // Makes Ask() return.
  virtual void Close() = 0;
};

}  // namespace sstferry
