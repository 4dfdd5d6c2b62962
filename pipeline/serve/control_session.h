// The control connection of one target at the source: pins and plans the
// requested transfer or resumes a retained one, exchanges pings and Stats, and
// agrees on the totals.
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
// Threads:  Run() reads on its caller's thread; a worker pins and plans; a
//           ticker pings and sends Stats. Worker and ticker start with the
//           transfer, so that a peer that requests nothing costs one thread.
//           Run() joins them before it returns.
class ControlSession {
 public:
  // `establish` makes the connection established (admission.h). It is called
  // when the peer asks for a database, and returns false if the connection was
  // dropped before.
  ControlSession(const SessionHost& host, const Hello& hello, Channel* channel,
                 std::function<bool()> establish);
  ~ControlSession();
  void Run();

 private:
  [[nodiscard]] rocksdb::Status Serve();
  // Finds a served database and makes the connection established.
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
  // Ends or retains the transfer when the connection ends with `status`.
  // Returns the transfer's own end state if it has one.
  [[nodiscard]] rocksdb::Status EndTransfer(const rocksdb::Status& status);
  bool MayKeep(const rocksdb::Status& status);
  void Report(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status SetCompression(const Compress& compress);
  [[nodiscard]] rocksdb::Status CountFrame();
  [[nodiscard]] rocksdb::Status StartOpening();
  // Tells the target when to ask again, because the server has no free transfer
  // slot. Returns `busy`.
  [[nodiscard]] rocksdb::Status TellBusy(const rocksdb::Status& busy,
                                         std::chrono::milliseconds retry_after);
  [[nodiscard]] rocksdb::Status Pin();
  void Open();
  // Sends pings and Stats. While a target waits for a plan, the progress in
  // Stats shows that the source is still reading the snapshot.
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
  // The connection was lost: no frame or a damaged frame arrived, or the
  // session was detached.
  bool lost_ = false;
  bool told_ = false;      // the target sent End with its end state
  bool kept_ = false;      // the transfer outlives this session
  bool replaced_ = false;  // another session has the transfer
  std::thread worker_;
  std::thread ticker_;

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;   // guarded by mu_, like all below
};

}  // namespace sstferry
