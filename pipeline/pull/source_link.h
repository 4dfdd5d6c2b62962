// Connects an operation with one source, by a session and its lanes. If the
// link fails, the operation fails. If the operation fails, the link closes its
// connections.
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
  // Maximum time for which a lane that the source has closed waits for the
  // reason on the control connection.
  std::chrono::milliseconds last_words{2000};
  // Prefix of the place of a failure, such as "left"; may be empty.
  std::string side;
  LogFunction log;
  // Returns a number that grows while the source serves lanes. If null, only
  // the session's own progress counts.
  std::function<uint64_t()> progress;
  // Called for each loss of the control connection after which the session
  // connects again. May be null.
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
  // Failures of a session that do not fail the operation.
  enum class Tolerated { kNothing, kSnapshotGone, kAny };

  SourceLink(Dialer* dialer, SourceLinkOptions options, FirstFailure* failure);
  ~SourceLink();

  // Makes a new session, which replaces the current one. After Tolerate(kAny),
  // when nothing depends on the source, tries to connect only once.
  [[nodiscard]] rocksdb::Status Connect();
  void Tolerate(Tolerated tolerated) { tolerated_ = tolerated; }
  // Returns null before the first Connect(), after a failed one, and after
  // Drop().
  SourceSession* session() const { return session_.get(); }
  // Ends the session without failing the operation. Connect() may then make
  // another session.
  void Drop(const rocksdb::Status& status);
  // Tells the source how the operation ended. Later calls do nothing. The
  // session's data can still be read.
  void End(const rocksdb::Status& status, const FailurePlace& place);

  // Sets the number of lanes and the frame flags that lanes accept. Called
  // before the first lane is opened.
  void SetLanes(uint32_t lanes, uint16_t allowed_flags = 0);
  // Sets the members of `lanes` that depend on this link: how lanes open
  // connections, how long they wait, and when they stop. The link must outlive
  // `lanes`.
  void ShareWith(LaneShared* lanes);
  // Opens or replaces a lane. *channel stays valid until the next call for the
  // lane.
  [[nodiscard]] rocksdb::Status OpenLane(uint32_t lane, Channel** channel);
  Channel* lane(uint32_t lane) const { return lanes_[lane].get(); }
  // Runs work(lane) for all lanes, each on its own thread. Returns the
  // operation's failure.
  [[nodiscard]] rocksdb::Status RunLanes(
      const std::function<void(uint32_t)>& work);
  // Called when a lane has ended with `status`, which may be OK. If the source
  // closed the lane, the operation fails with the reason that the source sends
  // on the control connection.
  void FailLane(const rocksdb::Status& status, const FailurePlace& place);
  // Waits up to `last_words` for the reason why the source closed a lane. Does
  // so only if `lane`, the status of the lane, has no reason. If the reason
  // arrives, fails the operation with it.
  void AwaitLastWords(const rocksdb::Status& lane);
  const StallGuard& guard() const { return guard_; }
  LostSource* lost_source() { return &lost_source_; }

  // Wakes all threads that wait for the source.
  void Close();
  // Returns why the operation waits for the source; empty if it does not wait.
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
  bool answered_ = false;  // the source has answered before
  bool ended_ = false;     // End() was called
  // The next two members are used only by the reader of the control connection.
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
