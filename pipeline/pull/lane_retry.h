// Decides which failures of a lane are retried, when, and how often.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/pull/backoff.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Classes of failures of a lane. The class decides whether the lane tries
// again.
enum class LaneFailure {
  // Not retried: a failure of this side, the final answer of the source, or an
  // intact frame with wrong contents.
  kFinal,
  kLost,  // connection lost: retried for retry_for after the last progress
  kTold,  // the source asks for another try: retried like kLost
  // Received bytes, or a chunk made of them, were damaged: retried until
  // kMaxTries tries have failed.
  kDamaged,
};

// Classifies a failure to connect to a source that has answered before. Such a
// source exists and has a compatible version. So an unexpected answer may have
// been damaged on the way, and is retried.
LaneFailure FailureToOpen(const rocksdb::Status& status);
// Classifies the failure `status` of a request to which no answer arrived.
// `channel` is null if the lane could not be opened. `ends` is true if the
// operation has already failed; the failure is then final.
LaneFailure FailureToAsk(const rocksdb::Status& status, const Channel* channel,
                         bool ends);

// Decides about the retries of one lane, and counts them. Threads: the lane's.
class LaneRetry {
 public:
  static constexpr int kMaxTries = 5;
  // The number of tries starts again after this many new bytes of a unit have
  // arrived intact. For other chunks, it starts again after a complete chunk
  // was received.
  static constexpr uint64_t kBytesBetweenDamage = 256u << 10;
  // A lane fails after it has lost the same chunk this many times. For example,
  // each connection may break within one chunk that contains a large entry. The
  // time limit does not end such a lane, because a chunk that starts over
  // counts as progress.
  static constexpr int kMaxLosses = 32;

  // Borrows `state`. Log lines contain `what`, such as "lane 2".
  LaneRetry(LaneShared* state, std::string what);

  // Called after the failure `status`. Waits, then returns OK if the lane must
  // try again. Otherwise returns the final status of the lane: `status`,
  // kCancelled, kDeadPeer (too long without progress, or a chunk was lost too
  // often) or kCorrupt (too many tries).
  [[nodiscard]] rocksdb::Status AwaitTurn(const rocksdb::Status& status,
                                          LaneFailure failure);
  // Called when a connection has completed its handshake.
  void Connected();
  // Counts bytes that arrived intact. They need not be sent again if the
  // connection breaks.
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
  // The next two members belong to the current failure.
  bool counted_ = false;
  bool lost_ = false;  // reported to lost_source
  int tries_ = 0;
  int losses_ = 0;  // losses of the current chunk
  uint64_t good_bytes_ = 0;  // received since the last damage
  bool chunk_bad_ = false;
};

}  // namespace sstferry
