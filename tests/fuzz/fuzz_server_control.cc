// Input: a script that a target says to the source's end of a connection:
// handshake, then whatever comes on a control connection. "db" is served and
// costs a snapshot; "gone" is served and its directory is not there.
#include "pipeline/source/control_session.h"
#include "tests/fuzz/script.h"
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

  World() {
    ServedDatabase database;
    database.name = "db";
    database.directory = tiny.directory();
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
    options.snapshot_ttl = std::chrono::seconds(0);
    store = std::make_unique<SnapshotStore>(&options, &bucket);
    host.store = store.get();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  const Slice script(reinterpret_cast<const char*>(data), size);
  Channel channel(std::make_unique<fuzz::ScriptConnection>(script, true));
  Hello hello;
  if (fuzz::ShakesHands(&channel, ConnectionKind::kControl, &hello)) {
    ControlSession(world.host, hello, &channel).Run();
  }
  return 0;
}

}  // namespace sstferry
