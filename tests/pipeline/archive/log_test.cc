// The log of an archive in memory: followers crash and restart, and the store
// returns wrong bytes. Restores of times in the log are compared with the
// contents that the source had at those times.
//
// SSTFERRY_LOG_TIMES is the number of random times to restore (default: 12),
// SSTFERRY_LOG_SEED their seed. SSTFERRY_LOG_KILLS is the number of calls at
// which a follower is killed (default: 5).
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/file_name.h"
#include "pipeline/api/log_rounds.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/log_writer.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/restore.h"
#include "pipeline/archive/seal.h"
#include "pipeline/base/random_id.h"
#include "pipeline/follow/source_rounds.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "sstferry/archive.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/gate.h"
#include "tests/support/memory_store.h"
#include "tests/support/restored.h"
#include "tests/support/standby_world.h"
#include "tests/support/transaction_source.h"

namespace sstferry::test::log_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint64_t Micros() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

// The contents of the family `extra`, since this sequence of the source.
struct Extra {
  uint64_t sequence = 0;
  bool exists = false;
  std::set<std::string> keys;
};

// A source with a writer, an archive in memory, and a follower between them.
// The test runs the steps of the follower's thread one by one.
class World {
 public:
  explicit World(bool is_sealed = false) {
    if (is_sealed) {
      options.store.key_file = source.root() + "/key";
      std::ofstream(options.store.key_file) << std::string(64, 'a');
      fs::permissions(options.store.key_file, fs::perms::owner_read);
      REQUIRE_OK(SealKey::Read(options.store.key_file, &key));
    }
    ArchiveHead head;
    head.grace_seconds = kMinGraceSeconds;
    std::string bytes;
    EncodeArchiveHead(head, &bytes);
    server.Overwrite(kArchiveHeadKey, bytes);
    // Set names contain times of the store's clock, so set it to the real time.
    server.Advance(static_cast<UnixSeconds>(Micros() / 1'000'000) -
                   server.now());
    Write(30);
  }

  // A write to the source: the times before and after it, and the source's
  // sequence after it.
  struct Write {
    uint64_t before = 0;
    uint64_t after = 0;
    uint64_t sequence = 0;
  };
  void Write(uint64_t batches) {
    for (uint64_t i = 0; i < batches; ++i) {
      const uint64_t before = Micros();
      source.Write(1);
      writes.push_back({before, Micros(), source.sequence()});
    }
  }

  // Starts a follower. `hook` sees its calls to the store.
  Status Start(StoreHook hook = nullptr) {
    Stop();
    options.pull = source.Options();
    options.pull.log = log;
    options.pull.timeouts = TriedOnce(Timeouts());
    options.into_archive = true;
    options.max_gap = max_gap;
    RETURN_IF_ERROR(Endpoint::Open(
        EndpointFor(options.pull.source, 1, options.pull), &endpoint));
    rounds = std::make_unique<SourceRounds>(endpoint->dialer(),
                                            options.pull.timeouts);
    return OpenLogRounds(
        options, &endpoint,
        [this, hook](Clock::time_point, std::unique_ptr<ObjectStore>* store) {
          *store = server.NewClient(hook);
          return Status::OK();
        },
        [this] {
          if (on_clock) on_clock();
          return Micros() + clock_ahead.fetch_add(clock_step);
        },
        &target, max_segments);
  }
  // Stops the follower without a last sync, as if it was killed.
  void Stop() {
    target.reset();
    rounds.reset();
    endpoint.reset();
  }

  // Sends one request to the source, and applies the answer.
  Status Step() {
    FollowRequest request;
    request.database = endpoint->name();
    request.position = target->position();
    request.wait_millis = 50;
    Round round;
    RETURN_IF_ERROR(rounds->Ask(request, &round));
    round.asked_micros += clock_ahead;
    if (round.end.cut != CutReason::kNone) {
      return target->Cut({.reason = round.end.cut, .note = round.end.note});
    }
    RETURN_IF_ERROR(target->Append(request.position, round));
    if (const Gap gap = target->gap(); gap.reason != CutReason::kNone) {
      return target->Cut({.reason = gap.reason, .note = gap.note});
    }
    if (round.end.more_bytes == 0) {
      heard = round.end.last_sequence;
      taken.push_back({Micros(), Micros(), round.end.last_sequence});
    }
    return Status::OK();
  }
  // Follows until the target has everything that the source has, and the set
  // counts.
  Status Follow() { return FollowTo(source.sequence()); }
  // Follows until the target has everything up to `sequence`, and the set
  // counts.
  Status FollowTo(uint64_t sequence) {
    heard = 0;
    for (int i = 0; i < 5000; ++i) {
      RETURN_IF_ERROR(Step());
      if (target->exists() && heard >= sequence &&
          !target->state().is_pushing) {
        return Status::OK();
      }
    }
    return Status::Incomplete("following does not end");
  }
  // Follows, then uploads all received records to the archive.
  Status FollowAndSync() {
    RETURN_IF_ERROR(Follow());
    return target->Sync();
  }
  // Changes the family `extra` twice: each change is a record of the MANIFEST
  // that is a barrier.
  void MakeBarrier() {
    ChangeExtra(0);
    ChangeExtra(0);
  }
  // Creates the family `extra`, ingests a file into it, or drops it. Each is a
  // barrier that takes no sequence.
  void ChangeExtra(uint64_t dice) {
    OpenDb* const db = source.source();
    Extra extra = extras.back();
    extra.sequence = source.sequence();
    if (!extra.exists) {
      extra.exists = true;
      db->Create({"extra", Quiet()});
    } else if (dice % 3 != 0) {
      const std::string name = "x" + std::to_string(extras.size());
      const std::string path = source.root() + "/ingested";
      rocksdb::SstFileWriter file({}, {});
      REQUIRE_OK(file.Open(path));
      REQUIRE_OK(file.Put(name, name));
      REQUIRE_OK(file.Finish());
      REQUIRE_OK((*db)->IngestExternalFile(db->cf("extra"), {path}, {}));
      extra.keys.insert(name);
    } else {
      extra = {extra.sequence, false, {}};
      db->Drop("extra");
    }
    REQUIRE(source.sequence() == extra.sequence);
    extras.push_back(extra);
  }
  void Reopen() {
    while (extras.back().exists) ChangeExtra(0);
    source.CloseSource();
    source.OpenSource();
  }

  Ferried Restore(const std::string& which, const std::string& name,
                  StoreHook hook = nullptr) {
    fs::remove_all(TargetDir(name));
    PullOptions pull;
    pull.target_dir = TargetDir(name);
    pull.lanes = 1;
    pull.timeouts = TriedOnce(Timeouts());
    pull.timeouts.retry = std::chrono::seconds(60);  // for a lane
    return RestoreThrough(
        MakeArchiveOriginOf(server.NewClient(std::move(hook)), which, key),
        pull);
  }
  std::string TargetDir(const std::string& name = "restored") const {
    return source.root() + "/" + name;
  }

  ArchiveLog Index() {
    const std::unique_ptr<ObjectStore> client = server.NewClient();
    ArchiveLog found;
    REQUIRE_OK(ReadLog(Archive(client.get(), key.get()), &found));
    return found;
  }
  // Checks the archive and reads all its bytes.
  Status Check(const SealKey* with, CheckSummary* summary) {
    const std::unique_ptr<ObjectStore> client = server.NewClient();
    CheckOptions check;
    check.read_percent = 100;
    return CheckArchive(Archive(client.get(), with), check, summary);
  }
  std::vector<std::string> Segments() const {
    std::vector<std::string> keys;
    for (const auto& [name, bytes] : server.Objects()) {
      if (name.starts_with(kArchiveLogPrefix)) {
        keys.push_back(name);
      }
    }
    return keys;
  }

  // Requires that the family `extra` has contents that it had while the source
  // was at this sequence. There may be several: changes take no sequence.
  void RequireExtra(uint64_t sequence) const {
    std::vector<std::string> names;
    const std::string path = TargetDir();
    REQUIRE_OK(rocksdb::DB::ListColumnFamilies({}, path, &names));
    Extra found;
    Families families = {{"default", Quiet()}, {"other", Quiet()}};
    found.exists = names.size() > families.size();
    if (found.exists) {
      families.push_back({"extra", Quiet()});
      OpenDb db(path, families);
      const std::unique_ptr<rocksdb::Iterator> it(
          db->NewIterator(rocksdb::ReadOptions(), db.cf("extra")));
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
        found.keys.insert(it->key().ToString());
      }
      REQUIRE_OK(it->status());
    }
    bool is_one = false;
    for (size_t i = 0; i < extras.size(); ++i) {
      const bool comes_later = extras[i].sequence > sequence;
      const bool is_over =
          i + 1 < extras.size() && extras[i + 1].sequence < sequence;
      is_one |= !comes_later && !is_over && extras[i].exists == found.exists &&
                extras[i].keys == found.keys;
    }
    INFO("sequence " << sequence << ", extra: " << found.exists << " with "
                     << found.keys.size());
    REQUIRE(is_one);
  }

  // Restores a time. Requires that the replica has all that the follower had
  // received by then, and nothing that the source wrote later.
  void RequireTime(uint64_t micros) {
    INFO("time " << LogTimeText(micros));
    bool is_in_window = false;
    for (const LogWindow& window : Index().Windows()) {
      INFO(LogTimeText(window.begin_micros)
           << " to " << LogTimeText(window.end_micros) << ' ' << window.why);
      is_in_window |=
          window.begin_micros <= micros && micros <= window.end_micros;
    }
    const Ferried restored = Restore(LogTimeText(micros), "restored");
    INFO(restored.message());
    if (!is_in_window) {
      REQUIRE(restored.state() == EndState::kRefused);
      REQUIRE_FALSE(fs::exists(TargetDir()));
      ++refused;
      return;
    }
    REQUIRE_OK(restored.status);
    const uint64_t sequence = source.RequirePrefix(TargetDir());
    uint64_t most = 0;
    for (const struct Write& write : writes) {
      if (write.before <= micros) most = std::max(most, write.sequence);
    }
    REQUIRE(sequence <= most);
    uint64_t least = 0;
    for (const struct Write& took : taken) {
      if (took.after + kLogMomentMicros < micros) {
        least = std::max(least, took.sequence);
      }
    }
    REQUIRE(sequence >= least);
    RequireExtra(sequence);
    ++exact;
  }

  StandbyWorld source;
  MemoryStore server;
  FollowOptions options;
  LogFunction log;  // used by the next follower
  uint64_t max_segments = kMaxPutObjects;
  // Microseconds by which the follower's clock is ahead; a push reads it, too.
  std::atomic<uint64_t> clock_ahead{0};
  // Microseconds that pass after each look at the follower's clock.
  std::atomic<uint64_t> clock_step{0};
  std::chrono::seconds max_gap{3600};  // no gaps on a busy machine
  std::function<void()> on_clock;  // runs when a follower asks for the time
  std::shared_ptr<SealKey> key;  // null: nothing is sealed
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<SourceRounds> rounds;
  std::unique_ptr<RoundTarget> target;
  uint64_t heard = 0;  // the source's sequence when the target had everything
  std::vector<struct Write> writes;
  // when the target had everything up to a sequence
  std::vector<struct Write> taken;
  std::vector<Extra> extras = {Extra()};
  uint64_t exact = 0;  // times that RequireTime() restored
  uint64_t refused = 0;
};

void PruneTwice(World* world, uint32_t last, uint64_t keep_log_seconds) {
  const std::unique_ptr<ObjectStore> client = world->server.NewClient();
  for (int i = 0; i < 2; ++i) {  // marks, then deletes
    PruneOptions options;
    options.retention.last = last;
    options.keep_log_seconds = keep_log_seconds;
    PruneSummary summary;
    REQUIRE_OK(PruneArchive(Archive(client.get()), options, &summary));
    world->server.Advance(kMinGraceSeconds + 1);
  }
}

TEST_CASE("A log in an archive restores the source at any time in the log",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  std::vector<uint64_t> times;
  for (int i = 0; i < 4; ++i) {
    world.Write(20);
    REQUIRE_OK(world.Follow());
    times.push_back(Micros());
    if (i == 1) world.source.source()->Flush();  // begins another WAL
    if (i != 2) REQUIRE_OK(world.target->Sync());
  }
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 1);
  REQUIRE(windows[0].why.empty());
  for (const uint64_t time : times) {
    world.RequireTime(time > windows[0].end_micros ? windows[0].end_micros
                                                   : time);
  }
  world.RequireTime(windows[0].begin_micros);
  world.RequireTime(windows[0].end_micros);
  world.RequireTime(windows[0].begin_micros - 1'000'000);
  const Ferried behind =
      world.Restore(LogTimeText(windows[0].end_micros + 1), "restored");
  REQUIRE(behind.state() == EndState::kRefused);
  INFO(behind.message());
  REQUIRE(behind.message().find(LogTimeText(windows[0].end_micros)) !=
          std::string::npos);
}

TEST_CASE("A log restores every sequence at which a batch ends", "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  const uint64_t first = world.source.sequence();
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.source.source()->Flush();
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  for (uint64_t at = first; at <= world.source.sequence(); ++at) {
    const Ferried restored =
        world.Restore("sequence:" + std::to_string(at), "restored");
    INFO(at << ": " << restored.message());
    REQUIRE_OK(restored.status);
    const uint64_t sequence = world.source.RequirePrefix(world.TargetDir());
    uint64_t expected = first;
    for (const auto& write : world.writes) {
      if (write.sequence <= at) expected = std::max(expected, write.sequence);
    }
    REQUIRE(sequence == expected);
    at += 6;
  }
  const Ferried behind = world.Restore(
      "sequence:" + std::to_string(world.source.sequence() + 1), "restored");
  REQUIRE(behind.state() == EndState::kRefused);
  REQUIRE(world.Restore("sequence:1", "restored").state() ==
          EndState::kRefused);
}

TEST_CASE("A sequence restores what had committed by then, and nothing that "
          "was only prepared",
          "[archive]") {
  World world;
  world.source.CloseSource();
  TransactionSource source(world.source.source_dir());
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.FollowTo(source.sequence()));
  source.Prepare("txn:", 100);
  for (int i = 0; i < 10; ++i) source.Put("put:" + std::to_string(i));
  const uint64_t before = source.sequence();
  // The log knows this sequence, or only the ones around it.
  if (GENERATE(true, false)) {
    REQUIRE_OK(world.FollowTo(before));
    REQUIRE_OK(world.target->Sync());
  }
  source.Commit("txn:");
  REQUIRE(source.sequence() == before + 100);
  source.Put("late");
  REQUIRE_OK(world.FollowTo(source.sequence()));
  REQUIRE_OK(world.target->Sync());
  world.Stop();
  // A batch is restored completely or not at all.
  for (const uint64_t at : {before, before + 50, before + 99, before + 100}) {
    const Ferried restored =
        world.Restore("sequence:" + std::to_string(at), "restored");
    INFO((at - before) << ": " << restored.message());
    REQUIRE_OK(restored.status);
    TransactionSource replica(world.TargetDir());
    const bool has_committed = at == before + 100;
    REQUIRE(replica.sequence() == (has_committed ? at : before));
    REQUIRE(replica.Rollback("txn:") == !has_committed);
    REQUIRE(replica.Count("txn:") == (has_committed ? 100u : 0u));
    REQUIRE(replica.Count("put:") == 10);
    REQUIRE(replica.Count("late") == 0);
  }
}

// Commits a transaction with three entries.
void Transact(int number, TransactionSource* source) {
  const std::string name = "txn" + std::to_string(number) + ":";
  source->Prepare(name, 3);
  source->Commit(name);
}

TEST_CASE("A set that ends with a transaction has its last sequence, and its "
          "log continues",
          "[archive]") {
  World world;
  world.source.CloseSource();
  TransactionSource source(world.source.source_dir());
  Transact(0, &source);
  const uint64_t first = source.sequence();
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.FollowTo(first));
  for (int i = 1; i <= 5; ++i) {
    Transact(i, &source);
    REQUIRE_OK(world.FollowTo(source.sequence()));
    REQUIRE_OK(world.target->Sync());
  }
  world.Stop();
  const ArchiveLog log = world.Index();
  REQUIRE(log.sets.size() == 1);
  REQUIRE(log.sets[0].sequence == first);
  const Ferried restored =
      world.Restore("sequence:" + std::to_string(first), "restored");
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  TransactionSource replica(world.TargetDir());
  replica.Rollback("txn1:");
  REQUIRE(replica.Count("txn0:") == 3);
  REQUIRE(replica.Count("txn1:") == 0);
}

// Changes the sequence in the record of the only set.
void SetSequence(uint64_t sequence, World* world) {
  const std::unique_ptr<ObjectStore> client = world->server.NewClient();
  const Archive archive(client.get());
  std::vector<FoundSet> found;
  REQUIRE_OK(archive.ListSets(&found));
  REQUIRE(found.size() == 1);
  std::optional<ArchiveSet> set;
  REQUIRE_OK(archive.ReadSet(found[0], &set));
  set->sequence = sequence;
  std::string object;
  REQUIRE_OK(EncodeArchiveSet(*set, &object));
  world->server.Overwrite(SetKey(set->name), object);
  ArchiveDone done;
  done.set = DigestOf(object);
  std::string committed;
  EncodeArchiveDone(done, &committed);
  world->server.Overwrite(DoneKey(set->name), committed);
}

// An older sstferry recorded the sequence of the transaction's first entry.
TEST_CASE("A set that has more than its record says is not restored to a "
          "sequence before its end",
          "[archive]") {
  World world;
  world.source.CloseSource();
  TransactionSource source(world.source.source_dir());
  Transact(0, &source);
  const uint64_t last = source.sequence();
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.FollowTo(last));
  if (GENERATE(true, false)) {
    source.Put("put:");
    REQUIRE_OK(world.FollowTo(last + 1));
    REQUIRE_OK(world.target->Sync());
  }
  world.Stop();
  SetSequence(last - 2, &world);
  for (const uint64_t at : {last - 2, last - 1}) {
    const Ferried refused =
        world.Restore("sequence:" + std::to_string(at), "restored");
    INFO(refused.message());
    REQUIRE(refused.state() == EndState::kRefused);
    REQUIRE_FALSE(fs::exists(world.TargetDir()));
  }
  const Ferried restored =
      world.Restore("sequence:" + std::to_string(last), "restored");
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  const TransactionSource replica(world.TargetDir());
  REQUIRE(replica.Count("txn0:") == 3);
  REQUIRE(replica.Count("put:") == 0);
}

TEST_CASE("A restarted follower continues the log if it can prove its place",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  const uint64_t early = Micros();
  world.Write(10);
  REQUIRE_OK(world.Follow());  // killed before these records are uploaded
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE(world.Index().sets.size() == 1);
  REQUIRE(world.Index().lineages.size() == 2);
  // It is unknown what the source had between the two runs.
  std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 2);
  REQUIRE(windows[0].why == "outage");
  world.RequireTime(early);
  world.RequireTime(windows[0].end_micros);
  world.RequireTime(windows[1].end_micros);
  // After the source is reopened, another log begins.
  world.source.CloseSource();
  world.source.OpenSource();
  world.Write(10);
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  REQUIRE(world.Index().sets.size() == 2);
  windows = world.Index().Windows();
  REQUIRE(windows.size() == 3);
  world.RequireTime(windows[1].end_micros + 1);
  world.RequireTime(windows[2].begin_micros - 1);
  world.RequireTime(windows[2].end_micros);
}

// The flush makes RocksDB delete WALs that only this follower has read.
TEST_CASE("A follower of a directory continues a log after flushes",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  for (int i = 0; i < 3; ++i) {
    world.Write(10);
    REQUIRE_OK(world.Follow());
    world.source.source()->Flush();
    world.Write(10);
    REQUIRE_OK(world.FollowAndSync());
    REQUIRE_OK(world.Start());  // killed
    world.Write(10);
    REQUIRE_OK(world.FollowAndSync());
  }
  REQUIRE(world.Index().sets.size() == 1);
  REQUIRE(world.Index().lineages.size() == 4);
  for (const LogWindow& window : world.Index().Windows()) {
    world.RequireTime(window.begin_micros);
    world.RequireTime(window.end_micros);
  }
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) ==
          world.source.sequence());
  // No follower ran while these records were written, and the source has
  // deleted them: a gap.
  world.Write(10);
  world.source.source()->Flush();
  REQUIRE_OK(world.Start());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  REQUIRE(world.Index().sets.size() == 2);
  world.RequireTime(world.Index().Windows().back().end_micros);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) ==
          world.source.sequence());
}

TEST_CASE("A sequence is found without reading the log before it",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  uint64_t wanted = 0;
  for (int i = 0; i < 6; ++i) {
    world.Write(10);
    wanted = world.source.sequence();
    world.Write(10);
    REQUIRE_OK(world.FollowAndSync());
  }
  world.Stop();
  const std::vector<std::string> keys = world.Segments();
  REQUIRE(keys.size() == 6);
  std::map<std::string, int> gets;
  const Ferried restored =
      world.Restore("sequence:" + std::to_string(wanted), "restored",
                    [&gets](StoreCall* call) {
                      gets[call->key] += call->kind == StoreCallKind::kGet;
                      return CallFate::kArrives;
                    });
  REQUIRE_OK(restored.status);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) == wanted);
  for (size_t i = 1; i + 1 < keys.size(); ++i) {
    REQUIRE(gets[keys[i]] == 2);  // one for the head, one for the payload
  }
}

TEST_CASE("A barrier ends a log, and is reported as the reason of the gap",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.MakeBarrier();
  world.Write(10);
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE(world.target->state().cuts["barrier"] == 1);
  REQUIRE(world.target->state().gaps == 1);
  world.Stop();
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 2);
  INFO(windows[0].why);
  REQUIRE(windows[0].why.starts_with("barrier"));
  REQUIRE(windows[1].why.empty());
  const Ferried between =
      world.Restore(LogTimeText(windows[0].end_micros + 1), "restored");
  INFO(between.message());
  REQUIRE(between.state() == EndState::kRefused);
  REQUIRE(between.message().find("barrier") != std::string::npos);
  REQUIRE(between.message().find(LogTimeText(windows[1].begin_micros)) !=
          std::string::npos);
  world.RequireTime(windows[0].end_micros);
  world.RequireTime(windows[1].end_micros);
}

TEST_CASE("A missing, changed or foreign segment is named and never "
          "bridged",
          "[archive]") {
  const bool is_sealed = GENERATE(false, true);
  World world(is_sealed);
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  std::vector<uint64_t> times;
  for (int i = 0; i < 4; ++i) {
    world.Write(10);
    REQUIRE_OK(world.FollowAndSync());
    times.push_back(world.Index().Windows().back().end_micros);
  }
  world.Stop();
  const std::vector<std::string> keys = world.Segments();
  REQUIRE(keys.size() == 4);
  const auto object = [&world](const std::string& key) {
    return world.server.Objects().at(key);
  };
  const std::string good = object(keys[2]);
  const int kind = GENERATE(0, 1, 2, 3, 4, 5, 6, 7);
  CAPTURE(is_sealed, kind);
  if (kind == 0) {
    world.server.Erase(keys[2]);
  } else if (kind == 1) {  // the head
    std::string bad = good;
    bad[40] = static_cast<char>(bad[40] ^ 1);
    world.server.Overwrite(keys[2], bad);
  } else if (kind == 2) {  // the payload
    std::string bad = good;
    bad.back() = static_cast<char>(bad.back() ^ 1);
    world.server.Overwrite(keys[2], bad);
  } else if (kind == 3) {
    world.server.Overwrite(keys[2], good.substr(0, good.size() - 1));
  } else if (kind == 4) {  // two segments exchanged
    world.server.Overwrite(keys[2], object(keys[3]));
    world.server.Overwrite(keys[3], good);
  } else {
    LogKey key;
    REQUIRE(ParseLogKey(keys[2], &key));
    LogHead head;
    REQUIRE_OK(DecodeLogHead(good.substr(0, LogHeadBytes(good)), key, &head));
    std::string payload = good.substr(LogHeadBytes(good));
    if (kind == 5) {  // an intact head of another log
      head.previous[0] ^= 1;
    } else if (kind == 6) {  // wrong bytes with a matching digest
      payload.back() = static_cast<char>(payload.back() ^ 1);
      head.payload = DigestOf(payload);
    } else {
      head.is_sealed = !head.is_sealed;
      payload = is_sealed ? payload.substr(kSealTagBytes)
                          : payload + std::string(kSealTagBytes, 0);
      head.payload = DigestOf(payload);
      if (is_sealed) {
        head.key_id = SealKeyId();
        head.salt = SealSalt();
        head.seal = Sha256Digest();
      }
    }
    std::string other;
    EncodeLogHead(head, &other);
    world.server.Overwrite(keys[2], other + payload);
    if (kind == 6 && !is_sealed) {
      return;  // without a key, such a change cannot be detected
    }
  }
  world.RequireTime(times[1]);
  for (const uint64_t time : {times[2], times[3]}) {
    const Ferried restored = world.Restore(LogTimeText(time), "restored");
    INFO(restored.message());
    REQUIRE(restored.state() ==
            (kind == 0 ? EndState::kRefused : EndState::kCorrupt));
    REQUIRE_FALSE(fs::exists(world.TargetDir()));
    // The error names the segment, and a time that can be restored.
    REQUIRE((restored.message().find("segment 3") != std::string::npos ||
             restored.message().find(keys[2]) != std::string::npos ||
             restored.message().find(keys[3]) != std::string::npos));
    if (kind != 2) {
      REQUIRE(restored.message().find(LogTimeText(times[1])) !=
              std::string::npos);
    }
  }
  // The check finds the damage, too.
  CheckSummary summary;
  const Status checked = world.Check(world.key.get(), &summary);
  INFO(checked.ToString());
  REQUIRE(EndStateOf(checked) == EndState::kCorrupt);
}

TEST_CASE("The lost or damaged begin of a continued log is found, and the rest "
          "is kept",
          "[archive]") {
  World world(/*is_sealed=*/GENERATE(false, true));
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE_OK(world.Start());  // killed
  for (int i = 0; i < 3; ++i) {
    world.Write(10);
    REQUIRE_OK(world.FollowAndSync());
  }
  world.Stop();
  std::vector<LogKey> second;
  for (const auto& [id, lineage] : world.Index().lineages) {
    for (const auto& [number, key] : lineage.segments) {
      if (lineage.parent_number != 0) second.push_back(key);
    }
  }
  REQUIRE(second.size() >= 3);
  const std::string key = LogKeyText(second[0]);
  std::string found;
  SECTION("lost") {
    world.server.Erase(key);
    found = "segment " + std::to_string(second[0].number) + " of wal/" +
            ToHex(second[0].lineage) + " is missing";
  }
  SECTION("damaged") {
    std::string bytes = world.server.Objects().at(key);
    bytes[40] = static_cast<char>(bytes[40] ^ 1);
    world.server.Overwrite(key, bytes);
    found = key;
  }
  const std::unique_ptr<ObjectStore> client = world.server.NewClient();
  for (const bool has_key : {true, false}) {
    CheckSummary summary;
    const Status checked = CheckArchive(
        Archive(client.get(), has_key ? world.key.get() : nullptr),
        CheckOptions(), &summary);
    INFO(checked.ToString());
    REQUIRE(EndStateOf(checked) == EndState::kCorrupt);
    REQUIRE(MessageOf(checked).find(found) != std::string::npos);
  }
  const std::vector<std::string> left = world.Segments();
  PruneTwice(&world, 1, 1);
  REQUIRE(world.Segments() == left);
}

TEST_CASE("A sealed log is read with its key, and shows no data without it",
          "[archive][seal]") {
  World world(/*is_sealed=*/true);
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(20);
  REQUIRE_OK(world.FollowAndSync());
  const uint64_t first = world.source.sequence();
  world.source.source()->Flush();
  world.Write(20);
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE_OK(world.Start());  // continues its own log
  world.Write(20);
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE(world.Index().sets.size() == 1);
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 2);
  world.RequireTime(windows[0].begin_micros);
  world.RequireTime(windows[0].end_micros);
  world.RequireTime(windows[1].end_micros);
  REQUIRE_OK(world.Restore("sequence:" + std::to_string(first), "restored")
                 .status);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) == first);
  // No object has the bytes of the newest WAL.
  std::ifstream in(PathsWith(world.source.source_dir(), ".log").back(),
                   std::ios::binary);
  const std::string wal((std::istreambuf_iterator<char>(in)), {});
  REQUIRE(wal.size() > 1000);
  for (const auto& [name, bytes] : world.server.Objects()) {
    REQUIRE(bytes.find(wal.substr(500, 32)) == std::string::npos);
  }
  // A check works without the key. With another key, it accepts nothing.
  CheckSummary summary;
  const std::vector<const SealKey*> keys = {nullptr, world.key.get()};
  for (const SealKey* const with : keys) {
    REQUIRE_OK(world.Check(with, &summary));
    REQUIRE(summary.log.segments == 3);
    REQUIRE(summary.log.read_segments == 3);
    REQUIRE(summary.log.orphans == 0);
  }
  SealKey::Bytes bytes{};
  const SealKey another(bytes);
  REQUIRE(EndStateOf(world.Check(&another, &summary)) == EndState::kRefused);
  REQUIRE(summary.log.windows.empty());
  REQUIRE(summary.log.problems.empty());
  const std::shared_ptr<SealKey> key = std::exchange(world.key, nullptr);
  REQUIRE(world.Restore(LogTimeText(windows[0].end_micros), "restored")
              .state() == EndState::kRefused);
  // A follower without the key begins another log, which is not listed when the
  // key is given.
  world.options.store.key_file.clear();
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  REQUIRE(world.Index().sets.size() == 2);
  world.RequireTime(world.Index().Windows().back().end_micros);
  world.key = key;
  REQUIRE(world.Index().sets.size() == 1);
  world.RequireTime(windows[1].end_micros);
}

TEST_CASE("If a store sometimes returns wrong bytes, they are requested again",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const std::string key = world.Segments().at(0);
  const std::string good = world.server.Objects().at(key);
  int gets = 0;
  const Ferried restored = world.Restore(
      LogTimeText(world.Index().Windows().back().end_micros), "restored",
      [&](StoreCall* call) {
        if (call->kind == StoreCallKind::kGet && call->key == key) {
          std::string bad = good;
          bad[gets < 1 ? 30 : bad.size() - 1] ^= 1;
          world.server.Overwrite(key, gets++ % 2 == 0 ? bad : good);
        }
        return CallFate::kArrives;
      });
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(gets >= 4);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) ==
          world.source.sequence());
}

// Runs a follower from start to end, with a scheduled cut, a barrier and a
// flush.
Status Script(World* world) {
  RETURN_IF_ERROR(world->Follow());
  world->Write(5);
  RETURN_IF_ERROR(world->Follow());
  RETURN_IF_ERROR(world->target->Sync());
  world->server.Advance(60);  // set names contain its clock
  RETURN_IF_ERROR(world->target->Cut({.reason = CutReason::kCutEvery}));
  world->source.source()->Flush();
  world->Write(5);
  RETURN_IF_ERROR(world->Follow());
  RETURN_IF_ERROR(world->target->Sync());
  world->server.Advance(60);
  world->MakeBarrier();
  for (int i = 0; i < 2; ++i) {
    world->Write(5);
    RETURN_IF_ERROR(world->Follow());
  }
  return world->target->Sync();
}

TEST_CASE("A follower that is killed at any call leaves a log that restores",
          "[archive]") {
  uint64_t calls = 0;
  {
    World world;
    REQUIRE_OK(world.Start([&calls](StoreCall*) {
      ++calls;
      return CallFate::kArrives;
    }));
    REQUIRE_OK(Script(&world));
    world.Stop();
  }
  REQUIRE(calls > 30);
  const uint64_t kills = std::min(calls, Setting("SSTFERRY_LOG_KILLS", 5));
  for (uint64_t i = 0; i < kills; ++i) {
    const uint64_t at = i * calls / kills;
    const bool are_both = kills > 5;
    for (const CallFate fate :
         {CallFate::kNeverArrives, CallFate::kAnswerLost}) {
      if (!are_both && (i % 2 == 0) != (fate == CallFate::kAnswerLost)) {
        continue;
      }
      World world;
      uint64_t made = 0;
      bool is_dead = false;
      CAPTURE(at, fate);
      const Status started =
          world.Start([&, fate](StoreCall*) {
            if (is_dead) return CallFate::kNeverArrives;
            is_dead = made++ == at;
            return is_dead ? fate : CallFate::kArrives;
          });
      if (started.ok()) Script(&world).PermitUncheckedError();
      REQUIRE_OK(world.Start());
      world.Write(5);
      REQUIRE_OK(world.FollowAndSync());
      world.Stop();
      const std::vector<LogWindow> windows = world.Index().Windows();
      REQUIRE_FALSE(windows.empty());
      world.RequireTime(windows.front().begin_micros);
      world.RequireTime(windows.front().end_micros);
      world.RequireTime(windows.back().end_micros);
      REQUIRE(world.source.RequirePrefix(world.TargetDir()) ==
              world.source.sequence());
      const std::unique_ptr<ObjectStore> client = world.server.NewClient();
      CheckSummary summary;
      REQUIRE_OK(
          CheckArchive(Archive(client.get()), CheckOptions(), &summary));
    }
  }
}

TEST_CASE("Random times are restored exactly, or the gap is named",
          "[archive]") {
  World world;
  std::mt19937_64 random(Setting("SSTFERRY_LOG_SEED", 1));
  const uint64_t times = Setting("SSTFERRY_LOG_TIMES", 12);
  const uint64_t begin = Micros();
  std::atomic<bool> is_out{false};  // the store does not answer
  const StoreHook hook = [&is_out](StoreCall*) {
    return is_out ? CallFate::kNeverArrives : CallFate::kArrives;
  };
  // Calls may fail with DEAD_PEER during an outage. The follower tries again.
  const auto may_pass = [](const Status& status) {
    INFO(status.ToString());
    REQUIRE((status.ok() || EndStateOf(status) == EndState::kDeadPeer));
  };
  REQUIRE_OK(world.Start(hook));
  for (uint64_t i = 0; i < 40 + times / 4; ++i) {
    world.Write(random() % 8);
    switch (random() % 14) {
      case 0:
        world.source.source()->Flush();
        break;
      case 1:
      case 2:
        world.ChangeExtra(random());
        break;
      case 3:
        if (world.target->exists()) {
          may_pass(world.target->Cut({.reason = CutReason::kCutEvery}));
        }
        break;
      case 4:
        REQUIRE_OK(world.Start(hook));  // killed
        break;
      case 5:
        world.Reopen();
        break;
      case 6:
        is_out = true;
        for (int step = 0; step < 3; ++step) {
          world.Write(random() % 8);
          may_pass(world.Step());
          if (world.target->exists()) may_pass(world.target->Sync());
        }
        is_out = false;
        break;
      case 7:
      case 8:
      case 9:
        if (world.target->exists()) may_pass(world.target->Sync());
        break;
      default:
        may_pass(world.Follow());
    }
  }
  while (world.extras.back().exists) world.ChangeExtra(0);
  may_pass(world.Follow());  // the last push may have failed
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const uint64_t end = Micros();
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() > 1);
  for (uint64_t i = 0; i < times; ++i) {
    const LogWindow& window = windows[random() % windows.size()];
    // Most times are inside a window or at its ends.
    const uint64_t width = window.end_micros - window.begin_micros + 1;
    world.RequireTime(i % 4 == 0   ? begin + random() % (end - begin)
                      : i % 4 == 1 ? window.end_micros + i % 2
                                   : window.begin_micros + random() % width);
  }
  if (std::getenv("SSTFERRY_LOG_TIMES") != nullptr) {
    WARN("exact: " << world.exact << ", refused: " << world.refused
                   << ", windows: " << windows.size());
  }
}

TEST_CASE(
    "A prune keeps the log of the sets that stay, or a given length of log",
    "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(Script(&world));
  world.Stop();
  const std::vector<LogWindow> before = world.Index().Windows();
  REQUIRE(before.size() == 2);
  REQUIRE(world.Index().sets.size() == 3);
  const std::unique_ptr<ObjectStore> client = world.server.NewClient();
  const Archive archive(client.get());
  const auto prune = [&](std::optional<uint64_t> keep_log_seconds) {
    PruneSummary summary;
    for (int i = 0; i < 2; ++i) {  // marks, then deletes
      PruneOptions options;
      options.retention.last = 1;
      options.keep_log_seconds = keep_log_seconds;
      REQUIRE_OK(PruneArchive(archive, options, &summary));
      world.server.Advance(kMinGraceSeconds + 1);
    }
    return summary;
  };
  // The second set of the first log is not needed: it only makes restores
  // faster.
  prune(100 * kMinGraceSeconds);
  REQUIRE(world.Index().sets.size() == 2);
  std::vector<LogWindow> after = world.Index().Windows();
  REQUIRE(after.size() == 2);
  REQUIRE(after[0].begin_micros == before[0].begin_micros);
  REQUIRE(after[0].end_micros == before[0].end_micros);
  world.RequireTime(after[0].end_micros);
  const size_t segments = world.Segments().size();
  prune({});
  REQUIRE(world.Index().sets.size() == 1);
  after = world.Index().Windows();
  REQUIRE(after.size() == 1);
  REQUIRE(after[0].end_micros == before[1].end_micros);
  REQUIRE(world.Segments().size() < segments);
  REQUIRE(world.Index().lineages.size() == 1);
  world.RequireTime(after[0].end_micros);
  world.RequireTime(before[0].end_micros);
  CheckSummary check;
  REQUIRE_OK(CheckArchive(archive, CheckOptions(), &check));
  REQUIRE(check.log.orphans == 0);
}

// Writes two sets of one log, with segments after each. Returns a time between
// the two sets.
uint64_t TwoSets(World* world) {
  REQUIRE_OK(world->Start());
  REQUIRE_OK(world->FollowAndSync());
  world->Write(5);
  REQUIRE_OK(world->FollowAndSync());
  const uint64_t between = world->Index().Windows().back().end_micros;
  world->source.source()->Flush();
  world->Write(5);
  REQUIRE_OK(world->FollowAndSync());
  world->server.Advance(60);  // set names contain its clock
  REQUIRE_OK(world->target->Cut({.reason = CutReason::kCutEvery}));
  for (int i = 0; i < 2; ++i) {
    world->Write(5);
    REQUIRE_OK(world->FollowAndSync());
  }
  world->Stop();
  const ArchiveLog log = world->Index();
  REQUIRE(log.sets.size() == 2);
  REQUIRE(log.lineages.size() == 1);
  REQUIRE(log.sets[0].log.segment < log.sets[1].log.segment);
  return between;
}

TEST_CASE("A damaged set does not take the log from the whole set before it",
          "[archive]") {
  World world;
  const uint64_t between = TwoSets(&world);
  // The second set loses a file that the first one does not have.
  const std::unique_ptr<ObjectStore> client = world.server.NewClient();
  const Archive archive(client.get());
  std::vector<FoundSet> found;
  REQUIRE_OK(archive.ListSets(&found));
  std::set<std::string> first;
  std::string lost;
  for (const FoundSet& each : found) {
    std::optional<ArchiveSet> set;
    REQUIRE_OK(archive.ReadSet(each, &set));
    for (const ArchivedFile& file : set->files) {
      const std::string key = ArchiveKeyText(file.key);
      if (&each == &found.front()) {
        first.insert(key);
      } else if (first.count(key) == 0) {
        lost = key;
      }
    }
  }
  REQUIRE(lost != "");
  world.server.Erase(lost);
  PruneTwice(&world, 1, 1);
  REQUIRE(world.Index().sets.size() == 2);
  world.RequireTime(between);
  REQUIRE(world.exact == 1);  // and not refused
}

TEST_CASE("A check accepts a set whose log a prune has removed", "[archive]") {
  World world;
  TwoSets(&world);
  const size_t segments = world.Segments().size();
  PruneTwice(&world, 2, 1);
  REQUIRE(world.Segments().size() < segments);
  const ArchiveLog log = world.Index();
  REQUIRE(log.sets.size() == 2);
  CheckSummary check;
  REQUIRE_OK(world.Check(nullptr, &check));
  REQUIRE(check.log.orphans == 0);
  // But not one that has lost a part of its log.
  world.server.Erase(LogKeyText(log.lineages.begin()->second.segments.at(
      log.sets[1].log.segment)));
  REQUIRE_FALSE(world.Segments().empty());
  REQUIRE(EndStateOf(world.Check(nullptr, &check)) == EndState::kCorrupt);
}

TEST_CASE("A stopped follower that cannot store what it received ends with an "
          "error",
          "[archive][log]") {
  StandbyWorld source;
  source.Write(30);
  const std::string archive = source.root() + "/archive";
  InitArchive(archive);
  FollowOptions follow;
  follow.pull = source.Options();
  follow.into_archive = true;
  follow.store.where.directory = archive;
  follow.segment = std::chrono::hours(1);  // only the stop puts
  std::atomic<bool> has_set{false};
  std::atomic<uint64_t> received{0};
  follow.on_state = [&](const StandbyState& state) {
    has_set = !state.is_pushing && state.put_micros != 0;
    received = state.sequence;
  };
  RunningFollower follower(follow);
  REQUIRE(AwaitThat([&has_set] { return has_set.load(); }));
  source.Write(5);
  REQUIRE(AwaitThat([&] { return received >= source.sequence(); }));
  fs::rename(archive, archive + ".away");
  const bool is_replaced = GENERATE(false, true);
  if (is_replaced) InitArchive(archive);
  const Status ended = follower.Stop();
  INFO(ended.ToString());
  REQUIRE(EndStateOf(ended) == EndState::kRefused);
  REQUIRE(MessageOf(ended).find("that it received are not in the archive") !=
          std::string::npos);
  // Another archive does not get segments that follow no set.
  REQUIRE_FALSE(fs::exists(fs::path(archive) / "wal"));
}

// tests/archive/run starts the server and passes its address.
TEST_CASE("A real server's log is restored at several times", "[.s3]") {
  StandbyWorld source;
  source.Write(30);
  ArchiveOptions archive;
  const char* const endpoint = std::getenv("SSTFERRY_TEST_S3");
  REQUIRE(endpoint != nullptr);
  archive.store.endpoint = endpoint;
  if (const char* const file = std::getenv("SSTFERRY_TEST_S3_CA")) {
    archive.store.ca_file = file;
  }
  archive.store.where.bucket = "sstferry-test";
  archive.store.where.prefix = "log/" + ToHex(RandomId());
  archive.action = ArchiveAction::kInit;
  ArchiveReport report;
  REQUIRE_OK(MakeArchiveJob(archive)->Run(&report));

  FollowOptions follow;
  follow.pull = source.Options();
  follow.into_archive = true;
  follow.store = archive.store;
  follow.segment = std::chrono::milliseconds(50);
  std::mutex mu;
  std::condition_variable changed;
  uint64_t put = 0;
  bool has_set = false;
  follow.on_state = [&](const StandbyState& state) {
    const std::lock_guard<std::mutex> lock(mu);
    put = state.durable_sequence;
    has_set |= !state.is_pushing && state.put_micros != 0;
    changed.notify_all();
  };
  const std::unique_ptr<StandbyJob> job = MakeFollow(follow);
  Status ended;
  StandbyState last;
  std::thread runs([&] { ended = job->Run(&last); });
  std::vector<uint64_t> sequences;
  bool is_put = false;
  {
    std::unique_lock<std::mutex> lock(mu);
    is_put = changed.wait_for(lock, std::chrono::minutes(1),
                              [&has_set] { return has_set; });
  }
  for (int i = 0; i < 4 && is_put; ++i) {
    source.Write(20);
    std::unique_lock<std::mutex> lock(mu);
    is_put = changed.wait_for(lock, std::chrono::minutes(1), [&] {
      return put >= source.sequence();
    });
    sequences.push_back(source.sequence());
    if (i == 1) source.source()->Flush();
  }
  job->Cancel();
  runs.join();
  REQUIRE_OK(ended);
  REQUIRE(is_put);

  archive.action = ArchiveAction::kCheck;
  archive.read_percent = 100;
  REQUIRE_OK(MakeArchiveJob(archive)->Run(&report));
  REQUIRE(report.windows.size() == 1);
  REQUIRE(report.segments >= 4);
  const auto restore = [&](const std::string& which) {
    PullOptions pull;
    REQUIRE_OK(ParseSourceAddress(
        archive.store.where.ToString() + "@" + which, &pull.source));
    pull.store = archive.store;
    pull.target_dir = source.root() + "/restored";
    fs::remove_all(pull.target_dir);
    Summary summary;
    const Status restored = MakePull(pull)->Run(&summary);
    INFO(restored.ToString());
    REQUIRE_OK(restored);
    return source.RequirePrefix(pull.target_dir);
  };
  REQUIRE(restore(report.windows[0].end) == source.sequence());
  for (const uint64_t sequence : sequences) {
    REQUIRE(restore("sequence:" + std::to_string(sequence)) == sequence);
  }
}

// Writes `count` records of the same size.
void PutOfOneSize(World* world, const std::string& value, int count) {
  for (int i = 0; i < count; ++i) {
    world->source.source()->Put("key" + std::to_string(100 + i), value);
  }
}

// Replaces a source by its older copy. Renames do this at once: the server
// keeps reading, and must not see half a copy.
void PutInPlace(const std::string& copy, const std::string& path) {
  fs::rename(path, path + ".away");
  fs::rename(copy, path);
}

// Follows a source that was missing for a moment. Retries if the server read it
// in that moment.
Status FollowAnew(World* world) {
  Status status;
  for (int tries = 0; tries < 1000; ++tries) {
    world->heard = 0;
    status = world->FollowAndSync();
    if (EndStateOf(status) != EndState::kSourceError) {
      break;
    }
  }
  return status;
}

// Counts how many keys of a restored database have each value.
std::map<std::string, int> ValuesIn(const std::string& path) {
  std::map<std::string, int> values;
  OpenDb db(path, {{"default", Quiet()}, {"other", Quiet()}});
  for (int i = 0; i < 100; ++i) {
    std::string value;
    if (db->Get(rocksdb::ReadOptions(), "key" + std::to_string(100 + i), &value)
            .ok()) {
      ++values[value];
    }
  }
  return values;
}

TEST_CASE("A new log begins if a source was restored from an older "
          "copy, even if sizes are equal",
          "[archive]") {
  const bool is_running = GENERATE(false, true);
  World world;
  const std::string path = world.source.source_dir();
  const std::string copy = world.source.root() + "/copy";
  // With empty WALs, RocksDB writes the same MANIFEST each time it opens the
  // source.
  world.source.source()->Flush();
  world.source.CloseSource();
  fs::copy(path, copy, fs::copy_options::recursive);
  world.source.OpenSource();
  PutOfOneSize(&world, "old", 50);
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  PutOfOneSize(&world, "old", 20);
  const uint64_t sequence = world.source.sequence();
  REQUIRE_OK(world.FollowAndSync());
  if (!is_running) world.Stop();
  world.source.CloseSource();
  PutInPlace(copy, path);
  world.source.OpenSource();
  PutOfOneSize(&world, "new", 90);
  if (!is_running) REQUIRE_OK(world.Start());
  REQUIRE_OK(FollowAnew(&world));
  const uint64_t now = world.source.sequence();
  world.Stop();
  const std::vector<LogWindow> windows = world.Index().Windows();
  std::string reasons;
  for (const LogWindow& window : windows) reasons += window.why + "\n";
  INFO(reasons);
  REQUIRE(windows.size() == 2);
  REQUIRE(windows[0].why.starts_with("new-life"));
  const auto restore = [&world](const std::string& which) {
    const Ferried restored = world.Restore(which, "restored");
    INFO(restored.message());
    REQUIRE_OK(restored.status);
    return ValuesIn(world.TargetDir());
  };
  using Values = std::map<std::string, int>;
  REQUIRE(restore(LogTimeText(windows[0].end_micros)) == Values{{"old", 50}});
  REQUIRE(restore(LogTimeText(windows[1].end_micros)) == Values{{"new", 90}});
  REQUIRE(restore("sequence:" + std::to_string(now)) == Values{{"new", 90}});
  REQUIRE(sequence < now);
  CheckSummary summary;
  REQUIRE_OK(world.Check(nullptr, &summary));
}

TEST_CASE("A set of another history does not continue a log", "[archive]") {
  World world;
  const std::string path = world.source.source_dir();
  const std::string copy = world.source.root() + "/copy";
  world.source.source()->Flush();
  world.source.CloseSource();
  fs::copy(path, copy, fs::copy_options::recursive);
  world.source.OpenSource();
  PutOfOneSize(&world, "old", 50);
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.FollowAndSync());
  world.source.CloseSource();
  PutInPlace(copy, path);
  world.source.OpenSource();
  PutOfOneSize(&world, "new", 90);
  // A cut is due before the follower's next request to the source.
  REQUIRE_OK(world.target->Cut({.reason = CutReason::kCutEvery}));
  REQUIRE_OK(FollowAnew(&world));
  world.Stop();
  const ArchiveLog log = world.Index();
  REQUIRE(log.sets.size() >= 2);
  REQUIRE(log.sets[0].log.lineage != log.sets[1].log.lineage);
  const std::vector<LogWindow> windows = log.Windows();
  REQUIRE(windows.size() >= 2);
  REQUIRE(windows[0].why.starts_with("new-life"));
  REQUIRE_OK(
      world.Restore(LogTimeText(windows.back().end_micros), "restored").status);
  REQUIRE(ValuesIn(world.TargetDir()) ==
          std::map<std::string, int>{{"new", 90}});
}

TEST_CASE("A log has all records, even if the file of the next WAL exists "
          "before they are",
          "[archive]") {
  World world;
  uint64_t newest = 0;
  const std::string path = world.source.source_dir();
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    const size_t digit = name.find_first_of("0123456789");
    if (digit != std::string::npos) {
      newest = std::max<uint64_t>(newest, std::stoull(name.substr(digit)));
    }
  }
  std::ofstream(path + "/" + NumberedName(newest + 1, ".log")).flush();
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(20);
  REQUIRE_OK(world.FollowAndSync());
  const uint64_t before = world.source.sequence();
  world.source.source()->Flush();
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE(world.target->state().gaps == 0);
  world.Stop();
  for (const uint64_t sequence : {before, world.source.sequence()}) {
    const Ferried restored =
        world.Restore("sequence:" + std::to_string(sequence), "restored");
    INFO(restored.message());
    REQUIRE_OK(restored.status);
    REQUIRE(world.source.RequirePrefix(world.TargetDir()) == sequence);
  }
  CheckSummary summary;
  REQUIRE_OK(world.Check(nullptr, &summary));
}

// Appends a segment like a follower that missed some records would. In normal
// runs the follower's check prevents this.
void AppendWithAHole(World* world) {
  const std::unique_ptr<ObjectStore> client = world->server.NewClient();
  const Archive archive(client.get(), world->key.get());
  LogKey last;
  for (const std::string& name : world->Segments()) {
    REQUIRE(ParseLogKey(name, &last));
  }
  LogHead head;
  Sha256Digest digest;
  uint64_t bytes = 0;
  REQUIRE_OK(ReadLogHead(archive, last, &head, &digest, &bytes));
  LogWriter writer(SetId{9, 9}, head, digest, LogWriterOptions());
  world->Write(10);
  REQUIRE_OK((*world->source.source())->Flush(rocksdb::FlushOptions()));
  world->Write(10);
  const Round round =
      ReadRoundOf(world->source.source_dir(), writer.position());
  REQUIRE(round.logs.size() == 2);
  FollowEnd end = round.end;
  end.last_sequence = world->source.sequence();
  REQUIRE_OK(writer.Append(
      {{round.logs[1].wal_number, 0, round.logs[1].bytes}}, end, Micros()));
  REQUIRE_OK(writer.Put(client.get()));
}

TEST_CASE("A restore and a check find a hole in a log, and name the last good "
          "sequence",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const uint64_t good = world.source.sequence();
  AppendWithAHole(&world);
  const std::string last = std::to_string(world.source.sequence());
  const Ferried restored = world.Restore("sequence:" + last, "restored");
  INFO(restored.message());
  REQUIRE(restored.state() == EndState::kCorrupt);
  const std::string next =
      "@sequence:" + std::to_string(good) + " is the last one";
  REQUIRE(restored.message().find(next) != std::string::npos);
  REQUIRE_FALSE(fs::exists(world.TargetDir()));
  CheckSummary summary;
  REQUIRE(EndStateOf(world.Check(nullptr, &summary)) == EndState::kCorrupt);
  REQUIRE(summary.log.problems.size() == 1);
  REQUIRE(summary.log.problems[0].find(next) != std::string::npos);
  REQUIRE_OK(
      world.Restore("sequence:" + std::to_string(good), "restored").status);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) == good);
}

TEST_CASE("If received records have a hole, the log ends and another begins",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK((*world.source.source())->Flush(rocksdb::FlushOptions()));
  world.Write(10);
  const FollowPosition at = world.target->position();
  Round round = ReadRoundOf(world.source.source_dir(), at);
  REQUIRE(round.logs.size() == 2);
  round.logs.erase(round.logs.begin());
  REQUIRE_OK(world.target->Append(at, round));
  REQUIRE(world.target->gap().reason == CutReason::kSequenceGap);
  REQUIRE(world.target->position() == at);
  REQUIRE_OK(world.target->Cut({.reason = world.target->gap().reason,
                                .note = world.target->gap().note}));
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  REQUIRE(world.Index().sets.size() == 2);
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 2);
  REQUIRE(windows[0].why.starts_with("sequence-gap"));
  world.RequireTime(windows[1].end_micros);
}

TEST_CASE("A scheduled set continues its log, even after a flush",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  for (int i = 0; i < 3; ++i) {
    world.Write(10);
    if (i > 0) world.source.source()->Flush();
    REQUIRE_OK(world.FollowAndSync());
    // A few more steps, so that the follower also reads the flush's record.
    for (int more = 0; more < 5; ++more) REQUIRE_OK(world.Step());
    REQUIRE_OK(world.target->Cut({.reason = CutReason::kCutEvery}));
    REQUIRE_OK(world.FollowAndSync());
  }
  REQUIRE(world.target->state().gaps == 0);
  world.Stop();
  const ArchiveLog log = world.Index();
  REQUIRE(log.sets.size() == 4);
  for (const LoggedSet& set : log.sets) {
    REQUIRE(set.log.lineage == log.sets[0].log.lineage);
  }
}

// Readers refuse longer lists than they can hold, and a prune is a reader.
TEST_CASE("A follower warns early, and puts no more segments than are listed",
          "[archive]") {
  World world;
  world.max_segments = 4;
  std::mutex mu;
  int warnings = 0;
  world.log = [&](LogLevel, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mu);
    warnings += text.find("nothing can be added") != std::string::npos;
  };
  REQUIRE_OK(world.Start());
  Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    world.Write(5);
    status = world.FollowAndSync();
  }
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(NextOf(status).starts_with("sstferry archive prune"));
  REQUIRE(world.Segments().size() == 4);
  REQUIRE(warnings == 1);
  world.Stop();
  world.RequireTime(world.Index().Windows().back().end_micros);
  REQUIRE(EndStateOf(world.Start()) == EndState::kRefused);
  // A prune has made room.
  world.max_segments = 8;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE(world.Segments().size() == 5);
  world.Stop();
}

TEST_CASE("A cut that cannot start its push begins no log", "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  std::atomic<bool> is_denied{false};
  Status cut;
  std::thread([&] {
    // A cut asks for the time before and after it connects to the source. Then
    // it starts only the thread of its push.
    world.on_clock = [&is_denied, looks = 0]() mutable {
      if (++looks != 2) return;
      is_denied =
          DenyInThisThread({{SYS_clone, EAGAIN}, {SYS_clone3, EAGAIN}});
    };
    for (int i = 0; i < 100 && cut.ok() && !is_denied; ++i) cut = world.Step();
  }).join();
  world.on_clock = nullptr;
  if (!is_denied) {
    WARN("SKIPPED: the kernel filters no calls");
    return;
  }
  INFO(cut.ToString());
  REQUIRE(EndStateOf(cut) == EndState::kInternal);
  REQUIRE_FALSE(world.target->exists());
  const StandbyState state = world.target->state();
  REQUIRE_FALSE(state.is_pushing);
  REQUIRE(state.cut_micros == 0);
  REQUIRE(state.unput_micros == 0);
  REQUIRE(state.cuts.empty());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  REQUIRE(world.target->state().unput_micros == 0);
  world.Stop();
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 1);
  world.RequireTime(windows[0].end_micros);
}

TEST_CASE("A log counts as put only if its set does", "[archive]") {
  Gate gate;
  const bool fails = GENERATE(false, true);
  World world;
  REQUIRE_OK(world.Start([&](StoreCall* call) {
    if (call->kind != StoreCallKind::kPut ||
        !call->key.starts_with(kArchiveDonePrefix)) {
      return CallFate::kArrives;
    }
    gate.Pass();
    return fails ? CallFate::kNeverArrives : CallFate::kArrives;
  }));
  while (!world.target->exists()) REQUIRE_OK(world.Step());
  const uint64_t since = Micros();
  world.Write(10);
  world.heard = 0;
  while (world.heard < world.source.sequence()) REQUIRE_OK(world.Step());
  REQUIRE_OK(world.target->Sync());
  REQUIRE(gate.AwaitReached());
  REQUIRE_FALSE(world.Segments().empty());
  REQUIRE(world.Index().Windows().empty());
  StandbyState state = world.target->state();
  REQUIRE(state.put_micros == 0);
  REQUIRE(state.durable_sequence == 0);
  REQUIRE(state.unput_micros != 0);
  REQUIRE(state.unput_micros <= since);
  const uint64_t unput = state.unput_micros;
  gate.Open();
  if (fails) {
    while (world.target->exists()) std::this_thread::yield();
    state = world.target->state();
    REQUIRE(state.put_micros == 0);
    REQUIRE(state.unput_micros == unput);
    world.Stop();
    return;
  }
  REQUIRE_OK(world.FollowAndSync());
  state = world.target->state();
  const uint64_t end = world.Index().Windows().back().end_micros;
  REQUIRE(state.put_micros == end);
  REQUIRE(state.durable_sequence == world.source.sequence());
  REQUIRE(state.unput_micros == 0);
  // A new follower knows up to when an earlier one has put the log.
  REQUIRE_OK(world.Start());
  REQUIRE(world.target->state().put_micros == end);
  world.Stop();
}

TEST_CASE("A log of a clock that was ahead is not continued, and a warning says "
          "until when",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const uint64_t ahead = Micros() + 3600'000'000ull;
  {
    const std::unique_ptr<ObjectStore> client = world.server.NewClient();
    const Archive archive(client.get());
    LogKey last;
    REQUIRE(ParseLogKey(world.Segments().back(), &last));
    LogHead head;
    Sha256Digest digest;
    uint64_t bytes = 0;
    REQUIRE_OK(ReadLogHead(archive, last, &head, &digest, &bytes));
    LogWriterOptions options;
    options.now_micros = [ahead] { return ahead; };
    LogWriter writer(SetId{9, 9}, head, digest, options);
    world.Write(10);
    const Round round =
        ReadRoundOf(world.source.source_dir(), writer.position());
    REQUIRE_OK(writer.Append(
        {{round.logs[0].wal_number, round.logs[0].offset_bytes,
          round.logs[0].bytes}},
        round.end, ahead));
    REQUIRE_OK(writer.Put(client.get()));
  }
  std::vector<std::string> warnings;
  world.log = [&warnings](LogLevel level, const std::string& text) {
    if (level == LogLevel::kWarning) warnings.push_back(text);
  };
  REQUIRE_OK(world.Start());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  std::erase_if(warnings, [](const std::string& warning) {
    return warning.find("one of the clocks is or was wrong") ==
           std::string::npos;
  });
  REQUIRE(warnings.size() == 1);
  REQUIRE(warnings[0].find("Times up to " + LogTimeText(ahead) +
                           " may be in two logs") != std::string::npos);
  REQUIRE(world.Index().sets.size() == 2);
  REQUIRE(world.Index().sets[1].sequence == world.source.sequence());
}

TEST_CASE("A time that is in two logs after a wrong clock is refused, and can "
          "be restored from each",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.clock_ahead = 58 * 60'000'000ull;
  REQUIRE_OK(world.target->Cut({.reason = CutReason::kCutEvery}));
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  const uint64_t ahead = world.source.sequence();
  const uint64_t time = world.Index().Windows().back().end_micros;
  world.clock_ahead = 0;
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  const uint64_t right = world.source.sequence();
  world.clock_ahead = 59 * 60'000'000ull;
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const ArchiveLog log = world.Index();
  REQUIRE(log.sets.size() == 3);
  const std::string at = LogTimeText(time);
  const std::string of_ahead = SetNameText(log.sets[2].name) + "+" + at;
  const std::string of_right = SetNameText(log.sets[1].name) + "+" + at;
  const Ferried refused = world.Restore(at, "restored");
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("@" + of_ahead) != std::string::npos);
  REQUIRE(refused.message().find("@" + of_right) != std::string::npos);
  REQUIRE_OK(world.Restore(of_ahead, "restored").status);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) == ahead);
  REQUIRE_OK(world.Restore(of_right, "restored").status);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) == right);
  // A drill uses the other times.
  const std::vector<LogWindow> windows = log.Windows();
  REQUIRE(windows.size() == 2);
  const std::vector<LogWindow> clear = ClearPeriods(windows);
  REQUIRE(clear.size() == 2);
  REQUIRE(clear[0].begin_micros == windows[0].begin_micros);
  REQUIRE(clear[0].end_micros == windows[1].begin_micros - 1);
  REQUIRE(clear[1].begin_micros == time + 1);
  REQUIRE(clear[1].end_micros == windows[1].end_micros);
}

TEST_CASE("A follower logs the warnings of a push of its set", "[archive]") {
  World world;
  world.server.Overwrite(kArchiveCheckedKey, "no findings");
  std::mutex mu;
  std::string warnings;
  world.log = [&](LogLevel level, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mu);
    if (level == LogLevel::kWarning) warnings += text + "\n";
  };
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Stop();
  INFO(warnings);
  REQUIRE(warnings.find("no object was reused, because it is unknown which of "
                        "them the last check found wrong") !=
          std::string::npos);
}

TEST_CASE("After a clock was set back a little, no set is earlier than the log "
          "that it contains",
          "[archive]") {
  World world;
  REQUIRE_OK(world.Start());
  REQUIRE_OK(world.Follow());
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  const uint64_t wanted = world.source.sequence();
  const uint64_t time = world.Index().Windows().back().end_micros;
  world.clock_ahead = 8'000'000;
  world.Write(10);
  REQUIRE_OK(world.FollowAndSync());
  const uint64_t end = world.Index().Windows().back().end_micros;
  REQUIRE(end >= time + 8'000'000);
  world.clock_ahead = 2'000'000;
  switch (GENERATE(0, 1, 2)) {
    case 0:
      REQUIRE_OK(world.target->Cut({.reason = CutReason::kCutEvery}));
      break;
    case 1:
      world.MakeBarrier();
      break;
    default:
      world.Stop();
      world.Reopen();
      REQUIRE_OK(world.Start());  // finds the end of the log
  }
  world.Write(1);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const ArchiveLog log = world.Index();
  REQUIRE(log.sets.size() == 2);
  REQUIRE(log.sets[1].log.moment_micros >= end);
  const Ferried restored =
      world.Restore(LogTimeText(time + 5'000'000), "restored");
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) == wanted);
  // Another log may begin at the time at which this one ends.
  REQUIRE_OK(world.Restore(LogTimeText(end), "restored").status);
}

// --- Tests of LogWriter alone -----------------------------------------------

FollowEnd EndOf(bool has_all, uint64_t sequence) {
  FollowEnd end;
  end.more_bytes = has_all ? 0 : 1;
  end.last_sequence = sequence;
  return end;
}

// A LogWriter with a clock that the test sets.
struct Writer {
  Writer() {
    LogWriterOptions options;
    options.segment_bytes = 1000;
    options.now_micros = [this] { return now; };
    log = std::make_unique<LogWriter>(
        SetId{1}, FollowPosition{"id", 5, 6, 6, {}, 9, 100, {}}, now, now,
        options);
    client = server.NewClient();
  }
  // The answer to a request arrives `waited` microseconds after it.
  void Round(uint64_t micros, const std::string& bytes, bool has_all = true,
             uint64_t waited = 0) {
    now = micros;
    const FollowPosition at = log->position();
    REQUIRE_OK(log->Append({{at.wal_number, at.wal_bytes, bytes}},
                           EndOf(has_all, at.wal_bytes), now - waited));
  }
  std::vector<LogKey> Keys() const {
    std::vector<LogKey> keys;
    for (const auto& [name, bytes] : server.Objects()) {
      LogKey key;
      REQUIRE(ParseLogKey(name, &key));
      keys.push_back(key);
    }
    return keys;
  }
  uint64_t now = 1'000'000'000;
  MemoryStore server;
  std::unique_ptr<ObjectStore> client;
  std::unique_ptr<LogWriter> log;
};

TEST_CASE("Segments contain the time range in which the source answered",
          "[archive]") {
  Writer writer;
  const uint64_t begin = writer.now;
  writer.Round(begin + 1'000'000, "one");
  REQUIRE_OK(writer.log->Put(writer.client.get()));
  writer.Round(begin + 2'000'000, "");
  REQUIRE_OK(writer.log->Put(writer.client.get()));  // no segment yet
  REQUIRE(writer.Keys().size() == 1);
  writer.Round(begin + 3'000'000, "two");
  // The source does not answer for longer than the maximum gap.
  writer.Round(begin + 30'000'000, "three", false);
  writer.Round(begin + 31'000'000, "four");
  REQUIRE_OK(writer.log->Put(writer.client.get()));
  const std::vector<LogKey> keys = writer.Keys();
  REQUIRE(keys.size() == 3);
  REQUIRE(keys[0].begin_micros == begin);
  REQUIRE(keys[0].end_micros == begin + 1'000'000);
  REQUIRE(keys[1].begin_micros == begin + 1'000'000);
  REQUIRE(keys[1].end_micros == begin + 3'000'000);
  REQUIRE(keys[2].begin_micros == begin + 31'000'000);
  REQUIRE(keys[2].end_micros == begin + 31'000'000);
  REQUIRE(writer.log->state().gaps == 1);
  ArchiveLog log;
  for (const LogKey& key : keys) {
    log.lineages[key.lineage].segments.emplace(key.number, key);
  }
  const LoggedSet set{{0, SetId{1}}, 0, {SetId{1}, 1, begin}};
  const std::vector<LogWindow> windows =
      log.WindowsOf(set, FirstPathOf(log, set.log));
  REQUIRE(windows.size() == 2);
  REQUIRE(windows[0].why == "outage");
}

TEST_CASE("An answer that took long does not begin a range", "[archive]") {
  Writer writer;
  const uint64_t begin = writer.now;
  writer.Round(begin + 1'000'000, "one");
  writer.Round(begin + 300'000'000, "two", true, 297'000'000);
  writer.Round(begin + 301'000'000, "three", true, kMaxLogGapMicros);
  REQUIRE_OK(writer.log->Put(writer.client.get()));
  REQUIRE_OK(writer.log->Put(writer.client.get()));
  const std::vector<LogKey> keys = writer.Keys();
  REQUIRE(keys.size() == 2);
  REQUIRE(keys[0].end_micros == begin + 1'000'000);
  REQUIRE(keys[1].begin_micros == begin + 301'000'000);
  REQUIRE(writer.log->position().wal_bytes == 111);
}

TEST_CASE("While the store is unreachable, no answer begins a window",
          "[archive]") {
  World world;
  world.max_gap = std::chrono::minutes(1);
  world.options.segment_bytes = 1;  // the next round waits for its put
  bool is_out = false;
  REQUIRE_OK(world.Start([&](StoreCall* call) {
    if (call->kind == StoreCallKind::kPut &&
        call->key.starts_with(kArchiveLogPrefix) &&
        std::exchange(is_out, false)) {
      world.clock_ahead += 300'000'000;
      world.Write(10);
    }
    return CallFate::kArrives;
  }));
  REQUIRE_OK(world.Follow());
  world.Write(1);
  REQUIRE_OK(world.Follow());
  world.Write(1);
  is_out = true;
  while (is_out) REQUIRE_OK(world.Step());
  const uint64_t reached = Micros() + world.clock_ahead;
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 2);
  REQUIRE(windows[1].begin_micros >= reached);
  const Ferried restored =
      world.Restore(LogTimeText(windows[1].end_micros), "restored");
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(world.source.RequirePrefix(world.TargetDir()) ==
          world.source.sequence());
}

TEST_CASE("A cut that took long does not begin a window with its log",
          "[archive]") {
  const bool takes_long = GENERATE(false, true);
  World world;
  world.max_gap = std::chrono::minutes(1);
  REQUIRE_OK(world.Start());
  if (takes_long) world.clock_step = 61'000'000;
  while (!world.target->exists()) REQUIRE_OK(world.Step());
  const uint64_t moment = world.target->cut_micros();
  if (takes_long) {
    world.clock_step = 0;
    world.clock_ahead = moment - Micros();
  }
  world.Write(1);  // after the snapshot, and perhaps before its set's time
  REQUIRE_OK(world.FollowAndSync());
  world.Write(1);
  REQUIRE_OK(world.FollowAndSync());
  world.Stop();
  const std::vector<LogWindow> windows = world.Index().Windows();
  REQUIRE(windows.size() == 1);
  REQUIRE((windows[0].begin_micros == moment) == !takes_long);
  const Ferried restored = world.Restore(LogTimeText(moment), "restored");
  INFO(restored.message());
  REQUIRE(restored.state() ==
          (takes_long ? EndState::kRefused : EndState::kOk));
}

TEST_CASE("A source that writes nothing gets a segment now and then",
          "[archive]") {
  Writer writer;
  const uint64_t begin = writer.now;
  for (uint64_t second = 1; second <= 130; ++second) {
    writer.Round(begin + second * 1'000'000, "");
    REQUIRE_OK(writer.log->Put(writer.client.get()));
  }
  REQUIRE(writer.Keys().size() == 2);
  REQUIRE(writer.Keys().back().end_micros == begin + 120'000'000);
}

TEST_CASE("If the clock is set back a little, the log's times do not go back",
          "[archive]") {
  Writer writer;
  const uint64_t begin = writer.now;
  writer.Round(begin + 5'000'000, "one");
  writer.Round(begin - 5'000'000, "two");
  REQUIRE_OK(writer.log->Put(writer.client.get()));
  REQUIRE(writer.Keys()[0].end_micros == begin + 5'000'000);
}

TEST_CASE(
    "A segment whose answer is lost is put once, and the next one follows",
    "[archive]") {
  Writer writer;
  CallFate fate = CallFate::kAnswerLost;
  const std::unique_ptr<ObjectStore> client =
      writer.server.NewClient([&fate](StoreCall* call) {
        return call->kind == StoreCallKind::kPut ? fate : CallFate::kArrives;
      });
  writer.Round(writer.now + 1, "one");
  REQUIRE_OK(writer.log->Put(client.get()));
  REQUIRE(writer.log->state().unput_bytes == 0);
  REQUIRE(writer.log->state().unput_micros == 0);
  fate = CallFate::kRepeatDenied;
  writer.Round(writer.now + 1, "and");
  REQUIRE_OK(writer.log->Put(client.get()));
  fate = CallFate::kNeverArrives;
  writer.Round(writer.now + 1, "two");
  const uint64_t since = writer.now;
  REQUIRE(writer.log->state().unput_micros == since);
  REQUIRE(EndStateOf(writer.log->Put(client.get())) == EndState::kDeadPeer);
  writer.Round(writer.now + 1, "three");
  REQUIRE(writer.log->state().unput_bytes == 8);
  REQUIRE(writer.log->state().unput_micros == since);
  fate = CallFate::kArrives;
  REQUIRE_OK(writer.log->Put(client.get()));
  REQUIRE(writer.log->state().unput_bytes == 0);
  REQUIRE(writer.log->state().unput_micros == 0);
  REQUIRE(writer.log->state().segments == 4);
  REQUIRE(writer.Keys().size() == 4);
  // If a segment's name has other bytes, another follower wrote them.
  writer.Round(writer.now + 1, "four");
  LogKey next = writer.Keys().back();
  const uint64_t end = writer.now;
  next.number += 1;
  next.begin_micros = next.end_micros;
  next.end_micros = end;
  writer.server.Overwrite(LogKeyText(next), "other bytes");
  LogWriterOptions unused;
  const Status status = writer.log->Put(writer.client.get());
  INFO(status.ToString());
  REQUIRE((status.ok() || EndStateOf(status) == EndState::kBusy));
}

TEST_CASE("Records that do not continue a log are refused", "[archive]") {
  Writer writer;
  for (const WalBytes& part : {WalBytes{9, 99, "x"}, WalBytes{9, 101, "x"},
                              WalBytes{8, 100, "x"}, WalBytes{10, 1, "x"}}) {
    REQUIRE(EndStateOf(writer.log->Append({part}, FollowEnd(), writer.now)) ==
            EndState::kCorrupt);
  }
  // Bytes of a new WAL are parsed, so bytes that are not a record are refused.
  REQUIRE(EndStateOf(writer.log->Append({{9, 100, "x"}, {10, 0, "no record"}},
                                        FollowEnd(), writer.now)) ==
          EndState::kCorrupt);
  REQUIRE(writer.log->position().wal_bytes == 100);
  REQUIRE_OK(writer.log->Append({{9, 100, "x"}}, FollowEnd(), writer.now));
  REQUIRE(writer.log->position().wal_bytes == 101);
}

TEST_CASE("A clock that is set back by much ends a log", "[archive]") {
  Writer writer;
  const uint64_t begin = writer.now;
  writer.Round(begin + 50'000'000, "one");
  writer.Round(begin + 39'000'000, "two");
  REQUIRE(writer.log->gap().reason == CutReason::kClock);
  REQUIRE(writer.log->gap().note.find("set back") != std::string::npos);
  REQUIRE(writer.log->position().wal_bytes == 103);
  REQUIRE_OK(writer.log->End(writer.client.get(), writer.log->gap().reason,
                             writer.log->gap().note));
  REQUIRE(writer.Keys().back().end_micros == begin + 50'000'000);
}

TEST_CASE("No segment follows the last one of a log that has ended",
          "[archive]") {
  Writer writer;
  const uint64_t begin = writer.now;
  bool is_out = false;
  const std::unique_ptr<ObjectStore> client =
      writer.server.NewClient([&is_out](StoreCall* call) {
        return is_out && call->kind == StoreCallKind::kPut
                   ? CallFate::kNeverArrives
                   : CallFate::kArrives;
      });
  writer.Round(begin + 1'000'000, "one");
  REQUIRE_OK(writer.log->Put(client.get()));
  is_out = true;
  REQUIRE_FALSE(
      writer.log->End(client.get(), CutReason::kNewLife, "why").ok());
  // The follower has not noticed yet that the log has ended.
  writer.Round(begin + 2'000'000, "two");
  is_out = false;
  REQUIRE_OK(writer.log->Put(client.get()));
  REQUIRE_OK(writer.log->End(client.get(), CutReason::kNewLife, "why"));
  writer.Round(begin + 3'000'000, "three");
  REQUIRE_OK(writer.log->Put(client.get()));
  REQUIRE(writer.log->gap().reason == CutReason::kNewLife);
  REQUIRE(writer.log->position().wal_bytes == 103);
  REQUIRE(writer.Keys().size() == 2);
  LogHead last;
  Sha256Digest digest;
  uint64_t bytes = 0;
  REQUIRE_OK(ReadLogHead(Archive(client.get()), writer.Keys().back(), &last,
                         &digest, &bytes));
  REQUIRE(last.ended == CutReason::kNewLife);
}

TEST_CASE("Times are parsed with and without fractions of a second",
          "[archive]") {
  uint64_t micros = 0;
  REQUIRE(ParseLogTime("20261124T030000Z", &micros));
  REQUIRE(micros == 1'795'489'200'000'000);
  REQUIRE(ParseLogTime("2026-11-24T03:00:00Z", &micros));
  REQUIRE(micros == 1'795'489'200'000'000);
  REQUIRE(ParseLogTime("2026-11-24T03:00:00.25Z", &micros));
  REQUIRE(micros == 1'795'489'200'250'000);
  REQUIRE(LogTimeText(micros) == "2026-11-24T03:00:00.250000Z");
  REQUIRE(ParseLogTime(LogTimeText(micros), &micros));
  for (const char* const bad :
       {"", "Z", "2026-11-24T03:00:00", "2026-11-24T03:00:00.Z",
        "2026-11-24T03:00:00.1234567Z", "2026-11-24T03:00:00.2x5Z",
        "2026-11-24 03:00:00Z", "2026-13-24T03:00:00Z", "nightly"}) {
    INFO(bad);
    REQUIRE_FALSE(ParseLogTime(bad, &micros));
  }
}

}  // namespace
}  // namespace sstferry::test::log_test
