// Serves the followers of a server's databases. All followers of one database
// share one reader.
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

// Finds or starts the reader of a database, and answers followers from it.
//
// Threads: as FollowAtSource. In addition, each followed database has a reader
// thread. It ends `linger` after the last follower has left, so that a follower
// can return. It then releases the kept WALs.
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
  // Removes the readers that have ended by themselves from readers_. The caller
  // destroys them after it has unlocked mu_, because their destructor joins a
  // thread. REQUIRES: mu_ is locked.
  std::vector<std::shared_ptr<Reader>> TakeEnded();

  const uint64_t max_held_bytes_;
  const std::chrono::milliseconds linger_;
  std::mutex mu_;
  bool stopped_ = false;
  // The key is the directory.
  std::map<std::string, std::shared_ptr<Reader>> readers_;
};

// Makes a server's SourceFollowers, for MakeServer().
std::unique_ptr<FollowAtSource> MakeFollowAtSource(uint64_t max_held_bytes);

}  // namespace sstferry
