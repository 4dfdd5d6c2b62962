// Input: scripts of a target for the connections of one lane, one after the
// other. The transfer is already pinned and planned. A script has a handshake,
// then requests of every kind. If a connection ends during a chunk, the next
// script reconnects.
#include <list>

#include "pipeline/refresh/refresh.h"
#include "pipeline/serve/lane_session.h"
#include "tests/fuzz/crew.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/shared_snapshot.h"
#include "tests/fuzz/tiny_database.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

struct World {
  fuzz::TinyDatabase tiny;
  ServeOptions options;
  ServedDatabase database;
  OpenRequest request;
  ServerShares shares{0, 0, MakeRefreshAtSource};
  std::unique_ptr<Snapshot> snapshot;

  World() {
    database.name = "db";
    database.directory = tiny.directory();
    options.timeouts.peer = std::chrono::milliseconds(0);
    request.database = "db";
    request.lanes = 2;
    request.chunk_bytes = kMinChunkBytes;
    SnapshotOptions how;
    how.database_dir = tiny.directory();
    fuzz::MustWork(Snapshot::Create(how, &snapshot));
  }
};

// The connections of one input. Each begins when the previous one has ended.
// The transfer ends with the last one.
class Lane {
 public:
  Lane(const Slice& script, fuzz::Crew* crew) : rest_(script), crew_(*crew) {}

  void Run() {
    Next();
    std::unique_lock<std::mutex> lock(mu_);
    while (running_ > 0) {
      changed_.wait(lock, [this] { return ended_ || running_ == 0; });
      if (ended_ && running_ > 0) {
        ended_ = false;
        lock.unlock();
        Next();
        lock.lock();
      }
    }
    lock.unlock();
    crew_.Await();
  }

 private:
  void Next() {
    if (rest_.empty()) {
      if (transfer_ != nullptr) {
        transfer_->End();
      }
      return;
    }
    channels_.push_back(
        std::make_unique<Channel>(std::make_unique<fuzz::ScriptConnection>(
            fuzz::TakeConnection(&rest_), nullptr, [this] {
              std::lock_guard<std::mutex> lock(mu_);
              ended_ = true;
              changed_.notify_all();
            })));
    Channel* const channel = channels_.back().get();
    Hello hello;
    if (!fuzz::ShakesHands(channel, ConnectionKind::kLane, &hello) ||
        !Prepare(hello, channel)) {
      channel->Close();  // so that the next one is tried
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mu_);
      ++running_;
    }
    crew_.Do([this, channel, lane = hello.lane] {
      LaneSession(transfer_, channel, lane).Run();
      channel->Close();
      std::lock_guard<std::mutex> lock(mu_);
      --running_;
      changed_.notify_all();
    });
  }

  // Makes the transfer with the first Hello.
  bool Prepare(const Hello& hello, Channel* channel) {
    static World world;
    if (transfer_ != nullptr) {
      return true;
    }
    auto transfer =
        std::make_shared<Transfer>(world.database, world.options, world.request,
                                   hello, channel->peer(), &world.shares);
    transfer->shared()->Use(
        std::make_unique<fuzz::SharedSnapshot>(world.snapshot.get()));
    // Pinning may fail: a Hello may name unknown format versions.
    if (transfer->Pin().ok()) {
      transfer_ = std::move(transfer);
    }
    return transfer_ != nullptr;
  }

  Slice rest_;
  fuzz::Crew& crew_;
  std::shared_ptr<Transfer> transfer_;
  std::list<std::unique_ptr<Channel>> channels_;

  std::mutex mu_;
  std::condition_variable changed_;
  bool ended_ = false;  // under mu_, and all below
  int running_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::Crew crew;
  Lane(Slice(reinterpret_cast<const char*>(data), size), &crew).Run();
  return 0;
}

}  // namespace sstferry
