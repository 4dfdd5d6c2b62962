// Tests that a known fault of a replica is recorded, and that no run ends with
// OK before it is mended.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "format/health_file.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/health.h"
#include "pipeline/refresh/live_db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/wide_columns.h"
#include "sstferry/status.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/log_bytes.h"
#include "tests/support/refreshed.h"
#include "tests/support/restored.h"

namespace sstferry::test::replica_health_test {
namespace {

namespace fs = std::filesystem;

void Fill(const std::string& dir, uint64_t first, uint64_t count,
          const std::string& word) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = first; i < first + count; ++i) {
    db.Put(NumberedKey(i), word + RandomBytes(200, i));
  }
  db.Flush();
}

// Makes a source with two tables.
void MakeSource(const std::string& dir) {
  Fill(dir, 0, 2000, "old");
  Fill(dir, 2000, 2000, "old");
}

void Overwrite(const std::string& path, uint64_t at, size_t bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file << std::string(bytes, '\xa5');
  REQUIRE(file.good());
}

// Damages the first table of the replica. Returns its name.
std::string Damage(const std::string& dir) {
  std::vector<std::string> tables = PathsWith(dir, ".sst");
  std::sort(tables.begin(), tables.end());
  Overwrite(tables.front(), fs::file_size(tables.front()) / 3, 100);
  return fs::path(tables.front()).filename();
}

PullOptions Swapping() {
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.mode = PullMode::kSwap;
  return options;
}

PullOptions Verifying(PullOptions options = {}) {
  options.verify = true;
  return options;
}

TargetState StateOf(const std::string& dir) {
  StatusOptions options;
  options.where.directory = dir;
  StatusReport report;
  REQUIRE_OK(MakeStatusQuery(options)->Run(&report));
  REQUIRE(report.is_target);
  return report.target;
}

// Compares two directories. Calls `pinned`, if any, when both snapshots are
// taken and nothing is compared yet.
Ferried Compare(const std::string& left, const std::string& right,
                const std::function<void()>& pinned = nullptr) {
  VerifyOptions options;
  options.left.directory = left;
  options.right.directory = right;
  options.log = [&pinned](LogLevel, const std::string& text) {
    if (pinned && text.starts_with("comparing")) {
      pinned();
    }
  };
  Ferried compared;
  compared.status = MakeVerify(options)->Run(&compared.summary);
  return compared;
}

// Requires that the replica has no fault or record of one, and that a verify
// agrees.
void RequireSound(const std::string& source, const std::string& target) {
  const TargetState state = StateOf(target);
  REQUIRE(state.health == ReplicaHealth::kComplete);
  REQUIRE(state.fault.empty());
  REQUIRE_FALSE(fs::exists(target + "/" + kHealthFileName));
  ExpectSameEntries(source, target);
  REQUIRE(Compare(source, target).state() == EndState::kOk);
  const Ferried again = Refresh(source, target);
  INFO(again.message());
  REQUIRE_OK(again.status);
}

void RequireTold(const Ferried& run, const std::string& target) {
  INFO(run.message());
  REQUIRE(run.state() == EndState::kCorrupt);
  REQUIRE(run.message().find(target) != std::string::npos);
  REQUIRE(run.message().find("next: sstferry swap ") != std::string::npos);
}

struct World {
  ScratchDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";
  explicit World(PullMethod method = PullMethod::kIngest) {
    MakeSource(source);
    PullOptions options;
    options.method = method;
    options.chunk_bytes = 256 << 10;
    REQUIRE_OK(Ferry(source, target, options).status);
    REQUIRE(PathsWith(target, ".sst").size() > 1);
  }
};

TEST_CASE("A replica that is known to be damaged fails at every later run in "
          "place",
          "[transfer][health]") {
  const PullMethod method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  World world(method);
  PullOptions swap = Swapping();
  swap.method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  const std::string table = Damage(world.target);
  if (GENERATE(false, true)) Fill(world.source, 100, 10, "new");
  SECTION("a refresh with --verify finds it") {
    const Ferried found = Refresh(world.source, world.target, Verifying());
    RequireTold(found, world.target);
    REQUIRE(found.message().find(table) != std::string::npos);
  }
  SECTION("a comparison finds it") {
    PullOptions options;
    options.method = PullMethod::kIngest;
    RequireTold(Refresh(world.source, world.target, options), world.target);
  }
  SECTION("a verify finds it") {
    const Ferried found = Compare(world.source, world.target);
    INFO(found.message());
    REQUIRE(found.state() == EndState::kCorrupt);
    REQUIRE(found.message().find(world.target) != std::string::npos);
    REQUIRE(found.message().find(table) != std::string::npos);
    REQUIRE(found.message().find("next: sstferry swap ") != std::string::npos);
    REQUIRE(found.message().find("sstferry-snapshot") == std::string::npos);
  }
  SECTION("the process that has it open finds it") {
    OpenDb open(world.target, OneFamily(Quiet()));
    PullOptions options;
    options.method = PullMethod::kIngest;
    REQUIRE(RefreshOpen(world.source, &open, {"default"}, options).state() ==
            EndState::kCorrupt);
    REQUIRE(RefreshOpen(world.source, &open).state() == EndState::kCorrupt);
  }
  const TargetState state = StateOf(world.target);
  REQUIRE(state.health == ReplicaHealth::kDamaged);
  REQUIRE(state.fault.find(table) != std::string::npos);
  REQUIRE(state.next.starts_with("sstferry swap "));
  REQUIRE(state.next.ends_with(" --verify"));
  for (int night = 0; night < 2; ++night) {
    RequireTold(Refresh(world.source, world.target), world.target);
    RequireTold(Refresh(world.source, world.target, Verifying()),
                world.target);
  }
  const Ferried copy = Ferry(world.target, world.dir / "copy");
  REQUIRE(copy.state() == EndState::kRefused);
  REQUIRE(copy.message().find("damaged") != std::string::npos);
  const Ferried mended = Refresh(world.source, world.target, swap);
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  RequireSound(world.source, world.target);
}

TEST_CASE("A swap of a damaged clone fetches the damaged file alone",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  Damage(world.target);
  REQUIRE(Compare(world.source, world.target).state() == EndState::kCorrupt);
  PullOptions swap = Swapping();
  swap.method = PullMethod::kClone;
  const Ferried mended = Refresh(world.source, world.target, swap);
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  REQUIRE(mended.summary.exchanged);
  REQUIRE(mended.summary.verified);
  REQUIRE(mended.summary.files_reused == 1);
  RequireSound(world.source, world.target);
}

TEST_CASE("A missing file of a replica is damage", "[transfer][health]") {
  World world(GENERATE(PullMethod::kIngest, PullMethod::kClone));
  const std::string lost =
      GENERATE(std::string(".sst"), std::string("CURRENT"));
  const std::string path = lost == "CURRENT"
                               ? world.target + "/CURRENT"
                               : PathsWith(world.target, lost).front();
  fs::remove(path);
  REQUIRE(StateOf(world.target).health == ReplicaHealth::kDamaged);
  const Ferried found = Refresh(world.source, world.target);
  RequireTold(found, world.target);
  REQUIRE(found.message().find(fs::path(path).filename()) !=
          std::string::npos);
  REQUIRE(StateOf(world.target).health == ReplicaHealth::kDamaged);
  REQUIRE(fs::exists(world.target + "/" + kHealthFileName));
  PullOptions swap = Swapping();
  swap.method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  const Ferried mended = Refresh(world.source, world.target, swap);
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  RequireSound(world.source, world.target);
}

TEST_CASE("A difference that a verify found is mended by the next refresh",
          "[transfer][health]") {
  World world;
  SECTION("a verify") {
    Fill(world.target, 100, 1, "foreign");
    const Ferried found = Compare(world.source, world.target);
    REQUIRE(found.state() == EndState::kDifferent);
    REQUIRE(found.notes_mention("recorded in"));
  }
  SECTION("a refresh with --verify") {
    OpenDb open(world.target, OneFamily(Quiet()));
    TEST_SetFaultHook([&open](const std::string& point) {
      if (point == "Refresh:AllIngested") {
        open.Put(NumberedKey(100), "foreign");
      }
    });
    const Ferried found =
        RefreshOpen(world.source, &open, {"default"}, Verifying());
    TEST_SetFaultHook(nullptr);
    REQUIRE(found.state() == EndState::kCorrupt);
  }
  const TargetState state = StateOf(world.target);
  REQUIRE(state.health == ReplicaHealth::kDifferent);
  REQUIRE(state.next.find("sstferry refresh ") != std::string::npos);
  REQUIRE(Ferry(world.target, world.dir / "copy").state() ==
          EndState::kRefused);
  PullOptions part;
  part.method = PullMethod::kIngest;
  part.selection.interval.begin = NumberedKey(500);
  const Ferried less = Refresh(world.source, world.target, part);
  INFO(less.message());
  REQUIRE(less.state() == EndState::kCorrupt);
  REQUIRE(StateOf(world.target).health == ReplicaHealth::kDifferent);
  PassWrites(world.source);
  const Ferried mended = Refresh(world.source, world.target);
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  REQUIRE(mended.summary.parts_compared == mended.summary.parts);
  RequireSound(world.source, world.target);
}

TEST_CASE("A verify that finds a replica equal removes the record of its fault",
          "[transfer][health]") {
  const PullMethod method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  World world(method);
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  HealthFile fault = MakeFault(
      GENERATE(ReplicaFault::kDifferent, ReplicaFault::kDamaged), "by hand",
      Selection());
  REQUIRE_OK(RecordFault(disk, world.target, &fault));
  const Ferried compared = Compare(world.source, world.target);
  REQUIRE_OK(compared.status);
  const bool by_files = method == PullMethod::kClone;
  REQUIRE(compared.summary.compared == (by_files ? "files" : "entries"));
  // Equal entries do not prove that no file is damaged.
  if (fault.fault == ReplicaFault::kDamaged && !by_files) {
    REQUIRE(compared.notes_mention("stays recorded as damaged (by hand)"));
    REQUIRE(StateOf(world.target).health == ReplicaHealth::kDamaged);
    REQUIRE_OK(Refresh(world.source, world.target, Swapping()).status);
  } else {
    REQUIRE(compared.notes_mention("removed its record of an earlier fault"));
  }
  RequireSound(world.source, world.target);
}

// Calls `before` before it deletes a file.
class WatchedDisk : public rocksdb::FileSystemWrapper {
 public:
  explicit WatchedDisk(std::function<void()> before)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        before_(std::move(before)) {}
  const char* Name() const override { return "WatchedDisk"; }
  rocksdb::IOStatus DeleteFile(const std::string& name,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override {
    before_();
    return target()->DeleteFile(name, options, dbg);
  }

 private:
  const std::function<void()> before_;
};

TEST_CASE("Two processes that change the record of a fault at once lose none",
          "[transfer][health]") {
  const ScratchDir dir;
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  HealthFile less = MakeFault(ReplicaFault::kDifferent, "less", Selection());
  HealthFile worse = MakeFault(ReplicaFault::kDamaged, "worse", Selection());
  std::atomic<bool> has_begun{false};
  std::future<rocksdb::Status> other;
  const auto record_worse = [&] {
    if (has_begun.exchange(true)) {
      return;
    }
    other = std::async(std::launch::async, [&] {
      return RecordFault(disk, dir.path(), &worse);
    });
    other.wait_for(std::chrono::milliseconds(300));
  };
  SECTION("both record one") {
    TEST_SetFaultHook([&](const std::string& name) {
      if (name == "WriteDurably:Written") record_worse();
    });
    const rocksdb::Status recorded = RecordFault(disk, dir.path(), &less);
    const rocksdb::Status recorded_worse = other.get();
    TEST_SetFaultHook(nullptr);
    REQUIRE_OK(recorded);
    REQUIRE_OK(recorded_worse);
  }
  SECTION("one removes the record of a fault that it has mended") {
    REQUIRE_OK(RecordFault(disk, dir.path(), &less));
    WatchedDisk watched(record_worse);
    REQUIRE_OK(ClearFault(&watched, dir.path(), less));
    REQUIRE_OK(other.get());
  }
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(dir.path(), &known));
  REQUIRE(known.fault == ReplicaFault::kDamaged);
}

TEST_CASE("A verify keeps a fault that was found while it compared",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  HealthFile earlier =
      MakeFault(ReplicaFault::kDifferent, "before", Selection());
  if (GENERATE(false, true)) {
    REQUIRE_OK(RecordFault(disk, world.target, &earlier));
  }
  HealthFile later = MakeFault(
      GENERATE(ReplicaFault::kDifferent, ReplicaFault::kDamaged), "meanwhile",
      Selection());
  const Ferried compared = Compare(world.source, world.target, [&] {
    REQUIRE_OK(RecordFault(disk, world.target, &later));
  });
  REQUIRE_OK(compared.status);
  REQUIRE(compared.summary.compared == "files");
  REQUIRE(compared.notes_mention("(meanwhile): this was found after"));
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(world.target, &known));
  REQUIRE(known == later);
  // The next verify knows of it.
  REQUIRE(Compare(world.source, world.target)
              .notes_mention("removed its record of an earlier fault"));
  RequireSound(world.source, world.target);
}

TEST_CASE("A verify records nothing about a replica that a refresh replaced "
          "while it compared",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  const bool is_wrong = GENERATE(true, false);
  HealthFile fault =
      MakeFault(ReplicaFault::kDifferent, "before", Selection());
  if (is_wrong) {
    Fill(world.target, 100, 1, "foreign");
  } else {
    REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.target,
                           &fault));
  }
  PullOptions by_files;
  by_files.method = PullMethod::kClone;
  const Ferried compared = Compare(world.source, world.target, [&] {
    Fill(world.source, 3000, 10, "new");
    const Ferried refreshed = Refresh(world.source, world.target, by_files);
    INFO(refreshed.message());
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.exchanged);
  });
  INFO(compared.message());
  REQUIRE(compared.state() ==
          (is_wrong ? EndState::kDifferent : EndState::kOk));
  REQUIRE(compared.notes_mention("was refreshed or replaced while"));
  REQUIRE_FALSE(fs::exists(world.target + "/" + kHealthFileName));
}

TEST_CASE("A verify records damage of files that a refresh linked while it "
          "compared",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  const std::string table = Damage(world.target);
  PullOptions by_files;
  by_files.method = PullMethod::kClone;
  Fill(world.source, 3000, 10, "new");
  bool exchanged = false;
  const Ferried found = Compare(world.source, world.target, [&] {
    const Ferried refreshed = Refresh(world.source, world.target, by_files);
    INFO(refreshed.message());
    REQUIRE_OK(refreshed.status);
    exchanged = refreshed.summary.exchanged;
  });
  INFO(found.message());
  REQUIRE(exchanged);
  REQUIRE(found.state() == EndState::kCorrupt);
  const TargetState state = StateOf(world.target);
  REQUIRE(state.health == ReplicaHealth::kDamaged);
  REQUIRE(state.fault.find(table) != std::string::npos);
}

TEST_CASE("A copy with its source's id is not taken for the source",
          "[transfer][health]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  PullOptions options;
  options.method = PullMethod::kClone;
  options.keep_identity = true;
  REQUIRE_OK(Ferry(dir / "source", dir / "left", options).status);
  REQUIRE_OK(Ferry(dir / "source", dir / "right", options).status);
  InitArchive(dir / "archive");
  PushTo(dir / "archive", dir / "right");
  HealthFile fault =
      MakeFault(GENERATE(ReplicaFault::kDifferent, ReplicaFault::kDamaged),
                "by hand", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), dir / "right",
                         &fault));
  REQUIRE_OK(Compare(dir / "left", dir / "right").status);
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(dir / "right", &known));
  REQUIRE(known == fault);
  // An archive that was pushed from the copy, and the copy itself at a URL.
  const TestServer server(ServeSample(dir / "right"));
  for (const std::string& other : {dir / "archive", server.url("db")}) {
    VerifyOptions verify;
    REQUIRE_OK(ParseSourceAddress(other, &verify.left));
    verify.right.directory = dir / "right";
    Ferried compared;
    compared.status = MakeVerify(verify)->Run(&compared.summary);
    INFO(compared.message());
    REQUIRE_OK(compared.status);
    REQUIRE(compared.summary.compared == "files");
    REQUIRE(compared.notes_mention("it is equal to " + other + ", but only "));
    REQUIRE_OK(ReadKnownFault(dir / "right", &known));
    REQUIRE(known == fault);
  }
  REQUIRE_OK(Compare(dir / "source", dir / "right").status);
  REQUIRE_FALSE(fs::exists(dir / "right/" + kHealthFileName));
}

TEST_CASE("Column families that only a replica has are no fault",
          "[transfer][health]") {
  World world;
  { OpenDb(world.target, OneFamily(Quiet())).Create({"own", Quiet()}); }
  REQUIRE(Compare(world.source, world.target).state() ==
          EndState::kDifferent);
  REQUIRE(StateOf(world.target).health == ReplicaHealth::kComplete);
}

TEST_CASE("A health record that cannot be read counts as damage",
          "[transfer][health]") {
  World world;
  std::ofstream(world.target + "/" + kHealthFileName) << "nonsense";
  REQUIRE(StateOf(world.target).health == ReplicaHealth::kDamaged);
  RequireTold(Refresh(world.source, world.target), world.target);
  REQUIRE_OK(Refresh(world.source, world.target, Swapping()).status);
  RequireSound(world.source, world.target);
}

TEST_CASE("A worse fault stays recorded, and a later fault is not removed with "
          "an earlier one",
          "[transfer][health]") {
  const ScratchDir dir;
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  Selection part;
  part.families = {"a"};
  HealthFile damaged = MakeFault(ReplicaFault::kDamaged, "a table", part);
  REQUIRE_OK(RecordFault(disk, dir.path(), &damaged));
  part.families = {"b"};
  HealthFile different = MakeFault(ReplicaFault::kDifferent, "a key", part);
  REQUIRE_OK(RecordFault(disk, dir.path(), &different));
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(dir.path(), &known));
  REQUIRE(known.fault == ReplicaFault::kDamaged);
  REQUIRE(known.what == "a table");
  REQUIRE(known.families.empty());
  REQUIRE(known.id != damaged.id);
  REQUIRE_FALSE(Includes(part, known));
  REQUIRE(Includes(Selection(), known));
  REQUIRE_OK(ClearFault(disk, dir.path(), damaged));
  HealthFile still;
  REQUIRE_OK(ReadKnownFault(dir.path(), &still));
  REQUIRE(still == known);
  REQUIRE_OK(ClearFault(disk, dir.path(), known));
  REQUIRE_OK(ReadKnownFault(dir.path(), &still));
  REQUIRE(still.fault == ReplicaFault::kNone);
}

// Cancels a pull at a fault point.
Ferried StoppedAt(const std::string& point, PullOptions options) {
  const std::unique_ptr<Operation> pull = MakePull(options);
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == point) pull->Cancel();
  });
  Ferried stopped;
  stopped.status = pull->Run(&stopped.summary);
  TEST_SetFaultHook(nullptr);
  return stopped;
}

TEST_CASE("A pull that began with --verify does not end without it",
          "[transfer][health]") {
  World world;
  Fill(world.source, 100, 10, "new");
  PullOptions options = Swapping();
  options.method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  options.source.directory = world.source;
  options.target_dir = world.target;
  REQUIRE(StoppedAt("Puller:TotalsAgreed", Verifying(options)).state() ==
          EndState::kCancelled);
  SECTION("it is verified") {
    const Ferried ended = Refresh(world.source, world.target, options);
    INFO(ended.message());
    REQUIRE_OK(ended.status);
    REQUIRE(ended.summary.verified);
    REQUIRE(ended.summary.exchanged);
  }
  SECTION("and a damaged database is not exchanged") {
    for (const std::string& table :
         PathsWith(world.target + ".sstferry/db", ".sst")) {
      Overwrite(table, fs::file_size(table) / 3, 100);
    }
    const Ferried ended = Refresh(world.source, world.target, options);
    INFO(ended.message());
    REQUIRE((ended.status.ok() || ended.state() == EndState::kCorrupt));
    if (!ended.status.ok()) {
      REQUIRE_FALSE(ended.summary.exchanged);
      REQUIRE_OK(Refresh(world.source, world.target, options).status);
    }
  }
  RequireSound(world.source, world.target);
}

TEST_CASE("A refresh that began before a fault was found still mends the fault",
          "[transfer][health]") {
  World world;
  Fill(world.source, 3000, 10, "new");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.mode = PullMode::kRefresh;
  options.source.directory = world.source;
  options.target_dir = world.target;
  REQUIRE(StoppedAt("Puller:TotalsAgreed", options).state() ==
          EndState::kCancelled);
  HealthFile fault =
      MakeFault(ReplicaFault::kDifferent, "found meanwhile", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.target,
                         &fault));
  const Ferried ended = Refresh(world.source, world.target);
  INFO(ended.message());
  REQUIRE_OK(ended.status);
  REQUIRE(ended.summary.parts_compared == ended.summary.parts);
  RequireSound(world.source, world.target);
}

// Records damage of the replica the first time that a pull reaches `point`, as
// a verify in another process would.
void RecordAt(const std::string& point, const std::string& target) {
  auto left = std::make_shared<int>(1);
  TEST_SetFaultHook([=](const std::string& name) {
    if (name == point && (*left)-- == 1) {
      HealthFile fault = MakeFault(ReplicaFault::kDamaged, "found meanwhile",
                                   Selection());
      REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), target,
                             &fault));
    }
  });
}

TEST_CASE("A new directory that shares files with a replica is not used if a "
          "fault was found meanwhile",
          "[transfer][health]") {
  const bool clones = GENERATE(true, false);
  World world(clones ? PullMethod::kClone : PullMethod::kIngest);
  PullOptions options = Swapping();
  options.method = clones ? PullMethod::kClone : PullMethod::kIngest;
  if (clones) {
    Damage(world.target);
    if (GENERATE(true, false)) options.mode = PullMode::kRefresh;
  }
  Fill(world.source, 5000, 10, "new");
  const std::string point = GENERATE(as<std::string>(), "",
                                     "Puller:TotalsAgreed",
                                     "Puller:BeforeSwapDone");
  RecordAt(!point.empty() ? point
           : clones       ? "CloneTarget:FilesLinked"
                          : "LinkedTarget:CopyMade",
           world.target);
  const Ferried found = Refresh(world.source, world.target, options);
  TEST_SetFaultHook(nullptr);
  INFO(found.message());
  REQUIRE(found.state() == EndState::kCorrupt);
  REQUIRE_FALSE(found.summary.exchanged);
  REQUIRE(StateOf(world.target).health == ReplicaHealth::kDamaged);
  const Ferried mended = Refresh(world.source, world.target, options);
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  REQUIRE(mended.summary.exchanged);
  RequireSound(world.source, world.target);
}

TEST_CASE("A replica that has all files is not left as it is if a fault was "
          "found meanwhile",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  PullOptions options;
  options.method = PullMethod::kClone;
  RecordAt("CloneTarget:FilesLinked", world.target);
  const Ferried found = Refresh(world.source, world.target, options);
  TEST_SetFaultHook(nullptr);
  INFO(found.message());
  REQUIRE(found.state() == EndState::kCorrupt);
  REQUIRE_OK(Refresh(world.source, world.target, options).status);
  RequireSound(world.source, world.target);
}

TEST_CASE("A pull that links from a copy is not used if a fault of the copy "
          "was found meanwhile",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  PullOptions options;
  options.method = PullMethod::kClone;
  options.source.directory = world.source;
  options.target_dir = world.dir / "second";
  options.reuse_dir = world.target;
  Fill(world.source, 5000, 10, "new");
  Damage(world.target);
  Ferried pulled;
  SECTION("in this run") {
    RecordAt("Puller:TotalsAgreed", world.target);
    pulled.status = MakePull(options)->Run(&pulled.summary);
  }
  SECTION("before the run that resumes it") {
    REQUIRE(StoppedAt("Puller:TotalsAgreed", options).state() ==
            EndState::kCancelled);
    HealthFile fault =
        MakeFault(ReplicaFault::kDamaged, "found meanwhile", Selection());
    REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.target,
                           &fault));
    // The operator may avoid the damaged copy.
    if (GENERATE(false, true)) options.reuse_dir.clear();
    pulled.status = MakePull(options)->Run(&pulled.summary);
  }
  TEST_SetFaultHook(nullptr);
  INFO(pulled.message());
  if (!pulled.status.ok()) {
    REQUIRE(pulled.state() == EndState::kCorrupt);
    REQUIRE_FALSE(fs::exists(options.target_dir));
    REQUIRE_OK(MakePull(options)->Run(&pulled.summary));
  }
  ExpectSameEntries(world.source, options.target_dir);
  REQUIRE(Compare(world.source, options.target_dir).state() == EndState::kOk);
}

TEST_CASE("Links of an unfinished refresh are not used if another directory "
          "or none has TARGET_DIR's name",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  Fill(world.source, 5000, 10, "new");
  Damage(world.target);
  PullOptions options;
  options.method = PullMethod::kClone;
  options.mode = PullMode::kRefresh;
  options.source.directory = world.source;
  options.target_dir = world.target;
  options.snapshot_ttl = std::chrono::hours(1);
  PullOptions copy;
  copy.method = PullMethod::kClone;
  REQUIRE_OK(Ferry(world.source, world.dir / "copy", copy).status);
  REQUIRE(StoppedAt(GENERATE(as<std::string>(), "CloneTarget:ReuseRecorded",
                             "Puller:TotalsAgreed"),
                    options)
              .state() == EndState::kCancelled);
  HealthFile fault =
      MakeFault(ReplicaFault::kDamaged, "found meanwhile", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.target,
                         &fault));
  fs::rename(world.target, world.dir / "aside");
  if (GENERATE(false, true)) {
    fs::rename(world.dir / "copy", world.target);
  } else {
    options.mode = PullMode::kPull;
  }
  Ferried pulled;
  pulled.status = MakePull(options)->Run(&pulled.summary);
  INFO(pulled.message());
  REQUIRE_OK(pulled.status);
  ExpectSameEntries(world.source, world.target);
  REQUIRE(Compare(world.source, world.target).state() == EndState::kOk);
}

TEST_CASE("Links to a copy that was repaired since are not used",
          "[transfer][health]") {
  World world(PullMethod::kIngest);
  PullOptions options;
  options.method = PullMethod::kClone;
  options.source.directory = world.target;  // its tables are the copy's
  options.target_dir = world.dir / "second";
  options.reuse_dir = world.dir / "copy";
  PullOptions copy;
  copy.method = PullMethod::kClone;
  REQUIRE_OK(Ferry(world.target, options.reuse_dir, copy).status);
  REQUIRE(StoppedAt("Puller:TotalsAgreed", options).state() ==
          EndState::kCancelled);
  // A refresh in place keeps the directory, and no record of its fault.
  PullOptions refresh;
  refresh.method = PullMethod::kIngest;
  REQUIRE_OK(Refresh(world.target, options.reuse_dir, refresh).status);
  const Ferried pulled = StoppedAt("", options);
  INFO(pulled.message());
  REQUIRE_OK(pulled.status);
  REQUIRE(pulled.notes_mention("starting over with the files that were"));
  ExpectSameEntries(world.target, options.target_dir);
}

TEST_CASE("A swap that shares no file with a replica mends a fault that was "
          "found meanwhile",
          "[transfer][health]") {
  World world;
  HealthFile fault =
      MakeFault(ReplicaFault::kDamaged, "known", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.target,
                         &fault));
  RecordAt("Puller:TotalsAgreed", world.target);
  const Ferried mended = Refresh(world.source, world.target, Swapping());
  TEST_SetFaultHook(nullptr);
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  RequireSound(world.source, world.target);
}

TEST_CASE("A fault is recorded, and names are exchanged, under one lock",
          "[transfer][health]") {
  World world(PullMethod::kClone);
  const std::string workspace = world.target + ".sstferry";
  int locked = 0;
  fs::create_directory(workspace);
  TEST_SetFaultHook([&](const std::string& name) {
    locked += name == "WriteDurably:Synced" && IsFileLocked(workspace);
  });
  HealthFile fault = MakeFault(ReplicaFault::kDamaged, "by hand", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.target,
                         &fault));
  REQUIRE(locked == 1);
  REQUIRE_FALSE(IsFileLocked(workspace));
  fs::remove(workspace);
  Fill(world.source, 5000, 10, "new");
  TEST_SetFaultHook([&](const std::string& name) {
    locked += name == "Workspace:NamesExchanged" && IsFileLocked(workspace);
  });
  PullOptions options;
  options.method = PullMethod::kClone;
  REQUIRE_OK(Refresh(world.source, world.target, options).status);
  TEST_SetFaultHook(nullptr);
  REQUIRE(locked == 2);
}

TEST_CASE("A fault is recorded again if a pull began before it was recorded",
          "[transfer][health]") {
  const ScratchDir dir;
  const std::string replica = dir / "replica";
  const std::string workspace = replica + ".sstferry";
  fs::create_directory(replica);
  fs::create_directory(dir / "new");
  const bool has_ended = GENERATE(true, false);
  int recorded = 0;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name != "WriteDurably:Renamed" || ++recorded > 1) return;
    if (has_ended) {
      fs::rename(replica, dir / "old");
      fs::rename(dir / "new", replica);
    } else {
      fs::create_directory(workspace);
    }
  });
  HealthFile fault = MakeFault(ReplicaFault::kDamaged, "by hand", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), replica,
                         &fault));
  TEST_SetFaultHook(nullptr);
  REQUIRE(recorded == 2);
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(replica, &known));
  REQUIRE(known == fault);
}

TEST_CASE("A fault is recorded again, and no other record is removed, if names "
          "are exchanged while nobody can take their lock",
          "[transfer][health]") {
  const ScratchDir dir;
  const std::string replica = dir / "replica";
  for (const std::string& name : {replica, dir / "new"}) {
    fs::create_directory(name);
    std::ofstream(name + "/last_transfer.json") << "{}";
  }
  std::ofstream(replica + ".sstferry") << "not a directory";
  const std::string point = GENERATE(std::string("WriteDurably:Synced"),
                                     std::string("WriteDurably:Renamed"));
  bool is_exchanged = false;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name != point || is_exchanged) return;
    is_exchanged = true;
    fs::rename(replica, dir / "old");
    fs::rename(dir / "new", replica);
  });
  HealthFile fault = MakeFault(ReplicaFault::kDamaged, "by hand", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), replica,
                         &fault));
  TEST_SetFaultHook(nullptr);
  REQUIRE(is_exchanged);
  REQUIRE(fs::exists(replica + "/last_transfer.json"));
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(replica, &known));
  REQUIRE(known == fault);
}

TEST_CASE("A fault of a directory that was replaced is not recorded",
          "[transfer][health]") {
  const ScratchDir dir;
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  HealthFile fault = MakeFault(ReplicaFault::kDifferent, "a key", Selection());
  REQUIRE_OK(RecordFault(disk, dir.path(), &fault, [] { return false; }));
  REQUIRE(fault.fault == ReplicaFault::kNone);
  REQUIRE_FALSE(fs::exists(dir / kHealthFileName));
}

TEST_CASE("A refresh that mends a fault is resumed", "[transfer][health]") {
  World world;
  Fill(world.target, 100, 1, "foreign");
  REQUIRE(Compare(world.source, world.target).state() ==
          EndState::kDifferent);
  PassWrites(world.source);
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.mode = PullMode::kRefresh;
  options.source.directory = world.source;
  options.target_dir = world.target;
  REQUIRE(StoppedAt("Puller:TotalsAgreed", options).state() ==
          EndState::kCancelled);
  REQUIRE(StateOf(world.target).health == ReplicaHealth::kDifferent);
  const Ferried ended = Refresh(world.source, world.target);
  INFO(ended.message());
  REQUIRE_OK(ended.status);
  REQUIRE(ended.notes_mention("all data had already arrived"));
  RequireSound(world.source, world.target);
}

TEST_CASE("An exchange is not completed if the source has another database",
          "[transfer][health]") {
  World world;
  Fill(world.source, 100, 10, "new");
  PullOptions options = Swapping();
  options.source.directory = world.source;
  options.target_dir = world.target;
  options.before_swap = [](const SwapEvent&) {
    return MakeStatus(EndState::kBusy, "the application does not stop");
  };
  REQUIRE_FALSE(Refresh(world.source, world.target, options).status.ok());
  fs::rename(world.source, world.dir / "earlier");
  MakeSource(world.source);
  options.before_swap = nullptr;
  const Ferried other = Refresh(world.source, world.target, options);
  INFO(other.message());
  REQUIRE(other.state() == EndState::kRefused);
  REQUIRE_FALSE(other.summary.exchanged);
  fs::remove_all(world.source);
  fs::rename(world.dir / "earlier", world.source);
  const Ferried right = Refresh(world.source, world.target, options);
  INFO(right.message());
  REQUIRE_OK(right.status);
  REQUIRE(right.summary.exchanged);
  RequireSound(world.source, world.target);
}

TEST_CASE("A replica of another database is replaced only on request",
          "[transfer][health]") {
  World world;
  MakeSource(world.dir / "other");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.mode = PullMode::kSwap;
  options.source.directory = world.dir / "other";
  options.target_dir = world.target;
  Ferried other;
  const bool plans = GENERATE(false, true);
  other.status = (plans ? MakePlan(options) : MakePull(options))
                     ->Run(&other.summary);
  INFO(other.message());
  REQUIRE(other.state() == EndState::kRefused);
  REQUIRE(other.message().find("--adopt") != std::string::npos);
  ExpectSameEntries(world.source, world.target);
  options.adopt = true;
  REQUIRE_OK(MakePull(options)->Run(&other.summary));
  ExpectSameEntries(world.dir / "other", world.target);
}

TEST_CASE("No swap is advised for a directory that is no database",
          "[transfer][health]") {
  World world;
  const std::string letters = world.dir / "letters";
  fs::create_directory(letters);
  std::ofstream(letters + "/to_mother") << "Dear mother";
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.source.directory = world.source;
  options.target_dir = letters;
  Summary summary;
  const rocksdb::Status status = MakePull(options)->Run(&summary);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(status.ToString().find("swap") == std::string::npos);
  REQUIRE(fs::exists(letters + "/to_mother"));
}

TEST_CASE("A replica whose WALs count batches is not refreshed in place",
          "[transfer][health]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string target = dir / "target";
  const Families families = {{"default", Quiet()}, {"other", Quiet()}};
  {
    OpenDb db(source, families);
    db.Put("a", "1");
    db.Put("b", "1", "other");
    db.Flush();
  }
  REQUIRE_OK(Ferry(source, target).status);
  {
    rocksdb::Options options;
    options.avoid_flush_during_shutdown = true;
    rocksdb::TransactionDBOptions transactions;
    transactions.write_policy = rocksdb::TxnDBWritePolicy::WRITE_PREPARED;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::TransactionDB* db = nullptr;
    REQUIRE_OK(rocksdb::TransactionDB::Open(options, transactions, target,
                                            families, &handles, &db));
    rocksdb::WriteBatch batch;
    for (const char* key : {"x", "y", "z", "k"}) {
      REQUIRE_OK(batch.Put(handles[0], key, "old"));
    }
    REQUIRE_OK(db->Write(rocksdb::WriteOptions(), &batch));
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), handles[0], "k", "new"));
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      REQUIRE_OK(db->DestroyColumnFamilyHandle(handle));
    }
    delete db;
  }
  PullOptions other;
  other.method = PullMethod::kIngest;
  other.selection.families = {"other"};
  const Ferried refreshed = Refresh(source, target, other);
  INFO(refreshed.message());
  REQUIRE(refreshed.state() == EndState::kRefused);
  REQUIRE(refreshed.message().find("only a swap can") != std::string::npos);
  PassWrites(source);
  REQUIRE_OK(Refresh(source, target, Swapping()).status);
  Expectation expected;
  expected.families = families;
  ExpectSameEntries(source, target, expected);
}

TEST_CASE("A replica whose WAL prepares a wide-column entity keeps it, or is "
          "not refreshed in place",
          "[transfer][health]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string target = dir / "target";
  const Families families = {{"default", Quiet()}, {"other", Quiet()}};
  {
    OpenDb db(source, families);
    db.Put("a", "1");
    db.Put("b", "1", "other");
  }
  REQUIRE_OK(Ferry(source, target).status);
  uint64_t sequence = 0;
  {
    rocksdb::Options options;
    options.avoid_flush_during_shutdown = true;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::TransactionDB* db = nullptr;
    REQUIRE_OK(rocksdb::TransactionDB::Open(options, {}, target, families,
                                            &handles, &db));
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), handles[0], "k", "1"));
    sequence = db->GetLatestSequenceNumber();
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      REQUIRE_OK(db->DestroyColumnFamilyHandle(handle));
    }
    delete db;
  }
  const std::vector<std::string> wals = PathsWith(target, ".log");
  AppendPreparedEntity(*std::max_element(wals.begin(), wals.end()),
                       sequence + 1);
  const uint64_t tables = FileCount(target, ".sst");
  PullOptions other;
  other.method = PullMethod::kIngest;
  other.selection.families = {"other"};
  const Ferried refreshed = Refresh(source, target, other);
  INFO(refreshed.message());
  if constexpr (kReplaysPreparedEntities) {
    REQUIRE_OK(refreshed.status);
    const OpenDb db(target, families);
    rocksdb::PinnableWideColumns found;
    REQUIRE_OK(db->GetEntity({}, db.cf(), "entity", &found));
    REQUIRE(found.columns() ==
            rocksdb::WideColumns{{"", "whole"}, {"a", "1"}});
  } else {
    REQUIRE(refreshed.state() == EndState::kRefused);
    REQUIRE(refreshed.message().find("wide-column entities") !=
            std::string::npos);
    REQUIRE(FileCount(target, ".sst") == tables);
    std::unique_ptr<LiveDb> live;
    std::vector<std::string> notes;
    REQUIRE(EndStateOf(LiveDb::Open(target, {},
                                    rocksdb::FileSystem::Default(), &live,
                                    &notes)) == EndState::kRefused);
    REQUIRE(FileCount(target, ".sst") == tables);
  }
}

}  // namespace
}  // namespace sstferry::test::replica_health_test
