// Decides which failures of a lane are retried, when, and how often.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/pull/backoff.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Classes of failures of a lane.
enum class LaneFailure {
  kFinal,    // our own failure, the source's final answer, or an intact frame
             // with wrong contents
  kLost,     // connection lost: retried for retry_for after the last progress
  kTold,     // the source asks for another try: retried like kLost
  // Bytes or the chunk made of them were damaged: retried kMaxTries times.
  kDamaged,
};

// Classifies a failure to connect to a source that answered earlier. The source
// exists and has a compatible version, so an unexpected answer may have been
// damaged on the way.
LaneFailure FailureToOpen(const rocksdb::Status& status);
// Classifies the failure of a request that the source did not answer. `channel`
// is null if the lane could not be opened. `ends`: the operation has already
// failed.
LaneFailure FailureToAsk(const rocksdb::Status& status, const Channel* channel,
                         bool ends);

// The retries of one lane. Threads: the lane's.
class LaneRetry {
 public:
  static constexpr int kMaxTries = 5;
  // The number of tries is reset to 0 when this many new bytes of a unit have
  // arrived intact. For other chunks, it is reset when the chunk was received.
  static constexpr uint64_t kBytesBetweenDamage = 256u << 10;
  // A lane fails when it has lost one chunk this many times. Needed for a lane
  // whose connections always break within one chunk, for example with one large
  // entry. The time limit does not end such a lane, because a chunk that starts
  // over counts as progress.
  static constexpr int kMaxLosses = 32;

  // Borrows the state. Log lines contain `what`, such as "lane 2".
  LaneRetry(LaneShared* state, std::string what);

  // Called after a failure. Waits, then returns OK for another try. Otherwise
  // returns how the lane ends: with `status` itself, kDeadPeer after too long a
  // time, kCorrupt after too many tries.
  [[nodiscard]] rocksdb::Status AwaitTurn(const rocksdb::Status& status,
                                          LaneFailure failure);
  // Called when a connection has completed its handshake.
  void Connected();
  // Counts bytes that arrived intact and are kept even if the connection
  // breaks.
  void CountGood(uint64_t bytes);
  // Called when a partly received chunk starts over.
  void ChunkLost() { losses_++; }
  // Called when a complete chunk was right.
  void ChunkDone();
  // Called when a complete chunk was wrong.
  void ChunkBad() { chunk_bad_ = true; }

 private:
  void CountFailure(const rocksdb::Status& status, LaneFailure failure);
  void Log(LogLevel level, const std::string& text) const;

  LaneShared* const state_;
  const std::string what_;
  Backoff backoff_;
  LostSource::Clock::time_point since_{};  // start of the connection
  // The next two members describe the current failure.
  bool counted_ = false;
  bool lost_ = false;  // reported to lost_source
  int tries_ = 0;
  int losses_ = 0;  // losses of the current chunk
  uint64_t good_bytes_ = 0;  // since the last damage
  bool chunk_bad_ = false;
};

}  // namespace sstferry
