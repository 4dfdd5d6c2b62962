// Tests the rules of pipeline/archive/push.h and prune.h one by one, each in
// the order of calls that needs it. model_test.cc tries any order.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/set_reader.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/pipeline/archive/stopped_client.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"

namespace sstferry::protocol_test {
namespace {

using rocksdb::Status;

constexpr UnixSeconds kGrace = kMinGraceSeconds;

PruneOptions KeepLast(uint32_t sets) {
  PruneOptions options;
  options.retention.last = sets;
  return options;
}

// An archive in memory, with ids that count up.
class World {
 public:
  explicit World(MemoryStoreRules rules = {}) : server(rules) {
    ArchiveHead head;
    head.grace_seconds = kGrace;
    head.has_if_absent = rules.honours_if_absent;
    std::string bytes;
    EncodeArchiveHead(head, &bytes);
    server.Overwrite(kArchiveHeadKey, bytes);
  }

  // Pushes through `store`, or through a new client if it is null.
  Status Push(const std::vector<int>& tables, PushSummary* summary = nullptr,
              ObjectStore* store = nullptr) {
    const std::unique_ptr<ObjectStore> own = server.NewClient();
    FakeSetSource source(tables, "point " + std::to_string(++points_));
    for (size_t i = 0; i < tables.size(); ++i) {
      source.file(i)->identity_is_weak = has_weak_tables;
    }
    PushOptions options;
    options.lanes = 1;
    options.new_id = NewId();
    options.steady_seconds = [this] {
      return static_cast<uint64_t>(server.now());
    };
    options.max_objects = max_objects;
    PushSummary unused;
    return PushSet(Archive(store == nullptr ? own.get() : store), &source,
                   options, summary == nullptr ? &unused : summary);
  }
  Status Prune(PruneSummary* summary = nullptr, ObjectStore* store = nullptr,
               PruneOptions options = KeepLast(1)) {
    const std::unique_ptr<ObjectStore> own = server.NewClient();
    options.new_id = NewId();
    PruneSummary unused;
    return PruneArchive(Archive(store == nullptr ? own.get() : store), options,
                        summary == nullptr ? &unused : summary);
  }
  Status Remove(const std::string& what, bool force = false,
                ObjectStore* store = nullptr) {
    const std::unique_ptr<ObjectStore> own = server.NewClient();
    RemoveOptions options;
    options.what = what;
    options.force = force;
    options.new_id = NewId();
    return RemoveFromArchive(Archive(store == nullptr ? own.get() : store),
                             options);
  }
  StoppedClient::Work Remover(const std::string& set) {
    return [this, set](ObjectStore* store) {
      return Remove(set, false, store);
    };
  }
  StoppedClient::Work Pusher(const std::vector<int>& tables) {
    return [this, tables](ObjectStore* store) {
      return Push(tables, nullptr, store);
    };
  }
  StoppedClient::Work Pruner() {
    return [this](ObjectStore* store) { return Prune(nullptr, store); };
  }

  // Returns the keys that begin with `prefix`.
  std::vector<std::string> Keys(const std::string& prefix) const {
    std::vector<std::string> keys;
    for (const auto& [key, bytes] : server.Objects()) {
      if (key.starts_with(prefix)) {
        keys.push_back(key);
      }
    }
    return keys;
  }
  // Returns the key of a table that exactly one set uploaded.
  std::string KeyOf(int table) const {
    const std::string digits = ToHex(Digest128{
        1, static_cast<uint64_t>(table) + 1});
    const std::vector<std::string> keys =
        Keys(kArchiveFilesPrefix + digits.substr(0, 2) + "/" + digits);
    REQUIRE(keys.size() == 1);
    return keys[0];
  }
  void MarkKey(const std::string& text) {
    ArchiveMark mark;
    mark.marked_seconds = static_cast<uint64_t>(server.now());
    REQUIRE(ParseArchiveKey(text, &mark.keys.emplace_back()));
    std::string bytes;
    EncodeArchiveMark(mark, &bytes);
    server.Overwrite(sstferry::MarkKey(NewId()()), bytes);
  }
  CheckSummary Check() {
    const std::unique_ptr<ObjectStore> store = server.NewClient();
    CheckSummary summary;
    CheckArchive(Archive(store.get()), {}, &summary).PermitUncheckedError();
    REQUIRE(summary.is_complete);
    return summary;
  }
  // Checks all bytes or a part of them, and records what it finds.
  Status CheckAll(CheckSummary* summary = nullptr, double read_percent = 100,
                  ObjectStore* store = nullptr) {
    const std::unique_ptr<ObjectStore> own = server.NewClient();
    CheckOptions options;
    options.read_percent = read_percent;
    options.lanes = 1;
    options.keeps_findings = true;
    CheckSummary unused;
    return CheckArchive(Archive(store == nullptr ? own.get() : store), options,
                        summary == nullptr ? &unused : summary);
  }
  KeyFaults Faults() {
    const std::unique_ptr<ObjectStore> store = server.NewClient();
    KeyFaults faults;
    REQUIRE_OK(Archive(store.get()).ReadFaults(&faults));
    return faults;
  }
  size_t CountWhole() {
    const CheckSummary summary = Check();
    return static_cast<size_t>(std::count_if(
        summary.sets.begin(), summary.sets.end(),
        [](const ListedSet& set) { return IsRestorable(set.state); }));
  }

  MemoryStore server;
  uint64_t max_objects = kMaxPutObjects;  // of pushes
  bool has_weak_tables = false;           // in later pushes

 private:
  NewSetId NewId() {
    return [this] {
      SetId id{};
      id[7] = static_cast<uint8_t>(++ids_);
      return id;
    };
  }
  uint64_t ids_ = 0;
  uint64_t points_ = 0;
};

MemoryStoreRules WithoutSignatures() {
  MemoryStoreRules rules;
  rules.checks_signatures = false;
  return rules;
}

TEST_CASE("Checks on every n-th day read all parts of an archive",
          "[archive]") {
  const std::vector<uint64_t> numbers = {1, 2, 4, 5, 7, 10, 14, 20, 28, 30};
  for (const uint64_t parts : numbers) {
    for (const uint64_t step : numbers) {
      INFO(parts << " parts, every " << step << " days");
      const uint64_t begin = 20'000 / parts * parts;
      std::set<uint64_t> read;
      for (uint64_t run = 0; run < 1000; ++run) {
        read.insert(PartOfDay(begin + run * step, parts));
        // Checks on each day read all parts within `parts` days.
        if (step == 1 && run + 1 == parts) REQUIRE(read.size() == parts);
      }
      REQUIRE(read.size() == parts);
      REQUIRE(*read.begin() == 1);
      REQUIRE(*read.rbegin() == parts);
    }
  }
}

TEST_CASE("A push uploads only files that no earlier set has", "[archive]") {
  World world;
  PushSummary summary;
  REQUIRE_OK(world.Push({1, 2}, &summary));
  REQUIRE(summary.uploaded_files == 3);
  REQUIRE_OK(world.Push({1, 2, 3}, &summary));
  REQUIRE(summary.reused_files == 2);
  REQUIRE(summary.uploaded_files == 2);  // a table and the MANIFEST
  REQUIRE(world.CountWhole() == 2);
  REQUIRE(world.Keys(kArchiveIntentsPrefix).empty());
}

TEST_CASE("A push warns early, and puts no more files than are listed",
          "[archive]") {
  World world;
  PushSummary summary;
  REQUIRE_OK(world.Push({1, 2}, &summary));
  REQUIRE(summary.warnings.empty());
  const uint64_t objects =
      world.Keys(kArchiveFilesPrefix).size() + summary.files;
  world.max_objects = objects - 1;
  const Status refused = world.Push({1, 2});
  INFO(refused.ToString());
  REQUIRE(EndStateOf(refused) == EndState::kRefused);
  REQUIRE(NextOf(refused).starts_with("sstferry archive prune"));
  REQUIRE_OK(world.Prune());
  world.max_objects = objects;
  REQUIRE_OK(world.Push({1, 2}, &summary));
  REQUIRE(summary.warnings.size() == 1);
}

TEST_CASE("A push counts the objects in parts/", "[archive]") {
  World world;
  const bool is_weak = GENERATE(false, true);
  world.has_weak_tables = is_weak;
  REQUIRE_OK(world.Push({1, 2, 3}));
  PushSummary summary;
  REQUIRE_OK(world.Push({1, 2, 3}, &summary));
  REQUIRE(summary.reused_files == (is_weak ? 0 : 3));
  // Two pushes put 8 files into parts/ if tables are weak, otherwise 2. The
  // next push adds 4, or 1.
  const size_t parts = world.Keys(kArchivePartsPrefix).size();
  REQUIRE(parts == (is_weak ? 8 : 2));
  world.max_objects = 11;
  const Status pushed = world.Push({1, 2, 3});
  INFO(pushed.ToString());
  REQUIRE(EndStateOf(pushed) ==
          (is_weak ? EndState::kRefused : EndState::kOk));
  if (is_weak) {
    REQUIRE(pushed.ToString().find(kArchivePartsPrefix) != std::string::npos);
    world.max_objects = 12;
    REQUIRE_OK(world.Push({1, 2, 3}, &summary));
    REQUIRE(summary.warnings.size() == 1);
  }
}

TEST_CASE("A push reuses files of a push that crashed", "[archive]") {
  World world;
  {
    StoppedClient dead(&world.server, world.Pusher({1, 2}));
    REQUIRE(dead.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
    dead.Fail(CallFate::kNeverArrives);
    REQUIRE(EndStateOf(dead.Finish()) == EndState::kDeadPeer);
  }
  PushSummary summary;
  REQUIRE_OK(world.Push({1, 2}, &summary));
  REQUIRE(summary.reused_files == 2);
  REQUIRE(summary.uploaded_files == 1);
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("Files of a crashed push are not marked while another push uses them",
          "[archive]") {
  World world;
  {
    StoppedClient dead(&world.server, world.Pusher({1, 2}));
    REQUIRE(dead.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
    dead.Fail(CallFate::kNeverArrives);
    REQUIRE_FALSE(dead.Finish().ok());
  }
  world.server.Advance(kGrace + 1);
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
  PruneSummary summary;
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.marked_files == 0);
  REQUIRE_OK(push.Finish());
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 2);
}

TEST_CASE("A push does not create a deleted name again", "[archive]") {
  World world;
  StoppedClient push(&world.server, world.Pusher({1}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
  REQUIRE(push.RunUntil(StoreCallKind::kList, kArchiveMarksPrefix));
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(world.Keys(kArchiveFilesPrefix).empty());
  REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
  REQUIRE(world.Keys(kArchiveFilesPrefix).empty());
}

TEST_CASE("A file that is marked while a push reuses it is uploaded again",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1, 2}));
  const std::string key = world.KeyOf(1);
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
  world.MarkKey(key);
  REQUIRE_OK(push.Finish());
  world.server.Erase(key);  // as the prune that marked it may do
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  std::vector<FoundSet> sets;
  REQUIRE_OK(Archive(store.get()).ListSets(&sets));
  std::optional<ArchiveSet> set;
  REQUIRE_OK(Archive(store.get()).ReadSet(sets.back(), &set));
  for (const ArchivedFile& file : set->files) {
    REQUIRE(world.server.Has(ArchiveKeyText(file.key)));
  }
}

TEST_CASE(
    "A push that sleeps too long before its commit makes no set that counts",
    "[archive]") {
  World world(WithoutSignatures());
  REQUIRE_OK(world.Push({1}));
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveSetsPrefix));
  world.server.Advance(kGrace + 1);  // its intent expires
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
  REQUIRE(world.CountWhole() == 1);
  REQUIRE(world.Keys(kArchiveDonePrefix).size() == 1);
}

TEST_CASE("A store that checks signatures refuses the commit of a push that "
          "slept",
          "[archive]") {
  World world;
  StoppedClient push(&world.server, world.Pusher({1}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveSetsPrefix));
  world.server.Advance(16 * 60);
  REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
  REQUIRE(world.Keys(kArchiveSetsPrefix).empty());
}

TEST_CASE("A store that checks signatures refuses a done object that is late",
          "[archive]") {
  World world;
  StoppedClient push(&world.server, world.Pusher({1}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveDonePrefix));
  world.server.Advance(16 * 60);
  REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
  REQUIRE(world.Keys(kArchiveDonePrefix).empty());
}

// A push that slept before its commit and reuses table 1 of a set. A prune has
// just dropped that set, and is stopped before it deletes its files.
struct Overtaken {
  Overtaken() : world(WithoutSignatures()) {
    REQUIRE_OK(world.Push({1}));
    REQUIRE_OK(world.Push({2}));
    push = std::make_unique<StoppedClient>(&world.server,
                                           world.Pusher({1, 2}));
    REQUIRE(push->RunUntil(StoreCallKind::kPut, kArchiveSetsPrefix));
    world.server.Advance(kGrace + 1);  // its intent expires
    REQUIRE_OK(world.Prune());
    world.server.Advance(kGrace + 1);
    prune = std::make_unique<StoppedClient>(&world.server, world.Pruner());
    REQUIRE(prune->RunUntil(StoreCallKind::kDelete, kArchiveFilesPrefix));
  }
  World world;
  std::unique_ptr<StoppedClient> push;
  std::unique_ptr<StoppedClient> prune;
};

TEST_CASE("A look reads the marks before it lists files", "[archive]") {
  Overtaken overtaken;
  REQUIRE(overtaken.push->RunUntil(StoreCallKind::kList, kArchiveMarksPrefix));
  // The prune deletes the files, then the mark.
  REQUIRE(overtaken.prune->RunUntil(StoreCallKind::kList, kArchiveFilesPrefix));
  REQUIRE(EndStateOf(overtaken.push->Finish()) == EndState::kBusy);
  REQUIRE_OK(overtaken.prune->Finish());
  REQUIRE(overtaken.world.CountWhole() == 1);
}

TEST_CASE(
    "A mark stays while a prune may sleep that has not read the kept sets",
    "[archive]") {
  Overtaken overtaken;
  REQUIRE(overtaken.push->RunUntil(StoreCallKind::kList, kArchiveMarksPrefix));
  // The second prune sees the push's set, and keeps its files.
  StoppedClient other(&overtaken.world.server, overtaken.world.Pruner());
  REQUIRE(other.RunUntil(StoreCallKind::kList, kArchiveFilesPrefix));
  REQUIRE(EndStateOf(overtaken.push->Finish()) == EndState::kBusy);
  REQUIRE_OK(overtaken.prune->Finish());
  REQUIRE(overtaken.world.CountWhole() == 1);
}

TEST_CASE("An archive refuses another database", "[archive]") {
  World world;
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  PushOptions options;
  options.lanes = 1;
  PushSummary summary;
  const auto push = [&](const std::vector<int>& tables, const char* id) {
    FakeSetSource source(tables, std::string("point of ") + id);
    source.SetDatabase(id);
    world.server.Advance(1);  // the last push has the newest set
    return PushSet(Archive(store.get()), &source, options, &summary);
  };
  REQUIRE_OK(push({1, 2}, "orders"));
  const size_t before = world.server.Objects().size();
  REQUIRE(EndStateOf(push({3}, "users")) == EndState::kRefused);
  REQUIRE(world.server.Objects().size() == before);
  REQUIRE_OK(push({2, 4}, "clone of orders"));
  REQUIRE_OK(push({7}, "clone of orders"));
  options.adopt = true;
  REQUIRE_OK(push({3}, "rebuilt orders"));
  REQUIRE(world.CountWhole() == 4);
}

// Returns a database with two tables and a blob file, whose bytes `blob`
// chooses, but neither its identity nor its size.
FakeSetSource WithBlob(const char* id, int second_table, int blob) {
  FakeSetSource source({1, second_table, blob}, std::string("point of ") + id);
  source.SetDatabase(id);
  source.file(2)->kind = CloneFileKind::kBlob;
  source.file(2)->identity = {7, 7};
  return source;
}

TEST_CASE("A blob file of a database with another id is reused only if its "
          "bytes are the same",
          "[archive]") {
  World world;
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  PushOptions options;
  options.lanes = 1;
  PushSummary summary;
  FakeSetSource first = WithBlob("orders", 2, 5);
  REQUIRE_OK(PushSet(Archive(store.get()), &first, options, &summary));
  const bool is_same = GENERATE(false, true);
  FakeSetSource second = WithBlob("clone of orders", 3, is_same ? 5 : 6);
  world.server.Advance(1);
  REQUIRE_OK(PushSet(Archive(store.get()), &second, options, &summary));
  REQUIRE(summary.reused_files == (is_same ? 2 : 1));
  CheckSummary checked;
  REQUIRE_OK(world.CheckAll(&checked));
  // The next push of that database trusts the identity.
  FakeSetSource third = WithBlob("clone of orders", 4, is_same ? 5 : 6);
  world.server.Advance(1);
  REQUIRE_OK(PushSet(Archive(store.get()), &third, options, &summary));
  REQUIRE(summary.reused_files == 2);
}

TEST_CASE("A blob file in common does not make another database a clone",
          "[archive]") {
  World world;
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  PushOptions options;
  options.lanes = 1;
  PushSummary summary;
  FakeSetSource orders = WithBlob("orders", 2, 5);
  REQUIRE_OK(PushSet(Archive(store.get()), &orders, options, &summary));
  FakeSetSource users = WithBlob("users", 3, 5);
  users.file(0)->identity = {1, 99};
  world.server.Advance(1);
  REQUIRE(EndStateOf(PushSet(Archive(store.get()), &users, options,
                             &summary)) == EndState::kRefused);
}

TEST_CASE("Files that their identities cannot distinguish are not shared",
          "[archive]") {
  World world;
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  FakeSetSource source({1, 2, 3, 4}, "point");
  source.file(0)->identity_is_weak = true;
  source.file(1)->identity = {};
  source.file(3)->identity = source.file(2)->identity;
  PushOptions options;
  options.lanes = 1;
  PushSummary summary;
  for (int night = 0; night < 2; ++night) {
    REQUIRE_OK(PushSet(Archive(store.get()), &source, options, &summary));
    REQUIRE(summary.reused_files == (night == 0 ? 0 : 1));
  }
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
  REQUIRE(world.Keys(kArchivePartsPrefix).size() == 8);
  CheckOptions check;
  check.read_percent = 100;
  CheckSummary checked;
  REQUIRE_OK(CheckArchive(Archive(store.get()), check, &checked));
  REQUIRE(checked.read_files == 9);
}

TEST_CASE("Nothing is deleted before the grace", "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  PruneSummary summary;
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.marked_sets == 1);
  REQUIRE(summary.marked_files == 2);
  const size_t before = world.server.Objects().size();
  world.server.Advance(kGrace - 1);
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.waiting_marks == 1);
  REQUIRE(summary.marked_sets + summary.marked_files == 0);
  REQUIRE(world.server.Objects().size() == before);
  world.server.Advance(1);
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.dropped_sets == 1);
  REQUIRE(summary.deleted_files == 2);
  REQUIRE(world.CountWhole() == 1);
  REQUIRE(world.Keys(kArchiveMarksPrefix).empty());
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
}

TEST_CASE("Files of a running push are not marked before its intent expires",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  StoppedClient push(&world.server, world.Pusher({1, 3}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
  PruneSummary summary;
  REQUIRE_OK(world.Prune(&summary));
  // No files are marked, not even the MANIFEST of the set whose table the push
  // reuses.
  REQUIRE(summary.marked_sets == 1);
  REQUIRE(summary.marked_files == 0);
  REQUIRE_OK(push.Finish());
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 3);
}

TEST_CASE("A long push renews its intent", "[archive]") {
  World world;
  StoppedClient push(&world.server, world.Pusher({1, 2, 3}));
  for (int table = 0; table < 3; ++table) {
    REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveFilesPrefix));
    world.server.Advance(kGrace / 2);
    PruneSummary summary;
    REQUIRE_OK(world.Prune(&summary));
    REQUIRE(summary.marked_files == 0);
  }
  REQUIRE_OK(push.Finish());
}

TEST_CASE("A commit whose answer is lost is a commit", "[archive]") {
  const CallFate fate =
      GENERATE(CallFate::kAnswerLost, CallFate::kRepeatDenied);
  for (const char* prefix : {kArchiveSetsPrefix, kArchiveDonePrefix}) {
    World world;
    StoppedClient push(&world.server, world.Pusher({1}));
    REQUIRE(push.RunUntil(StoreCallKind::kPut, prefix));
    push.Fail(fate);
    REQUIRE_OK(push.Finish());
    REQUIRE(world.CountWhole() == 1);
  }
}

TEST_CASE("A commit that never arrives makes no set", "[archive]") {
  for (const char* prefix : {kArchiveSetsPrefix, kArchiveDonePrefix}) {
    World world;
    StoppedClient push(&world.server, world.Pusher({1}));
    REQUIRE(push.RunUntil(StoreCallKind::kPut, prefix));
    push.Fail(CallFate::kNeverArrives);
    REQUIRE(EndStateOf(push.Finish()) == EndState::kDeadPeer);
    REQUIRE(world.CountWhole() == 0);
    REQUIRE_OK(world.Push({1}));
  }
}

TEST_CASE("A set stays if its push finished after a prune chose to mark it",
          "[archive]") {
  World world(WithoutSignatures());
  REQUIRE_OK(world.Push({1}));
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveDonePrefix));
  world.server.Advance(kGrace + 1);
  StoppedClient prune(&world.server, world.Pruner());
  REQUIRE(prune.RunUntil(StoreCallKind::kPut, kArchiveMarksPrefix));
  REQUIRE_OK(push.Finish());  // it has not seen a mark
  REQUIRE_OK(prune.Finish());
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Push({1, 2, 3}));
  REQUIRE_OK(world.Push({1, 2, 3}));
  PruneSummary summary;
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.dropped_sets == 0);
  REQUIRE(summary.held_marks == 1);
  REQUIRE(world.CountWhole() == 4);
}

TEST_CASE("A push reports that its set may be removed if it was marked before "
          "it counted",
          "[archive]") {
  World world(WithoutSignatures());
  REQUIRE_OK(world.Push({1}));
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveDonePrefix));
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
}

TEST_CASE("A push reports that its set was removed before it counted",
          "[archive]") {
  World world(WithoutSignatures());
  REQUIRE_OK(world.Push({1}));
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveDonePrefix));
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("A push reads the marks before it checks that its set still exists",
          "[archive]") {
  World world(WithoutSignatures());
  REQUIRE_OK(world.Push({1}));
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveDonePrefix));
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  StoppedClient prune(&world.server, world.Pruner());
  REQUIRE(prune.RunUntil(StoreCallKind::kDelete, kArchiveDonePrefix));
  REQUIRE(push.RunUntil(StoreCallKind::kList, kArchiveMarksPrefix));
  // The prune deletes the set, then the mark.
  REQUIRE(prune.RunUntil(StoreCallKind::kList, kArchiveFilesPrefix));
  REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
  REQUIRE_OK(prune.Finish());
}

TEST_CASE("A mark stays while something that it names is used", "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  world.MarkKey(world.KeyOf(1));
  world.server.Advance(kGrace + 1);
  PruneSummary summary;
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.held_marks == 1);
  REQUIRE(summary.deleted_files == 0);
  REQUIRE(world.CountWhole() == 1);
  REQUIRE(world.Keys(kArchiveMarksPrefix).size() == 1);
  // The next set does not reuse the marked table. Once the first set is
  // removed, the table and the mark are, too.
  REQUIRE_OK(world.Push({1}, nullptr));
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(world.CountWhole() == 1);
  REQUIRE(world.Keys(kArchiveMarksPrefix).empty());
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
}

TEST_CASE("The newest set stays, whatever options two prunes have",
          "[archive]") {
  World world;
  PushSummary first;
  REQUIRE_OK(world.Push({1}, &first));
  ArchiveMark mark;
  mark.marked_seconds = static_cast<uint64_t>(world.server.now());
  mark.sets.push_back({first.name, true});
  std::string bytes;
  EncodeArchiveMark(mark, &bytes);
  world.server.Overwrite(MarkKey(SetId{9}), bytes);
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("A prune that was killed is continued by the next one",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  for (const char* prefix : {kArchiveDonePrefix, kArchiveSetsPrefix,
                             kArchiveFilesPrefix, kArchiveMarksPrefix}) {
    StoppedClient prune(&world.server, world.Pruner());
    REQUIRE(prune.RunUntil(StoreCallKind::kDelete, prefix));
    prune.Fail(CallFate::kNeverArrives);
    REQUIRE_FALSE(prune.Finish().ok());
    REQUIRE(world.CountWhole() ==
            (prefix == std::string(kArchiveDonePrefix) ? 2 : 1));
  }
  REQUIRE_OK(world.Prune());
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
  REQUIRE(world.Keys(kArchivePartsPrefix).size() == 1);
  REQUIRE(world.Keys(kArchiveMarksPrefix).empty());
}

TEST_CASE("Options to keep sets do not count a damaged set, and the newest "
          "whole one stays",
          "[archive]") {
  World world;
  PushSummary whole;
  PushSummary damaged;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}, &whole));
  REQUIRE_OK(world.Push({3}, &damaged));
  // An object is lost, or has another size.
  const bool is_lost = GENERATE(true, false);
  if (is_lost) {
    world.server.Erase(world.KeyOf(3));
  } else {
    world.server.Overwrite(world.KeyOf(3), "short");
  }
  for (int night = 0; night < 3; ++night) {
    PruneSummary summary;
    REQUIRE_OK(world.Prune(&summary));
    REQUIRE(summary.kept_sets == 1);
    REQUIRE(summary.damaged_sets == 1);
    REQUIRE(summary.warnings.size() == 1);
    REQUIRE(summary.warnings[0].find(SetNameText(damaged.name)) !=
            std::string::npos);
    const PrunedSet& kept = summary.sets[summary.sets.size() - 2];
    REQUIRE(kept.name == whole.name);
    REQUIRE(kept.fate == SetFate::kStays);
    REQUIRE(kept.why == "the newest whole set, --keep-last 1");
    world.server.Advance(kGrace + 1);
  }
  REQUIRE(world.CountWhole() == 1);
  // The damaged set stays as long as if it were whole.
  REQUIRE(world.Keys(kArchiveDonePrefix).size() == 2);
  REQUIRE_OK(world.Push({1, 2}));
  for (int night = 0; night < 2; ++night) {
    REQUIRE_OK(world.Prune());
    world.server.Advance(kGrace + 1);
  }
  REQUIRE_OK(world.Prune());
  REQUIRE(world.Keys(kArchiveDonePrefix).size() == 1);
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("A prune does not count a set with an object that the last check "
          "found wrong",
          "[archive]") {
  World world;
  PushSummary whole;
  PushSummary damaged;
  REQUIRE_OK(world.Push({1}, &whole));
  REQUIRE_OK(world.Push({2}, &damaged));
  const std::string key = world.KeyOf(2);
  const std::string right = world.server.Objects().at(key);
  world.server.Overwrite(key, "table x");  // as long as before
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  for (int night = 0; night < 3; ++night) {
    PruneSummary summary;
    REQUIRE_OK(world.Prune(&summary));
    REQUIRE(summary.kept_sets == 1);
    REQUIRE(summary.damaged_sets == 1);
    REQUIRE(summary.marked_sets == 0);
    REQUIRE(summary.sets[0].name == whole.name);
    REQUIRE(summary.sets[0].why == "the newest whole set, --keep-last 1");
    REQUIRE(summary.sets[1].problem.find(key + ": its bytes differ") == 0);
    REQUIRE(summary.sets[1].problem.find(" (found ") != std::string::npos);
    REQUIRE(summary.warnings.size() == 1);
    world.server.Advance(kGrace + 1);
  }
  // The whole set is the last one, so it stays. Only force removes the damaged
  // set after the whole one is gone, because the check may have read wrong.
  REQUIRE(EndStateOf(world.Remove(SetNameText(whole.name))) ==
          EndState::kRefused);
  REQUIRE_OK(world.Remove(SetNameText(whole.name), /*force=*/true));
  REQUIRE(EndStateOf(world.Remove(SetNameText(damaged.name))) ==
          EndState::kRefused);
  // Once a check has read the object and found it right, the set counts.
  world.server.Overwrite(key, right);
  REQUIRE_OK(world.CheckAll());
  PruneSummary summary;
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.kept_sets == 1);
  REQUIRE(summary.damaged_sets == 0);
}

TEST_CASE("Findings that cannot be read stop a prune and a removal; a check "
          "records them anew",
          "[archive]") {
  World world;
  PushSummary first;
  REQUIRE_OK(world.Push({1}, &first));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  REQUIRE_OK(world.Push({2, 3}));
  world.server.Advance(kGrace + 1);
  world.server.Overwrite(kArchiveCheckedKey, "rot");
  const auto before = world.server.Objects();
  for (const Status& status :
       {world.Prune(), world.Remove(SetNameText(first.name))}) {
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
    REQUIRE(status.ToString().find("sstferry archive check") !=
            std::string::npos);
    REQUIRE(status.ToString().find("--read-data 100%") != std::string::npos);
  }
  REQUIRE(world.server.Objects() == before);
  // A push reuses nothing.
  PushSummary pushed;
  REQUIRE_OK(world.Push({2, 3}, &pushed));
  REQUIRE(pushed.reused_files == 0);
  REQUIRE(pushed.warnings.size() == 1);
  REQUIRE_OK(world.CheckAll());
  REQUIRE_OK(world.Prune());
  REQUIRE(world.CountWhole() == 3);
  REQUIRE_OK(world.Push({2, 3}, &pushed));
  REQUIRE(pushed.reused_files == 2);
  REQUIRE(pushed.warnings.empty());
}

TEST_CASE("A check that does not read everything leaves findings that cannot "
          "be read, and fails",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1, 2}));
  REQUIRE_OK(world.Push({1, 2, 3}));
  const std::string key = world.KeyOf(3);
  const size_t bytes = world.server.Objects().at(key).size();
  world.server.Overwrite(key, std::string(bytes, 'x'));
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  // They cannot be read when the check begins, or when it ends.
  const bool is_late = GENERATE(false, true);
  const double percent = GENERATE(0.0, 50.0);
  if (!is_late) world.server.Overwrite(kArchiveCheckedKey, "rot");
  CheckSummary summary;
  StoppedClient check(&world.server, [&](ObjectStore* store) {
    return world.CheckAll(&summary, percent, store);
  });
  REQUIRE(check.RunUntil(StoreCallKind::kGet, kArchiveCheckedKey));
  REQUIRE(check.RunUntil(StoreCallKind::kGet, kArchiveCheckedKey));
  world.server.Overwrite(kArchiveCheckedKey, "rot");
  const Status checked = check.Finish();
  INFO(checked.ToString());
  REQUIRE(EndStateOf(checked) == EndState::kCorrupt);
  REQUIRE_FALSE(summary.not_kept.empty());
  REQUIRE(world.server.Objects().at(kArchiveCheckedKey) == "rot");
  REQUIRE(EndStateOf(world.Prune()) == EndState::kCorrupt);
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  REQUIRE(world.Faults().count(key) == 1);
  PruneSummary pruned;
  REQUIRE_OK(world.Prune(&pruned));
  REQUIRE(pruned.kept_sets == 1);
  REQUIRE(pruned.damaged_sets == 1);
}

TEST_CASE("Full findings stop a prune, because more objects may be wrong",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({1, 2}));
  const bool is_full = GENERATE(true, false);
  ArchiveChecked checked;
  checked.checked_seconds = static_cast<uint64_t>(world.server.now());
  for (uint32_t i = is_full ? 0 : 1; i < kMaxFoundFaults; ++i) {
    checked.faults.push_back({"files/" + std::to_string(i), "is wrong",
                              checked.checked_seconds});
  }
  std::string bytes;
  EncodeArchiveChecked(checked, &bytes);
  world.server.Overwrite(kArchiveCheckedKey, bytes);
  const auto before = world.server.Objects();
  const Status status = world.Prune();
  REQUIRE(status.ok() == !is_full);
  if (is_full) {
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
    REQUIRE(status.ToString().find("--read-data 100%") != std::string::npos);
    REQUIRE(world.server.Objects() == before);
  }
  PushSummary pushed;
  REQUIRE_OK(world.Push({1, 2}, &pushed));
  REQUIRE(pushed.reused_files == (is_full ? 0 : 2));
  // Only a check that reads everything knows the objects that did not fit.
  REQUIRE_OK(world.CheckAll(nullptr, 50));
  REQUIRE(world.Prune().ok() == !is_full);
  REQUIRE_OK(world.CheckAll());
  REQUIRE_OK(world.Prune());
  REQUIRE(world.Faults().empty());
}

TEST_CASE("Any number of lost objects hides no wrong one, and stops no prune",
          "[archive]") {
  World world;
  std::vector<int> tables;
  for (uint32_t i = 0; i < kMaxFoundFaults + 100; ++i) {
    tables.push_back(static_cast<int>(i));
  }
  PushSummary damaged;
  REQUIRE_OK(world.Push(tables, &damaged));
  // The last object has wrong bytes, the first one another size, and the others
  // are lost.
  const std::vector<std::string> keys = world.Keys(kArchiveFilesPrefix);
  REQUIRE(keys.size() == tables.size());
  const std::string wrong = keys.back();
  const size_t bytes = world.server.Objects().at(wrong).size();
  for (const std::string& key : keys) {
    world.server.Erase(key);
  }
  world.server.Overwrite(keys.front(), "short");
  world.server.Overwrite(wrong, std::string(bytes, 'x'));
  PushSummary whole;
  REQUIRE_OK(world.Push({9000}, &whole));
  for (const double percent : {0.0, 100.0, 0.0, 100.0, 0.0}) {
    REQUIRE(EndStateOf(world.CheckAll(nullptr, percent)) ==
            EndState::kCorrupt);
    const KeyFaults faults = world.Faults();
    REQUIRE(faults.size() == kMaxFoundFaults - 1);
    REQUIRE((percent == 0 || faults.count(wrong) == 1));
  }
  REQUIRE(world.Faults().count(wrong) == 1);
  PruneSummary pruned;
  REQUIRE_OK(world.Prune(&pruned));
  REQUIRE(pruned.kept_sets == 1);
  REQUIRE_OK(world.Remove(SetNameText(damaged.name)));
  REQUIRE_OK(world.CheckAll());
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("Wrong objects that fill the findings stop prunes until their sets "
          "are removed",
          "[archive]") {
  World world;
  std::vector<int> tables;
  for (uint32_t i = 0; i < kMaxFoundFaults + 10; ++i) {
    tables.push_back(static_cast<int>(i));
  }
  PushSummary damaged;
  REQUIRE_OK(world.Push(tables, &damaged));
  REQUIRE_OK(world.Push({9000}));
  for (const auto& [key, bytes] : world.server.Objects()) {
    if (key.starts_with(kArchiveFilesPrefix)) {
      world.server.Overwrite(key, std::string(bytes.size(), 'x'));
    }
  }
  PushSummary whole;
  REQUIRE_OK(world.Push({9001}, &whole));
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  REQUIRE(EndStateOf(world.CheckAll(nullptr, 0)) == EndState::kCorrupt);
  REQUIRE(EndStateOf(world.Prune()) == EndState::kCorrupt);
  REQUIRE(EndStateOf(world.Remove(SetNameText(damaged.name))) ==
          EndState::kCorrupt);
  REQUIRE_OK(world.Remove(SetNameText(damaged.name), /*force=*/true));
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  for (int night = 0; night < 3; ++night) {
    REQUIRE_OK(world.Prune());
    world.server.Advance(kGrace + 1);
  }
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
  REQUIRE_OK(world.CheckAll(nullptr, 0));
  REQUIRE(world.Faults().empty());
}

TEST_CASE("A set whose record cannot be read keeps its files and those of sets "
          "before it, and no others",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  PushSummary unreadable;
  REQUIRE_OK(world.Push({1, 2}, &unreadable));
  REQUIRE_OK(world.Push({2, 3}));
  REQUIRE_OK(world.Push({4}));
  world.server.Overwrite(world.Keys(kArchiveSetsPrefix)[1], "damage");
  PruneSummary summary;
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.marked_sets == 2);  // the first and the third
  REQUIRE(summary.warnings.size() == 1);
  REQUIRE(summary.warnings[0].find("sstferry archive remove") !=
          std::string::npos);
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune(&summary));
  REQUIRE(summary.dropped_sets == 2);
  // Table 3 and the MANIFEST of the third set are deleted.
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 3);
  REQUIRE(world.Keys(kArchivePartsPrefix).size() == 3);
  REQUIRE(world.server.Has(world.KeyOf(1)));
  REQUIRE(world.server.Has(world.KeyOf(2)));
  REQUIRE(world.CountWhole() == 1);
  // Once the unreadable set is removed, its files are, too.
  REQUIRE_OK(world.Remove(SetNameText(unreadable.name)));
  for (int night = 0; night < 2; ++night) {
    REQUIRE_OK(world.Prune(&summary));
    REQUIRE(summary.warnings.empty());
    world.server.Advance(kGrace + 1);
  }
  REQUIRE_OK(world.Prune());
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
  REQUIRE(world.Keys(kArchivePartsPrefix).size() == 1);
  REQUIRE(world.Keys(kArchiveMarksPrefix).empty());
}

TEST_CASE("A mark or an intent that cannot be read stops a prune before it "
          "deletes, until it is removed",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  const bool is_mark = GENERATE(true, false);
  const SetId id{7};
  const std::string key = is_mark ? sstferry::MarkKey(id) : IntentKey(id);
  world.server.Overwrite(key, "damage");
  const auto before = world.server.Objects();
  const Status status = world.Prune();
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find("archive remove") != std::string::npos);
  REQUIRE(status.ToString().find(ToHex(id)) != std::string::npos);
  REQUIRE(world.server.Objects() == before);
  // A damaged intent does not stop a push: other intents only matter to prunes.
  REQUIRE(world.Push({2, 3}).ok() == !is_mark);

  REQUIRE_OK(world.Remove(ToHex(id)));
  REQUIRE_FALSE(world.server.Has(key));
  REQUIRE_OK(world.Prune());
  REQUIRE(world.CountWhole() >= 1);
  REQUIRE_OK(world.Push({2, 3}));
  REQUIRE(EndStateOf(world.Remove(ToHex(id))) == EndState::kRefused);
}

TEST_CASE("No push reuses files that an unreadable mark may have named",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  const std::string mark = world.Keys(kArchiveMarksPrefix).at(0);
  world.server.Advance(kGrace + 1);
  // The prune has read the mark, and stops before it deletes the set of table
  // 1.
  StoppedClient prune(&world.server, world.Pruner());
  REQUIRE(prune.RunUntil(StoreCallKind::kDelete, kArchiveDonePrefix));
  world.server.Overwrite(mark, "damage");
  REQUIRE_OK(world.Remove(mark.substr(sizeof(kArchiveMarksPrefix) - 1)));
  PushSummary summary;
  REQUIRE_OK(world.Push({1, 2}, &summary));
  REQUIRE(summary.reused_files == 1);  // only the newest whole set's file
  prune.Finish().PermitUncheckedError();
  REQUIRE(world.CountWhole() == 2);
}

TEST_CASE("A mark or an intent that can be read is not removed", "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  StoppedClient push(&world.server, world.Pusher({3}));
  REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveFilesPrefix));
  const auto before = world.server.Objects();
  for (const std::string& key :
       {world.Keys(kArchiveMarksPrefix).at(0),
        world.Keys(kArchiveIntentsPrefix).at(0)}) {
    REQUIRE(EndStateOf(world.Remove(key.substr(key.find('/') + 1))) ==
            EndState::kRefused);
  }
  REQUIRE(world.server.Objects() == before);
  REQUIRE_OK(push.Finish());
}

TEST_CASE("A marked set that a later run keeps is whole again, and must be "
          "marked anew before it is deleted",
          "[archive]") {
  World world;
  PushSummary first;
  REQUIRE_OK(world.Push({1}, &first));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());  // by mistake
  REQUIRE(world.Check().sets[0].state == SetState::kExpiring);
  REQUIRE(world.Check().sets[0].expires_seconds ==
          static_cast<uint64_t>(world.server.now()) + kGrace);
  // A dry run takes nothing back.
  PruneOptions dry = KeepLast(10);
  dry.dry_run = true;
  const auto before = world.server.Objects();
  REQUIRE_OK(world.Prune(nullptr, nullptr, dry));
  REQUIRE(world.server.Objects() == before);
  const bool is_late = GENERATE(true, false);
  if (is_late) {
    world.server.Advance(kGrace + 1);
  }
  PruneSummary summary;
  for (int night = 0; night < 2; ++night) {
    REQUIRE_OK(world.Prune(&summary, nullptr, KeepLast(10)));
    REQUIRE(summary.dropped_sets == 0);
    REQUIRE(summary.deleted_files == 0);
    REQUIRE(summary.kept_sets == 2);
    REQUIRE(summary.sets[0].fate == SetFate::kStays);
    REQUIRE(world.Check().sets[0].state == SetState::kWhole);
    REQUIRE(world.Check().sets[0].expires_seconds == 0);
    world.server.Advance(kGrace + 1);
  }
  REQUIRE(world.Keys(kArchiveMarksPrefix).size() == 1);
  // No push reuses the marked files, because a prune that sleeps may still
  // delete them.
  PushSummary pushed;
  REQUIRE_OK(world.Push({1, 2}, &pushed));
  REQUIRE(pushed.reused_files == 1);
  // The same mistake again marks the set, and deletes it a grace later.
  REQUIRE_OK(world.Prune(&summary, nullptr, KeepLast(2)));
  REQUIRE(summary.dropped_sets == 0);
  REQUIRE(summary.deleted_files == 0);
  REQUIRE(summary.sets[0].name == first.name);
  REQUIRE(summary.sets[0].fate == SetFate::kMarked);
  REQUIRE(world.Check().sets[0].expires_seconds ==
          static_cast<uint64_t>(world.server.now()) + kGrace);
  REQUIRE(world.CountWhole() == 3);
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune(&summary, nullptr, KeepLast(2)));
  REQUIRE(summary.dropped_sets == 1);
  REQUIRE(summary.sets[0].fate == SetFate::kDeleted);
  REQUIRE(world.CountWhole() == 2);
}

// A call that `chooses` matches gets this fate, at most `times` times.
StoreHook Wrongly(CallFate fate, int times,
                  std::function<bool(const StoreCall&)> chooses) {
  const auto left = std::make_shared<int>(times);
  return [fate, left, chooses = std::move(chooses)](StoreCall* call) {
    return chooses(*call) && (*left)-- > 0 ? fate : CallFate::kArrives;
  };
}

StoreHook WronglyAbsent(const std::string& key, int times) {
  return Wrongly(CallFate::kAbsent, times, [key](const StoreCall& call) {
    return call.kind == StoreCallKind::kGet && call.key == key;
  });
}

constexpr int kAlways = 1'000'000;

TEST_CASE("A prune deletes no files of a set that the store denies once, or "
          "does not list",
          "[archive]") {
  World world;
  PushSummary first;
  REQUIRE_OK(world.Push({1}, &first));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());  // by mistake
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune(nullptr, nullptr, KeepLast(10)));  // taken back
  world.server.Advance(kGrace + 1);
  const auto before = world.server.Objects();
  SECTION("denied") {
    const bool is_record = GENERATE(true, false);
    const std::string key =
        is_record ? SetKey(first.name) : DoneKey(first.name);
    const int times = GENERATE(1, kAlways);
    const std::unique_ptr<ObjectStore> store =
        world.server.NewClient(WronglyAbsent(key, times));
    PruneSummary summary;
    REQUIRE_OK(world.Prune(&summary, store.get(), KeepLast(10)));
    REQUIRE(summary.kept_sets + summary.damaged_sets == 2);
    REQUIRE(summary.damaged_sets == (times == 1 ? 0 : 1));
  }
  SECTION("not listed") {
    // Only the first list misses the record.
    const std::string key = SetKey(first.name);
    int lists = 0;
    const std::unique_ptr<ObjectStore> store =
        world.server.NewClient([&](StoreCall* call) {
          if (call->kind == StoreCallKind::kList &&
              call->key == kArchiveSetsPrefix && ++lists == 1) {
            world.server.Erase(key);
          } else if (!world.server.Has(key)) {
            world.server.Overwrite(key, before.at(key));
          }
          return CallFate::kArrives;
        });
    REQUIRE(EndStateOf(world.Prune(nullptr, store.get(), KeepLast(10))) ==
            EndState::kBusy);
    REQUIRE(lists == 1);
  }
  REQUIRE(world.server.Objects() == before);
  REQUIRE(world.CountWhole() == 2);
}

TEST_CASE("A prune that the store denies the findings once counts no set that "
          "a check found wrong",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  world.server.Overwrite(world.KeyOf(2), "table x");
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  world.server.Advance(kGrace + 1);
  const std::unique_ptr<ObjectStore> store =
      world.server.NewClient(WronglyAbsent(kArchiveCheckedKey, 1));
  REQUIRE_OK(world.Prune(nullptr, store.get()));
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("A mark that is listed and never found stops a prune, until it is "
          "removed",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  const std::string mark = world.Keys(kArchiveMarksPrefix).at(0);
  const std::string id = mark.substr(sizeof(kArchiveMarksPrefix) - 1);
  const std::unique_ptr<ObjectStore> store =
      world.server.NewClient(WronglyAbsent(mark, kAlways));
  const Status pruned = world.Prune(nullptr, store.get());
  REQUIRE(EndStateOf(pruned) == EndState::kCorrupt);
  REQUIRE(pruned.ToString().find("archive remove") != std::string::npos);
  REQUIRE(pruned.ToString().find(id) != std::string::npos);
  REQUIRE_OK(world.Remove(id, false, store.get()));
  REQUIRE_FALSE(world.server.Has(mark));
}

TEST_CASE("A set that counts and whose record is not found is damaged",
          "[archive]") {
  World world;
  PushSummary newest;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}, &newest));
  const std::unique_ptr<ObjectStore> store =
      world.server.NewClient(WronglyAbsent(SetKey(newest.name), kAlways));
  REQUIRE(EndStateOf(world.CheckAll(nullptr, 100, store.get())) ==
          EndState::kCorrupt);
  std::vector<ListedSet> sets;
  REQUIRE_OK(ListArchive(Archive(store.get()), &sets));
  REQUIRE(sets.at(1).name == newest.name);
  REQUIRE(sets.at(1).state == SetState::kDamaged);
}

TEST_CASE("A check warns of a set of which only the done object exists, until "
          "it is removed",
          "[archive]") {
  World world;
  PushSummary newest;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}, &newest));
  const std::string name = SetNameText(newest.name);
  world.server.Erase(SetKey(newest.name));
  CheckSummary summary;
  REQUIRE_OK(world.CheckAll(&summary));
  REQUIRE(summary.warnings.size() == 1);
  REQUIRE(summary.warnings[0].find("archive remove memory: " + name) !=
          std::string::npos);
  REQUIRE_OK(world.Remove(name));
  REQUIRE_FALSE(world.server.Has(DoneKey(newest.name)));
  REQUIRE_OK(world.CheckAll(&summary));
  REQUIRE(summary.warnings.empty());
  REQUIRE(EndStateOf(world.Remove(name)) == EndState::kRefused);
}

TEST_CASE("A record that is read wrong once is read again", "[archive]") {
  World world;
  PushSummary newest;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}, &newest));
  REQUIRE_OK(world.Prune());
  const std::vector<std::string> keys = {
      SetKey(newest.name), DoneKey(newest.name),
      world.Keys(kArchiveMarksPrefix).at(0)};
  const std::string key = keys.at(GENERATE(0u, 1u, 2u));
  int gets = 0;
  const std::unique_ptr<ObjectStore> store =
      world.server.NewClient([&](StoreCall* call) {
        call->flips_bit = call->kind == StoreCallKind::kGet &&
                          call->key == key && ++gets == 1;
        return CallFate::kArrives;
      });
  REQUIRE_OK(world.CheckAll(nullptr, 100, store.get()));
  REQUIRE(gets >= 2);
}

TEST_CASE("A set whose objects were moved to where nothing can be read is not "
          "whole, and no push reuses them",
          "[archive]") {
  World world;
  PushSummary whole;
  PushSummary cold;
  REQUIRE_OK(world.Push({1}, &whole));
  REQUIRE_OK(world.Push({2}, &cold));
  world.server.rules().cold = {world.KeyOf(2)};
  // Other stores have readable classes of the same name.
  const bool is_readable = GENERATE(false, true);
  world.server.rules().gives_cold_back = is_readable;
  const Status checked = world.CheckAll();
  INFO(checked.ToString());
  REQUIRE(checked.ok() == is_readable);
  PruneSummary pruned;
  REQUIRE_OK(world.Prune(&pruned));
  REQUIRE(pruned.kept_sets == 1);
  REQUIRE(pruned.damaged_sets == (is_readable ? 0 : 1));
  REQUIRE(pruned.sets[0].name == whole.name);
  REQUIRE((pruned.sets[0].fate == SetFate::kStays) == !is_readable);
  PushSummary pushed;
  REQUIRE_OK(world.Push({2}, &pushed));
  REQUIRE(pushed.reused_files == (is_readable ? 1 : 0));
  // Nothing remains of the finding once the objects are back.
  world.server.rules().cold.clear();
  REQUIRE_OK(world.CheckAll());
}

TEST_CASE("A restored object does not make other cold objects readable, and "
          "no push reuses it",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  world.server.rules().cold = {world.KeyOf(1), world.KeyOf(2)};
  world.server.rules().restored = {world.KeyOf(1)};
  CheckSummary checked;
  REQUIRE(EndStateOf(world.CheckAll(&checked, 0)) == EndState::kCorrupt);
  REQUIRE(checked.sets.at(0).state == SetState::kWhole);
  REQUIRE(checked.sets.at(1).state == SetState::kDamaged);
  PushSummary pushed;
  REQUIRE_OK(world.Push({2}, &pushed));
  REQUIRE(pushed.reused_files == 0);
  REQUIRE_OK(world.Push({1}, &pushed));
  REQUIRE(pushed.reused_files == 0);
}

TEST_CASE("Cold objects stay readable if one of them is lost", "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1, 2}));
  const std::string lost = world.KeyOf(1);
  world.server.rules().cold = {lost, world.KeyOf(2)};
  world.server.rules().gives_cold_back = true;
  const std::unique_ptr<ObjectStore> store =
      world.server.NewClient(WronglyAbsent(lost, kAlways));
  ListedKeys listed;
  REQUIRE_OK(Archive(store.get()).ListKeys(kArchiveFilesPrefix, &listed));
  REQUIRE_FALSE(listed.at(world.KeyOf(2)).is_cold);
}

TEST_CASE("A check that finds a cold object examines the others, and stores "
          "its other findings",
          "[archive]") {
  World world;
  PushSummary set;
  REQUIRE_OK(world.Push({1, 2}, &set));
  // The first object is cold, which the list does not show.
  world.server.rules().hidden = {world.KeyOf(1)};
  const std::string wrong = world.KeyOf(2);
  std::string bytes = world.server.Objects().at(wrong);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  world.server.Overwrite(wrong, bytes);
  CheckSummary summary;
  const Status checked = world.CheckAll(&summary);
  INFO(checked.ToString());
  REQUIRE(EndStateOf(checked) == EndState::kCorrupt);
  REQUIRE(checked.ToString().find(SetNameText(set.name)) !=
          std::string::npos);
  REQUIRE(summary.is_complete);
  REQUIRE(summary.problems.size() == 2);
  // The check stores nothing about the cold object, because the store may give
  // it back later.
  const KeyFaults faults = world.Faults();
  REQUIRE(faults.size() == 1);
  REQUIRE(faults.count(wrong) == 1);
}

TEST_CASE("The only set is removed only by force, also if its objects must be "
          "restored in the store first",
          "[archive]") {
  World world;
  PushSummary only;
  REQUIRE_OK(world.Push({1}, &only));
  world.server.rules().cold = {world.KeyOf(1)};
  REQUIRE(EndStateOf(world.Remove(SetNameText(only.name))) ==
          EndState::kRefused);
}

TEST_CASE("A push ends if the store does not give back its first object",
          "[archive]") {
  World world;
  const CallFate fate = GENERATE(CallFate::kDenied, CallFate::kAbsent);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient(
      Wrongly(fate, kAlways, [](const StoreCall& call) {
        return call.kind == StoreCallKind::kGet &&
               call.key.starts_with(kArchiveFilesPrefix);
      }));
  REQUIRE_FALSE(world.Push({1, 2}, nullptr, store.get()).ok());
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
  REQUIRE(world.Keys(kArchiveSetsPrefix).empty());
}

TEST_CASE("A mark that another prune deletes while it is taken back is deleted "
          "again",
          "[archive]") {
  World world(WithoutSignatures());
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());  // by mistake
  StoppedClient undo(&world.server, [&world](ObjectStore* store) {
    return world.Prune(nullptr, store, KeepLast(10));
  });
  REQUIRE(undo.RunUntil(StoreCallKind::kPut, kArchiveMarksPrefix));
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(world.Keys(kArchiveMarksPrefix).empty());
  REQUIRE_OK(undo.Finish());
  REQUIRE(world.Keys(kArchiveMarksPrefix).size() == 1);
  REQUIRE(world.CountWhole() == 1);
  world.server.Advance(kGrace + 1);
  REQUIRE_OK(world.Prune());
  REQUIRE(world.Keys(kArchiveMarksPrefix).empty());
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("A prune continues while another one deletes a set", "[archive]") {
  World world(WithoutSignatures());
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  world.server.Advance(kGrace + 1);
  StoppedClient first(&world.server, world.Pruner());
  REQUIRE(first.RunUntil(StoreCallKind::kDelete, kArchiveDonePrefix));
  StoppedClient second(&world.server, world.Pruner());
  // The second prune has listed the set, and now reads it.
  REQUIRE(second.RunUntil(StoreCallKind::kGet, kArchiveDonePrefix));
  REQUIRE(first.RunUntil(StoreCallKind::kDelete, kArchiveSetsPrefix));
  REQUIRE_OK(second.Finish());
  REQUIRE_OK(first.Finish());
  REQUIRE(world.Keys(kArchiveSetsPrefix).size() == 1);
  REQUIRE(world.Keys(kArchiveFilesPrefix).size() == 1);
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("A set whose mark was taken back is no reason to remove another one",
          "[archive]") {
  World world;
  PushSummary second;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}, &second));
  REQUIRE_OK(world.Prune());  // by mistake
  world.server.Advance(kGrace + 1);
  // A prune with the wrong options has chosen to delete the first set.
  StoppedClient prune(&world.server, world.Pruner());
  REQUIRE(prune.RunUntil(StoreCallKind::kDelete, kArchiveDonePrefix));
  REQUIRE_OK(world.Prune(nullptr, nullptr, KeepLast(10)));
  REQUIRE(EndStateOf(world.Remove(SetNameText(second.name))) ==
          EndState::kRefused);
  REQUIRE_OK(prune.Finish());
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("A dry run changes nothing, and reports what the next run does",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  REQUIRE_OK(world.Prune());
  REQUIRE_OK(world.Push({3}));
  world.server.Advance(kGrace + 1);
  const auto before = world.server.Objects();
  PruneOptions dry = KeepLast(1);
  dry.dry_run = true;
  PruneSummary told;
  REQUIRE_OK(world.Prune(&told, nullptr, dry));
  REQUIRE(world.server.Objects() == before);
  PruneSummary done;
  REQUIRE_OK(world.Prune(&done));
  REQUIRE(done.dropped_sets == 1);
  REQUIRE(done.marked_sets == 1);
  REQUIRE(done.deleted_files == 2);
  REQUIRE(done.deleted_bytes == told.deleted_bytes);
  REQUIRE(told.dropped_sets == done.dropped_sets);
  REQUIRE(told.deleted_files == done.deleted_files);
  REQUIRE(told.marked_sets == done.marked_sets);
  REQUIRE(told.marked_files == done.marked_files);
  REQUIRE(told.marked_bytes == done.marked_bytes);
  REQUIRE(told.kept_sets == done.kept_sets);
  REQUIRE(told.sets.size() == 3);
  for (size_t i = 0; i < told.sets.size(); ++i) {
    REQUIRE(told.sets[i].name == done.sets[i].name);
    REQUIRE(told.sets[i].fate == done.sets[i].fate);
    REQUIRE(told.sets[i].why == done.sets[i].why);
    REQUIRE_FALSE(told.sets[i].why.empty());
  }
}

TEST_CASE("The last whole set is removed only by force", "[archive]") {
  World world;
  PushSummary first;
  PushSummary second;
  REQUIRE_OK(world.Push({1}, &first));
  const auto before = world.server.Objects();
  REQUIRE(EndStateOf(world.Remove(SetNameText(first.name))) ==
          EndState::kRefused);
  REQUIRE(world.server.Objects() == before);
  REQUIRE_OK(world.Push({1, 2}, &second));
  SECTION("a damaged set and an expiring one do not count as others") {
    const bool is_damaged = GENERATE(true, false);
    if (is_damaged) {
      world.server.Erase(world.KeyOf(2));
    } else {
      REQUIRE_OK(world.Prune());
    }
    const SetName& last = is_damaged ? first.name : second.name;
    REQUIRE(EndStateOf(world.Remove(SetNameText(last))) ==
            EndState::kRefused);
    REQUIRE_OK(world.Remove(SetNameText(last), /*force=*/true));
    REQUIRE(world.CountWhole() == (is_damaged ? 0 : 1));
  }
  SECTION("another whole one is enough") {
    REQUIRE_OK(world.Remove(SetNameText(second.name)));
    REQUIRE(world.CountWhole() == 1);
    REQUIRE(EndStateOf(world.Remove(SetNameText(second.name))) ==
            EndState::kRefused);
  }
  SECTION("if two run at once, at most one removes its set") {
    StoppedClient one(&world.server, world.Remover(SetNameText(first.name)));
    const bool has_marked = GENERATE(true, false);
    REQUIRE(one.RunUntil(StoreCallKind::kPut, kArchiveMarksPrefix));
    if (has_marked) {
      REQUIRE(one.RunUntil(StoreCallKind::kDelete, kArchiveDonePrefix));
    }
    REQUIRE(world.Remove(SetNameText(second.name)).ok() == !has_marked);
    REQUIRE(one.Finish().ok() == has_marked);
    REQUIRE(world.CountWhole() == 1);
  }
}

TEST_CASE("A removal of the newest set that sleeps leaves another one, "
          "although prunes run meanwhile",
          "[archive]") {
  World world;
  PushSummary newest;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}, &newest));
  StoppedClient prune(&world.server, world.Pruner());
  const bool is_stale = GENERATE(false, true);
  if (is_stale) {  // has read the marks before the removal puts its own
    REQUIRE(prune.RunUntil(StoreCallKind::kPut, kArchiveMarksPrefix));
  }
  StoppedClient removal(&world.server,
                        world.Remover(SetNameText(newest.name)));
  REQUIRE(removal.RunUntil(StoreCallKind::kDelete, kArchiveDonePrefix));
  for (int night = 0; night < 3; ++night) {
    REQUIRE_OK(night == 0 ? prune.Finish() : world.Prune());
    world.server.Advance(kGrace + 1);
  }
  REQUIRE(world.CountWhole() == 2);
  REQUIRE_OK(removal.Finish());
  REQUIRE(world.CountWhole() == 1);
}

TEST_CASE("Names of sets sort in the order of pushes, whatever clocks say",
          "[archive]") {
  World world;
  PushSummary before;
  REQUIRE_OK(world.Push({1}, &before));
  for (const UnixSeconds passed : {0, -120, -1800, 0, 10}) {
    world.server.Advance(passed);
    PushSummary pushed;
    REQUIRE_OK(world.Push({1}, &pushed));
    REQUIRE(pushed.name.seconds > before.name.seconds);
    REQUIRE(pushed.warnings.empty() ==
            (before.name.seconds <
             static_cast<uint64_t>(world.server.now()) + kWrongClockSeconds));
    before = pushed;
  }
}

TEST_CASE("A prune removes the uploads of dead pushes after the grace",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  const auto dead = world.server.NewClient(
      [](StoreCall*) { return CallFate::kNeverArrives; });
  for (const std::string& key : {world.KeyOf(1), std::string("init/a")}) {
    REQUIRE_FALSE(PutBytes(dead.get(), key, "bytes", false, {}, 2).ok());
  }
  PruneSummary young;
  REQUIRE_OK(world.Prune(&young));
  REQUIRE(young.aborted_uploads == 0);
  world.server.Advance(kGrace + 1);
  {
    StoppedClient push(&world.server, world.Pusher({1, 2}));
    REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
    PruneSummary used;
    REQUIRE_OK(world.Prune(&used));
    REQUIRE(used.aborted_uploads == 0);  // it may be of a push in progress
    REQUIRE_OK(push.Finish());
  }
  PruneSummary old;
  REQUIRE_OK(world.Prune(&old));
  REQUIRE(old.aborted_uploads == 1);
  REQUIRE(world.server.uploads() == 1);  // not of a push
}

TEST_CASE("A push takes a name after that of a push whose files it uses",
          "[archive]") {
  World world;
  {
    StoppedClient dead(&world.server, world.Pusher({1, 2}));
    REQUIRE(dead.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
    dead.Fail(CallFate::kNeverArrives);
    REQUIRE_FALSE(dead.Finish().ok());
  }
  const UnixSeconds begun = world.server.now();
  world.server.Advance(-600);  // as on a machine with another clock
  PushSummary pushed;
  REQUIRE_OK(world.Push({1, 2}, &pushed));
  REQUIRE(pushed.reused_files == 2);
  REQUIRE(pushed.name.seconds > static_cast<uint64_t>(begun));
  // Files of an unknown push are not reused.
  world.server.Erase(world.Keys(kArchiveSetsPrefix).at(0));
  world.server.Erase(world.Keys(kArchiveIntentsPrefix).at(0));
  REQUIRE_OK(world.Push({1, 2}, &pushed));
  REQUIRE(pushed.reused_files == 0);
}

TEST_CASE("A set with a time in the future is reported, and hides no later set",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  world.server.Advance(2 * 3600);  // a machine whose clock is ahead
  PushSummary ahead;
  REQUIRE_OK(world.Push({2}, &ahead));
  world.server.Advance(-2 * 3600);
  const auto before = world.server.Objects();
  const Status refused = world.Push({3});
  REQUIRE(EndStateOf(refused) == EndState::kRefused);
  REQUIRE(refused.ToString().find("2 h in the future") != std::string::npos);
  REQUIRE(refused.ToString().find("sstferry archive remove") !=
          std::string::npos);
  REQUIRE(world.server.Objects() == before);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  CheckSummary summary;
  const Status check = CheckArchive(Archive(store.get()), {}, &summary);
  REQUIRE(EndStateOf(check) == EndState::kRefused);
  REQUIRE(check.ToString().find("in the future") != std::string::npos);
  REQUIRE(summary.newest_seconds == ahead.name.seconds);
  REQUIRE_OK(world.Remove(SetNameText(ahead.name)));
  REQUIRE_OK(world.Push({3}));
  REQUIRE_OK(CheckArchive(Archive(store.get()), {}, &summary));
}

TEST_CASE("No message says to remove the only whole set, although its time is "
          "in the future",
          "[archive]") {
  World world;
  world.server.Advance(2 * 3600);  // a machine whose clock is ahead
  PushSummary ahead;
  REQUIRE_OK(world.Push({1}, &ahead));
  world.server.Advance(-2 * 3600);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  CheckSummary summary;
  for (const Status& status :
       {world.Push({2}), world.Remove(SetNameText(ahead.name)),
        CheckArchive(Archive(store.get()), {}, &summary)}) {
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kRefused);
    REQUIRE(status.ToString().find("pushes work again after " +
                                   ArchiveTimeText(ahead.name.seconds -
                                                   kMaxSetAheadSeconds)) !=
            std::string::npos);
    REQUIRE(status.ToString().find("sstferry archive") == std::string::npos);
  }
  world.server.Advance(3600 + 1);
  REQUIRE_OK(world.Push({2}));
}

TEST_CASE("A check of an archive without a restorable set fails", "[archive]") {
  World world;
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  CheckSummary summary;
  REQUIRE(EndStateOf(CheckArchive(Archive(store.get()), {}, &summary)) ==
          EndState::kRefused);
  {
    StoppedClient dead(&world.server, world.Pusher({1}));
    REQUIRE(dead.RunUntil(StoreCallKind::kPut, kArchiveDonePrefix));
    dead.Fail(CallFate::kNeverArrives);
    REQUIRE_FALSE(dead.Finish().ok());
  }
  REQUIRE(EndStateOf(CheckArchive(Archive(store.get()), {}, &summary)) ==
          EndState::kRefused);
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(CheckArchive(Archive(store.get()), {}, &summary));
}

TEST_CASE(
    "A check names missing objects, the sets that use them, and whole sets",
    "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({1, 2}));
  const std::string key = world.KeyOf(2);
  world.server.Erase(key);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  CheckSummary summary;
  const Status status = CheckArchive(Archive(store.get()), {}, &summary);
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find(key) != std::string::npos);
  REQUIRE(summary.sets.size() == 2);
  REQUIRE(summary.sets[0].state == SetState::kWhole);
  REQUIRE(summary.sets[1].state == SetState::kDamaged);
  REQUIRE(summary.problems.size() == 1);
  REQUIRE(status.ToString().find(SetNameText(summary.sets[0].name)) !=
          std::string::npos);
}

TEST_CASE(
    "Checks read all bytes over several runs, and find those that changed",
    "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1, 2, 3}));
  world.server.Overwrite(world.KeyOf(2), "table x");  // as long as before
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  CheckOptions options;
  CheckSummary summary;
  REQUIRE_OK(CheckArchive(Archive(store.get()), options, &summary));
  options.read_percent = 100;
  REQUIRE(EndStateOf(CheckArchive(Archive(store.get()), options, &summary)) ==
          EndState::kCorrupt);
  REQUIRE(summary.read_files == 4);
  options.read_percent = 25;
  // Four days that begin at a multiple of four have all parts.
  constexpr UnixSeconds kFourDays = 4 * 86400;
  world.server.Advance(kFourDays - world.server.now() % kFourDays);
  uint64_t files = 0;
  int found = 0;
  for (int day = 0; day < 4; ++day) {
    const Status status =
        CheckArchive(Archive(store.get()), options, &summary);
    files += summary.read_files;
    found += status.ok() ? 0 : 1;
    world.server.Advance(86400);
  }
  REQUIRE(files == 4);
  REQUIRE(found == 1);
}

TEST_CASE("A push does not reuse an object that the last check found wrong",
          "[archive]") {
  World world;
  // The object belongs to the previous set, or a push that crashed left it.
  const bool is_left = GENERATE(true, false);
  REQUIRE_OK(world.Push({1, 2}));
  const std::string key = world.KeyOf(2);
  if (is_left) {
    REQUIRE_OK(world.Push({1}));
  }
  world.server.Overwrite(key, "table x");
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  PushSummary pushed;
  REQUIRE_OK(world.Push({1, 2}, &pushed));
  REQUIRE(pushed.reused_files == 1);
  REQUIRE(pushed.notes.empty() == is_left);
  REQUIRE(world.server.Objects().at(key) == "table x");
  CheckSummary summary;
  REQUIRE(EndStateOf(world.CheckAll(&summary)) == EndState::kCorrupt);
  REQUIRE(summary.sets.front().state == SetState::kDamaged);
  REQUIRE(summary.sets.back().state == SetState::kWhole);
  // The next push reuses the new object.
  REQUIRE_OK(world.Push({1, 2}, &pushed));
  REQUIRE(pushed.reused_files == 2);
  REQUIRE(pushed.notes.empty());
}

TEST_CASE("A set has no object that a check found wrong while its push ran",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1, 2}));
  const std::string key = world.KeyOf(2);
  StoppedClient push(&world.server, world.Pusher({1, 2}));
  const bool is_readable = GENERATE(true, false);
  const auto find = [&] {
    world.server.Overwrite(key, "table x");
    REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
    if (!is_readable) world.server.Overwrite(kArchiveCheckedKey, "rot");
  };
  SECTION("before its first look") {
    REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchivePartsPrefix));
    find();
    REQUIRE_OK(push.Finish());
  }
  SECTION("between its looks") {
    REQUIRE(push.RunUntil(StoreCallKind::kPut, kArchiveSetsPrefix));
    find();
    REQUIRE(EndStateOf(push.Finish()) == EndState::kBusy);
    REQUIRE(world.Keys(kArchiveSetsPrefix).size() == 1);
    REQUIRE_OK(world.Push({1, 2}));
  }
  CheckSummary summary;
  REQUIRE(EndStateOf(world.CheckAll(&summary)) == EndState::kCorrupt);
  REQUIRE(summary.sets.size() == 2);
  REQUIRE(summary.sets.front().state == SetState::kDamaged);
  REQUIRE(summary.sets.back().state == SetState::kWhole);
}

TEST_CASE("Findings of a check are kept until the object is read and correct",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1, 2, 3}));
  const std::string key = world.KeyOf(2);
  const std::string right = world.server.Objects().at(key);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  const Archive archive(store.get());
  CheckOptions options;
  options.keeps_findings = true;
  CheckSummary summary;
  std::vector<ListedSet> sets;
  std::optional<uint64_t> age;
  const auto list = [&] {
    REQUIRE_OK(ListArchive(archive, &sets, &age));
    return sets.at(0).state;
  };
  REQUIRE(list() == SetState::kWhole);
  REQUIRE_FALSE(age.has_value());
  world.server.Overwrite(key, "table x");
  options.read_percent = 100;
  REQUIRE(EndStateOf(CheckArchive(archive, options, &summary)) ==
          EndState::kCorrupt);
  world.server.Advance(1000);
  REQUIRE(list() == SetState::kDamaged);
  REQUIRE(sets[0].problem.find(key) != std::string::npos);
  REQUIRE(age == 1000u);
  // Checks that do not read the object again still fail.
  options.read_percent = 0;
  for (int night = 0; night < 2; ++night) {
    const Status again = CheckArchive(archive, options, &summary);
    REQUIRE(EndStateOf(again) == EndState::kCorrupt);
    REQUIRE(again.ToString().find("--read-data 100%") != std::string::npos);
  }
  world.server.Overwrite(key, right);
  options.read_percent = 100;
  REQUIRE_OK(CheckArchive(archive, options, &summary));
  REQUIRE(list() == SetState::kWhole);
  options.read_percent = 0;
  REQUIRE_OK(CheckArchive(archive, options, &summary));
  // A list ignores findings that cannot be read.
  world.server.Overwrite(kArchiveCheckedKey, "rot");
  REQUIRE(list() == SetState::kWhole);
  REQUIRE(EndStateOf(CheckArchive(archive, options, &summary)) ==
          EndState::kCorrupt);
}

TEST_CASE("A check of a part fails if it may not keep what it finds",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  const std::unique_ptr<ObjectStore> reader =
      world.server.NewClient([](StoreCall* call) {
        return call->kind == StoreCallKind::kPut &&
                       call->key == kArchiveCheckedKey
                   ? CallFate::kDenied
                   : CallFate::kArrives;
      });
  const auto check = [&](double percent) {
    return EndStateOf(world.CheckAll(nullptr, percent, reader.get()));
  };
  REQUIRE(check(5) == EndState::kDenied);
  // These find everything again.
  REQUIRE(check(0) == EndState::kOk);
  REQUIRE(check(100) == EndState::kOk);
  world.server.Overwrite(world.KeyOf(1), "table x");
  REQUIRE(check(100) == EndState::kCorrupt);
}

TEST_CASE("A check keeps what another check has found while it ran",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  REQUIRE_OK(world.Push({2}));
  const std::string key = world.KeyOf(2);
  const std::string right = world.server.Objects().at(key);
  // The first check reads nothing, or it reads the object before it rots.
  const double percent = GENERATE(0.0, 100.0);
  // Or the object belongs to a set that was pushed after its listing.
  const bool is_later = GENERATE(true, false);
  // An earlier fault of the object was found right since, or none was known.
  const bool was_found = GENERATE(true, false);
  if (was_found) {
    world.server.Overwrite(key, "table x");
    REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
    world.server.Overwrite(key, right);
  }
  StoppedClient slow(&world.server, [&](ObjectStore* store) {
    return world.CheckAll(nullptr, percent, store);
  });
  // It reads the findings at its begin, and again before it puts them.
  REQUIRE(slow.RunUntil(StoreCallKind::kGet, kArchiveCheckedKey));
  REQUIRE(slow.RunUntil(StoreCallKind::kGet, kArchiveCheckedKey));
  world.server.Advance(60);
  std::string wrong = key;
  if (is_later) {
    REQUIRE_OK(world.Push({3}));
    wrong = world.KeyOf(3);
  }
  world.server.Overwrite(wrong, "table x");
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  REQUIRE(world.Faults().count(wrong) == 1);
  slow.Finish().PermitUncheckedError();
  REQUIRE(world.Faults().count(wrong) == 1);
  PruneSummary pruned;
  REQUIRE_OK(world.Prune(&pruned));
  REQUIRE(pruned.kept_sets == 1);
  REQUIRE(pruned.damaged_sets == 1);
}

TEST_CASE("A finding is kept while no record that can be read names its object",
          "[archive]") {
  World world;
  PushSummary damaged;
  REQUIRE_OK(world.Push({1, 2}, &damaged));
  REQUIRE_OK(world.Push({1}));
  const std::string key = world.KeyOf(2);
  world.server.Overwrite(key, "table x");
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  const std::string record = world.server.Objects().at(SetKey(damaged.name));
  world.server.Overwrite(SetKey(damaged.name), "rot");
  const double percent = GENERATE(0.0, 100.0);
  REQUIRE(EndStateOf(world.CheckAll(nullptr, percent)) == EndState::kCorrupt);
  PushSummary pushed;
  REQUIRE_OK(world.Push({1, 2}, &pushed));
  REQUIRE(pushed.reused_files == 1);
  world.server.Overwrite(SetKey(damaged.name), record);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  std::vector<ListedSet> sets;
  REQUIRE_OK(ListArchive(Archive(store.get()), &sets));
  REQUIRE(sets.at(0).state == SetState::kDamaged);
  REQUIRE(sets.at(2).state == SetState::kWhole);
  // Once the object is deleted, its finding goes.
  world.server.Erase(key);
  REQUIRE_OK(world.Remove(SetNameText(damaged.name)));
  REQUIRE_OK(world.CheckAll());
  REQUIRE(world.Faults().empty());
}

TEST_CASE("The newest whole set that a restore names is not one that a check "
          "found wrong",
          "[archive]") {
  World world;
  PushSummary whole;
  REQUIRE_OK(world.Push({1}, &whole));
  REQUIRE_OK(world.Push({2}));
  world.server.Overwrite(world.KeyOf(2), "table x");
  REQUIRE(EndStateOf(world.CheckAll()) == EndState::kCorrupt);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  const std::string named = NextBestSet(Archive(store.get()), "");
  REQUIRE(named.find("@" + SetNameText(whole.name)) != std::string::npos);
}

TEST_CASE("A check says to remove a set of the future only if it stops pushes",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Push({1}));
  const UnixSeconds ahead = GENERATE(60, 2 * 3600);
  world.server.Advance(ahead);
  PushSummary newest;
  REQUIRE_OK(world.Push({2}, &newest));
  world.server.Advance(-ahead);
  const std::unique_ptr<ObjectStore> store = world.server.NewClient();
  CheckSummary summary;
  const Status check = CheckArchive(Archive(store.get()), {}, &summary);
  REQUIRE(EndStateOf(check) == EndState::kRefused);
  INFO(check.ToString());
  const bool stops_pushes = ahead > 3600;
  REQUIRE((check.ToString().find("archive remove") != std::string::npos) ==
          stops_pushes);
  REQUIRE(world.Push({3}).ok() == !stops_pushes);
}

TEST_CASE("Init finds out which promises of its contract a store keeps",
          "[archive]") {
  MemoryStoreRules rules;
  rules.honours_if_absent = GENERATE(true, false);
  rules.checks_signatures = GENERATE(true, false);
  MemoryStore server(rules);
  const std::unique_ptr<ObjectStore> store = server.NewClient();
  ArchiveHead head;
  std::vector<std::string> notes;
  InitOptions options;
  options.grace_seconds = kMinGraceSeconds;
  const Status short_grace = InitArchive(store.get(), options, &head, &notes);
  REQUIRE(short_grace.ok() == rules.checks_signatures);
  if (!short_grace.ok()) {
    REQUIRE(EndStateOf(short_grace) == EndState::kRefused);
    notes.clear();
    REQUIRE_OK(InitArchive(store.get(), {}, &head, &notes));
  }
  REQUIRE(head.has_if_absent == rules.honours_if_absent);
  REQUIRE(head.refuses_old_signatures == rules.checks_signatures);
  REQUIRE(notes.size() == (rules.honours_if_absent ? 0 : 1) +
                              (rules.checks_signatures ? 0u : 1u));
  REQUIRE(server.Objects().size() == 1);
  REQUIRE(EndStateOf(InitArchive(store.get(), {}, &head, &notes)) ==
          EndState::kRefused);
}

}  // namespace
}  // namespace sstferry::protocol_test
