// Restores from an archive in memory: clients that stop before any call, wrong
// bytes, and sets that are removed meanwhile. tests/transfer restores every
// kind of database, and tests/archive/run restores from S3 servers.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "format/end_state.h"
#include "format/part.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/restore.h"
#include "pipeline/archive/snapshot_source.h"
#include "pipeline/base/random_id.h"
#include "pipeline/disk/durable.h"
#include "pipeline/snapshot/snapshot_origin.h"
#include "sstferry/archive.h"
#include "sstferry/target.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/support/restored.h"
#include "tests/support/test_db.h"

namespace sstferry::test::restore_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr UnixSeconds kGrace = kMinGraceSeconds;

std::string Setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// A source of a push that does not check the MANIFEST: one of its bytes changed
// before the push.
class DamagedManifest : public SetSource {
 public:
  explicit DamagedManifest(SetSource* source) : source_(source) {}
  const ArchiveSet& set() const override { return source_->set(); }
  Status Open(size_t file, std::unique_ptr<SetFile>* opened) override {
    RETURN_IF_ERROR(source_->Open(file, opened));
    const CloneFile& known = set().files[file].file;
    if (known.kind == CloneFileKind::kManifest) {
      std::string scratch;
      rocksdb::Slice bytes;
      RETURN_IF_ERROR((*opened)->Read(0, static_cast<size_t>(known.bytes),
                                      &scratch, &bytes));
      std::string text = bytes.ToString();
      text.back() = static_cast<char>(text.back() ^ 1);
      *opened = std::make_unique<DigestedFile>(
          std::make_unique<TextSource>(text), known, set().unit_bytes);
    }
    return Status::OK();
  }
  Status Finish() override { return source_->Finish(); }

 private:
  SetSource* const source_;
};

// A database, and an archive in memory with sets of it.
class World {
 public:
  World() {
    ArchiveHead head;
    head.grace_seconds = kGrace;
    std::string bytes;
    EncodeArchiveHead(head, &bytes);
    server.Overwrite(kArchiveHeadKey, bytes);
    OpenDb db(dir / "source", OneFamily(Quiet()));
    // The last table is large, so it is sent in several frames.
    for (int table = 0; table < 3; ++table) {
      for (int i = 0; i < 200; ++i) {
        db.Put(NumberedKey(1000 * table + i),
               RandomBytes(table == 2 ? 8000 : 100, i));
      }
      db.Flush();
    }
    db.Put("in", "the WAL");
  }

  // Overwrites a key, so that the next set has one more table.
  void Change(int key) {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put(NumberedKey(key), "changed");
    db.Flush();
  }
  SetName Push(const std::string& label = "", bool is_damaged = false) {
    const std::unique_ptr<ObjectStore> client = server.NewClient();
    SnapshotOptions options;
    options.database_dir = dir / "source";
    std::unique_ptr<SnapshotSource> source;
    REQUIRE_OK(SnapshotSource::Take(options, &source));
    PushOptions push;
    push.label = label;
    push.lanes = 1;
    push.new_id = [this] {
      SetId id{};
      id[7] = next_id_++;
      return id;
    };
    PushSummary summary;
    DamagedManifest damaged(source.get());
    SetSource* from = source.get();
    if (is_damaged) from = &damaged;
    REQUIRE_OK(PushSet(Archive(client.get()), from, push, &summary));
    return summary.name;
  }
  // Sets the id of the next set. Ids count up from it.
  void set_next_id(uint8_t id) { next_id_ = id; }

  // Restores through a client with this hook.
  Ferried Restore(const std::string& which, StoreHook hook = nullptr,
                  const std::string& target = "target") {
    PullOptions pull = base;
    pull.source.set = which;
    pull.target_dir = dir / target;
    pull.lanes = lanes;
    pull.timeouts = TriedOnce(Timeouts());
    pull.timeouts.retry = retry;
    pull.verify = drill != nullptr;
    return RestoreThrough(
        MakeArchiveOriginOf(server.NewClient(std::move(hook)), which), pull, "",
        [this](const PullOptions& options, Dialer* dialer) {
          std::unique_ptr<Operation> made =
              drill ? MakeDrill(options, drill, dialer)
                    : MakePullThrough(options, dialer);
          restoring_ = made.get();
          return made;
        });
  }
  // Restores until everything is received, but not published.
  void Receive(const std::string& which) {
    TEST_SetFaultHook([this](const std::string& name) {
      if (name == "Puller:TotalsAgreed") restoring_->Cancel();
    });
    const Ferried stopped = Restore(which);
    TEST_SetFaultHook(nullptr);
    INFO(stopped.message());
    REQUIRE(stopped.state() == EndState::kCancelled);
    REQUIRE_FALSE(HasTarget());
  }
  void RequireRestored(const std::string& target = "target") const {
    ExpectSameEntries(dir / "source", dir / target);
  }
  bool HasTarget() const { return fs::exists(dir / "target"); }
  // Returns the key of the largest table.
  std::string KeyOfTable() const {
    std::string largest;
    uint64_t bytes = 0;
    for (const auto& [key, object] : server.Objects()) {
      if (key.starts_with(kArchiveFilesPrefix) && object.size() >= bytes) {
        largest = key;
        bytes = object.size();
      }
    }
    return largest;
  }
  std::string Newest(const std::string& which = "latest") {
    const std::unique_ptr<ObjectStore> client = server.NewClient();
    ArchiveSet set;
    REQUIRE_OK(ChooseSet(Archive(client.get()), which, &set));
    return SetNameText(set.name);
  }
  Status Choose(const std::string& which) {
    const std::unique_ptr<ObjectStore> client = server.NewClient();
    ArchiveSet set;
    return ChooseSet(Archive(client.get()), which, &set);
  }

  ScratchDir dir;
  MemoryStore server;
  std::chrono::milliseconds retry{0};
  uint32_t lanes = 2;
  // If set, Restore() runs a drill.
  std::function<Status(const std::string& directory)> drill;
  PullOptions base;  // for Restore(), which sets some of them

 private:
  uint8_t next_id_ = 1;
  Operation* restoring_ = nullptr;
};

TEST_CASE("A restored set equals the database that was pushed", "[archive]") {
  World world;
  const SetName name = world.Push("night");
  const Ferried restored = world.Restore("latest");
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  world.RequireRestored();
  REQUIRE(restored.summary.method == "clone");
  REQUIRE(restored.notes_mention(SetNameText(name)));
  // The replica's age is the set's age.
  REQUIRE(restored.summary.snapshot_taken_seconds == name.seconds);
}

TEST_CASE("A restore that stops at any call publishes nothing, and the next "
          "one completes",
          "[archive]") {
  World world;
  world.Push();
  uint64_t calls = 0;
  for (bool ended = false; !ended; ++calls) {
    std::atomic<uint64_t> done{0};
    const Ferried stopped = world.Restore("latest", [&](StoreCall*) {
      return done++ < calls ? CallFate::kArrives : CallFate::kNeverArrives;
    });
    ended = stopped.status.ok();
    INFO(calls << ": " << stopped.message());
    REQUIRE((ended || stopped.state() == EndState::kDeadPeer));
    REQUIRE(world.HasTarget() == ended);
  }
  REQUIRE(calls > 10);
  world.RequireRestored();
}

TEST_CASE("A drill opens the restored database, and removes it", "[archive]") {
  World world;
  world.Push();
  const std::string copy = world.dir / "copy";
  world.drill = [&copy](const std::string& directory) {
    fs::copy(directory, copy);
    return Status::OK();
  };
  const Ferried drilled = world.Restore("latest");
  INFO(drilled.message());
  REQUIRE_OK(drilled.status);
  REQUIRE(drilled.summary.verified);
  ExpectSameEntries(world.dir / "source", copy);
  REQUIRE_FALSE(world.HasTarget());
  REQUIRE_FALSE(fs::exists(world.dir / "target.sstferry"));
  // A failed drill also removes its database.
  world.drill = [](const std::string&) {
    return MakeStatus(EndState::kCorrupt, "does not open");
  };
  REQUIRE(world.Restore("latest").state() == EndState::kCorrupt);
  REQUIRE_FALSE(fs::exists(world.dir / "target.sstferry"));
}

TEST_CASE("A drill that stops before any call leaves nothing", "[archive]") {
  World world;
  world.Push();
  bool ended = false;
  world.drill = [](const std::string&) { return Status::OK(); };
  for (uint64_t calls = 0; !ended; ++calls) {
    std::atomic<uint64_t> done{0};
    const Ferried stopped = world.Restore("latest", [&](StoreCall*) {
      return done++ < calls ? CallFate::kArrives : CallFate::kNeverArrives;
    });
    ended = stopped.status.ok();
    INFO(calls << ": " << stopped.message());
    REQUIRE_FALSE(world.HasTarget());
    REQUIRE_FALSE(fs::exists(world.dir / "target.sstferry"));
  }
}

TEST_CASE("A drill does not resume: it removes the files of a drill that was "
          "killed, and refuses what another pull left",
          "[archive]") {
  World world;
  world.Push();
  const std::string left = world.dir / "target.sstferry";
  const std::string kept = world.dir / "kept";
  std::atomic<int> gets{0};
  const auto count = [&gets](StoreCall* call) {
    gets += call->kind == StoreCallKind::kGet ? 1 : 0;
    return CallFate::kArrives;
  };
  world.drill = [&](const std::string&) {
    fs::copy(left, kept, fs::copy_options::recursive);
    return Status::OK();
  };
  REQUIRE_OK(world.Restore("latest", count).status);
  const int all = gets.exchange(0);
  fs::rename(kept, left);

  world.drill = nullptr;
  const Ferried refused = world.Restore("latest");
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("--restart") != std::string::npos);
  world.drill = [](const std::string&) { return Status::OK(); };
  REQUIRE_OK(world.Restore("latest", count).status);
  REQUIRE(gets == all);
  REQUIRE_FALSE(fs::exists(left));

  // A drill must not remove the files of an interrupted pull.
  world.drill = nullptr;
  std::atomic<int> tables{0};
  REQUIRE_FALSE(world
                    .Restore("latest",
                             [&tables](StoreCall* call) {
                               return call->kind == StoreCallKind::kGet &&
                                              call->key.starts_with(
                                                  kArchiveFilesPrefix) &&
                                              tables++ > 0
                                          ? CallFate::kNeverArrives
                                          : CallFate::kArrives;
                             })
                    .status.ok());
  REQUIRE(fs::exists(left + "/journal"));
  world.drill = [](const std::string&) { return Status::OK(); };
  REQUIRE(world.Restore("latest").state() == EndState::kRefused);
  REQUIRE(fs::exists(left + "/journal"));
  world.drill = nullptr;
  REQUIRE_OK(world.Restore("latest").status);
  world.RequireRestored();
}

TEST_CASE("A restore resumes: received units are not fetched again",
          "[archive]") {
  World world;
  world.Push();
  std::atomic<int> gets{0};
  const auto count = [&gets](int most) {
    return [&gets, most](StoreCall* call) {
      const bool is_file = call->kind == StoreCallKind::kGet &&
                           (call->key.starts_with(kArchiveFilesPrefix) ||
                            call->key.starts_with(kArchivePartsPrefix));
      return is_file && gets++ >= most ? CallFate::kNeverArrives
                                       : CallFate::kArrives;
    };
  };
  REQUIRE_OK(world.Restore("latest", count(1000), "whole").status);
  const int all = gets.exchange(0);
  REQUIRE(all >= 6);
  // 5 reads: each run first reads the MANIFEST and OPTIONS, then the units.
  REQUIRE_FALSE(world.Restore("latest", count(5)).status.ok());
  gets = 0;
  // A resumed restore keeps the tables that it has.
  const Ferried resumed = world.Restore("latest", count(1000));
  INFO(resumed.message());
  REQUIRE_OK(resumed.status);
  REQUIRE(gets < all);
  world.RequireRestored();
}

CallFate NeverArrives(StoreCall* /*call*/) { return CallFate::kNeverArrives; }

TEST_CASE("A restore that has received one set does not publish it under the "
          "name of another",
          "[archive]") {
  World world;
  const SetName first = world.Push();
  world.server.Advance(60);
  world.Change(1);
  const SetName second = world.Push();
  SECTION("the other set is restored") {
    world.Receive(SetNameText(first));
    const bool by_name = GENERATE(true, false);
    const Ferried other =
        world.Restore(by_name ? SetNameText(second) : "latest");
    INFO(other.message());
    REQUIRE_OK(other.status);
    REQUIRE(other.notes_mention(SetNameText(second)));
  }
  SECTION("another name of the same set resumes") {
    world.Receive(SetNameText(second));
    std::atomic<int> gets{0};
    const Ferried same = world.Restore("latest", [&gets](StoreCall* call) {
      gets += call->kind == StoreCallKind::kGet &&
                      (call->key.starts_with(kArchiveFilesPrefix) ||
                       call->key.starts_with(kArchivePartsPrefix))
                  ? 1
                  : 0;
      return CallFate::kArrives;
    });
    INFO(same.message());
    REQUIRE_OK(same.status);
    REQUIRE(same.summary.chunks > 0);
    REQUIRE(same.summary.chunks_resumed == same.summary.chunks);
    REQUIRE(gets <= 2);  // OPTIONS and the MANIFEST, for the plan
  }
  SECTION("another name needs the archive, the same one does not") {
    world.Receive(SetNameText(second));
    const Ferried other = world.Restore("latest", NeverArrives);
    INFO(other.message());
    REQUIRE(other.state() == EndState::kDeadPeer);
    REQUIRE_FALSE(world.HasTarget());
    REQUIRE_OK(world.Restore(SetNameText(second), NeverArrives).status);
  }
  world.RequireRestored();
}

TEST_CASE("A swap that stopped between its hooks does not exchange one set for "
          "another",
          "[archive]") {
  World world;
  const SetName first = world.Push();
  world.server.Advance(60);
  world.Change(1);
  const SetName second = world.Push();
  std::vector<std::string> calls;
  world.base.mode = PullMode::kSwap;
  world.base.before_swap = [](const SwapEvent&) {
    return MakeStatus(EndState::kBusy, "the application does not stop");
  };
  world.base.after_swap = [&calls](const SwapEvent& event) {
    calls.push_back(event.exchanged ? "exchanged" : "as it was");
    return Status::OK();
  };
  REQUIRE_FALSE(world.Restore(SetNameText(first)).status.ok());
  REQUIRE_FALSE(world.HasTarget());
  world.base.before_swap = nullptr;
  const Ferried other = world.Restore(SetNameText(second));
  INFO(other.message());
  REQUIRE_OK(other.status);
  world.RequireRestored();
  // The application does not wait for the transfer.
  REQUIRE(calls == std::vector<std::string>{"as it was", "as it was",
                                            "exchanged"});
}

TEST_CASE("A restore of keys is not completed from another archive",
          "[archive]") {
  World world;
  World other;  // another database with the same keys
  for (World* each : {&world, &other}) {
    each->base.selection.interval = {NumberedKey(0), NumberedKey(1100)};
    each->Push();
  }
  world.Receive("latest");
  PullOptions pull = world.base;
  pull.source.set = "night";
  pull.target_dir = world.dir / "target";
  const Ferried mixed =
      RestoreThrough(MakeArchiveOriginOf(other.server.NewClient(), "latest"),
                     pull);
  INFO(mixed.message());
  REQUIRE(mixed.state() == EndState::kRefused);
  REQUIRE(mixed.message().find("of another source") != std::string::npos);
  REQUIRE_FALSE(world.HasTarget());
  REQUIRE_OK(world.Restore("latest").status);
}

TEST_CASE("Bytes that are wrong once are fetched again", "[archive]") {
  World world;
  world.retry = std::chrono::seconds(20);
  world.Push();
  world.lanes = 1;
  const std::string key = world.KeyOfTable();
  const std::string bytes = world.server.Objects()[key];
  // Both units of the table have a wrong byte at the first read, and are
  // correct at the second.
  std::string wrong = bytes;
  wrong[wrong.size() / 2] ^= 1;
  wrong[wrong.size() - 100] ^= 1;
  int gets = 0;
  const Ferried restored = world.Restore("latest", [&](StoreCall* call) {
    if (call->kind == StoreCallKind::kGet && call->key == key) {
      world.server.Overwrite(key, gets++ % 2 == 0 ? wrong : bytes);
    }
    return CallFate::kArrives;
  });
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(gets == 4);
  world.RequireRestored();
}

TEST_CASE("A digest of the bytes of an archive is right after wrong bytes are "
          "read once",
          "[archive]") {
  World world;
  world.Push();
  const std::string key = world.KeyOfTable();
  const std::string bytes = world.server.Objects()[key];
  std::string wrong = bytes;  // in both units of the table
  wrong[wrong.size() / 2] ^= 1;
  wrong[wrong.size() - 100] ^= 1;
  int gets = 0;
  bool is_lost = false;
  const std::shared_ptr<SnapshotOrigin> origin = MakeArchiveOriginOf(
      world.server.NewClient([&](StoreCall* call) {
        if (call->kind == StoreCallKind::kGet && call->key == key) {
          world.server.Overwrite(
              key, is_lost || gets % 2 == 0 ? wrong : bytes);
          ++gets;
        }
        return CallFate::kArrives;
      }),
      "latest");
  SnapshotOptions options;
  options.as_files = true;
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(origin->Take(options, &snapshot));
  const ClonedFiles& files = *snapshot->files();
  std::vector<Part> units;
  REQUIRE_OK(CutIntoUnits(files.files, files.unit_bytes, &units));
  std::vector<Digest128> recorded(units.size());
  for (const Part& unit : units) {
    REQUIRE_OK(snapshot->units()->DigestOf(
        unit, UnitSource::DigestFrom::kRecord, nullptr, &recorded[unit.id]));
  }
  REQUIRE(gets == 0);
  for (const Part& unit : units) {
    Digest128 read;
    REQUIRE_OK(snapshot->units()->DigestOf(
        unit, UnitSource::DigestFrom::kBytes, nullptr, &read));
    REQUIRE(read == recorded[unit.id]);
  }
  REQUIRE(gets == 4);
  is_lost = true;
  EndState worst = EndState::kOk;
  for (const Part& unit : units) {
    Digest128 read;
    const Status status = snapshot->units()->DigestOf(
        unit, UnitSource::DigestFrom::kBytes, nullptr, &read);
    if (!status.ok()) worst = EndStateOf(status);
  }
  REQUIRE(worst == EndState::kCorrupt);
}

TEST_CASE("A damaged object is named, with its sets and the newest that is "
          "whole",
          "[archive]") {
  World world;
  world.retry = std::chrono::seconds(20);
  const SetName first = world.Push();
  world.server.Advance(60);
  world.Change(1);
  const SetName second = world.Push();
  // Finds a table that only the second set has.
  std::string key;
  for (const auto& [each, bytes] : world.server.Objects()) {
    if (each.starts_with(kArchiveFilesPrefix) &&
        each.ends_with(ToHex(second.id))) {
      key = each;
    }
  }
  REQUIRE_FALSE(key.empty());
  const std::string bytes = world.server.Objects()[key];
  SECTION("a bit") {
    std::string wrong = bytes;
    wrong[wrong.size() / 2] ^= 1;
    world.server.Overwrite(key, wrong);
  }
  SECTION("its length") {
    world.server.Overwrite(key, bytes + "x");
  }
  SECTION("all of it") { world.server.Erase(key); }
  const Ferried restored = world.Restore("latest");
  INFO(restored.message());
  REQUIRE(restored.state() == EndState::kCorrupt);
  REQUIRE(restored.message().find(key) != std::string::npos);
  REQUIRE(restored.message().find("used by " + SetNameText(second)) !=
          std::string::npos);
  REQUIRE(restored.message().find("the newest set that is whole is @" +
                                  SetNameText(first)) != std::string::npos);
  REQUIRE_FALSE(world.HasTarget());
  // The set that the error names can be restored.
  REQUIRE_OK(world.Restore(SetNameText(first)).status);
}

TEST_CASE("A set that was pushed with a damaged MANIFEST is refused before its "
          "tables are read, and another set is named",
          "[archive]") {
  World world;
  const SetName first = world.Push();
  world.server.Advance(60);
  world.Change(1);
  const SetName second = world.Push("", /*is_damaged=*/true);
  if (GENERATE(false, true)) {
    world.drill = [](const std::string&) { return Status::OK(); };
  }
  std::atomic<int> tables{0};
  const Ferried restored = world.Restore("latest", [&tables](StoreCall* call) {
    tables += call->kind == StoreCallKind::kGet &&
                      call->key.starts_with(kArchiveFilesPrefix)
                  ? 1
                  : 0;
    return CallFate::kArrives;
  });
  INFO(restored.message());
  REQUIRE(restored.state() == EndState::kCorrupt);
  REQUIRE(tables == 0);
  for (const std::string& words :
       {"set " + SetNameText(second) + ": ",
        std::string("MANIFEST: record at offset "),
        std::string(": expected checksum "),
        "the newest set that is whole is @" + SetNameText(first),
        std::string("sstferry archive list ")}) {
    INFO(words);
    REQUIRE(restored.message().find(words) != std::string::npos);
  }
  REQUIRE_FALSE(world.HasTarget());
  REQUIRE_OK(world.Restore(SetNameText(first)).status);
}

TEST_CASE("A restore does not begin if a file is missing", "[archive]") {
  World world;
  world.Push();
  world.server.Erase(world.KeyOfTable());
  std::atomic<int> gets{0};
  const Ferried restored = world.Restore("latest", [&gets](StoreCall* call) {
    gets += call->kind == StoreCallKind::kGet &&
                    (call->key.starts_with(kArchiveFilesPrefix) ||
                     call->key.starts_with(kArchivePartsPrefix))
                ? 1
                : 0;
    return CallFate::kArrives;
  });
  INFO(restored.message());
  REQUIRE(restored.state() == EndState::kCorrupt);
  REQUIRE(gets == 0);
}

TEST_CASE("A damaged record is named, and no older set is restored instead",
          "[archive]") {
  World world;
  const SetName first = world.Push();
  world.server.Advance(60);
  const SetName second = world.Push();
  std::string record = world.server.Objects()[SetKey(second)];
  record[record.size() / 2] ^= 1;
  world.server.Overwrite(SetKey(second), record);
  const Ferried restored = world.Restore("latest");
  INFO(restored.message());
  REQUIRE(restored.state() == EndState::kCorrupt);
  REQUIRE(restored.message().find(SetKey(second)) != std::string::npos);
  REQUIRE(restored.message().find("@" + SetNameText(first)) !=
          std::string::npos);
}

TEST_CASE("A restore of a set that a prune removes names the newest whole set",
          "[archive]") {
  World world;
  const SetName first = world.Push();
  world.server.Advance(60);
  world.Change(1);
  const SetName second = world.Push();
  const auto prune = [&world] {
    const std::unique_ptr<ObjectStore> client = world.server.NewClient();
    PruneOptions options;
    options.retention.last = 1;
    PruneSummary summary;
    REQUIRE_OK(PruneArchive(Archive(client.get()), options, &summary));
  };
  prune();
  world.server.Advance(2 * kGrace);
  // The prune deletes the set when the restore has checked that its files exist
  // and fetches the first one.
  std::atomic<bool> swept{false};
  const std::string own = kArchivePartsPrefix + ToHex(first.id);
  const Ferried restored =
      world.Restore(SetNameText(first), [&](StoreCall* call) {
        if (call->kind == StoreCallKind::kGet && call->key.starts_with(own) &&
            !swept.exchange(true)) {
          prune();
        }
        return CallFate::kArrives;
      });
  INFO(restored.message());
  REQUIRE(swept);
  REQUIRE(restored.state() == EndState::kSnapshotGone);
  REQUIRE(restored.message().find("@" + SetNameText(second)) !=
          std::string::npos);
  REQUIRE_FALSE(world.HasTarget());
  REQUIRE_OK(world.Restore(SetNameText(second)).status);
  world.RequireRestored();
}

TEST_CASE("Wrong bytes are reported as such, and not as a lost connection",
          "[archive]") {
  World world;
  world.Push();
  const std::string key = world.KeyOfTable();
  std::string bytes = world.server.Objects().at(key);
  bytes[bytes.size() / 2] ^= 1;
  world.server.Overwrite(key, bytes);
  std::mutex mu;
  std::string log;
  PullOptions pull;
  pull.target_dir = world.dir / "target";
  pull.lanes = 1;
  pull.log = [&](LogLevel level, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mu);
    log += level == LogLevel::kDebug ? "" : text + "\n";
  };
  const Ferried restored = RestoreThrough(
      MakeArchiveOriginOf(world.server.NewClient(), "latest"), pull, "",
      [](const PullOptions& options, Dialer* dialer) {
        return MakePullThrough(options, dialer);
      });
  INFO(log);
  REQUIRE(restored.state() == EndState::kCorrupt);
  REQUIRE(log.find("wrong bytes, reading them again") != std::string::npos);
  REQUIRE(log.find("connection to the source lost") == std::string::npos);
}

TEST_CASE("A set without its done object is not restored", "[archive]") {
  World world;
  const SetName first = world.Push();
  world.server.Advance(60);
  const SetName second = world.Push("half");
  world.server.Erase(DoneKey(second));
  REQUIRE(world.Newest() == SetNameText(first));
  REQUIRE(EndStateOf(world.Choose(SetNameText(second))) ==
          EndState::kRefused);
  REQUIRE(EndStateOf(world.Choose("half")) == EndState::kRefused);
}

TEST_CASE("A set is chosen by its name, its label and a time", "[archive]") {
  World world;
  const SetName first = world.Push("monday");
  world.server.Advance(3600);
  const SetName second = world.Push("tuesday");
  world.server.Advance(3600);
  const SetName third = world.Push("monday");
  REQUIRE(world.Newest("") == SetNameText(third));
  REQUIRE(world.Newest("latest") == SetNameText(third));
  REQUIRE(world.Newest("monday") == SetNameText(third));
  REQUIRE(world.Newest("tuesday") == SetNameText(second));
  REQUIRE(world.Newest(SetNameText(first)) == SetNameText(first));
  REQUIRE(world.Newest(ArchiveTimeText(first.seconds)) == SetNameText(first));
  REQUIRE(world.Newest(ArchiveTimeText(third.seconds - 1)) ==
          SetNameText(second));
  REQUIRE(world.Newest("2999-01-01T00:00:00Z") == SetNameText(third));
  for (const std::string none :
       {"sunday", "2001-01-01T00:00:00Z", "2001-01-01 00:00:00Z",
        "20010101T000000Z-0000000000000001"}) {
    const Status status = world.Choose(none);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kRefused);
    REQUIRE(status.ToString().find(SetNameText(third)) != std::string::npos);
  }
}

TEST_CASE("A damaged record may hide the newest set of a label: the restore "
          "ends, and names the next one with that label",
          "[archive]") {
  World world;
  std::vector<SetName> sets;
  for (const char* label : {"monday", "monday", "tuesday", "wednesday"}) {
    sets.push_back(world.Push(label));
    world.server.Advance(3600);
  }
  const auto damage = [&world](const SetName& set) {
    const std::string key = SetKey(set);
    world.server.Overwrite(key, "x" + world.server.Objects().at(key));
  };
  damage(sets[2]);
  // Sets that are newer than the damaged one, or requested by name or time.
  REQUIRE(world.Newest("wednesday") == SetNameText(sets[3]));
  REQUIRE(world.Newest("latest") == SetNameText(sets[3]));
  REQUIRE(world.Newest(ArchiveTimeText(sets[1].seconds)) ==
          SetNameText(sets[1]));
  for (const auto& [label, next] :
       {std::pair("monday", sets[1]), std::pair("tuesday", sets[3])}) {
    const Ferried restored = world.Restore(label);
    INFO(restored.message());
    REQUIRE(restored.state() == EndState::kCorrupt);
    REQUIRE(restored.message().find(SetNameText(sets[2])) !=
            std::string::npos);
    REQUIRE(restored.message().find("@" + SetNameText(next)) !=
            std::string::npos);
    REQUIRE_FALSE(world.HasTarget());
  }
  REQUIRE_OK(world.Restore(SetNameText(sets[1])).status);
}

TEST_CASE("Among sets of one second, the highest sequence is the newest",
          "[archive]") {
  World world;
  world.set_next_id(200);
  const SetName first = world.Push("a");
  world.Change(1);
  world.set_next_id(100);
  // Makes the two pushes blind to each other, so both choose the same second.
  const std::string record = world.server.Objects().at(SetKey(first));
  const std::string done = world.server.Objects().at(DoneKey(first));
  world.server.Erase(SetKey(first));
  const SetName second = world.Push("a");
  world.server.Overwrite(SetKey(first), record);
  world.server.Overwrite(DoneKey(first), done);
  REQUIRE(first.seconds == second.seconds);
  REQUIRE(second < first);
  REQUIRE(world.Newest() == SetNameText(second));
  REQUIRE(world.Newest("a") == SetNameText(second));
}

TEST_CASE("Many clients restore from one archive at once while it is pruned",
          "[archive]") {
  const World world;
  const ScratchDir& dir = world.dir;
  InitArchive(dir / "archive");
  PushTo(dir / "archive", dir / "source");
  PushTo(dir / "archive", dir / "source");
  constexpr int kRestores = 8;
  std::vector<Status> ended(kRestores);
  std::vector<std::thread> restores;
  for (int i = 0; i < kRestores; ++i) {
    restores.emplace_back([&, i] {
      PullOptions pull;
      pull.source.directory = dir / "archive";
      pull.target_dir = dir / ("target" + std::to_string(i));
      Summary summary;
      ended[i] = MakePull(pull)->Run(&summary);
    });
  }
  ArchiveOptions prune;
  prune.action = ArchiveAction::kPrune;
  prune.store.where.directory = dir / "archive";
  prune.keep_last = 1;
  ArchiveReport report;
  const Status pruned = MakeArchiveJob(prune)->Run(&report);
  for (std::thread& restore : restores) {
    restore.join();
  }
  REQUIRE_OK(pruned);
  for (int i = 0; i < kRestores; ++i) {
    REQUIRE_OK(ended[i]);
    world.RequireRestored("target" + std::to_string(i));
  }
}

// tests/archive/run starts the server and passes its address.
TEST_CASE("A real server's archive is restored and verified", "[.s3]") {
  const ScratchDir dir;
  ArchiveOptions archive;
  archive.store.endpoint = Setting("SSTFERRY_TEST_S3");
  archive.store.ca_file = Setting("SSTFERRY_TEST_S3_CA");
  archive.store.where.bucket = "sstferry-test";
  archive.store.where.prefix = "restored/" + ToHex(RandomId());
  archive.source.directory = dir / "source";
  archive.label = "night@1";
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = 0; i < 3000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, i));
    }
    db.Flush();
    db.Put("in", "the WAL");
  }
  ArchiveReport report;
  for (const ArchiveAction action :
       {ArchiveAction::kInit, ArchiveAction::kPush}) {
    archive.action = action;
    REQUIRE_OK(MakeArchiveJob(archive)->Run(&report));
  }
  PullOptions pull;
  REQUIRE_OK(ParseSourceAddress(
      archive.store.where.ToString() + "@" + archive.label, &pull.source));
  pull.store = archive.store;
  pull.target_dir = dir / "target";
  Ferried restored;
  restored.status = MakePull(pull)->Run(&restored.summary);
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  ExpectSameEntries(dir / "source", dir / "target");
  VerifyOptions verify;
  verify.left = pull.source;
  verify.right.directory = dir / "target";
  verify.store = archive.store;
  Summary verified;
  REQUIRE_OK(MakeVerify(verify)->Run(&verified));
  REQUIRE(verified.compared == "files");
  // A restore of a part requests ranges of objects from the server.
  pull.selection.interval = {NumberedKey(1000), NumberedKey(1100)};
  pull.target_dir = dir / "part";
  restored.status = MakePull(pull)->Run(&restored.summary);
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(restored.summary.entries == 100);
}

}  // namespace
}  // namespace sstferry::test::restore_test
