// Tests that a command that is refused, or fails before it is accepted, changes
// nothing: not the source, not the target, and no directory that the OPTIONS of
// either name.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pipeline/base/database_open.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/options/replica_options.h"
#include "rocksdb/compaction_filter.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/fake_peer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::untouched_test {
namespace {

namespace fs = std::filesystem;

class Another : public NamedComparator {
 public:
  Another() : NamedComparator("sstferry.test.Another") {}
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return b.compare(a);
  }
};
const Another kAnother;

void Fill(const std::string& path, const std::string& value,
          const rocksdb::DBOptions& options = {},
          const Families& families = OneFamily(Quiet())) {
  OpenDb db(path, families, options);
  for (int i = 0; i < 200; ++i) {
    db.Put(NumberedKey(i), value);
  }
  db.Flush();
}

void NameWalDir(const std::string& dir, const std::string& wal_dir) {
  EditOptions(dir, "[DBOptions]\n", "[DBOptions]\n  wal_dir=" + wal_dir + "\n");
}

// A source, a target that was pulled from it, and other directories.
struct World {
  ScratchDir dir;
  PullOptions options;
  std::shared_ptr<FaultyFileSystem> disk =
      std::make_shared<FaultyFileSystem>();
  std::unique_ptr<OpenDb> open;

  World() {
    Fill(S(), "old");
    REQUIRE_OK(Refresh(S(), T()).status);
    Fill(S(), "new");
    fs::create_directory(dir / "other");
    options.file_system = disk;
    options.snapshot_ttl = std::chrono::seconds(0);
    options.method = PullMethod::kIngest;
    options.source.directory = S();
    options.target_dir = T();
    options.timeouts.retry = std::chrono::milliseconds(0);
  }
  std::string S() const { return dir / "S"; }
  std::string T() const { return dir / "T"; }
  std::string All() const {
    return Fingerprint(S()) + Fingerprint(T()) + Fingerprint(dir / "other");
  }
};

struct Refusal {
  const char* name;
  void (*prepare)(World*);
  std::vector<EndState> states;
  bool in_place_only = false;
};

const Refusal kRefusals[] = {
    {"another source, without --adopt",
     [](World* w) {
       fs::remove_all(w->S());
       Fill(w->S(), "of another");
     },
     {EndState::kRefused}},
    {"a target without a memory",
     [](World* w) {
       fs::remove(w->T() + "/last_transfer.json");
     },
     {EndState::kRefused}},
    {"a target that is no database",
     [](World* w) {
       for (const char* name : {"/CURRENT", "/last_transfer.json"}) {
         fs::remove(w->T() + name);
       }
     },
     {EndState::kRefused}},
    {"another comparator",
     [](World* w) {
       fs::remove_all(w->T());
       Families families = OneFamily(Quiet());
       families[0].options.comparator = &kAnother;
       Fill(w->T(), "old", {}, families);
       w->options.registry.comparators.push_back(&kAnother);
       w->options.adopt = true;
     },
     {EndState::kIncompatible},
     true},
    {"a column family that the source does not have",
     [](World* w) { w->options.selection.families = {"no such family"}; },
     {EndState::kRefused, EndState::kSourceError}},
    {"a target that is open",
     [](World* w) {
       w->open = std::make_unique<OpenDb>(w->T(), OneFamily(Quiet()));
     },
     {EndState::kBusy},
     true},
    {"a WAL directory elsewhere, with a WAL",
     [](World* w) {
       rocksdb::DBOptions options;
       options.wal_dir = w->dir / "other";
       OpenDb(w->T(), OneFamily(Quiet()), options).Put("mine", "value");
     },
     {EndState::kRefused}},
    {"a WAL directory that is another database",
     [](World* w) {
       Fill(w->dir / "other", "of another");
       NameWalDir(w->T(), w->dir / "other");
     },
     {EndState::kRefused}},
    {"a WAL directory that is the source",
     [](World* w) { NameWalDir(w->T(), w->S()); },
     {EndState::kRefused}},
    {"a WAL directory that is the source, and --adopt",
     [](World* w) {
       NameWalDir(w->T(), w->S());
       w->options.adopt = true;
     },
     {EndState::kRefused}},
    {"a WAL directory that is gone",
     [](World* w) { NameWalDir(w->T(), w->dir / "gone"); },
     {EndState::kRefused}},
    {"files on another path",
     [](World* w) {
       rocksdb::DBOptions options;
       options.db_paths = {{w->T(), 1}, {w->dir / "other", 1 << 30}};
       OpenDb db(w->T(), OneFamily(Quiet()), options);
       db.Put("more", "value");
       db.Flush();
       rocksdb::CompactRangeOptions to_other;
       to_other.target_path_id = 1;
       to_other.bottommost_level_compaction =
           rocksdb::BottommostLevelCompaction::kForce;
       REQUIRE_OK(db->CompactRange(to_other, nullptr, nullptr));
       REQUIRE(FileCount(w->dir / "other", ".sst") > 0);
     },
     {EndState::kRefused},
     true},
    {"files on the path of a column family",
     [](World* w) {
       rocksdb::ColumnFamilyOptions options = Quiet();
       options.cf_paths = {{w->dir / "other", 1 << 30}};
       fs::remove_all(w->T());
       Fill(w->T(), "old", {}, OneFamily(options));
       w->options.adopt = true;
     },
     {EndState::kRefused},
     true},
    {"a target without OPTIONS",
     [](World* w) {
       for (const auto& entry : fs::directory_iterator(w->T())) {
         if (entry.path().filename().string().rfind("OPTIONS-", 0) == 0) {
           fs::remove(entry.path());
         }
       }
     },
     {EndState::kRefused},
     true},
    {"no room", [](World* w) { w->disk->SetFreeSpace(1000); },
     {EndState::kNoSpace}},
    {"a source that cannot be reached",
     [](World* w) {
       w->options.source = SourceAddress();
       w->options.source.host = "127.0.0.1";
       w->options.source.port = 1;
       w->options.source.name = "db";
     },
     {EndState::kDeadPeer}},
    {"a source that is damaged",
     [](World* w) {
       for (const std::string& path : PathsWith(w->S(), "")) {
         if (path.find("/MANIFEST-") != std::string::npos) {
           WriteBytes(path, std::string(100, 'x'));
         }
       }
     },
     {EndState::kCorrupt, EndState::kSourceError}},
    {"a source that is gone", [](World* w) { fs::remove_all(w->S() + "/"); 
       fs::create_directory(w->S()); },
     {EndState::kSourceError, EndState::kRefused}},
};

TEST_CASE("A command that is refused or fails at once changes nothing",
          "[transfer][untouched]") {
  const size_t which = GENERATE(range(size_t{0}, std::size(kRefusals)));
  const Refusal& refusal = kRefusals[which];
  const PullMode mode = GENERATE(PullMode::kRefresh, PullMode::kSwap);
  if (refusal.in_place_only && mode == PullMode::kSwap) {
    return;
  }
  World world;
  refusal.prepare(&world);
  world.options.mode = mode;
  const std::string before = world.All();
  Summary summary;
  MakePull(world.options)->Run(&summary).PermitUncheckedError();
  INFO(refusal.name << ", " << static_cast<int>(mode) << ": "
                    << summary.status.ToString());
  REQUIRE(std::count(refusal.states.begin(), refusal.states.end(),
                     EndStateOf(summary.status)) == 1);
  REQUIRE(world.All() == before);
}

TEST_CASE("A plan changes nothing, whatever it reports",
          "[transfer][untouched]") {
  const size_t which = GENERATE(range(size_t{0}, std::size(kRefusals)));
  World world;
  kRefusals[which].prepare(&world);
  world.options.mode = PullMode::kRefresh;
  const std::string before = world.All();
  Summary summary;
  MakePlan(world.options)->Run(&summary).PermitUncheckedError();
  INFO(kRefusals[which].name << ": " << summary.status.ToString());
  REQUIRE(world.All() == before);
}

TEST_CASE("A source is unchanged after a copy of it, whose OPTIONS name the "
          "source, was refused",
          "[transfer][untouched]") {
  ScratchDir dir;
  Fill(dir / "S", "base");
  fs::copy(dir / "S", dir / "T", fs::copy_options::recursive);
  NameWalDir(dir / "T", dir / "S");
  for (const char* key : {"k1", "k2"}) {
    OpenDb db(dir / "S", OneFamily(Quiet()));
    db.Put(key, "value");
  }
  const std::string before = Fingerprint(dir / "S") + Fingerprint(dir / "T");
  const bool adopt = GENERATE(false, true);
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.adopt = adopt;
  const Ferried moved = Refresh(dir / "S", dir / "T", options);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(Fingerprint(dir / "S") + Fingerprint(dir / "T") == before);
}

TEST_CASE("A third database is unchanged after a target whose OPTIONS name it "
          "was refused",
          "[transfer][untouched]") {
  ScratchDir dir;
  Fill(dir / "S", "base");
  fs::copy(dir / "S", dir / "T", fs::copy_options::recursive);
  Fill(dir / "other", "of another application");
  NameWalDir(dir / "T", dir / "other");
  for (const char* key : {"k1", "k2"}) {
    OpenDb db(dir / "other", OneFamily(Quiet()));
    db.Put(key, "value");
  }
  const std::string before =
      Fingerprint(dir / "other") + Fingerprint(dir / "T");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.adopt = true;
  const Ferried moved = Refresh(dir / "S", dir / "T", options);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(Fingerprint(dir / "other") + Fingerprint(dir / "T") == before);
}

TEST_CASE("A source is unchanged after a refresh of a copy by hard links",
          "[transfer][untouched]") {
  ScratchDir dir;
  rocksdb::DBOptions recycling;
  recycling.recycle_log_file_num = 4;
  recycling.avoid_flush_during_recovery = true;
  for (const char* key : {"k1", "k2"}) {  // several WALs
    OpenDb db(dir / "S", OneFamily(Quiet()), recycling);
    db.Put(key, std::string(1000, 'v'));
  }
  fs::copy(dir / "S", dir / "T",
           fs::copy_options::recursive | fs::copy_options::create_hard_links);
  const std::string before = Fingerprint(dir / "S");
  Fill(dir / "S2", "new");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.adopt = true;
  REQUIRE_OK(Refresh(dir / "S2", dir / "T", options).status);
  REQUIRE(Fingerprint(dir / "S") == before);
  REQUIRE(sstferry::EntriesOf(dir / "T") == sstferry::EntriesOf(dir / "S2"));
}

TEST_CASE("WALs of an old database are not left for a new one",
          "[transfer][untouched]") {
  World world;
  {
    rocksdb::DBOptions options;
    options.wal_dir = world.dir / "other";
    OpenDb(world.T(), OneFamily(Quiet()), options).Put("mine", "value");
  }
  const std::string before = world.All();
  world.options.mode = PullMode::kSwap;
  world.options.adopt = true;
  Summary summary;
  MakePull(world.options)->Run(&summary).PermitUncheckedError();
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(MessageOf(summary.status).find("write-ahead log in") !=
          std::string::npos);
  REQUIRE(world.All() == before);
}

TEST_CASE("WALs of an old database on a volume that is not mounted are not left "
          "for a new one",
          "[transfer][untouched]") {
  World world;
  const std::string wals = world.dir / "volume/wals";
  {
    rocksdb::DBOptions options;
    options.wal_dir = wals;
    fs::create_directory(world.dir / "volume");
    OpenDb(world.T(), OneFamily(Quiet()), options).Put("mine", "value");
  }
  fs::rename(world.dir / "volume", world.dir / "unmounted");
  const std::string before = world.All();
  const bool by_files = GENERATE(false, true);
  world.options.mode = by_files ? PullMode::kRefresh : PullMode::kSwap;
  world.options.method = by_files ? PullMethod::kClone : PullMethod::kIngest;
  world.options.adopt = true;
  Summary summary;
  MakePull(world.options)->Run(&summary).PermitUncheckedError();
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(MessageOf(summary.status).find("write-ahead log in " + wals +
                                         ", which is missing") !=
          std::string::npos);
  REQUIRE(world.All() == before);
}

// RocksDB before 6.24 always writes wal_dir, as the path that its application
// used, for example inside of a container.
TEST_CASE("A target whose old RocksDB named its own directory by another path "
          "is exchanged",
          "[transfer][untouched]") {
  World world;
  OpenDb(world.T(), OneFamily(Quiet())).Put("mine", "value");
  EditOptions(world.T(), "[DBOptions]\n",
              "[DBOptions]\n  wal_dir=/not/here\n");
  EditOptions(world.T(), "rocksdb_version=" + ReleaseNumbers(kLinkedRelease),
              "rocksdb_version=6.20.3");
  const bool has_wal = GENERATE(true, false);
  if (!has_wal) {
    for (const std::string& wal : PathsWith(world.T(), ".log")) {
      fs::remove(wal);
    }
  }
  world.options.mode = PullMode::kSwap;
  world.options.method = PullMethod::kIngest;
  world.options.adopt = true;
  Summary summary;
  MakePull(world.options)->Run(&summary).PermitUncheckedError();
  INFO(summary.status.ToString());
  REQUIRE(summary.status.ok() == has_wal);
}

TEST_CASE("WALs of an old database are found by OPTIONS that no peer may send, "
          "or the swap is refused",
          "[transfer][untouched]") {
  World world;
  {
    rocksdb::DBOptions options;
    options.wal_dir = world.dir / "other";
    OpenDb(world.T(), OneFamily(Quiet()), options).Put("mine", "value");
  }
  const bool truncated = GENERATE(false, true);
  if (truncated) {
    for (const std::string& path : PathsWith(world.T(), "")) {
      if (path.find("/OPTIONS-") != std::string::npos) {
        fs::resize_file(path, 100);
      }
    }
  } else {
    EditOptions(world.T(), "  merge_operator=nullptr\n",
                "  merge_operator={id=App;text=" + std::string(2000, 'x') +
                    ";}\n");
  }
  const std::string before = world.All();
  world.options.mode = PullMode::kSwap;
  world.options.adopt = true;
  Summary summary;
  MakePull(world.options)->Run(&summary).PermitUncheckedError();
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(MessageOf(summary.status).find(
              truncated ? "cannot find out where its write-ahead log is"
                        : "write-ahead log in") != std::string::npos);
  REQUIRE(world.All() == before);
}

TEST_CASE("No process can open a database while a swap moves it",
          "[transfer][untouched]") {
  World world;
  bool was_locked = false;
  TEST_SetFaultHook([&](const std::string& point) {
    if (point == "Workspace:NamesExchanged") {
      was_locked = IsDatabaseOpen(world.T() + ".sstferry/db");
    }
  });
  world.options.mode = PullMode::kSwap;
  Summary summary;
  const rocksdb::Status status = MakePull(world.options)->Run(&summary);
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(status);
  REQUIRE(was_locked);
}

// --- OPTIONS and compaction filters of the target ---------------------------

std::string NewestOptions(const std::string& dir) {
  std::string text;
  REQUIRE_OK(ReadNewestOptions(rocksdb::Env::Default(), dir, &text));
  return text;
}

TEST_CASE("A refreshed directory keeps its OPTIONS word for word",
          "[transfer][refresh]") {
  World world;
  EditOptions(world.T(), "  prefix_extractor=nullptr\n",
              "  prefix_extractor=app.Prefix\n");
  EditOptions(world.T(), "  compaction_filter_factory=nullptr\n",
              "  compaction_filter_factory={id=app.Filter;x=y;}\n");
  EditOptions(world.T(), "[DBOptions]\n",
              "[DBOptions]\n  db_log_dir=" + (world.dir / "other") + "\n");
  const std::string before = NewestOptions(world.T());
  const std::string other = Fingerprint(world.dir / "other");
  SECTION("as they are") {
    const Ferried moved = Refresh(world.S(), world.T());
    REQUIRE_OK(moved.status);
    REQUIRE(moved.notes_mention("compaction filter"));
    REQUIRE(moved.notes_mention("app.Filter"));
    REQUIRE(NewestOptions(world.T()) == before);
  }
  SECTION("and those of added and dropped families") {
    {
      Families families = OneFamily(Quiet());
      families.push_back({"new", Quiet()});
      OpenDb source(world.S(), families);
      source.Put("key", "value", "new");
    }
    REQUIRE_OK(Refresh(world.S(), world.T()).status);
    const std::string with = NewestOptions(world.T());
    REQUIRE(with.rfind(before, 0) == 0);
    const std::string more = with.substr(before.size());
    REQUIRE(more.find("[CFOptions \"new\"]") != std::string::npos);
    REQUIRE(more.find("\"default\"") == std::string::npos);
    {
      Families families = OneFamily(Quiet());
      families.push_back({"new", Quiet()});
      OpenDb source(world.S(), families);
      REQUIRE_OK(source->DropColumnFamily(source.cf("new")));
    }
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.drop_missing = true;
    REQUIRE_OK(Refresh(world.S(), world.T(), options).status);
    REQUIRE(NewestOptions(world.T()) == before);
  }
  REQUIRE(Fingerprint(world.dir / "other") == other);
  REQUIRE(sstferry::EntriesOf(world.T()) == sstferry::EntriesOf(world.S()));
}

TEST_CASE("A compaction filter that OPTIONS name is not run by a refresh",
          "[transfer][refresh]") {
  World world;
  {
    OpenDb source(world.S(), OneFamily(Quiet()));
    source.Put("empty", "");
    source.Flush();
  }
  EditOptions(world.T(), "  compaction_filter=nullptr\n",
              "  compaction_filter=RemoveEmptyValueCompactionFilter\n");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.verify = true;
  const Ferried moved = Refresh(world.S(), world.T(), options);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.notes_mention("compaction filter"));
  REQUIRE(moved.notes_mention("RemoveEmptyValueCompactionFilter"));
  // Opened without the filter, the database still has the entry.
  REQUIRE(sstferry::EntriesOf(world.T()).count("empty") == 1);
}

class DropEmpty : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "app.DropEmpty"; }
  bool Filter(int, const rocksdb::Slice&, const rocksdb::Slice& value,
              std::string*, bool*) const override {
    return value.empty();
  }
};

TEST_CASE("A compaction filter of the application is named if it may run",
          "[transfer][refresh]") {
  World world;
  {
    OpenDb source(world.S(), OneFamily(Quiet()));
    source.Put("empty", "");
    source.Flush();
  }
  DropEmpty filter;
  rocksdb::ColumnFamilyOptions family = Quiet();
  family.compaction_filter = &filter;
  OpenDb target(world.T(), OneFamily(family));
  const Ferried moved = RefreshOpen(world.S(), &target);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.notes_mention("compaction filter"));
  REQUIRE(moved.notes_mention("app.DropEmpty"));
  REQUIRE(moved.notes_mention("may remove"));
}

TEST_CASE("The target of a source that compresses its WAL has an empty WAL",
          "[transfer]") {
  ScratchDir dir;
  {
    rocksdb::DBOptions options;
    options.wal_compression = rocksdb::kZSTD;
    OpenDb db(dir / "S", OneFamily(Quiet()), options);
    db.Put("flushed", "value");
    db.Flush();
    db.Put("in the WAL", std::string(1000, 'v'));
  }
  REQUIRE_OK(Ferry(dir / "S", dir / "T").status);
  REQUIRE(sstferry::EntriesOf(dir / "T").size() == 2);
}

// --- The target's WAL -------------------------------------------------------

TEST_CASE("Foreign entries in a target's WAL are replaced",
          "[transfer][refresh]") {
  World world;
  REQUIRE_OK(Refresh(world.S(), world.T()).status);
  {
    OpenDb target(world.T(), OneFamily(Quiet()));
    target.Put(NumberedKey(7), "foreign");
    target.Put("0 before all", "foreign");
    target.Put("z behind all", "foreign");
    target.DeleteRange(NumberedKey(100), NumberedKey(120));
  }
  PassWrites(world.S());
  const Ferried moved = Refresh(world.S(), world.T());
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(sstferry::EntriesOf(world.T()) == sstferry::EntriesOf(world.S()));
}

TEST_CASE("A target whose WAL has two keys far apart is refreshed in one run",
          "[transfer][refresh]") {
  const ScratchDir dir;
  {
    OpenDb source(dir / "S", OneFamily(Quiet()));
    for (int i = 0; i < 40'000; ++i) {
      source.Put(NumberedKey(i), RandomBytes(100, static_cast<uint64_t>(i)));
    }
    source.Flush();
  }
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.lanes = 4;
  const Ferried seeded = Ferry(dir / "S", dir / "T", options);
  REQUIRE_OK(seeded.status);
  REQUIRE(seeded.summary.parts > 3);
  {
    // RocksDB flushes both keys into one file, which spans all parts.
    OpenDb target(dir / "T", OneFamily(Quiet()));
    target.Put(NumberedKey(7), "foreign");
    target.Put(NumberedKey(39'990), "foreign");
  }
  PassWrites(dir / "S");
  const Ferried moved = Refresh(dir / "S", dir / "T");
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(sstferry::EntriesOf(dir / "T") == sstferry::EntriesOf(dir / "S"));
}

TEST_CASE("If another process writes to the target meanwhile, its current "
          "contents are compared",
          "[transfer][refresh]") {
  World world;
  PassWrites(world.S());
  ServeOptions serve;
  serve.snapshot_ttl = std::chrono::seconds(0);
  serve.databases.push_back({"db", world.S(), nullptr, {}});
  TestServer server(serve);
  world.options.source = AddressAt(server.address());
  world.options.mode = PullMode::kRefresh;
  bool wrote = false;
  // Writes after the target was checked and before its comparison.
  world.options.on_transfer = [&](const std::string&) {
    if (!wrote) {
      wrote = true;
      OpenDb target(world.T(), OneFamily(Quiet()));
      target.Put("zz", "foreign");
      target.Flush();
    }
  };
  Summary summary;
  REQUIRE_OK(MakePull(world.options)->Run(&summary));
  REQUIRE(wrote);
  REQUIRE(sstferry::EntriesOf(world.T()) == sstferry::EntriesOf(world.S()));
}

}  // namespace
}  // namespace sstferry::test::untouched_test
