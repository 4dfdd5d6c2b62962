// Everything that connects an operation with one source: a session and its
// lanes. What fails there fails the operation, and the other way round.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pull/channel_set.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/lost_source.h"
#include "pipeline/pull/source_session.h"
#include "pipeline/pull/stall_guard.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

struct LaneShared;

struct SourceLinkOptions {
  Timeouts timeouts;
  // Every wait of the session ends by then: kDeadline.
  Clock::time_point until = Clock::time_point::max();
  // How long a closed lane waits for the control connection to say why.
  std::chrono::milliseconds last_words{2000};
  // Begins the place of a failure: "left"; empty: nothing does.
  std::string side;
  LogFunction log;
  // Grows while the source serves lanes. Null: only the session's own count.
  std::function<uint64_t()> progress;
  // Called for each loss of the control connection that is tried again. Null:
  // nobody counts.
  std::function<void()> on_loss;
  // Called each time the source says that it has no place. Null: nobody counts.
  std::function<void()> on_busy;
  // See SourceSessionOptions.
  std::function<std::optional<Compress>(const Stats&)> on_stats;
  // Called first by each thread of RunLanes(). Null: nothing is.
  std::function<void()> on_lane_thread;
};

// Ownership: borrows the dialer and the failure, which must outlive it.
// Threads: Close(), waiting_for(), lanes() and stats() from any; OpenLane() and
//   FailLane() from the thread of that lane; all else from one.
class SourceLink {
 public:
  // Names what may end a session without failing the operation.
  enum class Tolerated { kNothing, kSnapshotGone, kAny };

  SourceLink(Dialer* dialer, SourceLinkOptions options, FirstFailure* failure);
  ~SourceLink();

  // Replaces the session. A source that nothing depends on (kAny) is tried
  // once.
  [[nodiscard]] rocksdb::Status Connect();
  void Tolerate(Tolerated tolerated) { tolerated_ = tolerated; }
  // Returns null if there is no source, or none any more.
  SourceSession* session() const { return session_.get(); }
  // Ends a session that was refused; Connect() may begin another one.
  void Drop(const rocksdb::Status& status);
  // Tells the source how the operation ended, once; what the session knows
  // stays.
  void End(const rocksdb::Status& status, const FailurePlace& place);

  // Sets how many lanes there are, and which flags of frames they accept.
  // Before the first lane opens.
  void SetLanes(uint32_t lanes, uint16_t allowed_flags = 0);
  // Gives the lanes what they use of this link: how they open, how long they
  // wait, when they stop. The link outlives them.
  void ShareWith(LaneShared* lanes);
  // Opens or replaces a lane. *channel stays valid until the next call for it.
  [[nodiscard]] rocksdb::Status OpenLane(uint32_t lane, Channel** channel);
  Channel* lane(uint32_t lane) const { return lanes_[lane].get(); }
  // Runs work(lane) for all lanes, each on a thread of its own. Returns the
  // operation's failure.
  [[nodiscard]] rocksdb::Status RunLanes(
      const std::function<void(uint32_t)>& work);
  // Takes the end of a lane, OK included. When its peer is gone, the failure is
  // what the source itself says of it.
  void FailLane(const rocksdb::Status& status, const FailurePlace& place);
  // Fails the operation with what the source says within `last_words`.
  void AwaitLastWords();
  const StallGuard& guard() const { return guard_; }
  LostSource* lost_source() { return &lost_source_; }

  // Ends all that waits for the source.
  void Close();
  // Returns why the source is waited for; empty: it is not.
  std::string waiting_for() const;
  uint32_t lanes() const;
  // Returns the source's newest counts; zeros without a session.
  Stats stats() const;
  // Counts those of the session and of all lanes, lost ones included.
  uint64_t wire_bytes() const;

 private:
  SourceSessionOptions SessionOptions();
  bool Tolerates(const rocksdb::Status& status) const;
  void OnRetry(const rocksdb::Status& lost);
  void OnBusy();
  void CloseSilentLanes();
  void SetWaitingFor(const std::string& why);
  void Log(LogLevel level, const std::string& text) const;

  Dialer* const dialer_;
  const SourceLinkOptions options_;
  FirstFailure* const failure_;
  const StallGuard guard_;
  LostSource lost_source_;
  ChannelSet handshakes_;
  std::atomic<Tolerated> tolerated_{Tolerated::kNothing};
  bool answered_ = false;  // by the source, once
  bool ended_ = false;     // End() was called
  // The reader's thread of the control connection uses these:
  bool is_lost_ = false;
  LostSource::Clock::time_point since_ = LostSource::Clock::now();
  uint16_t allowed_flags_ = 0;
  std::unique_ptr<SourceSession> session_;  // changes under mu_

  mutable std::mutex mu_;
  std::string waiting_for_;                      // under mu_
  std::vector<std::unique_ptr<Channel>> lanes_;  // slots under mu_
  uint64_t past_wire_bytes_ = 0;                 // under mu_: of lost lanes
};

}  // namespace sstferry
