// The target's side of a control connection: asks a source for a snapshot and
// its plan, keeps the connection alive, and agrees on totals. Used by pull,
// plan and verify. In a pull, a lost connection is replaced.
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
  Timeouts timeouts;  // except for retries, see below
  // Time at which every wait ends with kDeadline.
  Clock::time_point until = Clock::time_point::max();
  // Connect() tries for this time to get an answer; 0: it tries once.
  std::chrono::milliseconds first_answer_within{0};
  // Contains each channel during its handshake, so that CloseAll() ends the
  // handshake; must outlive the session. Null: only timeouts.connect ends a
  // handshake.
  ChannelSet* handshakes = nullptr;
  // Retries of a connection that is lost after Connect(); by default there are
  // no retries. They require that the source still has the snapshot and the
  // same plan.
  BackoffOptions retry;
  StopSignal* stop = nullptr;  // ends a wait before a try; may be null
  // Called from a thread of the session for each loss that is retried, and when
  // the transfer is resumed on another connection (OK). May be null.
  std::function<void(const rocksdb::Status&)> on_retry;
  // Called for each failed try after which another try follows, but not if its
  // failure is the same as the previous one, or as the loss itself. May be
  // null.
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

// The latest answer of each kind.
struct SourceAnswers {
  bool answered = false;  // one of the next six members was received
  ListReply list;
  StatusReply received;
  FactsReply facts;
  OtherFilePart other_file;
  PinReply pins;
  FollowEnd follow_end;
  bool follows = false;  // AskBehind() waits for its answer
  std::vector<WalBytes> follow_bytes;  // of that answer, one for each WAL
  uint64_t follow_total = 0;           // memory of follow_bytes, in bytes
  uint64_t other_bytes = 0;  // bytes of all parts
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
  // Asks for the retained snapshots of a database, or of all databases that
  // this side may read.
  [[nodiscard]] rocksdb::Status AskRetained(const StatusRequest& ask,
                                        StatusReply* reply);
  // Asks for facts about a database.
  [[nodiscard]] rocksdb::Status AskFacts(const FactsRequest& ask,
                                         FactsReply* reply);
  // Asks to pin these databases; the reply has one entry for each.
  [[nodiscard]] rocksdb::Status Pin(const PinRequest& ask, PinReply* reply);
  // Asks for the bytes after a position in the source's WALs: those of each WAL
  // as one item.
  //   kCorrupt  the answer has more bytes than allowed, or does not continue
  //             byte by byte
  [[nodiscard]] rocksdb::Status AskBehind(const FollowRequest& ask,
                                          std::vector<WalBytes>* bytes,
                                          FollowEnd* end);
  // Tells the source that one or all databases of a pinned set are no longer
  // needed.
  [[nodiscard]] rocksdb::Status EndPin(const PinEnd& end);
  // Asks for a piece of an application's file. REQUIRES: Open() has got the
  // plan of a pull.
  [[nodiscard]] rocksdb::Status AskOtherFile(const OtherFileRequest& ask,
                                             OtherFilePart* part);
  // Blocks while the source pins and plans, as long as it makes progress. If
  // the source has no free transfer slot, asks again at the time that the
  // source sets, until `until`.
  [[nodiscard]] rocksdb::Status Open(const OpenRequest& request,
                                     Plan* plan);
  [[nodiscard]] rocksdb::Status ConnectLane(uint32_t lane,
                                            std::unique_ptr<Channel>* channel);
  // Sends this side's totals; OK means that the source's are equal. *theirs
  // receives the source's last statistics. If the source resumed the transfer,
  // or the transfer is a refresh, first sends the list of all parts that are
  // complete here.
  [[nodiscard]] rocksdb::Status Finish(
      const struct Finish& ours, const std::vector<ReceivedPart>& received,
      struct Finish* theirs);
  // Tells the source how the operation ended, and closes the connection.
  void End(const rocksdb::Status& status, const std::string& where);
  void Cancel();
  // Blocks until the session fails, and returns its failure. Returns OK if it
  // did not fail within `limit`, or was cancelled. For lanes that were closed:
  // a source that fails closes its lanes and sends the reason on this
  // connection.
  [[nodiscard]] rocksdb::Status AwaitFailure(std::chrono::milliseconds limit);

  Stats stats() const;  // latest from the source
  // Returns the time of the next request for a transfer slot; nullopt if no
  // such request is planned.
  std::optional<Clock::time_point> asks_again_at() const {
    std::lock_guard<std::mutex> lock(mu_);
    return plan_.asks_again_at();
  }
  // Grows while the source does anything for this session.
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
  // Dials again after the failure `status`: as often as `retry` allows or,
  // after a busy answer, when the source may have a transfer slot. After OK,
  // channel() is a new channel, on which the transfer was requested again.
  [[nodiscard]] rocksdb::Status Reconnect(rocksdb::Status status);
  // Blocks until `turn`. kCancelled: the operation ends.
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
  // Blocks until the source has answered.
  //   kTooSlow  the source made no progress for the stall timeout, or the
  //             request is a day old
  [[nodiscard]] rocksdb::Status WaitFor(const std::function<bool()>& has_come);
  // Grows with everything that the source does. Under mu_.
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
  std::string last_failure_;  // failure of the last try; used by the reader
  bool lost_ = false;         // a loss was reported; used by the reader
  std::thread reader_;
  std::thread pinger_;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::shared_ptr<Channel> channel_;  // under mu_, and all below
  std::shared_ptr<Channel> dialed_;   // while its handshake runs
  uint64_t past_wire_bytes_ = 0;      // bytes of earlier channels
  uint64_t connections_ = 0;
  // The handshake of `channel_` is done, and it has received the complete plan
  // if a plan was requested.
  bool connected_ = false;
  bool dialing_ = false;      // after a loss or a busy answer
  bool resumed_ = false;      // set by the current frame
  bool may_retry_ = false;    // the current failure may be retried
  bool stopping_ = false;
  rocksdb::Status status_;    // not OK: the session has failed
  OpenRequest request_;
  PlanReceiver plan_;
  SourceAnswers answers_;
};

// Returns the Hello that this process sends.
Hello MakeHello();

// Returns the text that shows the source's operator which target asks, such as
// "db2:/data/users"; `target_dir` may be empty.
std::string TargetText(const std::string& target_dir);

// Makes the request of a pull, plan or verify with these options.
OpenRequest MakeOpenRequest(const PullOptions& options,
                            const std::string& name, Purpose purpose);

}  // namespace sstferry
