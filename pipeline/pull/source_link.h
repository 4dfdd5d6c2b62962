// Connects an operation with one source: a session and its lanes. A failure
// here fails the operation, and a failed operation closes them.
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

// Settings of a SourceLink.
struct SourceLinkOptions {
  Timeouts timeouts;
  // Time at which every wait of the session ends with kDeadline.
  Clock::time_point until = Clock::time_point::max();
  // Time that a lane, after the source has closed it, waits for the reason on
  // the control connection.
  std::chrono::milliseconds last_words{2000};
  // Prefix of the place of a failure, such as "left"; empty: no prefix.
  std::string side;
  LogFunction log;
  // Grows while the source serves lanes. Null: only the session's own progress
  // counts.
  std::function<uint64_t()> progress;
  // Called for each loss of the control connection that is retried. May be
  // null.
  std::function<void()> on_loss;
  // Called each time the source has no free transfer slot. May be null.
  std::function<void()> on_busy;
  // See SourceSessionOptions.
  std::function<std::optional<Compress>(const Stats&)> on_stats;
  // Called first on each thread of RunLanes(). May be null.
  std::function<void()> on_lane_thread;
};

// The connections to one source.
//
// Ownership: borrows the dialer and the failure, which must outlive it.
// Threads:   Close(), waiting_for(), lanes() and stats() from any thread;
//            OpenLane() and FailLane() from the thread of that lane; the other
//            functions from one thread.
class SourceLink {
 public:
  // Failures that end a session without failing the operation.
  enum class Tolerated { kNothing, kSnapshotGone, kAny };

  SourceLink(Dialer* dialer, SourceLinkOptions options, FirstFailure* failure);
  ~SourceLink();

  // Replaces the session. With kAny, when nothing depends on the source, tries
  // only once.
  [[nodiscard]] rocksdb::Status Connect();
  void Tolerate(Tolerated tolerated) { tolerated_ = tolerated; }
  // Returns null before the first Connect(), after a failed one, and after
  // Drop().
  SourceSession* session() const { return session_.get(); }
  // Ends a session that was refused. Connect() may start another session.
  void Drop(const rocksdb::Status& status);
  // Tells the source once how the operation ended. The session's data can still
  // be read.
  void End(const rocksdb::Status& status, const FailurePlace& place);

  // Sets the number of lanes and the frame flags that they accept. Called
  // before the first lane opens.
  void SetLanes(uint32_t lanes, uint16_t allowed_flags = 0);
  // Sets in `lanes` what they need from this link: how to open, how long to
  // wait, when to stop. The link must outlive them.
  void ShareWith(LaneShared* lanes);
  // Opens or replaces a lane. *channel stays valid until the next call for the
  // lane.
  [[nodiscard]] rocksdb::Status OpenLane(uint32_t lane, Channel** channel);
  Channel* lane(uint32_t lane) const { return lanes_[lane].get(); }
  // Runs work(lane) for all lanes, each on its own thread. Returns the
  // operation's failure.
  [[nodiscard]] rocksdb::Status RunLanes(
      const std::function<void(uint32_t)>& work);
  // Handles the end of a lane; `status` may be OK. If the lane's peer is gone,
  // the operation fails with the reason that the source itself gives.
  void FailLane(const rocksdb::Status& status, const FailurePlace& place);
  // If `lane` is the end of a lane without a reason, fails the operation with
  // the reason that the source gives within `last_words`.
  void AwaitLastWords(const rocksdb::Status& lane);
  const StallGuard& guard() const { return guard_; }
  LostSource* lost_source() { return &lost_source_; }

  // Ends all waits for the source.
  void Close();
  // Returns why the operation waits for the source; empty if it does not.
  std::string waiting_for() const;
  uint32_t lanes() const;
  // Returns the latest counts from the source; zeros without a session.
  Stats stats() const;
  // Returns the bytes sent and received on the connections of the session and
  // of all lanes, including connections that were replaced.
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
  bool answered_ = false;  // the source answered once
  bool ended_ = false;     // End() was called
  // Only the reader thread of the control connection uses the next two members.
  bool is_lost_ = false;
  LostSource::Clock::time_point since_ = LostSource::Clock::now();
  uint16_t allowed_flags_ = 0;
  std::unique_ptr<SourceSession> session_;  // changes under mu_

  mutable std::mutex mu_;
  std::string waiting_for_;                      // under mu_
  std::vector<std::unique_ptr<Channel>> lanes_;  // slots under mu_
  // Bytes of lane connections that were replaced; under mu_.
  uint64_t past_wire_bytes_ = 0;
};

}  // namespace sstferry
