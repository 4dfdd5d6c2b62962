// Serves the followers of a server's databases, with one reader per followed
// database.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/serve/follow_at_source.h"
#include "rocksdb/status.h"

namespace sstferry {

// Shares the reader of a database among its followers.
//
// Threads: those of FollowAtSource, and a reader thread for each followed
// database. A reader thread ends `linger` after its last follower has left, so
// that a follower can return.
class SourceFollowers : public FollowAtSource {
 public:
  explicit SourceFollowers(
      uint64_t max_held_bytes,
      std::chrono::milliseconds linger = std::chrono::minutes(1));
  ~SourceFollowers() override;

  [[nodiscard]] rocksdb::Status Answer(const void* who,
                                       const ServedDatabase& database,
                                       const FollowRequest& request,
                                       const Send& send,
                                       FollowEnd* end) override;
  void Leave(const void* who) override;
  std::vector<FollowedState> state() override;
  void Stop() override;

 private:
  class Reader;

  [[nodiscard]] rocksdb::Status Find(const ServedDatabase& database,
                                     std::shared_ptr<Reader>* reader);

  const uint64_t max_held_bytes_;
  const std::chrono::milliseconds linger_;
  std::mutex mu_;
  bool stopped_ = false;
  std::map<std::string, std::shared_ptr<Reader>> readers_;  // by directory
};

// Makes the SourceFollowers of a server (MakeServer()).
std::unique_ptr<FollowAtSource> MakeFollowAtSource(uint64_t max_held_bytes);

}  // namespace sstferry
