// The target's end of a control connection: asks a source for a snapshot and
// its plan, keeps the connection alive, agrees on totals. Used by pull, plan
// and verify alike. A pull's connects again when it is lost.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/backoff.h"
#include "pipeline/pull/channel_set.h"
#include "pipeline/pull/plan_receiver.h"
#include "pipeline/wire/channel.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

struct SourceSessionOptions {
  Timeouts timeouts;  // but for those of tries, which are below
  // Every wait ends by then: kDeadline.
  Clock::time_point until = Clock::time_point::max();
  // Connect() tries for so long to get an answer; 0: once.
  std::chrono::milliseconds first_answer_within{0};
  // Holds each channel during its handshake, so that CloseAll() ends it; must
  // outlive the session. Null: a handshake ends by timeouts.connect alone.
  ChannelSet* handshakes = nullptr;
  // How a connection that is lost after Connect() is tried again; by default it
  // is not. The source must
  // then still have the snapshot and the same plan.
  BackoffOptions retry;
  StopSignal* stop = nullptr;  // ends a wait before a try; may be null
  // Called from a thread of the session for each loss that is tried again, and
  // when the transfer is resumed on another connection (OK). Null: nobody is
  // told.
  std::function<void(const rocksdb::Status&)> on_retry;
  // Called for each failed try that another one follows, where it failed in
  // another way than the one before, on_retry's included. Null: nobody is told.
  std::function<void(const rocksdb::Status&)> on_failed_try;
  // Called once, from a thread of the session, when the session fails after
  // Connect(); must not call back into the session but for Cancel().
  std::function<void(const rocksdb::Status&)> on_fail;
  // Called from a thread of the session when the source has no place for the
  // transfer: asks_again_at() says when it is asked again. Null: nobody is
  // told.
  std::function<void()> on_busy;
  // Called by the reader for every Stats of the source; what it returns is
  // sent. Null: nothing is.
  std::function<std::optional<Compress>(const Stats&)> on_stats;
};

// The newest of each kind.
struct SourceAnswers {
  bool answered = false;  // list, retained, facts or other_file
  ListReply list;
  StatusReply received;
  FactsReply facts;
  OtherFilePart other_file;
  PinReply pins;
  FollowEnd follow_end;
  std::vector<FollowBytes> follow_bytes;  // since the last follow_end was taken
  uint64_t follow_total = 0;              // of these
  uint64_t other_bytes = 0;  // of all parts
  bool finished = false;
  Finish finish;
  Stats stats;
};

// Ownership: borrows the dialer, which must outlive it.
// Threads:   Cancel(), AwaitFailure(), ConnectLane() and stats() from any
//   thread, all else from one.
class SourceSession {
 public:
  // Connects and shakes hands.
  //   kDeadPeer  nobody answered, for as long as is tried
  [[nodiscard]] static rocksdb::Status Connect(
      Dialer* dialer, const SourceSessionOptions& options,
      std::unique_ptr<SourceSession>* session);
  ~SourceSession();  // hangs up; the source then drops its snapshot

  const HelloAck& source() const { return ack_; }
  [[nodiscard]] rocksdb::Status List(ListReply* reply);
  // Asks for the snapshots that are retained of a database, or of all that this
  // side may read.
  [[nodiscard]] rocksdb::Status AskRetained(const StatusRequest& ask,
                                        StatusReply* reply);
  // Asks what a database is. REQUIRES: the source has kFeatureFacts.
  [[nodiscard]] rocksdb::Status AskFacts(const FactsRequest& ask,
                                         FactsReply* reply);
  // Asks to pin these databases; the reply has as many entries.
  [[nodiscard]] rocksdb::Status Pin(const PinRequest& ask, PinReply* reply);
  // Asks for what is behind a position of the source's WALs.
  //   kCorrupt  more than an answer may have
  [[nodiscard]] rocksdb::Status AskBehind(const FollowRequest& ask,
                                          std::vector<FollowBytes>* bytes,
                                          FollowEnd* end);
  // Tells that something of it is needed no longer.
  [[nodiscard]] rocksdb::Status EndPin(const PinEnd& end);
  // Asks for a piece of an application's file. REQUIRES: Open() has made a plan
  // of a pull.
  [[nodiscard]] rocksdb::Status AskOtherFile(const OtherFileRequest& ask,
                                             OtherFilePart* part);
  // Sets what goes with the request of a refresh. Before Open().
  void SetReplicaRecord(ReplicaRecord replica) {
    replica_ = std::move(replica);
  }
  // Blocks while the source pins and plans, for as long as it gets on. While it
  // has no place for the transfer, asks again whenever it says, until `until`.
  [[nodiscard]] rocksdb::Status Open(const OpenRequest& request,
                                     Plan* plan);
  [[nodiscard]] rocksdb::Status ConnectLane(uint32_t lane,
                                            std::unique_ptr<Channel>* channel);
  // Sends our totals; OK means that the source's are the same. *theirs holds
  // the source's last statistics. A source that goes on with the transfer, or
  // plans a refresh, is first told of all parts that are whole here.
  [[nodiscard]] rocksdb::Status Finish(
      const struct Finish& ours, const std::vector<ReceivedPart>& received,
      struct Finish* theirs);
  // Tells the source how it ended here and hangs up.
  void End(const rocksdb::Status& status, const std::string& where);
  void Cancel();
  // Waits for the session to fail, and returns how it did; OK when it did not
  // within `limit` or was cancelled. A source that fails closes its lanes and
  // says why here: for lanes that were closed.
  [[nodiscard]] rocksdb::Status AwaitFailure(std::chrono::milliseconds limit);

  Stats stats() const;  // the source's newest
  // Returns when the source is asked for a place again; absent: it has given
  // one.
  std::optional<Clock::time_point> asks_again_at() const {
    std::lock_guard<std::mutex> lock(mu_);
    return plan_.asks_again_at();
  }
  // Grows while the source does anything for this session.
  uint64_t progress() const;
  uint64_t wire_bytes() const;

 private:
  SourceSession(Dialer* dialer, const SourceSessionOptions& options);
  // Dials once; after OK *channel is open and has shaken hands.
  [[nodiscard]] rocksdb::Status DialControl(Clock::time_point until,
                                            std::shared_ptr<Channel>* channel);
  [[nodiscard]] rocksdb::Status FirstContact(
      std::shared_ptr<Channel>* channel);
  // Dials as often as `retry` says, from the failure `status` on, or once the
  // source may have a place; OK: channel() is another one, on which the
  // transfer is asked for again.
  [[nodiscard]] rocksdb::Status Reconnect(rocksdb::Status status);
  // Blocks until `turn`. kCancelled: the operation ends.
  [[nodiscard]] rocksdb::Status AwaitTime(Clock::time_point turn);
  [[nodiscard]] rocksdb::Status Reopen(std::shared_ptr<Channel> channel);
  // Waits before the next try, which has to begin before `until`; returns how
  // it ends when there is none.
  [[nodiscard]] rocksdb::Status AwaitTurn(Backoff* backoff,
                                          Clock::time_point until,
                                          const rocksdb::Status& status);
  std::shared_ptr<Channel> channel() const;
  // Waits for a channel that is usable, and gets its number; else returns how
  // the session failed.
  [[nodiscard]] rocksdb::Status AwaitChannel(std::shared_ptr<Channel>* channel,
                                             uint64_t* connection);
  void ReadLoop();
  [[nodiscard]] rocksdb::Status ReadUntilFailure(Channel* channel);
  void PingLoop();
  [[nodiscard]] rocksdb::Status Handle(const Frame& frame);
  [[nodiscard]] rocksdb::Status HandleAnswer(const Frame& frame);
  template <typename Message, typename Reply>
  [[nodiscard]] rocksdb::Status Question(FrameType type,
                                         const Message& message,
                                         const Reply& answer, Reply* reply);
  [[nodiscard]] rocksdb::Status HandlePlanFrame(const Frame& frame);
  [[nodiscard]] rocksdb::Status Ask(Channel* channel,
                                    const OpenRequest& request);
  // Waits for what the source was asked.
  //   kTooSlow  it got on with nothing for the stall timeout, or was asked a
  //             day ago
  [[nodiscard]] rocksdb::Status WaitFor(const std::function<bool()>& has_come);
  // Grows with whatever the source does. Under mu_.
  uint64_t activity() const;
  [[nodiscard]] rocksdb::Status AskForTotals(
      const struct Finish& ours, const std::vector<ReceivedPart>& received);
  bool wants_received() const {
    std::lock_guard<std::mutex> lock(mu_);
    return plan_.source_resumed() || request_.mode != TransferMode::kSeed;
  }
  void StopThreads();

  Dialer* const dialer_;
  const SourceSessionOptions options_;
  HelloAck ack_;
  Backoff backoff_;  // the reader's, once it runs
  std::string last_failure_;  // of a try; likewise
  bool lost_ = false;         // the owner knows of a loss; likewise
  ReplicaRecord replica_;  // constant once Open() was called
  std::thread reader_;
  std::thread pinger_;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::shared_ptr<Channel> channel_;  // under mu_, and all below
  std::shared_ptr<Channel> dialed_;   // while it shakes hands
  uint64_t past_wire_bytes_ = 0;      // of channels before
  uint64_t connections_ = 0;
  bool connected_ = false;    // and, once opened, planned on this connection
  bool dialing_ = false;      // after a loss, or until there may be a place
  bool resumed_ = false;      // by the frame at hand
  bool may_retry_ = false;    // the failure at hand is the connection's
  bool stopping_ = false;
  rocksdb::Status status_;    // not OK: the session failed
  OpenRequest request_;
  PlanReceiver plan_;
  SourceAnswers answers_;
};

// Returns the Hello that this process sends.
Hello MakeHello();

// Returns "db2:/data/users", which tells a source's operator who asks;
// `target_dir` may be empty.
std::string TargetText(const std::string& target_dir);

// Makes the request of a pull with these options, of the plan of one, and of
// verify.
OpenRequest MakeOpenRequest(const PullOptions& options,
                            const std::string& name, Purpose purpose);

}  // namespace sstferry
