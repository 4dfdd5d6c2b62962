// Pushes from a remote source. The lanes of a clone must deliver the bytes of
// the snapshot's files, whatever the network and the store do.
#include "pipeline/archive/remote_source.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "format/end_state.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/seal.h"
#include "pipeline/archive/snapshot_source.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/pull/health.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/support/relay.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::remote_source_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

void MakeArchive(MemoryStore* server) {
  ArchiveHead head;
  head.grace_seconds = kMinGraceSeconds;
  head.has_if_absent = true;
  std::string bytes;
  EncodeArchiveHead(head, &bytes);
  server->Overwrite(kArchiveHeadKey, bytes);
}

Status Push(SetSource* source, MemoryStore* server, PushSummary* summary,
            StoreHook hook = nullptr, const SealKey* key = nullptr) {
  const std::unique_ptr<ObjectStore> client = server->NewClient(hook);
  PushOptions options;
  options.lanes = 3;
  return PushSet(Archive(client.get(), key), source, options, summary);
}

ArchiveSet RecordOf(MemoryStore* server, const PushSummary& summary,
                    const SealKey* key = nullptr) {
  const std::unique_ptr<ObjectStore> client = server->NewClient();
  std::optional<ArchiveSet> set;
  REQUIRE_OK(Archive(client.get(), key)
                 .ReadSet({summary.name, 0, true}, &set));
  REQUIRE(set.has_value());
  return *set;
}

void RequireChecked(MemoryStore* server) {
  const std::unique_ptr<ObjectStore> client = server->NewClient();
  CheckOptions options;
  options.read_percent = 100;
  CheckSummary summary;
  REQUIRE_OK(CheckArchive(Archive(client.get()), options, &summary));
}

// Returns the size and the digests of each file of a set. Two pushes of the
// same database have the same ones.
std::map<std::string, std::string> DigestsOf(const ArchiveSet& set) {
  std::map<std::string, std::string> digests;
  for (const ArchivedFile& file : set.files) {
    std::string text = std::to_string(file.file.bytes) + " " +
                       ToHex(file.sha256);
    for (const Digest128& unit : file.units) {
      text += " " + ToHex(unit);
    }
    digests[CloneFileName(file.file)] = text;
  }
  return digests;
}

// Makes a database with one table of this size, whose bytes do not compress,
// and a few small files.
void MakeLargeTable(const std::string& path, size_t mebibytes) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = 1ull << 30;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, path, IntoDb(&db)));
  std::mt19937_64 random(7);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  std::string value(64u << 10, '\0');
  for (size_t i = 0; i < mebibytes * 16; ++i) {
    for (size_t at = 0; at < value.size(); at += 8) {
      const uint64_t word = random();
      memcpy(value.data() + at, &word, 8);
    }
    REQUIRE_OK(db->Put(unlogged, "key" + std::to_string(1000000 + i), value));
  }
  REQUIRE_OK(db->Flush({}));
}

// A source that serves a database in this process.
class Served {
 public:
  explicit Served(const std::string& directory) {
    EndpointOptions options;
    options.address.directory = directory;
    REQUIRE_OK(Endpoint::Open(options, &endpoint_));
  }
  std::unique_ptr<RemoteSource> Make(uint32_t lanes = 3) {
    RemoteSourceOptions options;
    options.database = endpoint_->name();
    options.place = "memory";
    options.lanes = lanes;
    return std::make_unique<RemoteSource>(endpoint_->dialer(), options);
  }
  std::unique_ptr<RemoteSource> Connect(uint32_t lanes = 3) {
    std::unique_ptr<RemoteSource> source = Make(lanes);
    REQUIRE_OK(source->Connect());
    return source;
  }

 private:
  std::unique_ptr<Endpoint> endpoint_;
};

TEST_CASE("A push from a remote source makes the same set as a local push",
          "[archive]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  MemoryStore there;
  MakeArchive(&there);
  SnapshotOptions snapshot;
  snapshot.database_dir = dir / "db";
  std::unique_ptr<SnapshotSource> local;
  REQUIRE_OK(SnapshotSource::Take(snapshot, &local));
  PushSummary summary;
  REQUIRE_OK(Push(local.get(), &there, &summary));
  ArchiveSet expected = RecordOf(&there, summary);

  MemoryStore server;
  MakeArchive(&server);
  Served served(dir / "db");
  REQUIRE_OK(Push(served.Connect().get(), &server, &summary));
  const ArchiveSet found = RecordOf(&server, summary);
  REQUIRE(DigestsOf(found) == DigestsOf(expected));
  REQUIRE(found.database_id == expected.database_id);
  REQUIRE(found.families == expected.families);
  REQUIRE(found.sequence == expected.sequence);
  REQUIRE(found.content == expected.content);
  REQUIRE(found.application == expected.application);
  REQUIRE(found.needs == expected.needs);
  REQUIRE(found.unit_bytes == expected.unit_bytes);
  RequireChecked(&server);

  // Files that the archive has are not requested again.
  REQUIRE_OK(Push(served.Connect().get(), &server, &summary));
  REQUIRE(summary.reused_files > 0);
  REQUIRE(summary.uploaded_files < summary.files);
  RequireChecked(&server);

  // Files that are sealed with another key, or not at all, are not reused.
  // Files that are sealed with the same key are.
  const SealKey key(SealKey::Bytes{});
  REQUIRE_OK(Push(served.Connect().get(), &server, &summary, nullptr, &key));
  REQUIRE(summary.reused_files == 0);
  REQUIRE_OK(Push(served.Connect().get(), &server, &summary, nullptr, &key));
  REQUIRE(summary.reused_files > 0);
  RequireChecked(&server);
}

TEST_CASE("A remote push can crash before any call, and the next one completes",
          "[archive]") {
  const ScratchDir dir;
  SampleShape shape;
  shape.entries = 200;
  MakeSampleDatabase(dir / "db", shape);
  Served served(dir / "db");
  const SealKey key(SealKey::Bytes{});
  const bool is_sealed = GENERATE(false, true);
  const SealKey* const sealed = is_sealed ? &key : nullptr;
  bool ended = false;
  for (int calls = 0; !ended; ++calls) {
    INFO("sealed: " << is_sealed << ", calls: " << calls);
    MemoryStore server;
    MakeArchive(&server);
    std::atomic<int> left{calls};
    PushSummary summary;
    const Status first =
        Push(served.Connect().get(), &server, &summary,
             [&left](StoreCall*) {
               return left-- > 0 ? CallFate::kArrives : CallFate::kNeverArrives;
             },
             sealed);
    ended = first.ok();
    uint64_t there = 0;
    for (const auto& [name, bytes] : server.Objects()) {
      there += name.starts_with(kArchiveFilesPrefix) ? 1 : 0;
    }
    REQUIRE_OK(Push(served.Connect().get(), &server, &summary, nullptr, sealed));
    RequireChecked(&server);
    REQUIRE(summary.reused_files == there);
  }
}

TEST_CASE("A large table is uploaded in pieces, each after its digest",
          "[archive]") {
  const ScratchDir dir;
  // The table has two pieces. The second one has two units; the last unit is
  // the table's tail (CutIntoUnits()).
  MakeLargeTable(dir / "db", 127);
  MemoryStore server;
  MakeArchive(&server);
  Served served(dir / "db");
  PushSummary summary;
  REQUIRE_OK(Push(served.Connect().get(), &server, &summary));
  const ArchiveSet set = RecordOf(&server, summary);
  bool is_large = false;
  for (const ArchivedFile& file : set.files) {
    if (file.file.bytes > kPieceBytes) {
      is_large = true;
      const std::string object =
          server.Objects().at(ArchiveKeyText(file.key));
      std::vector<Part> units;
      REQUIRE_OK(CutIntoUnits({file.file}, set.unit_bytes, &units));
      REQUIRE(file.units.size() == units.size());
      for (size_t i = 0; i < units.size(); ++i) {
        REQUIRE(file.units[i] == DigestOf(Slice(object.data() + units[i].offset,
                                                units[i].bytes)));
      }
    }
  }
  REQUIRE(is_large);
  RequireChecked(&server);
}

TEST_CASE("A store that requests a piece again gets it from its start",
          "[archive]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  Served served(dir / "db");
  const std::unique_ptr<RemoteSource> source = served.Connect(1);
  for (size_t i = 0; i < source->set().files.size(); ++i) {
    const uint64_t bytes = source->set().files[i].file.bytes;
    std::unique_ptr<SetFile> file;
    REQUIRE_OK(source->Open(i, &file));
    FileDigests digests;
    REQUIRE_OK(file->Digest(0, bytes, &digests));
    std::string scratch;
    Slice out;
    // Reads that stop early, then one that reads everything.
    for (const uint64_t part : {bytes / 3, bytes / 2, uint64_t{1}}) {
      if (part > 0 && part < bytes) {
        REQUIRE_OK(file->Read(0, part, &scratch, &out));
      }
    }
    Sha256 all;
    for (uint64_t at = 0; at < bytes;) {
      const size_t count = std::min<uint64_t>(1000, bytes - at);
      REQUIRE_OK(file->Read(at, count, &scratch, &out));
      REQUIRE(out.size() == count);
      all.Update(out);
      at += count;
    }
    REQUIRE(all.Finish() == digests.pieces[0]);
  }
}

TEST_CASE("A push over a bad network succeeds, or fails with a reason",
          "[archive]") {
  const ScratchDir dir;
  MakeLargeTable(dir / "db", 12);
  const ServeProcess serve({"--db", "db=" + (dir / "db")});
  HostPort where;
  REQUIRE_OK(ParseHostPort(serve.address(), &where));
  Relay relay(where);
  Relay::Weather weather;
  weather.least_cut_bytes = 1u << 20;
  weather.most_cut_bytes = 4u << 20;
  weather.flip_every_bytes = 3u << 20;
  relay.SetWeather(weather);
  MemoryStore server;
  MakeArchive(&server);
  const std::unique_ptr<Dialer> dialer = MakeTcpDialer(relay.address());
  RemoteSourceOptions options;
  options.database = "db";
  options.lanes = 3;
  PushSummary summary;
  {
    RemoteSource source(dialer.get(), options);
    REQUIRE_OK(source.Connect());
    REQUIRE_OK(Push(&source, &server, &summary));
  }
  REQUIRE(relay.damage().cuts > 0);
  RequireChecked(&server);
  // A source that does not come back.
  options.timeouts.retry = std::chrono::milliseconds(200);
  // Without this, a short `retry` would also limit Connect().
  options.timeouts.first_answer = std::chrono::milliseconds(60'000);
  RemoteSource source(dialer.get(), options);
  relay.EndWeather();
  REQUIRE_OK(source.Connect());
  relay.CutAfter(Relay::kToClient, relay.bytes(Relay::kToClient));
  MemoryStore empty;
  MakeArchive(&empty);
  const Status lost = Push(&source, &empty, &summary);
  INFO(lost.ToString());
  REQUIRE(EndStateOf(lost) == EndState::kDeadPeer);
}

TEST_CASE("A replica that is known to be wrong is not pushed, neither from its "
          "directory nor from a source",
          "[archive]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  HealthFile fault = MakeFault(ReplicaFault::kDamaged, "by hand", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), dir / "db",
                         &fault));
  SnapshotOptions snapshot;
  snapshot.database_dir = dir / "db";
  std::unique_ptr<SnapshotSource> local;
  Served served(dir / "db");
  const std::unique_ptr<RemoteSource> remote = served.Make();
  for (const Status& refused :
       {SnapshotSource::Take(snapshot, &local), remote->Connect()}) {
    INFO(refused.ToString());
    REQUIRE(EndStateOf(refused) == EndState::kRefused);
    REQUIRE(MessageOf(refused).find("by hand") != std::string::npos);
  }
}

TEST_CASE("A damaged table is not uploaded, and is named as in its database",
          "[archive]") {
  const ScratchDir dir;
  MakeLargeTable(dir / "db", 3);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "db")) {
    if (entry.path().extension() == ".sst") {
      std::fstream table(entry.path(), std::ios::in | std::ios::out);
      table.seekp(1 << 20);
      table.put('x');
      table.put('y');
    }
  }
  MemoryStore server;
  MakeArchive(&server);
  Served served(dir / "db");
  SnapshotOptions snapshot;
  snapshot.database_dir = dir / "db";
  std::unique_ptr<SnapshotSource> local;
  REQUIRE_OK(SnapshotSource::Take(snapshot, &local));
  const std::unique_ptr<RemoteSource> remote = served.Connect();
  for (SetSource* const source :
       std::vector<SetSource*>{local.get(), remote.get()}) {
    PushSummary summary;
    const Status damaged = Push(source, &server, &summary);
    INFO(damaged.ToString());
    REQUIRE(EndStateOf(damaged) == EndState::kCorrupt);
    REQUIRE(MessageOf(damaged).find(dir / "db") != std::string::npos);
    REQUIRE(MessageOf(damaged).find(".sst") != std::string::npos);
  }
  for (const auto& [key, bytes] : server.Objects()) {
    REQUIRE_FALSE(key.starts_with(kArchiveFilesPrefix));
    REQUIRE_FALSE(key.starts_with(kArchiveSetsPrefix));
  }
}

}  // namespace
}  // namespace sstferry::remote_source_test
