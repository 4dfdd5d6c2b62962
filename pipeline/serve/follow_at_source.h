// The part of following at the source. follow/ implements it; serve/ knows no
// more of it than this.
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
  using Send = std::function<rocksdb::Status(const FollowBytes& bytes)>;

  virtual ~FollowAtSource() = default;
  // Answers a request of the follower `who`, a session: calls `send` for the
  // bytes behind its position, and sets *end. Waits for anything new as long as
  // the request says. Its target is shown as the request has it.
  //   kRefused    the database cannot be followed
  //   kCancelled  Stop() was called
  //   errors of `send`
  [[nodiscard]] virtual rocksdb::Status Answer(const void* who,
                                               const ServedDatabase& database,
                                               const FollowRequest& request,
                                               const Send& send,
                                               FollowEnd* end) = 0;
  // Forgets a follower.
  virtual void Leave(const void* who) = 0;
  virtual std::vector<FollowedState> state() = 0;
  // Ends every wait.
  virtual void Stop() = 0;
};

using FollowFactory = std::function<std::unique_ptr<FollowAtSource>(
    uint64_t max_held_bytes)>;

}  // namespace sstferry
