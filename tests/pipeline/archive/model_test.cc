// Tests the promises of pipeline/archive/push.h for any order of the clients'
// calls. Two pushes, two prunes, a restore and a follower run at once; the
// follower puts segments of a log and pushes sets that the log continues. A
// scheduler lets one client at a time do one or more calls. It stops clients
// before any call: for seconds, for longer than the grace, or forever.
//
// SSTFERRY_ARCHIVE_MODEL is the number of interleavings (default: 1,000). It is
// a number and not a duration, so that busy machines test as much.
// SSTFERRY_ARCHIVE_MODEL_SEED is the seed of the first one, so that many can
// run in shards.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/log_writer.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/pipeline/archive/turns.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"

namespace sstferry::model_test {
namespace {

using rocksdb::Status;

constexpr uint64_t kGrace = kMinGraceSeconds;

const char* KindName(StoreCallKind kind) {
  constexpr const char* kNames[] = {
      "now", "put", "get", "head", "list", "delete", "uploads"};
  return kNames[static_cast<size_t>(kind)];
}

// An archive, its clients, and the promises that must hold.
class World {
 public:
  explicit World(uint64_t seed)
      : random_(seed), turns_(&random_, [this] { PassTime(); }) {
    MemoryStoreRules rules;
    rules.checks_signatures = Chance(2);
    rules.honours_if_absent = Chance(2);
    server_ = std::make_unique<MemoryStore>(rules);
    ArchiveHead head;
    head.grace_seconds = kGrace;
    // It may be true although the store has two winners: Init found only one.
    head.has_if_absent = Chance(2);
    std::string bytes;
    EncodeArchiveHead(head, &bytes);
    server_->Overwrite(kArchiveHeadKey, bytes);
  }

  // Runs one interleaving. Returns the promise that was broken, or "".
  const std::string& Play() {
    // The archive begins with one or two sets, perhaps with marks in their
    // grace.
    std::unique_ptr<ObjectStore> store = server_->NewClient();
    const Archive archive(store.get());
    for (uint64_t i = 0; i <= random_() % 2; ++i) {
      may_change_ = true;  // no hook reports these calls
      Push(-1, archive);
      server_->Advance(static_cast<UnixSeconds>(60 + random_() % kGrace));
      if (Chance(2)) {
        server_->Advance(kGrace + 1);
        Prune(archive);
        may_change_ = true;
        Check();
      }
    }
    if (Chance(2)) {
      server_->Advance(kGrace + 1);
    }
    Check();
    turns_.Run({[this](int self) { Act(self, 2, &World::PushOnce); },
                [this](int self) { Act(self, 2, &World::PushOnce); },
                [this](int self) { Act(self, 3, &World::PruneOnce); },
                [this](int self) { Act(self, 3, &World::PruneOnce); },
                [this](int self) { Act(self, 2, &World::RestoreOnce); },
                [this](int self) { Act(self, 3, &World::LogOnce); }});
    Check();
    return broken_;
  }

  std::string Trace() const {
    std::string text;
    for (const std::string& line : trace_) {
      text += line + "\n";
    }
    return text;
  }
  uint64_t pushed() const { return pushed_; }
  uint64_t pushes() const { return pushes_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t segments() const { return segments_.size(); }

 private:
  bool Chance(uint64_t of) { return random_() % of == 0; }
  void Break(const std::string& what) {
    if (broken_.empty()) {
      broken_ = what;
    }
  }
  SetId NewId() {
    SetId id{};
    id[7] = static_cast<uint8_t>(++ids_);
    return id;
  }

  void PassTime() {
    constexpr UnixSeconds kSleeps[] = {60, 20 * 60, kGrace / 2, kGrace + 1,
                                       kGrace + 1};
    if (Chance(6)) {
      const UnixSeconds sleep = kSleeps[random_() % std::size(kSleeps)];
      server_->Advance(sleep);
      trace_.push_back("      " + std::to_string(sleep) + " s pass");
    }
  }

  CallFate BeforeCall(int self, StoreCall* call) {
    Check();
    const UnixSeconds before = server_->now();
    turns_.Pause(self);
    call->slept_before_signing = server_->now() != before && Chance(2);
    Client& client = clients_[self];
    if (Chance(1000)) {
      client.is_dead = true;
    }
    if (client.is_dead || !broken_.empty()) {
      return CallFate::kNeverArrives;
    }
    trace_.push_back("  " + std::to_string(self) + ": " +
                     KindName(call->kind) + " " + call->key);
    may_change_ = call->kind == StoreCallKind::kPut ||
                  call->kind == StoreCallKind::kDelete;
    return Chance(600)   ? CallFate::kNeverArrives
           : Chance(300) ? CallFate::kAnswerLost
                         : CallFate::kArrives;
  }

  using Action = void (World::*)(int self, const Archive& archive);
  void Act(int self, int times, Action action) {
    std::unique_ptr<ObjectStore> store = server_->NewClient(
        [this, self](StoreCall* call) { return BeforeCall(self, call); });
    const Archive archive(store.get());
    for (int i = 0; i < times && !clients_[self].is_dead; ++i) {
      (this->*action)(self, archive);
      Check();
    }
  }

  uint64_t NowMicros() const {
    return 1'000'000 * static_cast<uint64_t>(server_->now());
  }

  // Runs a follower: it begins a log, or continues its own or that of an
  // earlier follower. It puts segments, and may push a set that the log
  // continues.
  void LogOnce(int self, const Archive& archive) {
    LogWriterOptions options;
    options.now_micros = [this] { return NowMicros(); };
    SetLog log;
    log.moment_micros = NowMicros();
    const bool is_new = log_ == nullptr;
    LogHead last;
    Sha256Digest digest;
    uint64_t head_bytes = 0;
    if (is_new) {
      log.lineage = NewId();
      log_ = std::make_unique<LogWriter>(
          log.lineage, FollowPosition{"id", 5, 6, 6, {}, 9, 1, {}},
          log.moment_micros, log.moment_micros, options);
      forks_.clear();
    } else if (Chance(2) && !segments_.empty() &&
               ReadLogHead(archive, segments_.back().key, &last, &digest,
                           &head_bytes)
                   .ok()) {
      forks_ = segments_.back().forks;
      forks_[last.key.lineage] = last.key.number;
      log_ = std::make_unique<LogWriter>(NewId(), last, digest, options);
    }
    log.lineage = log_->lineage();
    log.segment = log_->segment();
    const auto put = [&] {
      const FollowPosition at = log_->position();
      log_->Append({{at.wal_number, at.wal_bytes, "record"}}, FollowEnd(),
                   NowMicros())
          .PermitUncheckedError();
      const uint64_t number = log_->segment();
      if (log_->Put(archive.store()).ok() && log_->segment() == number + 1) {
        NotePut(archive, number);
      }
    };
    if (!clients_[self].is_dead) put();
    if (is_new || Chance(2)) {
      Push(self, archive, log, is_new ? log.lineage : NewId());
    }
    if (!clients_[self].is_dead) put();
  }

  // Remembers a segment whose put succeeded.
  void NotePut(const Archive& archive, uint64_t number) {
    for (const auto& [text, bytes] : server_->Objects()) {
      LogKey key;
      if (ParseLogKey(text, &key) && key.lineage == log_->lineage() &&
          key.number == number) {
        segments_.push_back({key, forks_});
        may_change_ = true;
        return;
      }
    }
    Break("a segment that was put is not there: " +
          archive.store()->Describe(std::to_string(number)));
  }

  void PushOnce(int self, const Archive& archive) { Push(self, archive); }
  void Push(int self, const Archive& archive, const SetLog& log = {},
            std::optional<SetId> id = {}) {
    std::vector<int> tables = {0, 1, 2};
    std::erase(tables, static_cast<int>(random_() % 3));
    FakeSetSource source(tables, "point in time " + std::to_string(++points_));
    PushOptions options;
    options.lanes = 1;
    options.new_id = [this, id] { return id.has_value() ? *id : NewId(); };
    options.log = log;
    if (log.segment != 0) {
      options.next_segment = [this] { return log_->next_to_put(); };
    }
    options.steady_seconds = [this] {
      return static_cast<uint64_t>(server_->now());
    };
    PushSummary summary;
    const Status status = PushSet(archive, &source, options, &summary);
    trace_.push_back("  " + std::to_string(self) + ": pushed " +
                     SetNameText(summary.name) + ": " + status.ToString());
    ++pushes_;
    if (status.ok()) {
      may_change_ |= self < 0;
      Check();
      ++pushed_;
      reported_.insert(summary.name);
      if (counted_.count(summary.name) == 0 &&
          given_up_.count(summary.name) == 0) {
        Break("a push told of a set that does not count: " +
              SetNameText(summary.name));
      }
    }
  }

  void PruneOnce(int, const Archive& archive) { Prune(archive); }
  void Prune(const Archive& archive) {
    PruneOptions options;
    options.retention.last = 1;
    options.new_id = [this] { return NewId(); };
    PruneSummary summary;
    PruneArchive(archive, options, &summary).PermitUncheckedError();
    dropped_ += summary.dropped_sets;
  }

  void RestoreOnce(int, const Archive& archive) {
    std::vector<FoundSet> sets;
    if (!archive.ListSets(&sets).ok()) {
      return;
    }
    std::erase_if(sets, [](const FoundSet& set) { return !set.is_done; });
    std::optional<ArchiveSet> set;
    if (sets.empty() || !archive.ReadSet(sets.back(), &set).ok() ||
        !set.has_value()) {
      return;
    }
    for (const ArchivedFile& file : set->files) {
      std::string bytes;
      const StoreCode code =
          GetBytes(archive.store(), ArchiveKeyText(file.key), 1000, &bytes)
              .code;
      Check();
      if (code == StoreCode::kAbsent && counted_.count(set->name) != 0) {
        Break("a restore misses " + ArchiveKeyText(file.key));
      }
      if (code == StoreCode::kOk && Sha256Of(bytes) != file.sha256) {
        Break("a restore got other bytes of " + ArchiveKeyText(file.key));
      }
    }
  }

  // Compares the objects in the store with those before the last call.
  void Check() {
    if (!may_change_) {
      return;
    }
    may_change_ = false;
    const std::map<std::string, std::string> objects = server_->Objects();
    for (const auto& [key, bytes] : before_) {
      // A follower may put a log segment again that was deleted.
      // A prune that takes a mark back may put it again.
      if (objects.count(key) == 0 && !key.starts_with(kArchiveIntentsPrefix) &&
          !key.starts_with(kArchiveMarksPrefix) &&
          !key.starts_with(kArchiveLogPrefix)) {
        dead_.insert(key);
      }
    }
    for (const auto& [key, bytes] : objects) {
      if (before_.count(key) == 0 && dead_.count(key) != 0) {
        Break("a deleted key is reused: " + key);
      }
    }
    NoteMarks(objects);
    std::set<SetName> counted;
    for (auto it = objects.lower_bound(kArchiveDonePrefix);
         it != objects.end() && it->first.starts_with(kArchiveDonePrefix);
         ++it) {
      SetName name;
      if (!ParseSetName(it->first.substr(sizeof(kArchiveDonePrefix) - 1),
                        &name)) {
        Break("a strange name: " + it->first);
        continue;
      }
      const auto record = objects.find(SetKey(name));
      if (record == objects.end()) {
        continue;
      }
      counted.insert(name);
      for (const std::string& key : KeysOf(name, record->second)) {
        if (objects.count(key) == 0) {
          Break(key + " is missing from the set " + SetNameText(name));
        }
      }
      CheckSegments(name, objects);
    }
    if (!counted_.empty() && counted.empty()) {
      Break("no set is left");
    }
    for (const SetName& name : counted_) {
      if (counted.count(name) != 0) {
        continue;
      }
      if (marked_as_done_.count(name) != 0) {
        given_up_.insert(name);
      } else if (reported_.count(name) != 0) {
        Break("a set whose push ended with OK is gone: " + SetNameText(name));
      }
    }
    counted_ = counted;
    before_ = objects;
  }

  // Requires that the log after a set that counts is complete.
  void CheckSegments(const SetName& name,
                     const std::map<std::string, std::string>& objects) {
    const SetLog& log = logs_[name];
    for (const PutSegment& put : segments_) {
      const auto fork = put.forks.find(log.lineage);
      const bool is_behind =
          log.segment != 0 &&
          (put.key.lineage == log.lineage
               ? put.key.number >= log.segment
               : fork != put.forks.end() && fork->second + 1 >= log.segment);
      if (is_behind && objects.count(LogKeyText(put.key)) == 0) {
        Break("after the set " + SetNameText(name) + ", the log misses " +
              LogKeyText(put.key));
      }
    }
  }

  const std::vector<std::string>& KeysOf(const SetName& name,
                                         const std::string& record) {
    std::vector<std::string>& keys = keys_[name];
    if (keys.empty()) {
      ArchiveSet set;
      if (!DecodeArchiveSet(record, name, &set).ok()) {
        Break("a damaged record");
      }
      logs_[name] = set.log;
      for (const ArchivedFile& file : set.files) {
        keys.push_back(ArchiveKeyText(file.key));
      }
    }
    return keys;
  }

  // Remembers the sets that new marks name as whole. A prune that has an older
  // view may take a mark back while another one deletes the set. Requires that
  // a mark that is put again names the same.
  void NoteMarks(const std::map<std::string, std::string>& objects) {
    for (auto it = objects.lower_bound(kArchiveMarksPrefix);
         it != objects.end() && it->first.starts_with(kArchiveMarksPrefix);
         ++it) {
      const auto before = before_.find(it->first);
      if (before != before_.end() && before->second == it->second) {
        continue;
      }
      ArchiveMark mark;
      if (!DecodeArchiveMark(it->second, &mark).ok()) {
        Break("a damaged mark");
      }
      for (MarkedSet& set : mark.sets) {
        if (set.was_done) {
          marked_as_done_.insert(set.name);
        }
        set.was_done = false;
      }
      const auto& first = marks_.emplace(it->first, mark).first->second;
      if (!(first == mark)) {
        Break("a mark names other things than before: " + it->first);
      }
    }
  }

  struct Client {
    bool is_dead = false;
  };
  struct PutSegment {
    LogKey key;
    // The lineages that its own lineage continues, each with the last segment
    // before the fork.
    std::map<SetId, uint64_t> forks;
  };

  std::mt19937_64 random_;
  Turns turns_;
  std::unique_ptr<MemoryStore> server_;
  std::map<int, Client> clients_;
  uint64_t ids_ = 0;
  uint64_t points_ = 0;
  uint64_t pushes_ = 0;
  uint64_t pushed_ = 0;
  uint64_t dropped_ = 0;
  bool may_change_ = true;
  std::map<std::string, std::string> before_;
  std::set<std::string> dead_;  // names that were deleted
  std::set<SetName> counted_;   // sets that count
  std::set<SetName> reported_;  // sets whose push ended with OK
  std::set<SetName> given_up_;  // deleted sets that a prune marked as whole
  std::set<SetName> marked_as_done_;  // sets that a prune marked as whole
  std::map<std::string, ArchiveMark> marks_;  // as if all sets were unfinished
  std::map<SetName, std::vector<std::string>> keys_;
  std::map<SetName, SetLog> logs_;
  std::unique_ptr<LogWriter> log_;
  std::map<SetId, uint64_t> forks_;  // for log_
  std::vector<PutSegment> segments_;
  std::vector<std::string> trace_;
  std::string broken_;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text == nullptr ? otherwise : strtoull(text, nullptr, 10);
}

TEST_CASE("No set that counts misses a file, in any order of calls",
          "[archive]") {
  const uint64_t asked = FromEnvironment("SSTFERRY_ARCHIVE_MODEL", 1'000);
  const uint64_t first = FromEnvironment("SSTFERRY_ARCHIVE_MODEL_SEED", 1);
  uint64_t plays = 0;
  uint64_t pushes = 0;
  uint64_t pushed = 0;
  uint64_t dropped = 0;
  uint64_t segments = 0;
  while (plays < asked) {
    World world(first + plays++);
    const std::string broken = world.Play();
    if (!broken.empty()) {
      FAIL("seed " << first + plays - 1 << ": " << broken << "\n"
                   << world.Trace());
    }
    pushes += world.pushes();
    pushed += world.pushed();
    dropped += world.dropped();
    segments += world.segments();
  }
  INFO(plays << " interleavings, " << pushed << " of " << pushes
             << " pushes, " << dropped << " sets dropped");
  if (asked > 1'000) {
    WARN(plays << " interleavings, " << pushed << " of " << pushes
               << " pushes, " << dropped << " sets dropped");
  }
  // The test proves nothing if its calls rarely succeed.
  REQUIRE(pushed * 2 > pushes);
  REQUIRE(dropped * 2 > plays);
  REQUIRE(segments > plays);
}

}  // namespace
}  // namespace sstferry::model_test
