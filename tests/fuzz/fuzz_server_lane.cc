// Input: a script that a target says to the source on a lane of a transfer
// that is pinned and planned: handshake, then requests of every kind.
#include "pipeline/source/lane_session.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/tiny_database.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// One snapshot for the transfers of all inputs.
class SharedSnapshot final : public Snapshot {
 public:
  explicit SharedSnapshot(const Snapshot* snapshot) : snapshot_(snapshot) {}
  rocksdb::DB* db() const override { return snapshot_->db(); }
  const std::vector<SnapshotFamily>& families() const override {
    return snapshot_->families();
  }
  uint64_t sequence() const override { return snapshot_->sequence(); }
  const std::string& database_id() const override {
    return snapshot_->database_id();
  }
  const std::string& directory() const override {
    return snapshot_->directory();
  }
  const std::string& options_text() const override {
    return snapshot_->options_text();
  }
  const std::vector<std::string>& notes() const override {
    return snapshot_->notes();
  }
  bool wal_not_flushed() const override { return snapshot_->wal_not_flushed(); }
  const Counters& counters() const override { return snapshot_->counters(); }

 private:
  const Snapshot* const snapshot_;
};

struct World {
  fuzz::TinyDatabase tiny;
  ServeOptions options;
  ServedDatabase database;
  OpenRequest request;
  TokenBucket bucket{0};
  std::unique_ptr<Snapshot> snapshot;

  World() {
    database.name = "db";
    database.directory = tiny.directory();
    options.peer_timeout = std::chrono::milliseconds(0);
    request.database = "db";
    request.lanes = 2;
    request.chunk_bytes = kMinChunkBytes;
    SnapshotOptions how;
    how.database_dir = tiny.directory();
    fuzz::MustWork(Snapshot::Create(how, &snapshot));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  const Slice script(reinterpret_cast<const char*>(data), size);
  Channel channel(std::make_unique<fuzz::ScriptConnection>(script, false));
  Hello hello;
  if (!fuzz::ShakesHands(&channel, ConnectionKind::kLane, &hello)) {
    return 0;
  }
  auto transfer =
      std::make_shared<Transfer>(world.database, world.options, world.request,
                                 hello, channel.peer(), &world.bucket);
  transfer->UseSnapshot(std::make_unique<SharedSnapshot>(world.snapshot.get()));
  // A hello may name format versions that nobody has.
  if (transfer->Pin().ok()) {
    LaneSession(transfer, &channel, hello.lane).Run();
  }
  return 0;
}

}  // namespace sstferry
