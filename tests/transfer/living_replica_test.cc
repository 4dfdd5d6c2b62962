// Random histories of a replica that an application uses: it has the database
// open with its own options, holds snapshots, iterators and transactions during
// refreshes and compactions, makes backups and checkpoints, and reopens the
// database. After each event, everything that the application can read is
// compared with what it should read. (tests/support/random_histories.h explains
// the environment variables.)
#include <rapidcheck.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/played_history.h"
#include "tests/support/random_histories.h"
#include "tests/support/replica_contents.h"

namespace sstferry::test::living_replica_test {
namespace {

namespace fs = std::filesystem;

struct Event {
  enum class Kind {
    kSource,      // the source takes `steps`
    kNight,       // a seed, a refresh or a swap, by `other`
    kPut,
    kDelete,
    kFlush,
    kCompact,
    kForce,       // a compaction that also rewrites the last level
    kSnapshot,
    kRelease,     // releases the oldest snapshot
    kIterator,
    kEnd,         // releases the oldest iterator
    kBegin,       // a transaction that puts one key
    kCommit,
    kRollback,
    kBackup,
    kCheckpoint,
    kSecondary,
    kReopen,
  };
  Kind kind;
  uint32_t family;
  uint32_t key;
  uint32_t other;
  std::vector<Step> steps;
};

struct World {
  std::vector<uint32_t> kinds;
  bool has_transactions;
  bool compacts_itself;
  std::vector<Step> start;
  std::vector<Event> events;
};

void showValue(const Event& event, std::ostream& os) {
  static constexpr const char* kNames[] = {
      "source", "night", "put", "delete", "flush", "compact", "force",
      "snapshot", "release", "iterator", "end", "begin", "commit", "rollback",
      "backup", "checkpoint", "secondary", "reopen"};
  os << "\n  " << kNames[static_cast<int>(event.kind)] << " f" << event.family
     << " k" << event.key << " o" << event.other;
  if (event.kind == Event::Kind::kSource) {
    for (const Step& step : event.steps) {
      os << " ";
      showValue(step, os);
    }
  }
}

void showValue(const World& world, std::ostream& os) {
  os << "kinds";
  for (const uint32_t kind : world.kinds) os << " " << kind;
  os << (world.has_transactions ? " transactions" : "")
     << (world.compacts_itself ? " compacts itself" : "") << "\n  start";
  for (const Step& step : world.start) {
    os << " ";
    showValue(step, os);
  }
  for (const Event& event : world.events) showValue(event, os);
}

rc::Gen<std::vector<Step>> Steps(size_t least, size_t most) {
  const auto step = rc::gen::resize(
      100, StepGen(rc::gen::weightedElement<Act>({{8, Act::kPut},
                                                  {3, Act::kDelete},
                                                  {2, Act::kDeleteRange},
                                                  {2, Act::kMerge},
                                                  {3, Act::kFlush},
                                                  {2, Act::kCompact},
                                                  {1, Act::kIngest},
                                                  {4, Act::kPutMany}})));
  return rc::gen::mapcat(
      rc::gen::resize(100, rc::gen::inRange<size_t>(least, most)),
      [step](size_t count) {
        return rc::gen::container<std::vector<Step>>(count, step);
      });
}

rc::Gen<Event> EventGen() {
  using Kind = Event::Kind;
  return rc::gen::build<Event>(
      rc::gen::set(&Event::kind,
                   rc::gen::weightedElement<Kind>({{5, Kind::kSource},
                                                   {6, Kind::kNight},
                                                   {2, Kind::kPut},
                                                   {1, Kind::kDelete},
                                                   {2, Kind::kFlush},
                                                   {3, Kind::kCompact},
                                                   {3, Kind::kForce},
                                                   {4, Kind::kSnapshot},
                                                   {2, Kind::kRelease},
                                                   {2, Kind::kIterator},
                                                   {1, Kind::kEnd},
                                                   {2, Kind::kBegin},
                                                   {2, Kind::kCommit},
                                                   {1, Kind::kRollback},
                                                   {1, Kind::kBackup},
                                                   {1, Kind::kCheckpoint},
                                                   {1, Kind::kSecondary},
                                                   {2, Kind::kReopen}})),
      rc::gen::set(&Event::family, Below(12)),
      rc::gen::set(&Event::key, Below(10'000)),
      rc::gen::set(&Event::other, Below(10'000)),
      rc::gen::set(&Event::steps, Steps(0, 6)));
}

rc::Gen<World> WorldGen() {
  const auto kind = rc::gen::map(Below(kKinds), [](uint32_t found) {
    // Old RocksDB versions cannot refresh universal families in place.
    return found == kUniversalKind ? 8u : found;
  });
  const auto event = EventGen();
  return rc::gen::build<World>(
      rc::gen::set(&World::kinds,
                   rc::gen::mapcat(Below(2),
                                   [kind](uint32_t count) {
                                     return rc::gen::container<
                                         std::vector<uint32_t>>(count + 1,
                                                                kind);
                                   })),
      rc::gen::set(&World::has_transactions, rc::gen::arbitrary<bool>()),
      rc::gen::set(&World::compacts_itself, rc::gen::arbitrary<bool>()),
      rc::gen::set(&World::start, Steps(1, 12)),
      rc::gen::set(&World::events,
                   rc::gen::mapcat(Below(24), [event](uint32_t count) {
                     return rc::gen::container<std::vector<Event>>(count + 4,
                                                                   event);
                   })));
}

struct Counts {
  uint64_t seeds = 0;
  uint64_t clones = 0;
  uint64_t open = 0;  // refreshes of the open database
  uint64_t directories = 0;
  uint64_t swaps = 0;
  uint64_t refused = 0;
  uint64_t snapshots = 0;  // snapshots read, over all events
  uint64_t iterators = 0;
  uint64_t copies = 0;  // backups, checkpoints, secondary readers
};

FamilyContents Walk(rocksdb::Iterator* it) {
  FamilyContents found;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    found[it->key().ToString()] = it->value().ToString();
  }
  RC_ASSERT(it->status().ok());
  return found;
}

// The application that uses the replica in one directory.
class Application {
 public:
  Application(const std::string& dir, Families families, bool has_transactions,
              bool compacts_itself, Counts* counts)
      : dir_(dir),
        families_(std::move(families)),
        has_transactions_(has_transactions),
        counts_(counts) {
    for (auto& family : families_) {
      family.options.disable_auto_compactions = !compacts_itself;
      family.options.level0_file_num_compaction_trigger = 2;
      family.options.target_file_size_base = 32 << 10;
      family.options.max_bytes_for_level_base = 64 << 10;
    }
  }
  ~Application() { Close(); }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  bool is_open() const { return db_ != nullptr; }
  const Families& families() const { return families_; }

  void Open() {
    rocksdb::DBOptions options;
    options.allow_fallocate = false;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    if (has_transactions_) {
      rocksdb::TransactionDB* opened = nullptr;
      REQUIRE_OK(rocksdb::TransactionDB::Open(
          options, rocksdb::TransactionDBOptions(), dir_, families_, &handles,
          &opened));
      transactions_ = opened;
      db_.reset(opened);
    } else {
      REQUIRE_OK(rocksdb::DB::Open(options, dir_, families_, &handles,
                                   IntoDb(&db_)));
    }
    for (size_t i = 0; i < handles.size(); ++i) {
      handles_[families_[i].name] = handles[i];
    }
  }

  void Close() {
    if (db_ == nullptr) {
      return;
    }
    Rollback();
    readings_.clear();
    while (!snapshots_.empty()) Release();
    for (const auto& [name, handle] : handles_) {
      REQUIRE_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    transactions_ = nullptr;
    REQUIRE_OK(db_->Close());
    db_.reset();
  }

  OpenReplica replica() const {
    OpenReplica replica;
    replica.db = db_.get();
    for (const auto& family : families_) {
      replica.families.push_back(handles_.at(family.name));
    }
    return replica;
  }

  // Sets what readers must see from now on.
  void Expect(const Contents& contents) {
    now_ = contents;
    for (const auto& family : families_) {
      now_[family.name];
    }
  }

  void Take(const Event& event) {
    const auto& family = families_[event.family % families_.size()];
    rocksdb::ColumnFamilyHandle* const handle = handles_.at(family.name);
    const std::string key = PlayedKey(event.key);
    using Kind = Event::Kind;
    switch (event.kind) {
      case Kind::kPut:
        if (!IsLocked(family.name, key)) {
          const std::string value(event.other % 900, 'a');
          REQUIRE_OK(db_->Put({}, handle, key, value));
          now_[family.name][key] = value;
        }
        break;
      case Kind::kDelete:
        if (!IsLocked(family.name, key)) {
          REQUIRE_OK(db_->Delete({}, handle, key));
          now_[family.name].erase(key);
        }
        break;
      case Kind::kFlush:
        REQUIRE_OK(db_->Flush({}, handle));
        break;
      case Kind::kCompact:
      case Kind::kForce:
        Compact(db_.get(), handle, event.kind == Kind::kForce);
        break;
      case Kind::kSnapshot:
        snapshots_.emplace_back(db_->GetSnapshot(), now_);
        break;
      case Kind::kRelease:
        if (!snapshots_.empty()) Release();
        break;
      case Kind::kIterator:
        readings_.push_back({std::unique_ptr<rocksdb::Iterator>(
                                 db_->NewIterator(All(), handle)),
                             now_.at(family.name)});
        break;
      case Kind::kEnd:
        if (!readings_.empty()) readings_.erase(readings_.begin());
        break;
      case Kind::kBegin:
        Begin(family.name, key, event.other);
        break;
      case Kind::kCommit:
        Commit();
        break;
      case Kind::kRollback:
        Rollback();
        break;
      case Kind::kBackup:
        BackUp(event.other % 2 != 0);
        break;
      case Kind::kCheckpoint:
        MakeCheckpoint(event.other % 2 != 0);
        break;
      case Kind::kSecondary:
        ReadAsSecondary();
        break;
      case Kind::kReopen:
        Close();
        Open();
        break;
      case Kind::kSource:
      case Kind::kNight:
        break;  // Live() handles these
    }
  }

  void Check(const std::string& when) {
    if (db_ == nullptr) {
      return;
    }
    RequireReads(when, now_, nullptr);
    for (const auto& [snapshot, then] : snapshots_) {
      counts_->snapshots++;
      RequireReads(when + ", by a snapshot at sequence " +
                       std::to_string(snapshot->GetSequenceNumber()),
                   then, snapshot);
    }
    for (const Reading& reading : readings_) {
      counts_->iterators++;
      RC_ASSERT(Walk(reading.it.get()) == reading.then);
    }
    if (pending_ != nullptr && pending_->GetSnapshot() != nullptr) {
      RequireReads(when + ", in a transaction", begun_at_,
                   pending_->GetSnapshot());
    }
  }

  // Waits until RocksDB's automatic compactions have ended.
  void AwaitCompactions() {
    for (const auto& [name, handle] : handles_) {
      uint64_t pending = 1;
      uint64_t running = 1;
      while (pending + running != 0) {
        std::this_thread::yield();
        RC_ASSERT(db_->GetIntProperty(
            handle, rocksdb::DB::Properties::kCompactionPending, &pending));
        RC_ASSERT(db_->GetIntProperty(
            handle, rocksdb::DB::Properties::kNumRunningCompactions,
            &running));
        if (db_->GetOptions(handle).disable_auto_compactions) {
          pending = 0;
        }
      }
    }
  }

 private:
  struct Reading {
    std::unique_ptr<rocksdb::Iterator> it;
    FamilyContents then;
  };

  static rocksdb::ReadOptions All() {
    rocksdb::ReadOptions all;
    all.total_order_seek = true;
    return all;
  }

  static void Compact(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle,
                      bool forces) {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction =
        forces ? rocksdb::BottommostLevelCompaction::kForce
               : rocksdb::BottommostLevelCompaction::kIfHaveCompactionFilter;
    REQUIRE_OK(db->CompactRange(options, handle, nullptr, nullptr));
  }

  bool IsLocked(const std::string& family, const std::string& key) const {
    return pending_ != nullptr && put_.count({family, key}) != 0;
  }

  void Begin(const std::string& family, const std::string& key,
             uint32_t other) {
    if (transactions_ == nullptr || pending_ != nullptr) {
      return;
    }
    rocksdb::TransactionOptions options;
    options.set_snapshot = other % 2 != 0;
    pending_.reset(transactions_->BeginTransaction({}, options));
    begun_at_ = now_;
    const std::string value(other % 300, 't');
    REQUIRE_OK(pending_->Put(handles_.at(family), key, value));
    put_[{family, key}] = value;
  }

  void Commit() {
    if (pending_ == nullptr) {
      return;
    }
    REQUIRE_OK(pending_->Commit());
    for (const auto& [where, value] : put_) {
      now_[where.first][where.second] = value;
    }
    pending_.reset();
    put_.clear();
  }

  void Rollback() {
    if (pending_ != nullptr) {
      REQUIRE_OK(pending_->Rollback());
    }
    pending_.reset();
    put_.clear();
  }

  void Release() {
    db_->ReleaseSnapshot(snapshots_.front().first);
    snapshots_.erase(snapshots_.begin());
  }

  void RequireReads(const std::string& when, const Contents& expected,
                    const rocksdb::Snapshot* snapshot) {
    rocksdb::ReadOptions options = All();
    options.snapshot = snapshot;
    Contents found;
    for (const auto& [name, handle] : handles_) {
      const std::unique_ptr<rocksdb::Iterator> it(
          db_->NewIterator(options, handle));
      found[name] = Walk(it.get());
      std::string value;
      for (const auto& [key, wanted] : expected.at(name)) {
        const rocksdb::Status got = db_->Get(options, handle, key, &value);
        if (!got.ok() || value != wanted) {
          RC_FAIL(when + ": Get of " + key.substr(0, 40) + " in " + name +
                  ": " + got.ToString());
        }
      }
      const rocksdb::Status none = db_->Get(options, handle, "none", &value);
      RC_ASSERT(none.IsNotFound());
    }
    RequireSame(when, expected, found);
  }

  // Compares a copy, also after its compaction while a snapshot exists: a copy
  // at sequence 0 could lose entries then.
  void RequireCopy(const std::string& what, const std::string& copy) {
    counts_->copies++;
    RequireSame(what, now_, *ContentsOf(copy, families_));
    {
      OpenDb opened(copy, families_);
      const rocksdb::Snapshot* const snapshot = opened->GetSnapshot();
      for (const auto& family : families_) {
        Compact(opened.get(), opened.cf(family.name), /*forces=*/true);
      }
      opened->ReleaseSnapshot(snapshot);
    }
    RequireSame(what + ", compacted beside a snapshot", now_,
                *ContentsOf(copy, families_));
    fs::remove_all(copy);
  }

  // Skips families with an application's comparator: RocksDB's BackupEngine
  // aborts on their tables.
  void BackUp(bool flushes) {
    if (std::any_of(families_.begin(), families_.end(),
                    [](const auto& family) {
                      return family.options.comparator == ByLengthComparator();
                    })) {
      return;
    }
    const std::string where = dir_ + ".backups";
    rocksdb::BackupEngine* opened = nullptr;
    REQUIRE_OK(rocksdb::BackupEngine::Open(
        rocksdb::Env::Default(), rocksdb::BackupEngineOptions(where),
        &opened));
    const std::unique_ptr<rocksdb::BackupEngine> engine(opened);
    REQUIRE_OK(engine->CreateNewBackup(db_->GetRootDB(), flushes));
    REQUIRE_OK(engine->RestoreDBFromLatestBackup(dir_ + ".restored",
                                                 dir_ + ".restored"));
    RequireCopy("restored from a backup", dir_ + ".restored");
    fs::remove_all(where);
  }

  void MakeCheckpoint(bool flushes) {
    rocksdb::Checkpoint* made = nullptr;
    REQUIRE_OK(rocksdb::Checkpoint::Create(db_.get(), &made));
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    REQUIRE_OK(checkpoint->CreateCheckpoint(dir_ + ".checkpoint",
                                            flushes ? 0 : 1u << 30));
    RequireCopy("in a checkpoint", dir_ + ".checkpoint");
  }

  // Skips families with blob files: secondary readers of RocksDB 7.8 crash on
  // any blob file.
  void ReadAsSecondary() {
    if (std::any_of(families_.begin(), families_.end(),
                    [](const auto& family) {
                      return family.options.enable_blob_files;
                    })) {
      return;
    }
    counts_->copies++;
    rocksdb::Options options;
    options.max_open_files = -1;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    std::unique_ptr<rocksdb::DB> secondary;
    REQUIRE_OK(rocksdb::DB::OpenAsSecondary(options, dir_, dir_ + ".secondary",
                                            families_, &handles,
                                            IntoDb(&secondary)));
    Contents found;
    for (size_t i = 0; i < handles.size(); ++i) {
      const std::unique_ptr<rocksdb::Iterator> it(
          secondary->NewIterator(All(), handles[i]));
      found[families_[i].name] = Walk(it.get());
    }
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      REQUIRE_OK(secondary->DestroyColumnFamilyHandle(handle));
    }
    secondary.reset();
    RequireSame("by a secondary reader", now_, found);
    fs::remove_all(dir_ + ".secondary");
  }

  const std::string dir_;
  Families families_;
  const bool has_transactions_;
  Counts* const counts_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::TransactionDB* transactions_ = nullptr;  // db_, or null
  std::map<std::string, rocksdb::ColumnFamilyHandle*> handles_;
  Contents now_;
  std::vector<std::pair<const rocksdb::Snapshot*, Contents>> snapshots_;
  std::vector<Reading> readings_;
  std::unique_ptr<rocksdb::Transaction> pending_;
  Contents begun_at_;
  std::map<std::pair<std::string, std::string>, std::string> put_;
};

class Histories {
 public:
  Histories(const ScratchDir& dir, const World& world, Counts* counts)
      : world_(world),
        source_dir_(dir / "source"),
        target_dir_(dir / "target"),
        source_(source_dir_, world.kinds),
        application_(target_dir_, source_.families(), world.has_transactions,
                     world.compacts_itself, counts),
        counts_(counts) {}

  void Live() {
    source_.Play(world_.start);
    Seed(world_.events.front().other);
    size_t i = 0;
    for (const Event& event : world_.events) {
      std::ostringstream when;
      when << "after event " << i++ << ":";
      showValue(event, when);
      if (event.kind == Event::Kind::kSource) {
        source_.Play(event.steps);
      } else if (event.kind == Event::Kind::kNight) {
        Spend(event.other);
      } else {
        application_.Take(event);
      }
      application_.Check(when.str());
      if (world_.compacts_itself) {
        application_.AwaitCompactions();
        application_.Check(when.str() + ", and RocksDB's own compactions");
      }
    }
  }

 private:
  PullOptions Options() const {
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source.directory = source_dir_;
    options.target_dir = target_dir_;
    options.snapshot_ttl = std::chrono::seconds(0);
    options.lanes = 2;
    options.registry.comparators = {ByLengthComparator()};
    return options;
  }

  void Run(Operation* operation) {
    Summary summary;
    const rocksdb::Status status = operation->Run(&summary);
    if (EndStateOf(status) == EndState::kRefused) {
      counts_->refused++;
      return;  // the application still reads what it read before
    }
    if (!status.ok()) {
      RC_FAIL(status.ToString());
    }
    application_.Expect(*ContentsOf(source_dir_, source_.families()));
  }

  void Seed(uint32_t other) {
    PullOptions options = Options();
    options.method = other % 3 == 0 ? PullMethod::kClone : PullMethod::kIngest;
    options.verify = other % 5 == 0;
    (other % 3 == 0 ? counts_->clones : counts_->seeds)++;
    Run(MakePull(options).get());
    application_.Open();
  }

  void Spend(uint32_t other) {
    PullOptions options = Options();
    options.mode = PullMode::kRefresh;
    options.verify = other / 8 % 4 == 0;
    options.chunk_bytes = other % 2 == 0 ? 64'000'000 : 64 << 10;
    switch (other % 8) {
      case 5:
      case 6:  // by exchange
        counts_->swaps++;
        options.mode = PullMode::kSwap;
        options.method =
            other % 8 == 5 ? PullMethod::kClone : PullMethod::kIngest;
        options.before_swap = [this](const SwapEvent&) {
          application_.Close();
          return rocksdb::Status::OK();
        };
        options.after_swap = [this](const SwapEvent&) {
          application_.Open();
          return rocksdb::Status::OK();
        };
        Run(MakePull(options).get());
        break;
      case 7:
        counts_->directories++;
        application_.Close();
        Run(MakePull(options).get());
        application_.Open();
        break;
      default:
        counts_->open++;
        Run(MakeRefresh(options, application_.replica()).get());
        break;
    }
  }

  const World& world_;
  const std::string source_dir_;
  const std::string target_dir_;
  Player source_;
  Application application_;
  Counts* const counts_;
};

}  // namespace

TEST_CASE("A replica's application reads the source's entries of the last "
          "refresh and its own later writes, whatever it does",
          "[transfer][living]") {
  const int worlds = HistoryCount(100);
  Counts counts;
  const auto play = [&] {
    const World world = *WorldGen();
    const ScratchDir dir;
    Histories(dir, world, &counts).Live();
  };
  const bool received =
      CheckHistories("an application reads what it should", worlds, 100, play);
  std::cerr << counts.seeds << " seeds, " << counts.clones
            << " clones; refreshes: " << counts.open << " of open databases, "
            << counts.directories << " of directories, " << counts.swaps
            << " by swap, " << counts.refused << " refused; reads by "
            << counts.snapshots << " snapshots, " << counts.iterators
            << " iterators, " << counts.copies << " copies\n";
  REQUIRE(received);
  REQUIRE(counts.seeds > 0);
  REQUIRE(counts.open > 0);
  REQUIRE(counts.snapshots > 0);
  REQUIRE(counts.iterators > 0);
  REQUIRE((worlds < 100 || (counts.clones > 0 && counts.directories > 0 &&
                              counts.swaps > 0 && counts.copies > 0)));
}

}  // namespace sstferry::test::living_replica_test
