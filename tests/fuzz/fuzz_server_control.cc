// Input: a script of a target for the source's side of a connection: handshake,
// then any frames of a control connection. All inputs share one snapshot of
// "db"; a request that the script mends resumes a retained transfer of it.
// "opened" is opened anew, but only in the first of a thousand inputs, because
// an open takes longer than hundreds of inputs. The directory of "gone" does
// not exist.
#include "pipeline/pull/source_session.h"
#include "pipeline/refresh/refresh.h"
#include "pipeline/serve/control_session.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/shared_snapshot.h"
#include "tests/fuzz/tiny_database.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::seconds;

class World {
 public:
  World();
  void Run(const Slice& script);

 private:
  void Serve(const std::string& name, const std::string& directory);
  Status Find(const std::string& name, ServedDatabase* found);
  // Returns the id of a transfer that waits for its target.
  TransferId Hold();

  fuzz::TinyDatabase tiny_;
  ServeOptions options_;
  ServerShares shares_{0, 0, MakeRefreshAtSource};
  SessionHost host_;
  std::unique_ptr<Snapshot> snapshot_;
  std::unique_ptr<ServedDatabases> databases_;
  std::unique_ptr<SnapshotStore> store_;
  uint64_t inputs_ = 0;
  // For the current input:
  fuzz::Gate* gate_ = nullptr;
  std::vector<TransferId> transfers_;
};

World::World() {
  SnapshotOptions how;
  how.database_dir = tiny_.directory();
  fuzz::MustWork(Snapshot::Create(how, &snapshot_));
  // Without a directory, no lease is written.
  Serve("db", "");
  Serve("opened", tiny_.directory());
  Serve("gone", tiny_.directory() + "-gone");
  options_.timeouts.peer = std::chrono::milliseconds(1);
  databases_ = std::make_unique<ServedDatabases>(&options_);
  store_ = std::make_unique<SnapshotStore>(&options_, databases_.get(),
                                           &shares_);
  host_.options = &options_;
  host_.databases = databases_.get();
  host_.shares = &shares_;
  host_.store = store_.get();
  host_.find_database = [this](const std::string& name, const PeerIdentity*,
                               ServedDatabase* found) {
    return Find(name, found);
  };
  host_.on_transfer = [this](Transfer* transfer) {
    transfers_.push_back(transfer->id());
    if (transfer->name() == "db") {
      transfer->shared()->Use(
          std::make_unique<fuzz::SharedSnapshot>(snapshot_.get(), gate_));
    }
  };
}

void World::Serve(const std::string& name, const std::string& directory) {
  ServedDatabase database;
  database.name = name;
  database.directory = directory;
  options_.databases.push_back(database);
}

Status World::Find(const std::string& name, ServedDatabase* found) {
  for (const ServedDatabase& served : options_.databases) {
    if (served.name == name) {
      *found = served;
      if (name == "opened" && inputs_ % 1000 != 1) {
        *found = options_.databases.front();
      } else if (!served.directory.empty()) {
        options_.snapshot_ttl = seconds(0);  // retains nothing
      }
      return Status::OK();
    }
  }
  return MakeStatus(EndState::kRefused,
                    "no database named '" + name + "' is served here");
}

TransferId World::Hold() {
  OpenRequest request;
  request.database = "db";
  request.lanes = 2;
  request.chunk_bytes = 1u << 20;
  auto transfer = std::make_shared<Transfer>(
      options_.databases.front(), options_, request, MakeHello(), "held",
      &shares_);
  auto snapshot = std::make_unique<fuzz::SharedSnapshot>(snapshot_.get());
  fuzz::SharedSnapshot* const shared = snapshot.get();
  transfer->shared()->Use(std::move(snapshot));
  fuzz::MustWork(transfer->Pin());
  shared->set_gate(gate_);
  const TransferId id = transfer->id();
  std::chrono::milliseconds retry_after{0};
  fuzz::MustWork(store_->Add(std::move(transfer), &retry_after));
  transfers_.push_back(id);
  return id;
}

void World::Run(const Slice& script) {
  fuzz::Gate gate(fuzz::Gate::Tests::kSource);
  gate_ = &gate;
  ++inputs_;
  options_.snapshot_ttl = seconds(60);
  auto connection = std::make_unique<fuzz::ScriptConnection>(script, &gate);
  connection->set_mend_open([this](OpenRequest* request) {
    if (request->snapshot_use != SnapshotUse::kNew) {
      request->named_transfer = Hold();
    }
  });
  Channel channel(std::move(connection));
  Hello hello;
  if (fuzz::ShakesHands(&channel, ConnectionKind::kControl, &hello)) {
    ControlSession(host_, hello, &channel, [] { return true; }).Run();
  }
  for (const TransferId& id : transfers_) {
    const std::shared_ptr<Transfer> kept = store_->Find(id);
    if (kept != nullptr) {
      kept->End();
      store_->Remove(kept);
    }
  }
  transfers_.clear();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  world.Run(Slice(reinterpret_cast<const char*>(data), size));
  return 0;
}

}  // namespace sstferry
