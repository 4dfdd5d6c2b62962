// The control connection of one target at the source: pins and plans what it
// asks for, or goes on with a transfer that is held, keeps both sides aware of
// each other, agrees on the totals.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "pipeline/source/transfer/snapshot_store.h"
#include "pipeline/source/transfer/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Whether `peer` (null: nobody proved anything) is one whom `database` allows.
bool MayRead(const ServedDatabase& database, const PeerIdentity* peer);

// What a session needs of its server.
struct SessionHost {
  const ServeOptions* options = nullptr;
  TokenBucket* wire_bucket = nullptr;
  // kRefused with a sentence when the name is not served, kDenied when not to
  // `peer`, who may be null.
  std::function<rocksdb::Status(const std::string& name,
                                const PeerIdentity* peer,
                                ServedDatabase* database)>
      find_database;
  SnapshotStore* store = nullptr;
  // A warning that a peer can cause.
  std::function<void(const std::string& line)> log_peer;
  // Called with each new transfer before it is pinned. Null: nobody is told.
  std::function<void(Transfer*)> on_transfer;
};

// Threads: Run() reads on its caller's thread; a worker pins and plans, a
//   ticker pings and sends Stats. Both begin with the transfer, so that who asks
//   for nothing costs one thread, and are joined before Run() returns.
class ControlSession {
 public:
  ControlSession(const SessionHost& host, const Hello& hello,
                 Channel* channel);
  ~ControlSession();
  void Run();

 private:
  [[nodiscard]] rocksdb::Status Serve();
  [[nodiscard]] rocksdb::Status Handle(const Frame& frame, bool* done);
  [[nodiscard]] rocksdb::Status TellStatus(const Frame& frame);
  [[nodiscard]] rocksdb::Status FindShared(
      const OpenRequest& request, std::shared_ptr<Transfer>* held) const;
  [[nodiscard]] rocksdb::Status DropOld(const ServedDatabase& database,
                                        OpenRequest* request,
                                        std::string* note);
  [[nodiscard]] rocksdb::Status TakeRequest(OpenRequest request);
  [[nodiscard]] rocksdb::Status TakeMemory(const Frame& frame);
  [[nodiscard]] rocksdb::Status StartOpen(const OpenRequest& request);
  [[nodiscard]] rocksdb::Status Resume(const ServedDatabase& database,
                                       const OpenRequest& request);
  [[nodiscard]] rocksdb::Status RecordHeld(const Frame& frame);
  [[nodiscard]] rocksdb::Status AgreeOnTotals(const Finish& theirs);
  // What becomes of the transfer when the connection ends with `status`; the
  // transfer's own end, when it has one.
  [[nodiscard]] rocksdb::Status EndTransfer(const rocksdb::Status& status);
  bool MayKeep(const rocksdb::Status& status);
  void Report(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status SetCompression(const Compress& compress);
  [[nodiscard]] rocksdb::Status CountFrame();
  [[nodiscard]] rocksdb::Status StartOpening();
  [[nodiscard]] rocksdb::Status Pin();
  void Open();
  // Pings, and tells how far the transfer has got: a target that waits for a
  // plan sees by that that the snapshot is still being read.
  void Tick();
  void DrainUntilClosed();
  void LogFailure(const rocksdb::Status& status) const;

  const SessionHost host_;
  const Hello hello_;
  Channel* const channel_;
  std::shared_ptr<Transfer> transfer_;
  const Clock::time_point started_ = Clock::now();
  uint64_t frames_ = 0;
  std::optional<OpenRequest> request_;
  TargetMemory memory_;  // until it is all there
  uint64_t memory_bytes_ = 0;
  bool registered_ = false;
  bool finished_ = false;
  bool resumed_ = false;
  bool lost_ = false;      // no frame came, or bytes that are none
  bool told_ = false;      // the target said why it ends
  bool kept_ = false;      // the transfer outlives this session
  bool replaced_ = false;  // another session has the transfer
  std::thread worker_;
  std::thread ticker_;

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;   // under mu_, and all below
};

}  // namespace sstferry
