// Answers followers at the source. This is the interface that follow/
// implements.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"
#include "sstferry/source.h"

namespace sstferry {

// Answers the followers of all databases of one server.
//
// Threads: any.
class FollowAtSource {
 public:
  using Send = std::function<rocksdb::Status(const WalBytes& bytes)>;

  virtual ~FollowAtSource() = default;
  // Answers a request of the follower `who` (the address of its session). Calls
  // `send` with the WAL bytes after the follower's position, at most kTurnBytes
  // per call (wire/token_bucket.h), and sets *end. If there are no such bytes,
  // first waits for them, as long as the request allows. The follower appears
  // in lists under the name request.target.
  //   kRefused    the database cannot be followed
  //   kCancelled  Stop() was called
  //   others      errors of `send`
  [[nodiscard]] virtual rocksdb::Status Answer(const void* who,
                                               const ServedDatabase& database,
                                               const FollowRequest& request,
                                               const Send& send,
                                               FollowEnd* end) = 0;
  // Removes the follower `who`. Called when its session ends.
  virtual void Leave(const void* who) = 0;
  virtual std::vector<FollowedState> state() = 0;
  // Makes all calls of Answer() return kCancelled.
  virtual void Stop() = 0;
};

using FollowFactory = std::function<std::unique_ptr<FollowAtSource>(
    uint64_t max_held_bytes)>;

}  // namespace sstferry
