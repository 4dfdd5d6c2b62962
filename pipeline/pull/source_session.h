// Manages the target's control connection to a source. Requests a snapshot and
// its plan, keeps the connection alive, and compares the totals of both sides.
// pull, plan and verify use it. A pull replaces a lost connection.
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

// Settings of a SourceSession.
struct SourceSessionOptions {
  Timeouts timeouts;  // its retry times are not used
  // Time at which every wait ends with kDeadline.
  Clock::time_point until = Clock::time_point::max();
  // Connect() tries for this time to get an answer; 0: it tries once.
  std::chrono::milliseconds first_answer_within{0};
  // Contains each channel during its handshake. Its CloseAll() ends the
  // handshake. Must outlive the session. If null, only timeouts.connect ends a
  // handshake.
  ChannelSet* handshakes = nullptr;
  // Retries after a connection is lost, once Connect() has succeeded. By
  // default, there are no retries. A retry succeeds only if the source still
  // has the snapshot and the same plan.
  BackoffOptions retry;
  StopSignal* stop = nullptr;  // ends a wait between tries; may be null
  // Called with the failure for each lost connection that is replaced, and with
  // OK when the transfer is resumed on a new connection. Runs on a thread of
  // the session. May be null.
  std::function<void(const rocksdb::Status&)> on_retry;
  // Called for each failed try that is followed by another try. Not called if
  // the failure is the same as that of the previous try, or as the loss itself.
  // May be null.
  std::function<void(const rocksdb::Status&)> on_failed_try;
  // Called once, from a thread of the session, when the session fails after
  // Connect(). It may call Cancel(), but no other function of the session.
  std::function<void(const rocksdb::Status&)> on_fail;
  // Called from a thread of the session when the source has no free transfer
  // slot; asks_again_at() is the time of the next request. May be null.
  std::function<void()> on_busy;
  // Called by the reader for each Stats message of the source; its result is
  // sent. May be null.
  std::function<std::optional<Compress>(const Stats&)> on_stats;
};

// The latest answer of each kind, as received from the source.
struct SourceAnswers {
  bool answered = false;  // one of the next six members was received
  ListReply list;
  StatusReply received;
  FactsReply facts;
  OtherFilePart other_file;
  PinReply pins;
  FollowEnd follow_end;
  bool follows = false;  // AskWalBytes() waits for the source's answer
  std::vector<WalBytes> follow_bytes;  // for AskWalBytes(), one for each WAL
  uint64_t follow_total = 0;           // memory of follow_bytes, in bytes
  // Bytes of all messages of all answers, including incomplete answers.
  uint64_t answer_bytes = 0;
  bool finished = false;
  Finish finish;
  Stats stats;
};

// A control connection of one operation.
//
// Ownership: borrows the dialer, which must outlive it.
// Threads:   Cancel(), AwaitFailure(), ConnectLane(), stats() and
//            received_bytes() from any thread; the other functions from one
//            thread.
class SourceSession {
 public:
  // Connects and completes the handshake.
  //   kDeadPeer  no answer within first_answer_within
  [[nodiscard]] static rocksdb::Status Connect(
      Dialer* dialer, const SourceSessionOptions& options,
      std::unique_ptr<SourceSession>* session);
  // Closes the connection; the source then drops its snapshot.
  ~SourceSession();

  const HelloAck& source() const { return ack_; }
  // Asks for the names of the served databases.
  [[nodiscard]] rocksdb::Status List(const ListRequest& ask, ListReply* reply);
  // Asks for the retained snapshots of a database, or of all databases that the
  // source lets this side read.
  [[nodiscard]] rocksdb::Status AskRetained(const StatusRequest& ask,
                                        StatusReply* reply);
  // Asks for facts about a database.
  [[nodiscard]] rocksdb::Status AskFacts(const FactsRequest& ask,
                                         FactsReply* reply);
  // Asks to pin these databases; the reply has one entry for each.
  [[nodiscard]] rocksdb::Status Pin(const PinRequest& ask, PinReply* reply);
  // Requests the bytes that follow a position in the source's WALs. *bytes gets
  // one item for each WAL.
  //   kCorrupt  the answer has more bytes than allowed, or has a gap
  [[nodiscard]] rocksdb::Status AskWalBytes(const FollowRequest& ask,
                                            std::vector<WalBytes>* bytes,
                                            FollowEnd* end);
  // Tells the source that one or all databases of a pinned set are no longer
  // needed.
  [[nodiscard]] rocksdb::Status EndPin(const PinEnd& end);
  // Asks for a piece of an application's file. REQUIRES: Open() has got the
  // plan of a pull.
  [[nodiscard]] rocksdb::Status AskOtherFile(const OtherFileRequest& ask,
                                             OtherFilePart* part);
  // Requests a snapshot and its plan, and blocks until the plan is complete.
  // Fails if the source makes no progress. If the source has no free transfer
  // slot, asks again at the time that the source sets, until
  // SourceSessionOptions::until.
  [[nodiscard]] rocksdb::Status Open(const OpenRequest& request,
                                     Plan* plan);
  [[nodiscard]] rocksdb::Status ConnectLane(uint32_t lane,
                                            std::unique_ptr<Channel>* channel);
  // Sends this side's totals. Returns OK if the source's totals are equal.
  // *theirs receives the source's totals and its last statistics. In a resumed
  // transfer, and in any transfer that is not a seed, first sends the list of
  // all parts that are complete at this side.
  [[nodiscard]] rocksdb::Status Finish(
      const struct Finish& ours, const std::vector<ReceivedPart>& received,
      struct Finish* theirs);
  // Tells the source how the operation ended, and closes the connection.
  void End(const rocksdb::Status& status, const std::string& where);
  void Cancel();
  // Blocks until the session fails, and returns its failure. Returns OK if the
  // session did not fail within `limit`, or was cancelled. Called after the
  // source has closed a lane. A source that fails closes its lanes, and sends
  // the reason on this connection.
  [[nodiscard]] rocksdb::Status AwaitFailure(std::chrono::milliseconds limit);

  Stats stats() const;  // latest from the source
  // Returns the time at which this side will request a transfer slot again;
  // nullopt: no such request is planned.
  std::optional<Clock::time_point> asks_again_at() const {
    std::lock_guard<std::mutex> lock(mu_);
    return plan_.asks_again_at();
  }
  // Returns a number that grows while the source works for this session.
  uint64_t progress() const;
  uint64_t wire_bytes() const;
  uint64_t received_bytes() const { return channel()->bytes_received(); }

 private:
  SourceSession(Dialer* dialer, const SourceSessionOptions& options);
  // Dials once; after OK, *channel is open and its handshake is complete.
  [[nodiscard]] rocksdb::Status DialControl(Clock::time_point until,
                                            std::shared_ptr<Channel>* channel);
  [[nodiscard]] rocksdb::Status FirstContact(
      std::shared_ptr<Channel>* channel);
  // Connects again after the failure `status`, as often as `retry` allows.
  // After a busy answer, first waits until the source may have a free transfer
  // slot. After OK, channel() is a new channel, and the transfer was requested
  // on it.
  [[nodiscard]] rocksdb::Status Reconnect(rocksdb::Status status);
  // Blocks until the time `turn`. kCancelled: the session was stopped.
  [[nodiscard]] rocksdb::Status AwaitTime(Clock::time_point turn);
  [[nodiscard]] rocksdb::Status Reopen(std::shared_ptr<Channel> channel);
  // Blocks until the next try, which must begin before `until`. Returns the
  // final status if no try is left.
  [[nodiscard]] rocksdb::Status AwaitTurn(Backoff* backoff,
                                          Clock::time_point until,
                                          const rocksdb::Status& status);
  std::shared_ptr<Channel> channel() const;
  // Blocks until a channel is usable, and sets *connection to its number.
  // Returns the failure of the session if no channel becomes usable.
  [[nodiscard]] rocksdb::Status AwaitChannel(std::shared_ptr<Channel>* channel,
                                             uint64_t* connection);
  void ReadLoop();
  [[nodiscard]] rocksdb::Status ReadUntilFailure(Channel* channel);
  void PingLoop();
  [[nodiscard]] rocksdb::Status Handle(const Frame& frame);
  [[nodiscard]] rocksdb::Status HandleAnswer(const Frame& frame);
  [[nodiscard]] rocksdb::Status HandleWalBytes(const Frame& frame);
  template <typename Message, typename Reply>
  [[nodiscard]] rocksdb::Status Question(FrameType type,
                                         const Message& message,
                                         const Reply& answer, Reply* reply);
  [[nodiscard]] rocksdb::Status HandlePlanFrame(const Frame& frame);
  [[nodiscard]] rocksdb::Status Ask(Channel* channel,
                                    const OpenRequest& request);
  // Blocks until `has_come` returns true, which it does after the source's
  // answer.
  //   kTooSlow  the source made no progress for the stall timeout, or the
  //             request is a day old
  [[nodiscard]] rocksdb::Status WaitFor(const std::function<bool()>& has_come);
  // Returns a number that grows with everything that the source does. REQUIRES:
  // mu_ is locked.
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
  Backoff backoff_;  // used by the reader, once it runs
  std::string last_failure_;  // message of the last try; used by the reader
  bool lost_ = false;         // a loss was reported; used by the reader
  std::thread reader_;
  std::thread pinger_;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::shared_ptr<Channel> channel_;  // under mu_, and all below
  std::shared_ptr<Channel> dialed_;   // while its handshake runs
  uint64_t past_wire_bytes_ = 0;      // bytes of earlier channels
  uint64_t connections_ = 0;
  // True if the handshake of `channel_` is complete. If a plan was requested,
  // the complete plan must have arrived, too.
  bool connected_ = false;
  bool dialing_ = false;      // after a loss or a busy answer
  bool resumed_ = false;      // the current frame resumed the transfer
  bool may_retry_ = false;    // the current failure may be retried
  bool stopping_ = false;
  rocksdb::Status status_;    // not OK: the session has failed
  OpenRequest request_;
  PlanReceiver plan_;
  SourceAnswers answers_;
};

// Returns the Hello that this process sends.
Hello MakeHello();

// Returns a text with the host and `target_dir`, such as "db2:/data/users". It
// shows the operator of the source which target sends requests. `target_dir`
// may be empty.
std::string TargetText(const std::string& target_dir);

// Makes the request of a pull, plan or verify with these options.
OpenRequest MakeOpenRequest(const PullOptions& options,
                            const std::string& name, Purpose purpose);

}  // namespace sstferry
