// The followers of a server's databases: one reader for each database that is
// followed, which all of its followers share.
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

// Threads: as FollowAtSource; one more for each database that is followed, until
// `linger` after its last follower has left, which may come back.
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

// For MakeServer().
std::unique_ptr<FollowAtSource> MakeFollowAtSource(uint64_t max_held_bytes);

}  // namespace sstferry
