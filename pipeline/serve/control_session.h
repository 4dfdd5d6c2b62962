// Serves the control connection of a target at the source. The target requests
// a transfer on this connection, or resumes one. After the transfer, both sides
// compare how many entries and chunks were sent.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "pipeline/serve/other_file_answers.h"
#include "pipeline/serve/session_host.h"
#include "pipeline/serve/snapshot_store.h"
#include "pipeline/serve/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Serves one control connection.
//
// Threads:  Run() receives frames on its caller's thread. Two more threads
//           start with the transfer: a worker pins and plans it, and a ticker
//           sends pings and Stats. A peer that requests nothing therefore needs
//           only one thread. Run() waits for both threads before it returns.
class ControlSession {
 public:
  // `establish` is called when the peer asks for a database, and makes the
  // connection established (see admission.h). It returns false if the server
  // has dropped the connection.
  ControlSession(const SessionHost& host, const Hello& hello, Channel* channel,
                 std::function<bool()> establish);
  ~ControlSession();
  void Run();

 private:
  [[nodiscard]] rocksdb::Status Serve();
  // Sets *database to the served database `name`, and makes the connection
  // established.
  [[nodiscard]] rocksdb::Status FindDatabase(const std::string& name,
                                             ServedDatabase* database);
  [[nodiscard]] rocksdb::Status Handle(const Frame& frame, bool* done);
  [[nodiscard]] rocksdb::Status PinAll(const Frame& frame);
  [[nodiscard]] rocksdb::Status AnswerFollower(const Frame& frame);
  [[nodiscard]] rocksdb::Status FindShared(
      const ServedDatabase& database, const OpenRequest& request,
      std::shared_ptr<SharedSnapshot>* shared) const;
  [[nodiscard]] rocksdb::Status DropOld(const ServedDatabase& database,
                                        OpenRequest* request,
                                        std::string* note);
  [[nodiscard]] rocksdb::Status StartOpen(const OpenRequest& request);
  [[nodiscard]] rocksdb::Status Resume(const ServedDatabase& database,
                                       const OpenRequest& request);
  [[nodiscard]] rocksdb::Status RecordReceived(const Frame& frame);
  [[nodiscard]] rocksdb::Status SendOtherFile(const Frame& frame);
  [[nodiscard]] rocksdb::Status AgreeOnTotals(const Finish& theirs);
  // Called when the connection has ended with `status`. Retains the transfer if
  // the target may resume it; otherwise ends it. If the transfer has ended,
  // returns the transfer's end state.
  [[nodiscard]] rocksdb::Status EndTransfer(const rocksdb::Status& status);
  bool MayKeep(const rocksdb::Status& status);
  void Report(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status SetCompression(const Compress& compress);
  [[nodiscard]] rocksdb::Status CountFrame();
  [[nodiscard]] rocksdb::Status StartOpening();
  // Called if the server has no free slot for a transfer. Tells the target
  // after which time to ask again. Returns `busy`.
  [[nodiscard]] rocksdb::Status TellBusy(const rocksdb::Status& busy,
                                         std::chrono::milliseconds retry_after);
  [[nodiscard]] rocksdb::Status Pin();
  void Open();
  // Runs on the ticker. Sends pings and Stats. While a target waits for its
  // plan, Stats show that the source still reads the snapshot.
  void Tick();
  void DrainUntilClosed();
  void LogFailure(const rocksdb::Status& status) const;

  const SessionHost host_;
  const Hello hello_;
  Channel* const channel_;
  const std::function<bool()> establish_;
  std::shared_ptr<Transfer> transfer_;
  const Clock::time_point started_ = Clock::now();
  uint64_t frames_ = 0;
  OtherFileAnswers other_files_;
  bool follows_ = false;  // the target has sent a FollowRequest
  bool registered_ = false;
  bool finished_ = false;
  bool resumed_ = false;
  // The connection was lost: no frame arrived, a damaged frame arrived, or the
  // source disconnected the target because it was too slow.
  bool lost_ = false;
  bool told_ = false;      // the target sent an End frame
  bool kept_ = false;      // the transfer remains after this session
  bool replaced_ = false;  // another session serves the transfer now
  std::thread worker_;
  std::thread ticker_;

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;   // under mu_
};

}  // namespace sstferry
