// The directory of a standby: the records that it accepts and refuses, and its
// state after a crash.
#include "pipeline/follow/standby.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "format/file_name.h"
#include "format/rocksdb/log_follower.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/follow/followed_source.h"
#include "pipeline/follow/promote.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/linked_copy.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_wals.h"
#include "rocksdb/listener.h"
#include "sstferry/follow.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/gate.h"
#include "tests/support/log_bytes.h"
#include "tests/support/standby_world.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/transaction_source.h"

namespace sstferry::test::standby_test {
namespace {

namespace fs = std::filesystem;

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return BytesIn(in);
}

void MakeStandby(StandbyWorld* world) {
  world->Write(100);
  world->source()->Flush();
  world->Write(20);
  REQUIRE_OK(world->Open());
  REQUIRE_FALSE(world->standby()->exists());
  REQUIRE_OK(world->Cut());
  REQUIRE(world->standby()->exists());
}

TEST_CASE("A standby receives what its source writes and becomes a database",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  REQUIRE(world.standby()->received().last_sequence == world.sequence());
  for (int i = 0; i < 5; ++i) {
    world.Write(30);
    REQUIRE_OK(world.Follow());
    if (i % 2 == 0) world.source()->Flush();  // begins another WAL
  }
  const uint64_t sequence = world.sequence();
  REQUIRE(world.standby()->received().last_sequence == sequence);
  REQUIRE(world.standby()->durable() != world.standby()->received());
  REQUIRE_OK(world.standby()->Sync());
  REQUIRE(world.standby()->durable() == world.standby()->received());
  REQUIRE(IsStandby(world.dir()));
  REQUIRE(BytesOf(world.dir() + "/CURRENT") == kStandbyCurrent);
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE_FALSE(IsStandby(world.dir()));
  REQUIRE(world.RequirePrefix(world.dir()) == sequence);
  REQUIRE(world.RequirePrefix(world.dir()) == sequence);  // reopened
}

TEST_CASE("A standby keeps its position over a restart of its follower",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  Round round = world.Read();
  round.end.judged = {1000, {1, 2}};
  REQUIRE_OK(world.standby()->Append(world.standby()->position(), round));
  const bool synced = GENERATE(false, true);
  if (synced) REQUIRE_OK(world.standby()->Sync());
  const StandbyPosition before = world.standby()->received();
  REQUIRE_OK(world.Open());
  const StandbyPosition after = world.standby()->received();
  REQUIRE(after.wal_number == before.wal_number);
  REQUIRE(after.wal_bytes == before.wal_bytes);
  REQUIRE(after.last_sequence == before.last_sequence);
  REQUIRE(after.judged == (synced ? round.end.judged : FollowJudged()));
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

TEST_CASE("Prepared entries count in a standby's sequence once they commit",
          "[follow]") {
  StandbyWorld world;
  world.Write(10);
  world.CloseSource();
  TransactionSource source(world.source_dir());
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  source.Prepare("txn:", 100);
  source.Put("put:");
  const auto require_sequence = [&world](uint64_t sequence) {
    REQUIRE(world.standby()->received().last_sequence == sequence);
    REQUIRE_OK(world.standby()->Sync());
    world.CloseStandby();
    REQUIRE_OK(world.Open());  // reads all WALs
    REQUIRE(world.standby()->received().last_sequence == sequence);
  };
  REQUIRE_OK(world.Follow());
  const uint64_t sequence = source.sequence();
  require_sequence(sequence);
  source.Commit("txn:");
  REQUIRE(source.sequence() == sequence + 100);
  REQUIRE_OK(world.Follow());
  require_sequence(sequence + 100);
}

TEST_CASE("Only one follower runs at a time, and no promotion while it runs",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  std::unique_ptr<Standby> other;
  const rocksdb::Status opened =
      Standby::Open(world.dir(), rocksdb::FileSystem::Default(), &other);
  REQUIRE(EndStateOf(opened) == EndState::kBusy);
  REQUIRE(EndStateOf(world.Promote()) == EndState::kBusy);
  REQUIRE_OK(world.Cut(CutReason::kCutEvery));  // locks the new directory
  REQUIRE(EndStateOf(world.Promote()) == EndState::kBusy);
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(EndStateOf(world.Open()) == EndState::kRefused);
}

// Restores the source into `dir`, and writes into the copy, as a failover does.
void MakePrimary(const StandbyWorld& world, const std::string& dir) {
  PullOptions options = world.Options();
  options.target_dir = dir;
  options.method = PullMethod::kClone;
  Summary summary;
  REQUIRE_OK(MakePull(options)->Run(&summary));
  OpenDb db(dir, {{"default", Quiet()}, {"other", Quiet()}});
  db.Put("written since", "v");
}

void RequirePrimary(const std::string& dir) {
  OpenDb db(dir, {{"default", Quiet()}, {"other", Quiet()}});
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), "written since", &value));
}

TEST_CASE("An adoption that cannot be looked for is an error",
          "[follow][standby]") {
  const ScratchDir dir;
  const auto disk = rocksdb::FileSystem::Default();
  REQUIRE_OK(KeepAdopted(dir / "missing", disk, nullptr));
  REQUIRE_FALSE(KeepAdopted(dir / std::string(300, 'x'), disk, nullptr).ok());
}

TEST_CASE("A first cut replaces nothing that was made since its follower began",
          "[follow]") {
  StandbyWorld world;
  world.Write(20);
  std::unique_ptr<Standby> early;
  REQUIRE_OK(Standby::Open(world.dir(), rocksdb::FileSystem::Default(),
                           &early));
  const auto cut = [&] {
    return EndStateOf(
        CutStandby(world.Options(), {CutReason::kFirst}, early.get()));
  };
  SECTION("a primary") {
    MakePrimary(world, world.dir());
    REQUIRE(cut() == EndState::kRefused);
    RequirePrimary(world.dir());
  }
  SECTION("the standby of another follower") {
    REQUIRE_OK(world.Open());
    REQUIRE_OK(world.Cut());
    REQUIRE(cut() == EndState::kRefused);
    world.Write(20);
    REQUIRE_OK(world.Follow());
    REQUIRE_OK(world.standby()->Sync());
    world.CloseStandby();
    REQUIRE_OK(world.Promote());
    REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
  }
}

TEST_CASE("A follower that adopts a database does not replace a standby",
          "[follow]") {
  StandbyWorld world;
  world.Write(20);
  MakePrimary(world, world.dir());
  fs::remove(world.dir() + "/LOCK");  // neither follower has a lock
  const auto disk = rocksdb::FileSystem::Default();
  std::unique_ptr<Standby> one;
  std::unique_ptr<Standby> other;
  REQUIRE_OK(Standby::Adopt(world.dir(), disk, &one));
  REQUIRE_OK(Standby::Adopt(world.dir(), disk, &other));
  const CutRequest first{CutReason::kFirst};
  REQUIRE_OK(CutStandby(world.Options(), first, one.get()));
  REQUIRE(EndStateOf(CutStandby(world.Options(), first, other.get())) ==
          EndState::kRefused);
  REQUIRE_OK(one->Sync());
}

TEST_CASE("A follower changes nothing in a directory that took the place of "
          "its standby",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  const std::string spare = world.root() + "/spare";
  MakePrimary(world, spare);
  const auto replace = [&] {
    fs::rename(world.dir(), world.root() + "/away");
    fs::rename(spare, world.dir());
  };
  SECTION("before it writes") {
    world.Write(10);
    const Round round = world.Read();
    const FollowPosition at = world.standby()->position();
    replace();
    const std::string before = Fingerprint(world.dir());
    const EndState refused = EndState::kRefused;
    REQUIRE(EndStateOf(world.standby()->Append(at, round)) == refused);
    REQUIRE(EndStateOf(world.standby()->Sync()) == refused);
    REQUIRE(EndStateOf(world.standby()->MarkHeard()) == refused);
    REQUIRE(EndStateOf(world.Cut(CutReason::kNewLife)) == refused);
    REQUIRE(Fingerprint(world.dir()) == before);
  }
  SECTION("while it takes a cut") {
    TEST_SetFaultHook([&](const std::string& name) {
      if (name == "Puller:TotalsAgreed") replace();
    });
    const rocksdb::Status cut = world.Cut(CutReason::kNewLife);
    TEST_SetFaultHook(nullptr);
    REQUIRE(EndStateOf(cut) == EndState::kRefused);
  }
  RequirePrimary(world.dir());
}

TEST_CASE("Records that do not continue the standby's are refused",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  Round round = world.Read();
  REQUIRE(round.logs.size() == 1);
  WalBytes* const log = &round.logs.front();
  const std::string damage =
      GENERATE(as<std::string>(), "hole", "again", "half", "bit", "old wal",
               "middle of a new wal");
  INFO(damage);
  if (damage == "hole") log->offset_bytes += 1;
  if (damage == "again") log->offset_bytes -= 1;
  if (damage == "half") log->bytes.pop_back();
  if (damage == "bit") log->bytes[log->bytes.size() / 2] ^= 1;
  if (damage == "old wal") log->wal_number -= 1;
  if (damage == "middle of a new wal") log->wal_number += 1;
  const auto size = fs::file_size(world.newest_wal());
  const rocksdb::Status appended =
      world.standby()->Append(world.standby()->position(), round);
  REQUIRE(EndStateOf(appended) == EndState::kCorrupt);
  REQUIRE(fs::file_size(world.newest_wal()) == size);
  // After the error, no more records are accepted until the standby is
  // reopened.
  REQUIRE_FALSE(world.Follow().ok());
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Follow());
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

TEST_CASE("A standby without a WAL refuses bytes of WAL 0", "[follow]") {
  StandbyWorld world;
  world.Write(20);
  world.source()->Flush();
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  REQUIRE(world.standby()->record().wals.empty());
  world.CloseStandby();
  for (const std::string& wal : PathsWith(world.dir(), ".log")) {
    fs::remove(wal);
  }
  REQUIRE_OK(world.Open());
  REQUIRE(world.standby()->gap().reason == CutReason::kNone);
  const FollowPosition at = world.standby()->position();
  REQUIRE(at.wal_number == 0);
  Round round;
  round.logs.push_back(WalBytes{0, 0, "x"});
  REQUIRE(EndStateOf(world.standby()->Append(at, round)) ==
          EndState::kCorrupt);
}

TEST_CASE("A standby has no time while bytes up to that time are missing",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  Round round = world.Read();
  round.end.more_bytes = GENERATE(0, 4096);
  round.end.last_sequence = world.sequence() + 100;
  round.end.read_micros = 2'000'000;
  const bool is_all = round.end.more_bytes == 0;
  REQUIRE_OK(world.standby()->Append(world.standby()->position(), round));
  const StandbyPosition received = world.standby()->received();
  REQUIRE((received.read_micros == round.end.read_micros) == is_all);
  // The last sequence is that of the received records, not the source's.
  REQUIRE(received.last_sequence == world.sequence());
}

// Returns the newest mark of a standby.
FollowMark MarkIn(const std::string& dir) {
  return NewestFollowMark(BytesOf(dir + "/" + kFollowMarkName));
}

TEST_CASE("A mark says that a source was closed if all was received, and only "
          "until the next answer",
          "[follow]") {
  StandbyWorld world;
  world.Write(10);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  Standby* const standby = world.standby();
  const auto append = [&](bool closed, uint64_t more_bytes) {
    Round round = world.Read();
    round.asked_micros = 77;
    round.end.source_closed = closed;
    round.end.more_bytes = more_bytes;
    REQUIRE_OK(standby->Append(standby->position(), round));
    REQUIRE_OK(standby->Sync());
    return MarkIn(world.dir()).closed_micros;
  };
  REQUIRE(append(true, 1) == 0);
  REQUIRE(append(true, 0) == 77);
  REQUIRE(append(false, 0) == 0);
  REQUIRE(append(true, 0) == 77);
  const uint64_t count = MarkIn(world.dir()).count;
  REQUIRE_OK(standby->ForgetClosed());
  REQUIRE(MarkIn(world.dir()).closed_micros == 0);
  REQUIRE(MarkIn(world.dir()).count > count);
  // A cut that has nothing newer keeps this: a promotion may be waiting for it.
  // The counter of marks continues.
  REQUIRE(append(true, 0) == 77);
  // Changes the MANIFEST; the family `other` still needs the WAL.
  REQUIRE_OK((*world.source())->Flush(rocksdb::FlushOptions()));
  const FollowPosition before = standby->position();
  REQUIRE_OK(world.Cut(CutReason::kCutEvery));
  REQUIRE_FALSE(standby->position() == before);
  REQUIRE(MarkIn(world.dir()).closed_micros == 77);
  REQUIRE(MarkIn(world.dir()).count > count + 2);
  // An answer that was requested before the cut may say otherwise.
  REQUIRE_OK(standby->Append(before, Round()));
  REQUIRE_OK(standby->Sync());
  REQUIRE(MarkIn(world.dir()).closed_micros == 0);
  // A newer record shows that the source was opened again.
  REQUIRE(append(true, 0) == 77);
  world.Write(1);
  REQUIRE_OK(world.Cut(CutReason::kCutEvery));
  REQUIRE(MarkIn(world.dir()).closed_micros == 0);
  // A restarted follower also forgets it.
  REQUIRE(append(true, 0) == 77);
  REQUIRE_OK(world.Open());
  REQUIRE(MarkIn(world.dir()).closed_micros == 0);
}

TEST_CASE(
    "A mark keeps the time of the source's last answer over cuts and restarts",
    "[follow]") {
  StandbyWorld world;
  world.Write(10);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  Round round = world.Read();
  round.heard_micros = 77;
  using P = SourceProcess;
  round.end.source_process = GENERATE(P::kOpen, P::kClosed, P::kUnknown);
  world.standby()->Hear(round);
  REQUIRE_OK(world.standby()->Sync());
  FollowMark mark = MarkIn(world.dir());
  REQUIRE(mark.heard_micros == 77);
  REQUIRE(mark.source_process == round.end.source_process);
  REQUIRE(mark.begun_micros > 77);
  const uint64_t begun = mark.begun_micros;
  // A cut also ends with an answer of the source.
  REQUIRE_OK(world.Cut(CutReason::kCutEvery));
  mark = MarkIn(world.dir());
  REQUIRE(mark.heard_micros > begun);
  // Only an answer to a request says whether the source was opened since.
  const SourceProcess known = round.end.source_process == P::kOpen
                                  ? P::kOpen
                                  : P::kUnknown;
  REQUIRE(mark.source_process == known);
  REQUIRE(mark.begun_micros == begun);
  const uint64_t heard = mark.heard_micros;
  REQUIRE_OK(world.Open());
  mark = MarkIn(world.dir());
  REQUIRE(mark.heard_micros == heard);
  REQUIRE(mark.source_process == known);
  REQUIRE(mark.begun_micros > heard);
}

TEST_CASE("A promotion is refused while it is unknown whether a process has the "
          "source open",
          "[follow]") {
  using P = SourceProcess;
  const P process = GENERATE(P::kOpen, P::kClosed, P::kUnknown);
  StandbyWorld world;
  MakeStandby(&world);
  Round round;
  round.heard_micros = MicrosNow() + 1;
  round.end.source_process = process;
  world.standby()->Hear(round);
  REQUIRE_OK(world.standby()->Sync());
  PromoteOptions options;
  options.dir = world.dir();
  options.before = [&world](const SwapEvent&) {
    world.CloseStandby();
    return rocksdb::Status::OK();
  };
  StandbyState state;
  const rocksdb::Status promoted = MakePromote(options)->Run(&state);
  INFO(promoted.ToString());
  if (process == P::kClosed) {
    REQUIRE_OK(promoted);
  } else {
    REQUIRE(EndStateOf(promoted) == EndState::kRefused);
    REQUIRE(IsStandby(world.dir()));
  }
  REQUIRE(state.source_process == process);
}

// Writes a mark after the newest one.
void PutMark(const std::string& dir, FollowMark mark) {
  ++mark.count;
  std::string slot;
  EncodeFollowMark(mark, &slot);
  std::fstream file(dir + "/" + kFollowMarkName,
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(mark.count % kFollowMarkSlots *
                                         kFollowMarkSlotBytes));
  file << slot;
}

TEST_CASE("A promotion is refused unless the follower has just waited for its "
          "source",
          "[follow]") {
  constexpr uint64_t kSecond = 1'000'000;
  const std::string silent =
      GENERATE(as<std::string>(), "never", "long ago", "in the future", "now");
  INFO(silent);
  StandbyWorld world;
  MakeStandby(&world);
  const uint64_t now = MicrosNow();
  FollowMark mark = MarkIn(world.dir());
  mark.begun_micros = now - 120 * kSecond;
  mark.heard_micros = now - 60 * kSecond;
  mark.source_process = SourceProcess::kOpen;
  if (silent == "long ago") mark.silent_micros = now - 30 * kSecond;
  if (silent == "in the future") mark.silent_micros = now + 600 * kSecond;
  if (silent == "now") mark.silent_micros = now;
  PutMark(world.dir(), mark);
  PromoteOptions options;
  options.dir = world.dir();
  options.before = [&world](const SwapEvent&) {
    world.CloseStandby();
    return rocksdb::Status::OK();
  };
  StandbyState state;
  const rocksdb::Status promoted = MakePromote(options)->Run(&state);
  INFO(promoted.ToString());
  if (silent == "now") {
    REQUIRE_OK(promoted);
  } else {
    REQUIRE(EndStateOf(promoted) == EndState::kRefused);
    REQUIRE(world.standby() != nullptr);
    REQUIRE(IsStandby(world.dir()));
  }
}

TEST_CASE("A promotion believes no answer from before the clock was set back",
          "[follow]") {
  constexpr uint64_t kSecond = 1'000'000;
  const bool is_silent = GENERATE(false, true);
  StandbyWorld world;
  MakeStandby(&world);
  const uint64_t now = MicrosNow();
  FollowMark mark = MarkIn(world.dir());
  mark.begun_micros = now - 120 * kSecond;
  mark.heard_micros = now + 3600 * kSecond;
  mark.source_process = SourceProcess::kClosed;
  mark.silent_micros = is_silent ? now : 0;
  PutMark(world.dir(), mark);
  std::string warnings;
  PromoteOptions options;
  options.dir = world.dir();
  options.log = [&warnings](LogLevel, const std::string& text) {
    warnings += text + "\n";
  };
  options.before = [&world](const SwapEvent&) {
    world.CloseStandby();
    return rocksdb::Status::OK();
  };
  StandbyState state;
  const rocksdb::Status promoted = MakePromote(options)->Run(&state);
  INFO(promoted.ToString() << '\n' << warnings);
  if (is_silent) {
    REQUIRE_OK(promoted);
    REQUIRE(warnings.find("may still be open") != std::string::npos);
  } else {
    REQUIRE(EndStateOf(promoted) == EndState::kRefused);
    REQUIRE(IsStandby(world.dir()));
  }
}

TEST_CASE("A promotion believes no close from before the clock was set back",
          "[follow]") {
  const bool was_marked = GENERATE(false, true);
  StandbyWorld world;
  MakeStandby(&world);
  FollowMark mark = MarkIn(world.dir());
  mark.closed_micros =
      MicrosNow() + (was_marked ? 500'000ull : 3'600'000'000ull);
  if (was_marked) {
    PutMark(world.dir(), mark);
    ++mark.count;
  }
  PromoteOptions options;
  options.dir = world.dir();
  options.after_source_closed = true;
  options.wait = std::chrono::milliseconds(1500);
  options.before = [&world](const SwapEvent&) {
    world.CloseStandby();
    return rocksdb::Status::OK();
  };
  // The answer to a request from before the promotion began.
  std::thread follower([&] {
    const auto after =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    AwaitThat([after] { return std::chrono::steady_clock::now() > after; });
    PutMark(world.dir(), mark);
  });
  StandbyState state;
  const rocksdb::Status promoted = MakePromote(options)->Run(&state);
  follower.join();
  INFO(promoted.ToString());
  REQUIRE(EndStateOf(promoted) == EndState::kDeadline);
  REQUIRE(IsStandby(world.dir()));
}

// Counts how often WALs are opened to read them.
class CountedWals : public FaultyFileSystem {
 public:
  rocksdb::IOStatus NewRandomAccessFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
      rocksdb::IODebugContext* dbg) override {
    opened_ += name.ends_with(".log") ? 1 : 0;
    return FaultyFileSystem::NewRandomAccessFile(name, options, file, dbg);
  }
  size_t opened() const { return opened_; }

 private:
  size_t opened_ = 0;
};

TEST_CASE("A promotion reads each WAL once before its fence and once after it, "
          "and keeps what arrived in between",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  const auto wals = [&world] { return FileCount(world.dir(), ".log"); };
  const size_t before = wals();
  const auto disk = std::make_shared<CountedWals>();
  PromoteOptions options;
  options.dir = world.dir();
  options.source_is_down = true;
  options.file_system = disk;
  options.before = [&](const SwapEvent&) {
    REQUIRE(disk->opened() == before);
    world.Write(10);
    REQUIRE_OK(world.Follow());
    world.source()->Flush();
    world.Write(10);  // in the next WAL
    REQUIRE_OK(world.Follow());
    world.CloseStandby();
    return rocksdb::Status::OK();
  };
  StandbyState state;
  REQUIRE_OK(MakePromote(options)->Run(&state));
  REQUIRE(disk->opened() == before + wals());
  REQUIRE(state.sequence == world.sequence());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

// With --durable 30s, a promotion needs to know more often what was heard.
TEST_CASE("A mark of what was heard repeats what is durable", "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  Standby* const standby = world.standby();
  REQUIRE_OK(standby->Sync());
  const FollowMark before = MarkIn(world.dir());
  world.Write(50);
  Round round = world.Read();
  REQUIRE_OK(standby->Append(standby->position(), round));
  round.heard_micros = before.heard_micros + 1;
  round.end.source_process = SourceProcess::kOpen;
  standby->Hear(round);
  REQUIRE_OK(standby->MarkHeard());
  const FollowMark heard = MarkIn(world.dir());
  REQUIRE(heard.count == before.count + 1);
  REQUIRE(heard.heard_micros == round.heard_micros);
  REQUIRE(heard.last_sequence == before.last_sequence);
  REQUIRE(heard.wal_bytes == before.wal_bytes);
  REQUIRE_OK(standby->MarkHeard());
  REQUIRE(MarkIn(world.dir()).count == heard.count);  // nothing new
  REQUIRE_OK(standby->Sync());
  REQUIRE(MarkIn(world.dir()).last_sequence > before.last_sequence);
}

TEST_CASE("A mark says that a source is silent after it has owed an answer for "
          "longer than the time between two pings",
          "[follow]") {
  REQUIRE(kSourceSilent > Timeouts().ping_interval());
  StandbyWorld world;
  MakeStandby(&world);
  Standby* const standby = world.standby();
  const auto silent = [&] {
    REQUIRE_OK(standby->Sync());
    return MarkIn(world.dir()).silent_micros;
  };
  REQUIRE(silent() == 0);
  const auto begin = std::chrono::steady_clock::now();
  standby->Ask();
  uint64_t first = 0;
  REQUIRE(AwaitThat([&] {
    standby->Ask();  // a request after one that failed
    first = silent();
    return first != 0;
  }));
  REQUIRE(std::chrono::steady_clock::now() - begin > kSourceSilent);
  REQUIRE(AwaitThat([&] { return silent() != first; }));  // the next mark
  standby->Hear(Round());
  REQUIRE(silent() == 0);
}

TEST_CASE("Each file that the MANIFEST of a standby names is checked",
          "[follow]") {
  rocksdb::DBOptions options;
  options.track_and_verify_wals_in_manifest = true;
  StandbyWorld world(options);
  rocksdb::ColumnFamilyOptions blobs = Quiet();
  blobs.enable_blob_files = true;
  world.source()->Create({"blobs", blobs});
  world.source()->Put("k", std::string(1000, 'v'), "blobs");
  world.Write(50);
  world.source()->Flush();
  world.Write(50);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  world.CloseStandby();
  const auto disk = rocksdb::FileSystem::Default();
  HealthFile fault;
  REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
  REQUIRE(fault.fault == ReplicaFault::kNone);
  std::set<std::string> seen;
  for (const auto& entry : fs::directory_iterator(world.dir())) {
    const std::string path = entry.path();
    const std::string kind = entry.path().extension();
    const bool is_named = kind == ".sst" || kind == ".blob" ||
                          path.find("/MANIFEST-") != std::string::npos;
    if (!is_named) continue;
    INFO(path);
    seen.insert(kind);
    fs::rename(path, world.root() + "/aside");
    REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
    REQUIRE(fault.fault == ReplicaFault::kDamaged);
    REQUIRE(fault.what.starts_with(path + ": "));
    REQUIRE(fault.what.ends_with(" names it, but it is missing"));
    fs::create_directory(path);
    REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
    REQUIRE(fault.what.ends_with(" says, found something that is not a file"));
    fs::remove(path);
    fs::rename(world.root() + "/aside", path);
    const auto bytes = fs::file_size(path);
    if (kind.empty()) continue;  // a MANIFEST's size is not checked here
    fs::resize_file(path, bytes / 2);
    REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
    REQUIRE(fault.what.find(" says, found " + std::to_string(bytes / 2)) !=
            std::string::npos);
    fs::resize_file(path, bytes);  // only the size is checked
    REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
    REQUIRE(fault.fault == ReplicaFault::kNone);
  }
  REQUIRE(seen == std::set<std::string>{"", ".blob", ".sst"});
}

TEST_CASE("A standby whose fault could not be recorded is damaged",
          "[follow]") {
  StandbyWorld world;
  const auto disk = std::make_shared<FaultyFileSystem>();
  world.UseDisk(disk);
  MakeStandby(&world);
  disk->FailAt(FileStep::kCreate, 1, DiskFull(), kHealthFileName);
  HealthFile found = MakeFault(ReplicaFault::kDifferent, "key 7", Selection());
  REQUIRE(EndStateOf(RecordFault(disk.get(), world.dir(), &found)) ==
          EndState::kNoSpace);
  world.CloseStandby();
  HealthFile fault;
  REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
  REQUIRE(fault.fault == ReplicaFault::kDamaged);
  PromoteOptions options;
  options.dir = world.dir();
  options.source_is_down = true;
  StandbyState state;
  REQUIRE(EndStateOf(MakePromote(options)->Run(&state)) == EndState::kCorrupt);
  // The next cut writes the record again.
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut(CutReason::kDamage));
  REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
  REQUIRE(fault.fault == ReplicaFault::kNone);
}

TEST_CASE("A follower and a promotion cut off a torn end", "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  REQUIRE_OK(world.standby()->Sync());
  const uint64_t sequence = world.sequence();
  world.Write(1);
  const Round round = world.Read();
  const std::string torn = round.logs.front().bytes.substr(0, 9);
  const std::string wal = world.newest_wal();
  world.CloseStandby();
  // The follower may also have been killed in its first write into a WAL.
  const bool is_next = GENERATE(false, true);
  const std::string torn_wal =
      is_next ? world.dir() + "/" +
                    NumberedName(round.logs.front().wal_number + 1, ".log")
              : wal;
  std::ofstream(torn_wal, std::ios::app | std::ios::binary) << torn;
  if (GENERATE(false, true)) {
    REQUIRE_OK(world.Open());
    REQUIRE(world.standby()->received().last_sequence == sequence);
    REQUIRE_OK(world.Follow());
    world.CloseStandby();
    REQUIRE_OK(world.Promote());
    REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
  } else {
    const auto size = fs::file_size(torn_wal);
    REQUIRE_OK(world.Promote());
    REQUIRE(fs::file_size(torn_wal) == size - torn.size());
    // This mode opens no database with a torn WAL.
    rocksdb::DBOptions options;
    options.wal_recovery_mode =
        rocksdb::WALRecoveryMode::kAbsoluteConsistency;
    REQUIRE(RequirePrefixIn(world.dir(), options) == sequence);
  }
}

TEST_CASE("A WAL that is shorter than its durable size is damage", "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  REQUIRE_OK(world.standby()->Sync());
  const std::string wal = world.newest_wal();
  world.CloseStandby();
  std::string bytes = BytesOf(wal);
  const bool is_short = GENERATE(true, false);
  if (is_short) {
    bytes.pop_back();
  } else {
    bytes[bytes.size() / 2] ^= 1;
  }
  std::ofstream(wal, std::ios::binary) << bytes;
  const std::string mark = BytesOf(world.dir() + "/" + kFollowMarkName);
  HealthFile fault;
  const auto disk = rocksdb::FileSystem::Default();
  REQUIRE_OK(FindStandbyFault(disk.get(), world.dir(), &fault));
  REQUIRE((fault.fault == ReplicaFault::kDamaged) == is_short);
  REQUIRE_OK(ProveStandby(disk.get(), world.dir(), &fault));
  REQUIRE(fault.fault == ReplicaFault::kDamaged);
  REQUIRE(EndStateOf(world.Promote()) == EndState::kCorrupt);
  REQUIRE(IsStandby(world.dir()));
  // A follower leaves the WAL unchanged, and a cut repairs the standby.
  REQUIRE_OK(world.Open());
  REQUIRE(world.standby()->gap().reason == CutReason::kDamage);
  REQUIRE(world.standby()->gap().note.starts_with(wal + ": "));
  REQUIRE_OK(world.standby()->Sync());
  REQUIRE(fs::file_size(wal) == bytes.size());
  REQUIRE(BytesOf(world.dir() + "/" + kFollowMarkName) == mark);
  REQUIRE_OK(world.Cut(CutReason::kDamage));
  REQUIRE(world.standby()->gap().reason == CutReason::kNone);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

TEST_CASE("A cut keeps records that arrived since its snapshot", "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.source()->Flush();
  world.Write(10);
  REQUIRE_OK(world.Follow());
  uint64_t appended = 0;
  // More records arrive while the cut is built, also in another WAL.
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:TotalsAgreed" && appended == 0) {
      world.Write(10);
      REQUIRE_OK(world.Follow());
      world.source()->Flush();
      world.Write(10);
      REQUIRE_OK(world.Follow());
      appended = world.sequence();
    }
  });
  REQUIRE_OK(world.Cut(CutReason::kCutEvery));
  TEST_SetFaultHook(nullptr);
  REQUIRE(appended != 0);
  REQUIRE(world.standby()->received().last_sequence == appended);
  REQUIRE(world.standby()->record().cuts.at(
              static_cast<size_t>(CutReason::kCutEvery)) == 1);
  REQUIRE(world.standby()->record().cuts.at(
              static_cast<size_t>(CutReason::kFirst)) == 1);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  REQUIRE_FALSE(fs::exists(world.dir() + ".sstferry"));
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

// Follows until the standby has two WALs, which the family `other` needs.
void FollowTwoWals(StandbyWorld* world) {
  MakeStandby(world);
  world->Write(10);
  REQUIRE_OK((*world->source())->Flush(rocksdb::FlushOptions()));
  world->Write(10);
  REQUIRE_OK(world->Follow());
  REQUIRE(FileCount(world->dir(), ".log") >= 2);
}

TEST_CASE("A cut whose WAL has other bytes than the standby's is not taken",
          "[follow]") {
  StandbyWorld world;
  FollowTwoWals(&world);
  const uint64_t had = world.standby()->received().last_sequence;
  const std::string wal = world.newest_wal();
  std::string bytes = BytesOf(wal);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(wal, std::ios::binary) << bytes;
  const rocksdb::Status cut = world.Cut(CutReason::kCutEvery);
  REQUIRE(EndStateOf(cut) == EndState::kCorrupt);
  REQUIRE(world.standby()->gap().reason == CutReason::kDamage);
  REQUIRE(world.standby()->received().last_sequence == had);
  REQUIRE(world.standby()->record().reason == CutReason::kFirst);
}

TEST_CASE("A cut with a truncated WAL before its newest is not taken",
          "[follow]") {
  StandbyWorld world;
  FollowTwoWals(&world);
  const std::string earlier =
      fs::path(PathsWith(world.dir(), ".log").front()).filename();
  const std::string in_cut = world.dir() + ".sstferry/db/" + earlier;
  bool was_cut = false;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:AccessSet") {
      was_cut = fs::exists(in_cut);
      fs::resize_file(in_cut, fs::file_size(in_cut) / 2);
    }
  });
  const rocksdb::Status cut = world.Cut(CutReason::kCutEvery);
  TEST_SetFaultHook(nullptr);
  REQUIRE(was_cut);
  REQUIRE(EndStateOf(cut) == EndState::kSourceError);
  REQUIRE(world.standby()->record().reason == CutReason::kFirst);
  // The standby continues, and takes the next cut.
  world.Write(10);
  REQUIRE_OK(world.Follow());
  REQUIRE_OK(world.Cut(CutReason::kCutEvery));
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

// Returns the number of the next file that RocksDB will make in `dir`.
uint64_t NextNumber(const std::string& dir) {
  uint64_t newest = 0;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename();
    const size_t digit = name.find_first_of("0123456789");
    if (digit != std::string::npos) {
      newest = std::max<uint64_t>(newest, std::stoull(name.substr(digit)));
    }
  }
  return newest + 1;
}

TEST_CASE("A WAL without a record is ignored in a cut, and when records are "
          "carried into one",
          "[follow]") {
  StandbyWorld world;
  world.Write(20);
  const uint64_t next = NextNumber(world.source_dir());
  std::ofstream(world.source_dir() + "/" + NumberedName(next, ".log"))
      .flush();
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  REQUIRE(fs::exists(world.dir() + "/" + NumberedName(next, ".log")));
  REQUIRE(world.standby()->position().wal_number < next);
  REQUIRE(world.standby()->position().wal_bytes > 0);
  world.Write(20);
  REQUIRE_OK(world.Follow());
  // The cut has fewer records than the standby, and it has the empty WAL.
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:TotalsAgreed") {
      world.Write(20);
      REQUIRE_OK(world.Follow());
    }
  });
  REQUIRE_OK(world.Cut(CutReason::kCutEvery));
  TEST_SetFaultHook(nullptr);
  REQUIRE(world.standby()->received().last_sequence == world.sequence());
  REQUIRE_OK(world.Open());  // restarted
  REQUIRE(world.standby()->position().wal_number < next);
  const uint64_t sequence = world.sequence();
  SECTION("the standby is promoted") {
    world.CloseStandby();
    REQUIRE_OK(world.Promote());
    REQUIRE(world.RequirePrefix(world.dir()) == sequence);
  }
  SECTION("the WAL gets records") {
    world.source()->Flush();
    world.Write(20);
    REQUIRE_OK(world.Follow());
    REQUIRE(world.standby()->position().wal_number >= next);
    world.CloseStandby();
    REQUIRE_OK(world.Promote());
    REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
  }
}

TEST_CASE("Records after a gap are not accepted, and a cut closes the gap",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  const uint64_t had = world.sequence();
  world.Write(10);
  const uint64_t missing = world.sequence();
  // The family `other` still needs the WAL.
  REQUIRE_OK((*world.source())->Flush(rocksdb::FlushOptions()));
  world.Write(10);
  Round round = world.Read();
  REQUIRE(round.logs.size() == 2);
  const bool is_behind_a_restart = GENERATE(false, true);
  if (is_behind_a_restart) REQUIRE_OK(world.Open());
  round.logs.erase(round.logs.begin());
  const FollowPosition at = world.standby()->position();
  for (int i = 0; i < 2; ++i) {
    REQUIRE_OK(world.standby()->Append(at, round));
    REQUIRE(world.standby()->gap().reason == CutReason::kSequenceGap);
    REQUIRE(world.standby()->position() == at);
  }
  REQUIRE(world.standby()->gap().note.ends_with(
      ", before sequence " + std::to_string(missing + 1)));
  REQUIRE(world.standby()->received().last_sequence == had);
  REQUIRE_OK(world.Cut(CutReason::kSequenceGap));
  REQUIRE(world.standby()->gap().reason == CutReason::kNone);
  REQUIRE(world.standby()->record().unproven_dirs.empty());
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

TEST_CASE("Missing records and wrong bytes of any WAL are found when a "
          "follower starts, and by a promotion",
          "[follow]") {
  StandbyWorld world;
  world.Write(100);
  world.source()->Flush();
  // The family `other` needs all WALs that are written after this.
  for (int i = 0; i < 2; ++i) {
    world.Write(10);
    REQUIRE_OK((*world.source())->Flush(rocksdb::FlushOptions()));
  }
  world.Write(10);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());  // of three WALs
  world.Write(10);
  for (int i = 0; i < 2; ++i) {
    REQUIRE_OK((*world.source())->Flush(rocksdb::FlushOptions()));
    world.Write(10);
  }
  REQUIRE_OK(world.Follow());
  REQUIRE_OK(world.standby()->Sync());
  world.CloseStandby();
  const std::vector<std::string> wals = PathsWith(world.dir(), ".log");
  REQUIRE(wals.size() == 5);
  const size_t which = GENERATE(0, 1, 2, 3, 4);
  const std::string how =
      GENERATE(as<std::string>(), "removed", "emptied",
               "cut at its last record", "flipped",
               "flipped in its last record");
  INFO(which << " " << how);
  const std::string& wal = wals[which];
  std::string bytes = BytesOf(wal);
  const Followed before =
      test::Follow(bytes, LogKind::kWal, std::stoull(fs::path(wal).stem()));
  REQUIRE(before.ends.size() > 2);
  const uint64_t last = *std::prev(before.ends.end(), 2);
  if (how == "removed") {
    fs::remove(wal);
  } else if (how == "emptied") {
    fs::resize_file(wal, 0);
  } else if (how == "cut at its last record") {
    fs::resize_file(wal, last);
  } else {
    bytes[how == "flipped" ? bytes.size() / 2 : last + 8] ^= 1;
    std::ofstream(wal, std::ios::binary) << bytes;
  }
  REQUIRE(EndStateOf(world.Promote()) == EndState::kCorrupt);
  REQUIRE(IsStandby(world.dir()));
  const std::string mark = BytesOf(world.dir() + "/" + kFollowMarkName);
  REQUIRE_OK(world.Open());
  REQUIRE(world.standby()->gap().reason == CutReason::kDamage);
  REQUIRE_OK(world.standby()->Sync());
  REQUIRE(BytesOf(world.dir() + "/" + kFollowMarkName) == mark);
  const Round round = world.Read();
  const FollowPosition at = world.standby()->position();
  REQUIRE_OK(world.standby()->Append(at, round));
  REQUIRE(world.standby()->position() == at);
  REQUIRE_OK(world.Cut(CutReason::kDamage));
  REQUIRE(world.standby()->gap().reason == CutReason::kNone);
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

StandbyState StateOf(const std::string& dir) {
  bool found = false;
  StandbyState state;
  REQUIRE_OK(ReadStandbyState(dir, &found, &state));
  return state;
}

void AwaitDurable(const StandbyWorld& world) {
  REQUIRE(AwaitThat([&world] {
    return IsStandby(world.dir()) &&
           StateOf(world.dir()).durable_sequence >= world.sequence();
  }));
}

// A new family (or an ingestion) needs a cut now, while a scheduled cut, which
// runs slowly on a busy machine, is half done.
TEST_CASE("A scheduled cut is abandoned for one that is needed now",
          "[follow]") {
  StandbyWorld world;
  world.Write(50);
  Gate due;
  Gate needed;
  std::atomic<bool> given_up{false};
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:TotalsAgreed" && IsStandby(world.dir())) {
      (given_up ? needed : due).Pass();
    }
  });
  FollowOptions options;
  options.pull = world.Options();
  options.cut_every = std::chrono::milliseconds(1);
  options.pull.log = [&](LogLevel, const std::string& text) {
    if (text.starts_with("the follower abandons the cut")) {
      given_up = true;
      due.Open();
    }
  };
  RunningFollower follower(options);
  const std::shared_ptr<void> opens(nullptr, [&](void*) {
    due.Open();
    needed.Open();
  });
  REQUIRE(due.AwaitReached());
  world.Write(10);  // more records arrive
  AwaitDurable(world);
  REQUIRE_FALSE(given_up);
  const uint64_t before = world.sequence();
  world.source()->Create({"third", Quiet()});
  world.source()->Put("k", "v", "third");
  const bool is_needed = needed.AwaitReached();
  // The standby has neither the abandoned cut nor the records after the
  // barrier.
  const StandbyState between = StateOf(world.dir());
  CHECK(between.cuts.at("cut-every") == 0);
  CHECK(between.cuts.at("first") == 1);
  CHECK(between.durable_sequence == before);
  REQUIRE(is_needed);
  needed.Open();
  AwaitDurable(world);
  CHECK(StateOf(world.dir()).cuts.at("barrier") == 1);
  REQUIRE_OK(follower.Stop());
  const uint64_t sequence = world.sequence();
  REQUIRE_OK(world.Promote());
  OpenDb db(world.dir(), {{"default", Quiet()}, {"other", Quiet()},
                          {"third", Quiet()}});
  REQUIRE(db->GetLatestSequenceNumber() == sequence);
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), db.cf("third"), "k", &value));
}

// Records damage of the standby the first time that a cut reaches `point`, as a
// verify in another process would.
void RecordAt(const std::string& point, const StandbyWorld& world) {
  auto left = std::make_shared<std::atomic<int>>(1);
  TEST_SetFaultHook([=, dir = world.dir()](const std::string& name) {
    if (name == point && IsStandby(dir) && (*left)-- == 1) {
      HealthFile fault = MakeFault(ReplicaFault::kDamaged, "found meanwhile",
                                   Selection());
      RecordFault(rocksdb::FileSystem::Default().get(), dir, &fault)
          .PermitUncheckedError();
    }
  });
}

TEST_CASE("A fault that is found during a cut stays known", "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  RecordAt(GENERATE(as<std::string>(), "CloneTarget:FilesLinked",
                    "Puller:TotalsAgreed", "Puller:BeforeSwapDone"),
           world);
  const rocksdb::Status cut = world.Cut(CutReason::kCutEvery);
  TEST_SetFaultHook(nullptr);
  INFO(cut.ToString());
  REQUIRE(EndStateOf(cut) == EndState::kCorrupt);
  world.CloseStandby();
  PromoteOptions promote;
  promote.dir = world.dir();
  promote.source_is_down = true;
  StandbyState state;
  REQUIRE(EndStateOf(MakePromote(promote)->Run(&state)) ==
          EndState::kCorrupt);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut(CutReason::kDamage));
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(world.dir(), &known));
  REQUIRE(known.fault == ReplicaFault::kNone);
}

TEST_CASE("A follower takes another cut after one during which a fault was "
          "found",
          "[follow]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  RecordAt("Puller:BeforeSwapDone", world);
  FollowOptions options;
  options.pull = world.Options();
  options.cut_every = std::chrono::milliseconds(1);
  RunningFollower follower(options);
  AwaitDurable(world);
  REQUIRE(AwaitThat([&] {
    return IsStandby(world.dir()) &&
           StateOf(world.dir()).cuts["damage"] != 0;
  }));
  REQUIRE_OK(follower.Stop());
  HealthFile known;
  REQUIRE_OK(ReadKnownFault(world.dir(), &known));
  REQUIRE(known.fault == ReplicaFault::kNone);
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

TEST_CASE("A promotion is refused while a required cut asks the source nothing",
          "[follow]") {
  StandbyWorld world;
  world.Write(50);
  Gate cut;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:TotalsAgreed" && IsStandby(world.dir())) cut.Pass();
  });
  FollowOptions options;
  options.pull = world.Options();
  RunningFollower follower(options);
  const std::shared_ptr<void> opens(nullptr, [&](void*) { cut.Open(); });
  AwaitDurable(world);
  world.source()->Create({"third", Quiet()});
  REQUIRE(cut.AwaitReached());
  // The source runs, but its last answer becomes old.
  REQUIRE(AwaitThat([&] {
    return StateOf(world.dir()).heard_micros + 5'500'000 < MicrosNow();
  }));
  bool is_fenced = false;
  PromoteOptions promote;
  promote.dir = world.dir();
  promote.before = [&is_fenced](const SwapEvent&) {
    is_fenced = true;
    return rocksdb::Status::Aborted("the follower still runs");
  };
  StandbyState state;
  const rocksdb::Status promoted = MakePromote(promote)->Run(&state);
  INFO(promoted.ToString());
  REQUIRE(EndStateOf(promoted) == EndState::kRefused);
  REQUIRE_FALSE(is_fenced);
  cut.Open();
  REQUIRE_OK(follower.Stop());
}

TEST_CASE("Only cuts during which records arrive delete replaced files slowly",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  for (const CutReason reason :
       {CutReason::kBarrier, CutReason::kNewLife, CutReason::kDamage,
        CutReason::kCutEvery, CutReason::kMaxReplay}) {
    INFO(CutReasonName(reason));
    const CutRequest request{reason};
    PullOptions options = world.Options();
    REQUIRE_OK(SetCutOptions(request, world.standby(), nullptr, &options));
    REQUIRE((options.delete_rate_bytes_per_sec > 0) == request.continues());
  }
}

// Follows until the standby has everything, and stops.
void FollowUp(const StandbyWorld& world) {
  FollowOptions options;
  options.pull = world.Options();
  RunningFollower follower(options);
  AwaitDurable(world);
  REQUIRE_OK(follower.Stop());
}

TEST_CASE("A follower whose disk fails ends, although it is taking a cut",
          "[follow]") {
  StandbyWorld world;
  const auto disk = std::make_shared<FaultyFileSystem>();
  world.UseDisk(disk);
  for (int i = 0; i < 2; ++i) {
    world.source()->Put("large", RandomBytes(2'000'000, i));
    world.source()->Flush();
  }
  FollowUp(world);
  // A cut must now fetch a table, which takes minutes.
  world.source()->Compact();
  FollowOptions options;
  options.pull = world.Options();
  options.pull.max_rate_bytes_per_sec = 20'000;
  options.durable = std::chrono::milliseconds(10);
  options.cut_every = std::chrono::milliseconds(1);
  Gate begun;
  begun.Open();
  TEST_SetFaultHook([&begun](const std::string& name) {
    if (name == "Puller:HeadWritten") begun.Pass();
  });
  RunningFollower follower(options);
  REQUIRE(begun.AwaitReached());
  disk->FailAt(FileStep::kAppend, 1, DiskBroken(), world.dir() + "/",
               /*for_good=*/true);
  world.Write(1);
  REQUIRE(follower.AwaitEnd());
  REQUIRE_FALSE(follower.Stop().ok());
}

TEST_CASE("A stopped follower whose last sync fails does not end with OK",
          "[follow]") {
  StandbyWorld world;
  const auto disk = std::make_shared<FaultyFileSystem>();
  world.UseDisk(disk);
  world.Write(20);
  FollowUp(world);
  FollowOptions options;
  options.pull = world.Options();
  options.durable = std::chrono::hours(1);  // only the stop syncs
  std::atomic<uint64_t> received{0};
  options.on_state = [&received](const StandbyState& state) {
    received = state.sequence;
  };
  RunningFollower follower(options);
  world.Write(5);
  REQUIRE(AwaitThat([&] { return received >= world.sequence(); }));
  disk->FailAt(FileStep::kSync, 1, DiskBroken(), ".log", /*for_good=*/true);
  REQUIRE(EndStateOf(follower.Stop()) == EndState::kInternal);
}

TEST_CASE("A promotion that is cancelled while a follower runs ends with "
          "CANCELLED",
          "[follow]") {
  StandbyWorld world;
  world.Write(20);
  FollowOptions follow;
  follow.pull = world.Options();
  RunningFollower follower(follow);
  AwaitDurable(world);
  PromoteOptions promote;
  promote.dir = world.dir();
  promote.source_is_down = true;
  promote.before = [](const SwapEvent&) { return rocksdb::Status::OK(); };
  std::unique_ptr<StandbyJob> job;
  promote.log = [&job](LogLevel, const std::string& text) {
    if (text.starts_with("waiting up to")) job->Cancel();
  };
  job = MakePromote(promote);
  StandbyState state;
  REQUIRE(EndStateOf(job->Run(&state)) == EndState::kCancelled);
  REQUIRE(IsStandby(world.dir()));
  REQUIRE_OK(follower.Stop());
}

TEST_CASE("A scheduled cut that failed is not tried again soon", "[follow]") {
  StandbyWorld world;
  const auto disk = std::make_shared<FaultyFileSystem>();
  world.UseDisk(disk);
  world.Write(20);
  FollowUp(world);
  disk->SetFreeSpace(1);
  world.Write(20);
  FollowOptions options;
  options.pull = world.Options();
  options.cut_every = std::chrono::milliseconds(1);
  std::mutex mu;
  std::vector<std::chrono::steady_clock::time_point> failed;
  options.pull.log = [&](LogLevel, const std::string& text) {
    if (text.starts_with("a cut that was due could not be taken")) {
      const std::lock_guard<std::mutex> lock(mu);
      failed.push_back(std::chrono::steady_clock::now());
    }
  };
  RunningFollower follower(options);
  const auto failures = [&] {
    const std::lock_guard<std::mutex> lock(mu);
    return failed.size();
  };
  REQUIRE(AwaitThat([&] { return failures() >= 2; }));
  REQUIRE_OK(follower.Stop());
  // Each try makes the source pin a snapshot.
  REQUIRE(failed[1] - failed[0] > std::chrono::seconds(2));
}

TEST_CASE("A scheduled cut whose thread does not start is tried again",
          "[follow]") {
  StandbyWorld world;
  world.Write(20);
  FollowUp(world);
  FollowOptions options;
  options.pull = world.Options();
  options.cut_every = std::chrono::milliseconds(1);
  std::atomic<bool> was_told{false};
  std::atomic<bool> is_denied{false};
  std::atomic<int> failures{0};
  // Runs in the thread that starts the cuts.
  options.on_state = [&](const StandbyState&) {
    if (!was_told) {
      is_denied =
          DenyInThisThread({{SYS_clone, EAGAIN}, {SYS_clone3, EAGAIN}});
      was_told = true;
    }
  };
  options.pull.log = [&](LogLevel, const std::string& text) {
    failures += text.find("cannot start a thread") != std::string::npos;
  };
  RunningFollower follower(options);
  REQUIRE(AwaitThat([&] { return was_told.load(); }));
  const bool is_tried_again =
      AwaitThat([&] { return failures >= 2 || !is_denied; });
  follower.Stop().PermitUncheckedError();
  if (!is_denied) {
    WARN("SKIPPED: the kernel filters no calls");
    return;
  }
  REQUIRE(is_tried_again);
}

TEST_CASE("A cut links the tables that the standby has", "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  const std::string table = PathsWith(world.dir(), ".sst").front();
  const auto inode = [&table] {
    struct stat info;
    REQUIRE(stat(table.c_str(), &info) == 0);
    return info.st_ino;
  };
  const auto before = inode();
  world.Write(10);
  REQUIRE_OK(world.Cut(CutReason::kBarrier));
  REQUIRE(inode() == before);
}

TEST_CASE("A view is a separate database, while records keep arriving",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  const uint64_t sequence = world.sequence();
  const std::string view = world.root() + "/view";
  fs::create_directory(view);
  LinkedCopyOptions options;
  options.database_dir = world.dir();
  options.scratch_dir = world.root() + "/scratch";
  options.copy_dir = view;
  REQUIRE_OK(AccessBeside(world.dir(), &options.file_access));
  LinkedCopy copy;
  REQUIRE_OK(MakeLinkedCopy(options, rocksdb::FileSystem::Default().get(),
                            &copy));
  REQUIRE(copy.files_linked > 0);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  REQUIRE(world.RequirePrefix(view) == sequence);
  {
    OpenDb db(view, {{"default", Quiet()}, {"other", Quiet()}});
    db.Put("k", "of the view");
    db.Flush();
  }
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

TEST_CASE("A view changes neither owner nor permissions of what it shows",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.CloseStandby();
  fs::permissions(world.dir(), fs::perms{0755});
  for (const std::string& path : PathsWith(world.dir(), "")) {
    fs::permissions(path, fs::perms{0600});
  }
  ViewOptions options;
  options.dir = world.dir();
  options.view_dir = world.root() + "/view";
  StandbyState state;
  REQUIRE_OK(MakeView(options)->Run(&state));
  for (const std::string& dir : {options.dir, options.view_dir}) {
    REQUIRE(fs::status(dir).permissions() == fs::perms{0755});
    for (const std::string& path : PathsWith(dir, "")) {
      INFO(path);
      REQUIRE(fs::status(path).permissions() == fs::perms{0600});
    }
    REQUIRE(fs::hard_link_count(PathsWith(dir, ".sst").front()) > 1);
  }
}

TEST_CASE("No pull makes a database of an unfinished first cut", "[follow]") {
  StandbyWorld world;
  world.Write(20);
  REQUIRE_OK(world.Open());
  const std::string unwritable = world.dir() + ".sstferry/exchange.tmp";
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "CloneTarget:CurrentWritten") {
      fs::create_directory(unwritable);  // prevents the exchange
    }
  });
  const rocksdb::Status cut = world.Cut();
  TEST_SetFaultHook(nullptr);
  REQUIRE_FALSE(cut.ok());
  REQUIRE(IsStandby(world.dir() + ".sstferry/db"));
  fs::remove(unwritable);
  world.CloseStandby();
  PullOptions options = world.Options();
  options.method = PullMethod::kClone;
  options.mode = GENERATE(PullMode::kPull, PullMode::kSwap);
  Summary summary;
  const rocksdb::Status pulled = MakePull(options)->Run(&summary);
  INFO(pulled.ToString());
  REQUIRE(EndStateOf(pulled) == EndState::kRefused);
  REQUIRE_FALSE(fs::exists(world.dir()));
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  REQUIRE(IsStandby(world.dir()));
}

TEST_CASE(
    "Records that only the standby still has are kept in another directory",
    "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  const uint64_t had = world.sequence();
  world.CloseSource();
  // The source's machine crashed before the last records were durable.
  const std::string wal = PathsWith(world.source_dir(), ".log").back();
  fs::resize_file(wal, fs::file_size(wal) - 1);
  world.OpenSource();
  const uint64_t recovered = world.sequence();
  REQUIRE(recovered < had);
  REQUIRE_OK(world.Cut(CutReason::kNewLife));
  const FollowFile record = world.standby()->record();
  REQUIRE(record.lost_sequences == had - recovered);
  REQUIRE(FileCount(record.lost_dir, ".log") > 0);
  // RocksDB writes an empty batch after a recovery. It takes no sequence.
  REQUIRE(world.standby()->received().last_sequence == recovered);
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == recovered);
}

// Adds the records of all WALs in a directory, with their sequence numbers.
void AddRecords(const std::string& dir, std::set<std::string>* records) {
  std::vector<std::string> names;
  REQUIRE_OK(ListDirectory(dir, &names));
  for (const auto& [number, name] : WalsIn(names)) {
    std::unique_ptr<FileSource> source;
    REQUIRE_OK(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                dir + "/" + name, &source));
    LogFollower follower(LogKind::kWal, number);
    REQUIRE_OK(follower.Follow(
        *source, [records](const rocksdb::Slice& record, uint64_t) {
          records->insert(record.ToString());
          return rocksdb::Status::OK();
        }));
  }
}

std::set<std::string> RecordsIn(const std::string& dir) {
  std::set<std::string> records;
  AddRecords(dir, &records);
  return records;
}

std::set<std::string> KeptRecords(const StandbyWorld& world) {
  std::set<std::string> kept;
  for (const auto& entry : fs::directory_iterator(world.root())) {
    if (entry.path().string().starts_with(world.dir() + ".sstferry-")) {
      AddRecords(entry.path(), &kept);
    }
  }
  return kept;
}

TEST_CASE("Records that a source lost are kept, however much it wrote since",
          "[follow]") {
  int lost_and_passed = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto draws = [&random](uint64_t n) { return random() % n == 0; };
    rocksdb::DBOptions options;
    options.avoid_flush_during_recovery = draws(3);
    StandbyWorld world(options);
    MakeStandby(&world);
    for (int i = 0; i < 3; ++i) {
      world.Write(1 + random() % 20);
      REQUIRE_OK(world.Follow());  // before a flush deletes the WAL
      if (draws(3)) world.source()->Flush();
    }
    world.Write(5);
    REQUIRE_OK(world.Follow());
    const uint64_t had = world.sequence();
    world.CloseSource();
    std::set<std::string> lost = RecordsIn(world.source_dir());
    const std::string wal = PathsWith(world.source_dir(), ".log").back();
    const uint64_t bytes = fs::file_size(wal);
    fs::resize_file(wal, bytes - (draws(4) ? 0 : random() % bytes));
    for (const std::string& record : RecordsIn(world.source_dir())) {
      lost.erase(record);
    }
    world.OpenSource();
    const uint64_t recovered = world.sequence();
    REQUIRE((lost.empty() ? recovered == had : recovered < had));
    for (uint64_t i = random() % 3 * (had - recovered + 5); i > 0; --i) {
      world.source()->Put("k" + std::to_string(i), "of another life");
    }
    if (draws(2)) world.source()->Flush();
    if (draws(4)) {
      world.CloseSource();
      world.OpenSource();
    }
    // A scheduled cut may come before the source has requested one.
    if (draws(2)) {
      REQUIRE(EndStateOf(world.Cut(CutReason::kCutEvery)) ==
              EndState::kSourceError);
    }
    const bool passed = !lost.empty() && world.sequence() >= had;
    lost_and_passed += passed ? 1 : 0;
    REQUIRE_OK(world.Cut(draws(2) ? CutReason::kNewLife
                                  : CutReason::kNotHeld));
    const std::set<std::string> kept = KeptRecords(world);
    for (const std::string& record : lost) REQUIRE(kept.contains(record));
    const FollowFile record = world.standby()->record();
    REQUIRE(record.lost_sequences <= had - recovered);
    REQUIRE(record.lost_dir.empty() == (record.lost_sequences == 0));
    const uint64_t sequence = world.sequence();
    world.CloseStandby();
    REQUIRE_OK(world.Promote());
    OpenDb db(world.dir(), {{"default", Quiet()}, {"other", Quiet()}});
    REQUIRE(db->GetLatestSequenceNumber() == sequence);
  }
  REQUIRE(lost_and_passed > 3);
}

TEST_CASE("A source that begins another MANIFEST while it runs has lost "
          "nothing",
          "[follow]") {
  // RocksDB begins one as soon as the last one has this size.
  StandbyWorld world(DatabaseWith({{"max_manifest_file_size", "1"},
                                   {"max_manifest_space_amp_pct", "0"}}));
  MakeStandby(&world);
  const uint64_t manifest = world.standby()->record().manifest_number;
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.source()->Flush();
  world.Write(5);
  REQUIRE_OK(world.Follow());
  REQUIRE_OK(world.Cut(CutReason::kNewLife));
  const FollowFile record = world.standby()->record();
  REQUIRE(record.manifest_number != manifest);
  REQUIRE(record.lost_sequences == 0);
  REQUIRE(record.lost_dir.empty());
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
}

// Writes, and lets the standby follow, while a flush runs: the records are in
// the WAL after the one whose entries the flush writes.
class InFlush : public rocksdb::EventListener {
 public:
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    if (begun) std::exchange(begun, nullptr)();
  }
  std::function<void()> begun;
};

TEST_CASE("A source that has begun another MANIFEST, and then flushed what the "
          "standby has, has lost nothing",
          "[follow]") {
  const auto listener = std::make_shared<InFlush>();
  rocksdb::DBOptions rolling = DatabaseWith(
      {{"max_manifest_file_size", "20000"},
       {"max_manifest_space_amp_pct", "0"}});
  rolling.listeners.push_back(listener);
  StandbyWorld world(rolling);
  MakeStandby(&world);
  const auto manifest = [&world] {
    return BytesOf(world.source_dir() + "/CURRENT");
  };
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(world.source_dir());
  FollowedSource reader(options);
  FollowRequest request;
  FollowedSource::Found found;
  Round round;
  const auto ask = [&] {
    bool more = true;
    while (more) REQUIRE_OK(reader.ReadRound(true, &more));
    request.position = world.standby()->position();
    REQUIRE_OK(reader.Answer(request, &found, &round));
  };
  const std::string first = manifest();
  for (int i = 0; manifest() == first;) {
    listener->begun = [&] {
      world.Write(1);
      REQUIRE_OK(world.Follow());
      ask();
    };
    // Some batches have no entry of the family that is flushed.
    while (listener->begun) {
      REQUIRE(++i < 800);
      world.Write(1);
      REQUIRE_OK((*world.source())->Flush(rocksdb::FlushOptions()));
    }
    REQUIRE(round.end.cut == CutReason::kNone);
  }
  const std::string second = manifest();
  ask();
  REQUIRE(round.end.cut == CutReason::kNewLife);
  REQUIRE(round.end.judged.manifest_bytes > 0);
  const std::string newest =
      world.source_dir() + "/" +
      fs::path(world.newest_wal()).filename().string();
  REQUIRE(fs::exists(newest));
  const bool is_told = GENERATE(true, false);
  const std::string then =
      GENERATE(as<std::string>(), "flushed", "reopened", "truncated");
  INFO(then << is_told);
  if (then == "truncated") {
    world.CloseSource();
    fs::resize_file(newest, fs::file_size(newest) - 1);
  } else {
    world.Write(2);
    world.source()->Flush();
    REQUIRE(AwaitThat([&] { return !fs::exists(newest); }));
    REQUIRE(manifest() == second);
  }
  if (then == "reopened") {
    world.CloseSource();
    world.OpenSource();
  }
  CutRequest cut{CutReason::kNewLife};
  if (is_told) cut.continued = round.end.judged;
  REQUIRE_OK(CutStandby(world.Options(), cut, world.standby()));
  const FollowFile record = world.standby()->record();
  REQUIRE((record.lost_dir.empty() && record.unproven_dirs.empty()) ==
          (is_told && then == "flushed"));
  REQUIRE((then != "truncated" || !record.lost_dir.empty()));
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  const uint64_t sequence = world.RequirePrefix(world.dir());
  REQUIRE((then == "truncated" || sequence == world.sequence()));
}

TEST_CASE("A source that was restored does not continue what its followers had",
          "[follow]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  world.CloseSource();
  const std::string saved = world.root() + "/saved";
  fs::copy(world.source_dir(), saved, fs::copy_options::recursive);
  world.OpenSource();
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(world.source_dir());
  FollowedSource reader(options);
  FollowedSource::Found found;
  Round round;
  const auto ask = [&] {
    bool more = true;
    while (more) REQUIRE_OK(reader.ReadRound(true, &more));
    FollowRequest request;
    request.position = world.standby()->position();
    REQUIRE_OK(reader.Answer(request, &found, &round));
  };
  world.Write(10);
  REQUIRE_OK(world.Follow());
  ask();
  REQUIRE(round.end.cut == CutReason::kNone);
  world.CloseSource();
  fs::remove_all(world.source_dir());
  fs::copy(saved, world.source_dir(), fs::copy_options::recursive);
  world.OpenSource();
  world.Write(40);  // more than before
  ask();
  REQUIRE(round.end.cut == CutReason::kNewLife);
  REQUIRE(round.end.judged == FollowJudged());
}

// Copies a database that no process has open.
void CopyTo(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

// Requires that the cut kept the standby of sequence `had` as a database, which
// has everything that the source no longer has.
void RequireKept(StandbyWorld* world, uint64_t had) {
  const FollowFile record = world->standby()->record();
  REQUIRE(record.unproven_dirs.empty());
  REQUIRE(record.lost_dir.starts_with(world->dir() + ".sstferry-lost-"));
  REQUIRE(record.lost_sequences > 0);
  struct stat dir;
  struct stat kept;
  REQUIRE(stat(world->dir().c_str(), &dir) == 0);
  REQUIRE(stat(record.lost_dir.c_str(), &kept) == 0);
  REQUIRE(kept.st_mode == dir.st_mode);
  REQUIRE(world->RequirePrefix(record.lost_dir) == had);
}

// Takes a cut of a source that may be another database.
rocksdb::Status CutOfAny(StandbyWorld* world) {
  PullOptions options = world->Options();
  options.adopt = true;
  return CutStandby(options, {CutReason::kNewLife}, world->standby());
}

TEST_CASE("A follower takes no cut of another database, except with --adopt",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  const uint64_t had = world.sequence();
  const std::string known = world.standby()->record().source_database_id;
  world.CloseStandby();
  world.CloseSource();
  fs::remove_all(world.source_dir());
  world.OpenSource();
  std::string id;
  REQUIRE_OK((*world.source())->GetDbIdentity(id));
  REQUIRE(id != known);
  // The other database may also have more sequence numbers.
  const int writes = GENERATE(1, 1000);
  for (int i = 0; i < writes; ++i) world.source()->Put("new", "value");
  FollowOptions options;
  options.pull = world.Options();
  {
    RunningFollower follower(options);
    REQUIRE(follower.AwaitEnd());
    const rocksdb::Status ended = follower.Stop();
    INFO(ended.ToString());
    REQUIRE(EndStateOf(ended) == EndState::kRefused);
    REQUIRE(MessageOf(ended).find(known) != std::string::npos);
    REQUIRE(MessageOf(ended).find(id) != std::string::npos);
  }
  REQUIRE_OK(world.Open());
  REQUIRE(world.standby()->received().last_sequence == had);
  REQUIRE(world.standby()->record().source_database_id == known);
  REQUIRE(world.standby()->record().lost_dir.empty());
  world.CloseStandby();
  options.adopt = true;
  RunningFollower adopts(options);
  REQUIRE(AwaitThat([&] {
    return IsStandby(world.dir()) && !StateOf(world.dir()).lost_dir.empty();
  }));
  REQUIRE_OK(adopts.Stop());
  REQUIRE_OK(world.Open());
  REQUIRE(world.standby()->record().source_database_id == id);
  RequireKept(&world, had);
}

TEST_CASE("A source that returns without what the last cut had leaves the "
          "standby as a database",
          "[follow]") {
  const std::string what =
      GENERATE(as<std::string>(), "restored", "restored and written to",
               "restored, written to and reopened", "made anew",
               "made anew and written to");
  INFO(what);
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  world.CloseSource();
  const std::string saved = world.root() + "/saved";
  CopyTo(world.source_dir(), saved);
  world.OpenSource();
  for (int i = 0; i < 4; ++i) {
    world.Write(20);
    world.source()->Flush();
  }
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  world.Write(10);
  REQUIRE_OK(world.Follow());
  const uint64_t had = world.sequence();
  const uint64_t cut = world.standby()->record().sequence;
  REQUIRE(cut < had);
  world.CloseSource();
  if (what.starts_with("restored")) {
    CopyTo(saved, world.source_dir());
  } else {
    fs::remove_all(world.source_dir());
  }
  world.OpenSource();
  uint64_t common = what.starts_with("restored") ? world.sequence() : 0;
  if (what.find("written to") != std::string::npos) {
    // In the end the source has more sequence numbers, and perhaps more files,
    // than the standby.
    for (int i = 0; world.sequence() <= had; ++i) {
      for (int k = 0; k < 40; ++k) {
        world.source()->Put("k" + std::to_string(k), std::to_string(i));
      }
      world.source()->Flush();
    }
  }
  for (int i = 0; what.ends_with("reopened") && i < 10; ++i) {
    world.CloseSource();
    world.OpenSource();
  }
  const uint64_t now = world.sequence();
  REQUIRE_OK(what.starts_with("restored") ? world.Cut(CutReason::kNewLife)
                                          : CutOfAny(&world));
  RequireKept(&world, had);
  if (what == "restored" || what.starts_with("made anew")) {
    REQUIRE(world.standby()->record().lost_sequences == had - common);
  }
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  OpenDb db(world.dir(), {{"default", Quiet()}, {"other", Quiet()}});
  REQUIRE(db->GetLatestSequenceNumber() == now);
}

TEST_CASE("A cut completes the directory of lost records that an earlier one "
          "has begun",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  const uint64_t had = world.sequence();
  world.CloseSource();
  fs::remove_all(world.source_dir());
  world.OpenSource();
  int tries = 0;
  TEST_SetFaultHook([&tries](const std::string& name) {
    if (name == "Standby:FilesLinked") ++tries;
  });
  // The first cut is stopped behind some of the links, and the follower
  // restarts.
  FollowFile record = world.standby()->record();
  record.source_database_id = "another";
  REQUIRE_OK(world.standby()->BeginCut());
  REQUIRE_OK(world.standby()->KeepUnproven(world.source_dir(),
                                           CutReason::kNewLife, FollowJudged(),
                                           &record));
  fs::remove(record.lost_dir + "/CURRENT");
  fs::remove(PathsWith(record.lost_dir, ".sst").front());
  REQUIRE_OK(world.Open());
  REQUIRE_OK(CutOfAny(&world));
  TEST_SetFaultHook(nullptr);
  REQUIRE(tries == 2);
  REQUIRE(world.standby()->record().lost_dir == record.lost_dir);
  RequireKept(&world, had);
}

TEST_CASE("A missing OPTIONS file does not prove that a source was not opened",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.source()->Flush();  // deletes the WAL
  const std::string cut = world.root() + "/cut";
  CopyTo(world.source_dir(), cut);
  const bool has_options = GENERATE(true, false);
  for (const std::string& dir : {cut, world.dir()}) {
    std::vector<std::string> names;
    REQUIRE_OK(ListDirectory(dir, &names));
    for (const std::string& name : names) {
      if (!has_options && name.starts_with("OPTIONS-")) {
        fs::remove(fs::path(dir) / name);
      }
    }
  }
  FollowFile record = world.standby()->record();
  record.sequence = world.sequence();
  REQUIRE_OK(world.standby()->BeginCut());
  REQUIRE_OK(world.standby()->KeepUnproven(cut, CutReason::kBarrier,
                                           FollowJudged(), &record));
  REQUIRE(record.unproven_dirs.size() == (has_options ? 0 : 1));
}

TEST_CASE("A cut of a reopened source is tried again while the standby's "
          "MANIFEST cannot be read",
          "[follow]") {
  StandbyWorld world;
  const auto disk = std::make_shared<FaultyFileSystem>();
  world.UseDisk(disk);
  MakeStandby(&world);
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.CloseSource();
  world.OpenSource();
  FollowFile record = world.standby()->record();
  CloneFile current;
  std::string name;
  std::ifstream(world.source_dir() + "/CURRENT") >> name;
  REQUIRE(ParseCloneFileName(name, &current));
  REQUIRE(current.number != record.manifest_number);
  record.manifest_number = current.number;
  record.sequence = world.sequence();
  const std::string manifest = world.dir() + "/MANIFEST-";
  REQUIRE_OK(world.standby()->BeginCut());
  const auto keep = [&] {
    return world.standby()->KeepUnproven(world.source_dir(),
                                         CutReason::kNewLife, FollowJudged(),
                                         &record);
  };
  disk->FailAt(FileStep::kRead, 1, DiskBroken(), manifest);
  REQUIRE_FALSE(keep().ok());
  REQUIRE(record.unproven_dirs.empty());
  disk->Heal();
  const std::string what =
      GENERATE(as<std::string>(), "readable", "damaged", "lost");
  INFO(what);
  for (const auto& entry : fs::directory_iterator(world.dir())) {
    const std::string path = entry.path().string();
    if (!path.starts_with(manifest)) continue;
    if (what == "damaged") {
      std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
          << "x";
    }
    if (what == "lost") fs::remove(path);
  }
  REQUIRE_OK(keep());
  REQUIRE(record.unproven_dirs.size() == 1);
}

TEST_CASE("WALs are kept for the newest four restarts that prove nothing",
          "[follow]") {
  StandbyWorld world;
  MakeStandby(&world);
  const bool is_emptied = GENERATE(false, true);
  for (int i = 0; i < 6; ++i) {
    world.Write(10);
    REQUIRE_OK(world.Follow());
    world.CloseSource();
    world.OpenSource();
    if (is_emptied && i == 5) {
      // A directory that the operator has emptied is not filled again.
      for (const std::string& path : PathsWith(
               world.standby()->record().unproven_dirs.front(), "")) {
        fs::remove(path);
      }
    }
    REQUIRE_OK(world.Cut(CutReason::kNewLife));
  }
  const FollowFile record = world.standby()->record();
  REQUIRE(record.unproven_dirs.size() == kMaxUnprovenDirs);
  REQUIRE(record.lost_dir.empty());
  size_t dirs = 0;
  for (const auto& entry : fs::directory_iterator(world.root())) {
    dirs += entry.path().string().find("-unproven-") != std::string::npos;
  }
  REQUIRE(dirs == kMaxUnprovenDirs);
  for (const std::string& dir : record.unproven_dirs) {
    REQUIRE(FileCount(dir, ".log") > 0);
  }
  // A copy of the standby does not delete the original's directories.
  world.CloseStandby();
  const std::string copy = world.root() + "/copy";
  fs::copy(world.dir(), copy, fs::copy_options::recursive);
  PullOptions options = world.Options();
  options.target_dir = copy;
  const auto disk = rocksdb::FileSystem::Default();
  std::unique_ptr<Standby> copied;
  REQUIRE_OK(Standby::Open(copy, disk, &copied));
  world.CloseSource();
  world.OpenSource();
  REQUIRE_OK(CutStandby(options, {CutReason::kNewLife}, copied.get()));
  REQUIRE(copied->record().unproven_dirs.size() == 1);
  REQUIRE(copied->record().unproven_dirs.front().starts_with(
      copy + ".sstferry-unproven-"));
  for (const std::string& dir : record.unproven_dirs) {
    REQUIRE(FileCount(dir, ".log") > 0);
  }
}

TEST_CASE("Durable records survive a power loss, and half records do not count",
          "[follow]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    StandbyWorld world;
    const auto disk = std::make_shared<PowerLossFileSystem>(world.root());
    world.UseDisk(disk);
    MakeStandby(&world);
    uint64_t durable = world.standby()->durable().last_sequence;
    REQUIRE(durable == world.sequence());
    for (int i = 0; i < 12; ++i) {
      world.Write(1 + random() % 5);
      REQUIRE_OK(world.Follow());
      if (random() % 3 == 0) world.source()->Flush();
      if (random() % 4 == 0) REQUIRE_OK(world.standby()->Sync());
      if (random() % 8 == 0) REQUIRE_OK(world.Cut(CutReason::kCutEvery));
      durable = world.standby()->durable().last_sequence;
    }
    world.CloseStandby();
    disk->LosePower(
        seed % 2 == 0 ? Survival::kNothing : Survival::kRandom, seed);
    world.UseDisk(nullptr);
    if (seed % 3 == 0) {
      REQUIRE_OK(world.Promote());
      REQUIRE(world.RequirePrefix(world.dir()) >= durable);
      continue;
    }
    REQUIRE_OK(world.Open());
    REQUIRE(world.standby()->received().last_sequence >= durable);
    // If the source no longer has the WAL whose end was lost, a cut is needed.
    const bool is_held = fs::exists(
        world.source_dir() + "/" +
        fs::path(world.newest_wal()).filename().string());
    REQUIRE_OK(is_held ? world.Follow() : world.Cut(CutReason::kNotHeld));
    world.CloseStandby();
    REQUIRE_OK(world.Promote());
    REQUIRE(world.RequirePrefix(world.dir()) == world.sequence());
  }
}

TEST_CASE("Records whose sync failed are neither durable nor promoted",
          "[follow]") {
  StandbyWorld world;
  const auto disk = std::make_shared<PowerLossFileSystem>(world.root());
  world.UseDisk(disk);
  MakeStandby(&world);
  const uint64_t durable = world.standby()->durable().last_sequence;
  world.Write(30);
  REQUIRE_OK(world.Follow());
  disk->FailSync("/standby/0", 1, DiskBroken());
  REQUIRE_FALSE(world.standby()->Sync().ok());
  REQUIRE_FALSE(world.standby()->Sync().ok());
  world.CloseStandby();
  const bool promotes = GENERATE(false, true);
  if (promotes) {
    Descriptor lock;
    Promotion promotion;
    REQUIRE_OK(LockStandby(world.dir(), &lock));
    REQUIRE_OK(PromoteStandby(disk.get(), world.dir(), /*force=*/false,
                              std::nullopt, &promotion));
    REQUIRE(promotion.end.last_sequence == durable);
  } else {
    REQUIRE_OK(world.Open());
    REQUIRE(world.standby()->durable().last_sequence == durable);
    world.CloseStandby();
  }
  disk->LosePower(Survival::kNothing, 1);
  world.UseDisk(nullptr);
  if (!promotes) {
    REQUIRE_OK(world.Open());
    REQUIRE(world.standby()->gap().reason == CutReason::kNone);
    REQUIRE_OK(world.Follow());  // the source sends them again
    REQUIRE(world.standby()->received().last_sequence == world.sequence());
    world.CloseStandby();
    REQUIRE_OK(world.Promote());
  }
  REQUIRE(world.RequirePrefix(world.dir()) ==
          (promotes ? durable : world.sequence()));
}

TEST_CASE("A sync of a WAL that failed elsewhere makes nothing durable",
          "[follow]") {
  StandbyWorld world;
  const auto disk = std::make_shared<PowerLossFileSystem>(world.root());
  world.UseDisk(disk);
  MakeStandby(&world);
  world.Write(30);
  REQUIRE_OK(world.Follow());
  const uint64_t count = MarkIn(world.dir()).count;
  SECTION("in a cut, which is tried again") {
    disk->FailSync("/standby/0", 1, DiskBroken());
    REQUIRE_FALSE(world.Cut(CutReason::kCutEvery).ok());
    REQUIRE(EndStateOf(world.standby()->Sync()) == EndState::kInternal);
  }
  SECTION("when the next WAL begins, during a sync") {
    world.source()->Flush();
    world.Write(1);
    TEST_SetFaultHook([&](const std::string& point) {
      if (point == "Standby:Synced") {
        disk->FailSync("/standby/0", 1, DiskBroken());
        REQUIRE(EndStateOf(world.Follow()) == EndState::kInternal);
      }
    });
    REQUIRE(EndStateOf(world.standby()->Sync()) == EndState::kInternal);
    TEST_SetFaultHook(nullptr);
  }
  REQUIRE(MarkIn(world.dir()).count == count);
}

}  // namespace
}  // namespace sstferry::test::standby_test
