// Random histories of a replica whose disk fails: bytes of its tables change;
// tables, CURRENT and ends of the MANIFEST are lost; pulls are stopped. After a
// run or a verify has reported a fault, no run may end with OK before the fault
// is mended.
//
// SSTFERRY_HISTORIES  number of histories (default 40)
// RC_PARAMS           parameters of rapidcheck, mainly "seed=..."
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "sstferry/status.h"
#include "tests/support/catch.h"
#include "tests/support/random_histories.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::damage_history_test {
namespace {

namespace fs = std::filesystem;

struct Misfortune {
  enum class Kind {
    kWrite,     // at the source: `b` keys from `a` on
    kDelete,    // the same keys
    kCompact,   // the source
    kForeign,   // the replica's application writes one key
    kRefresh,   // in place; `a`: options, `b`: where it stops
    kSwap,      // by exchange, otherwise like kRefresh
    kVerify,
    kFlip,      // flips a bit in a table of the replica
    kRemove,    // removes one of its tables
    kCut,       // truncates its MANIFEST
    kCurrent,   // removes its CURRENT
  };
  Kind kind;
  uint32_t a;
  uint32_t b;
};

void showValue(const Misfortune& each, std::ostream& os) {
  static constexpr const char* kNames[] = {
      "write", "delete", "compact", "foreign", "refresh", "swap",
      "verify", "flip", "remove", "cut", "current"};
  os << kNames[static_cast<int>(each.kind)] << " " << each.a << " " << each.b;
}

rc::Gen<Misfortune> AnyMisfortune() {
  using Kind = Misfortune::Kind;
  return rc::gen::build<Misfortune>(
      rc::gen::set(&Misfortune::kind,
                   rc::gen::weightedElement<Kind>({{5, Kind::kWrite},
                                                   {2, Kind::kDelete},
                                                   {2, Kind::kCompact},
                                                   {1, Kind::kForeign},
                                                   {8, Kind::kRefresh},
                                                   {4, Kind::kSwap},
                                                   {4, Kind::kVerify},
                                                   {3, Kind::kFlip},
                                                   {1, Kind::kRemove},
                                                   {1, Kind::kCut},
                                                   {1, Kind::kCurrent}})),
      rc::gen::set(&Misfortune::a, Below(1000)),
      rc::gen::set(&Misfortune::b, Below(60)));
}

rocksdb::ColumnFamilyOptions Small() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.target_file_size_base = 8 << 10;
  options.compression = rocksdb::kNoCompression;
  return options;
}

using Entries = std::vector<std::pair<std::string, std::string>>;

class DamagedReplica {
 public:
  DamagedReplica() {
    for (uint32_t i = 0; i < 3; ++i) Write(300 * i, 300);
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.chunk_bytes = 16 << 10;
    RC_ASSERT(Run(options).ok());
  }

  void Do(const Misfortune& each) {
    using Kind = Misfortune::Kind;
    switch (each.kind) {
      case Kind::kWrite:
        return Write(each.a, each.b + 1);
      case Kind::kDelete:
        return Delete(each.a, each.b + 1);
      case Kind::kCompact: {
        OpenDb(source_, OneFamily(Small())).Compact();
        return;
      }
      case Kind::kForeign:
        return Foreign(each.a);
      case Kind::kRefresh:
      case Kind::kSwap:
        return Night(each);
      case Kind::kVerify:
        return Verify();
      case Kind::kFlip:
        return Flip(each);
      case Kind::kRemove:
        return Remove(each);
      case Kind::kCut:
        return Cut(each.b);
      case Kind::kCurrent:
        is_whole_ = false;
        fs::remove(target_ + "/CURRENT");
        return;
    }
  }

  // Requires that one command mends any damage.
  void End() {
    PullOptions options;
    options.mode = PullMode::kSwap;
    options.verify = true;
    options.method = PullMethod::kClone;
    options.restart = true;
    options.adopt = true;  // the target may have more writes than the source
    const rocksdb::Status status = Run(options);
    if (!status.ok()) RC_FAIL(status.ToString());
    RequireEqual(/*is_mended=*/true);
    RC_ASSERT(Health() == ReplicaHealth::kComplete);
  }

 private:
  void Write(uint32_t first, uint32_t count) {
    OpenDb db(source_, OneFamily(Small()));
    for (uint32_t i = first; i < first + count; ++i) {
      db.Put(NumberedKey(i), std::to_string(++written_) + std::string(40, 'v'));
    }
    if (written_ % 3 != 0) db.Flush();
    Remember(&db);
  }
  void Delete(uint32_t first, uint32_t count) {
    OpenDb db(source_, OneFamily(Small()));
    for (uint32_t i = first; i < first + count; ++i) db.Delete(NumberedKey(i));
    Remember(&db);
  }

  // Stores the source's entries by sequence, because a resumed pull delivers
  // the snapshot with which it began.
  void Remember(OpenDb* db) {
    Entries* const entries = &pasts_[(*db)->GetLatestSequenceNumber()];
    entries->clear();
    const std::unique_ptr<rocksdb::Iterator> it(
        (*db)->NewIterator(rocksdb::ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      entries->emplace_back(it->key().ToString(), it->value().ToString());
    }
  }

  // Writes nothing if the database may be damaged: then an application could
  // not open it.
  void Foreign(uint32_t key) {
    if (is_whole_)
      OpenDb(target_, OneFamily(Small())).Put(NumberedKey(key), "f");
  }

  void Night(const Misfortune& each) {
    PullOptions options;
    options.mode = PullMode::kRefresh;
    options.adopt = true;  // the target may have more writes than the source
    options.chunk_bytes = 16 << 10;
    options.verify = each.a % 3 == 0;
    if (each.kind == Misfortune::Kind::kSwap) {
      options.mode = PullMode::kSwap;
      options.method =
          each.a % 2 == 0 ? PullMethod::kClone : PullMethod::kIngest;
    }
    const bool stops = each.b < 20;
    bool verified = false;
    rocksdb::Status status = Run(options, stops ? each.b + 1 : 0, &verified);
    if (EndStateOf(status) == EndState::kRefused) {  // begun by another mode
      options.restart = true;
      status = Run(options, stops ? each.b + 1 : 0, &verified);
    }
    const EndState state = EndStateOf(status);
    if (state == EndState::kCorrupt) {
      is_known_ = true;
      RC_ASSERT(Health() == ReplicaHealth::kDifferent ||
                Health() == ReplicaHealth::kDamaged);
    }
    // A refresh may refuse a replica that has lost all of its tables: they may
    // be on another path (db_paths).
    const bool may_refuse =
        each.kind == Misfortune::Kind::kRefresh && has_lost_;
    if (!status.ok() && state != EndState::kCorrupt &&
        state != EndState::kCancelled &&
        !(state == EndState::kRefused && may_refuse)) {
      RC_FAIL(status.ToString());
    }
    if (!status.ok()) {
      return;
    }
    // A run without a verify may reuse damage that was not found yet: a
    // refresh and a swap by links reuse everything that did not change at the
    // source, a clone reuses files.
    if (!is_known_ && !verified && !is_whole_) return;
    RequireEqual(is_known_);
    RC_ASSERT(Health() == ReplicaHealth::kComplete);
    is_known_ = false;
    is_whole_ = true;
    has_lost_ = false;
  }

  void Verify() {
    VerifyOptions options;
    options.left.directory = source_;
    options.right.directory = target_;
    Summary summary;
    const rocksdb::Status status = MakeVerify(options)->Run(&summary);
    const EndState state = EndStateOf(status);
    if (status.ok()) {
      received_ = pasts_.rbegin()->first;
      RequireEqual(/*is_mended=*/false);
      is_known_ = false;
    } else if (state == EndState::kCorrupt || state == EndState::kDifferent) {
      is_known_ = true;
      if (Health() == ReplicaHealth::kComplete) {
        RC_FAIL("not recorded: " + status.ToString());
      }
    }
  }

  void Flip(const Misfortune& each) {
    std::vector<std::string> tables = PathsWith(target_, ".sst");
    if (tables.empty()) return;
    std::sort(tables.begin(), tables.end());
    const std::string& path = tables[each.a % tables.size()];
    const uint64_t size = fs::file_size(path);
    const uint64_t at = (each.a * 7919 + each.b * 104729) % size;
    // Makes a copy first: a clone's table may be a hard link of the source's
    // file.
    Own(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x10));
    is_whole_ = false;
  }

  static void Own(const std::string& path) {
    fs::copy_file(path, path + ".own");
    fs::rename(path + ".own", path);
  }

  void Remove(const Misfortune& each) {
    std::vector<std::string> tables = PathsWith(target_, ".sst");
    if (tables.empty()) return;
    std::sort(tables.begin(), tables.end());
    fs::remove(tables[each.a % tables.size()]);
    is_whole_ = false;
    has_lost_ = true;
  }

  void Cut(uint32_t bytes) {
    for (const fs::directory_entry& entry : fs::directory_iterator(target_)) {
      if (entry.path().filename().string().starts_with("MANIFEST-")) {
        const uint64_t size = entry.file_size();
        fs::resize_file(entry.path(),
                        size - std::min<uint64_t>(size, bytes + 1));
        is_whole_ = false;
      }
    }
  }

  // Runs a pull; cancels it at fault point number `stop` unless that is 0.
  rocksdb::Status Run(PullOptions options, uint32_t stop = 0,
                      bool* verified = nullptr) {
    options.source.directory = source_;
    options.target_dir = target_;
    const std::unique_ptr<Operation> pull = MakePull(options);
    std::atomic<uint32_t> left{stop};
    TEST_SetFaultHook([&](const std::string&) {
      if (stop != 0 && --left == 0) pull->Cancel();
    });
    Summary summary;
    const rocksdb::Status status = pull->Run(&summary);
    TEST_SetFaultHook(nullptr);
    if (status.ok()) received_ = summary.snapshot_sequence;
    if (verified != nullptr) *verified = summary.verified;
    return status;
  }

  ReplicaHealth Health() {
    StatusOptions options;
    options.where.directory = target_;
    StatusReport report;
    const rocksdb::Status status = MakeStatusQuery(options)->Run(&report);
    RC_ASSERT(status.ok());
    return report.target.health;
  }

  // Compares a copy of the target, so that the comparison leaves no trace in
  // the target. `is_mended`: also requires that all blocks are undamaged, even
  // blocks without entries.
  void RequireEqual(bool is_mended) {
    const std::string copy = dir_ / "copy";
    fs::remove_all(copy);
    fs::copy(target_, copy, fs::copy_options::recursive);
    std::unique_ptr<rocksdb::DB> db;
    const rocksdb::Status status =
        rocksdb::DB::Open(rocksdb::Options(), copy, IntoDb(&db));
    if (!status.ok()) RC_FAIL("does not open: " + status.ToString());
    const rocksdb::Status sound =
        is_mended ? db->VerifyChecksum() : rocksdb::Status::OK();
    if (!sound.ok()) RC_FAIL("damaged: " + sound.ToString());
    db.reset();
    RC_ASSERT(pasts_.at(received_) == EntriesOf(copy, OneFamily(Small())));
  }

  const ScratchDir dir_;
  const std::string source_ = dir_ / "source";
  const std::string target_ = dir_ / "target";
  uint64_t written_ = 0;
  std::map<uint64_t, Entries> pasts_;  // the source's entries, by sequence
  uint64_t received_ = 0;  // the sequence of the last good run
  bool is_known_ = false;  // a fault was reported and not mended
  bool is_whole_ = true;   // no damage since the last comparison
  bool has_lost_ = false;  // a table was removed
};

TEST_CASE("After a fault was reported, no run ends with OK before it is mended",
          "[transfer][health][history]") {
  REQUIRE(CheckHistories("damage", HistoryCount(40), 100, [] {
    const auto misfortunes = *rc::gen::container<std::vector<Misfortune>>(
        *rc::gen::inRange<size_t>(4, 16), AnyMisfortune());
    DamagedReplica replica;
    for (const Misfortune& each : misfortunes) replica.Do(each);
    replica.End();
  }));
}

}  // namespace
}  // namespace sstferry::test::damage_history_test
