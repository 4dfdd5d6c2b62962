// Serves followers at the source: the interface that follow/ implements.
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
  // Answers a request of the follower `who` (the address of its session): calls
  // `send` with the WAL bytes after the follower's position, and sets *end. If
  // there are no such bytes, waits for new bytes as long as the request allows.
  // Lists of followers show it under request.target.
  //   kRefused    the database cannot be followed
  //   kCancelled  Stop() was called
  //   others      errors of `send`
  [[nodiscard]] virtual rocksdb::Status Answer(const void* who,
                                               const ServedDatabase& database,
                                               const FollowRequest& request,
                                               const Send& send,
                                               FollowEnd* end) = 0;
  // Forgets a follower.
  virtual void Leave(const void* who) = 0;
  virtual std::vector<FollowedState> state() = 0;
  // Ends all waits.
  virtual void Stop() = 0;
};

using FollowFactory = std::function<std::unique_ptr<FollowAtSource>(
    uint64_t max_held_bytes)>;

}  // namespace sstferry
