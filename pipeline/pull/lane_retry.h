// Decides what becomes of a lane's failures: which are tried again, after how
// long, and how often.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/pull/backoff.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

enum class LaneFailure {
  kFinal,    // of this side, of the source's last word, or of whole frames
             // whose words or bytes are not so
  kLost,     // the connection: tried again for retry_for without progress
  kTold,     // the source's word that it may be asked again: tried likewise
  kDamaged,  // bytes on the way, or the chunk they made: so often in one place
};

// Judges a connection that could not be opened, once the source has been talked
// to: it is there and of this version, so what its answer says may be damage.
LaneFailure FailureToOpen(const rocksdb::Status& status);
// Judges a question on a lane that the source did not answer; null: the lane
// could not be opened. `ends`: the operation has failed already.
LaneFailure FailureToAsk(const rocksdb::Status& status, const Channel* channel,
                         bool ends);

// Threads: one lane's.
class LaneRetry {
 public:
  static constexpr int kMaxTries = 5;
  // After so many new bytes of a unit that arrived whole, damage is counted
  // anew. A chunk is counted until it has come.
  static constexpr uint64_t kBytesBetweenDamage = 256u << 10;
  // A chunk that is begun anew brings bytes, so time without progress does not
  // end a lane whose connections last for less than a chunk of one large entry.
  static constexpr int kMaxLosses = 32;

  // Borrows the state. `what` is for the log: "lane 2".
  LaneRetry(LaneShared* state, std::string what);

  // After a failure: OK once it is time to try again, or how the lane ends:
  // with `status` itself, kDeadPeer after too long, kCorrupt after too many
  // tries.
  [[nodiscard]] rocksdb::Status AwaitTurn(const rocksdb::Status& status,
                                          LaneFailure failure);
  // A connection has shaken hands.
  void Connected();
  // So many bytes have come whole, and stay whatever becomes of the connection.
  void CountGood(uint64_t bytes);
  // A chunk of which a piece had come is begun anew.
  void ChunkLost() { losses_++; }
  // All of it was right.
  void ChunkDone();
  // All of it came, and was wrong.
  void ChunkBad() { chunk_bad_ = true; }

 private:
  void CountFailure(const rocksdb::Status& status, LaneFailure failure);
  void Log(LogLevel level, const std::string& text) const;

  LaneShared* const state_;
  const std::string what_;
  Backoff backoff_;
  LostSource::Clock::time_point since_{};  // of the connection
  // These describe the failure at hand:
  bool counted_ = false;
  bool lost_ = false;  // lost_source knows
  int tries_ = 0;
  int losses_ = 0;  // of the chunk at hand
  uint64_t good_bytes_ = 0;  // since the last damage
  bool chunk_bad_ = false;
};

}  // namespace sstferry
