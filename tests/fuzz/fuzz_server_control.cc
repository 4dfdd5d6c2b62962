// Input: a script that a target says to the source's end of a connection:
// handshake, then whatever comes on a control connection. "db" is served from a
// snapshot that all inputs share; "opened" has one of its own in the first of a
// thousand inputs, for that takes longer than hundreds of others; "gone" is
// served and its directory is not there.
#include "pipeline/source/control_session.h"
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
  TokenBucket bucket{0};
  SessionHost host;
  std::unique_ptr<SnapshotStore> store;
  std::unique_ptr<Snapshot> snapshot;
  fuzz::Gate* gate = nullptr;  // of the input at hand
  uint64_t inputs = 0;

  World() {
    SnapshotOptions how;
    how.database_dir = tiny.directory();
    fuzz::MustWork(Snapshot::Create(how, &snapshot));
    ServedDatabase database;
    database.name = "db";
    database.directory = tiny.directory();
    options.databases.push_back(database);
    database.name = "opened";
    options.databases.push_back(database);
    database.name = "gone";
    database.directory = tiny.directory() + "-gone";
    options.databases.push_back(database);
    options.peer_timeout = std::chrono::milliseconds(1);
    host.options = &options;
    host.wire_bucket = &bucket;
    host.find_database = [this](const std::string& name, const PeerIdentity*,
                                ServedDatabase* found) {
      for (const ServedDatabase& served : options.databases) {
        if (served.name == name) {
          *found = served;
          return Status::OK();
        }
      }
      return MakeStatus(EndState::kRefused, "no database named '" + name +
                                                "' is served here");
    };
    host.on_transfer = [this](Transfer* transfer) {
      if (transfer->name() == "db" ||
          (transfer->name() == "opened" && inputs % 1000 != 1)) {
        transfer->UseSnapshot(
            std::make_unique<fuzz::SharedSnapshot>(snapshot.get(), gate));
      }
    };
    options.snapshot_ttl = std::chrono::seconds(0);
    store = std::make_unique<SnapshotStore>(&options, &bucket);
    host.store = store.get();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  const Slice script(reinterpret_cast<const char*>(data), size);
  fuzz::Gate gate(fuzz::Gate::Tests::kSource);
  world.gate = &gate;
  world.inputs++;
  Channel channel(std::make_unique<fuzz::ScriptConnection>(script, &gate));
  Hello hello;
  if (fuzz::ShakesHands(&channel, ConnectionKind::kControl, &hello)) {
    ControlSession(world.host, hello, &channel).Run();
  }
  return 0;
}

}  // namespace sstferry
