// Tests refreshes that prove each part: the received delta, applied to the
// target's entries, must result in the source's part.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/db_ttl.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/compare_limits.h"
#include "tests/support/fake_peer.h"
#include "tests/support/refreshed.h"
#include "tests/support/relay.h"
#include "tests/support/sample_database.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::refresh_proof_test {
namespace {

constexpr uint64_t kKeys = 3000;
// Number of keys that Change() puts, without the four that it then deletes.
constexpr uint64_t kPuts = 2 * kKeys / 25 - 4;

void Fill(const std::string& dir) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = 0; i < kKeys; ++i) {
    db.Put(NumberedKey(i), RandomBytes(40, i));
  }
  db.Flush();
  db.Compact();
}

// Changes single entries everywhere and one range of keys at the source.
void Change(const std::string& dir) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = 0; i < kKeys; i += 25) {
    db.Put(NumberedKey(i), "changed");
    db.Delete(NumberedKey(i + 7));
    db.Put(NumberedKey(i) + "-new", "new");
  }
  for (uint64_t i = 1000; i < 1100; ++i) {
    db.Delete(NumberedKey(i));
  }
  db.Delete(NumberedKey(kKeys - 1));
  db.Flush();
  db.Compact();
}

// Returns true if a part was not proven at first.
bool IsUnproven(const Ferried& refreshed) {
  return refreshed.notes_mention("did not prove them");
}

PullOptions Comparing() {
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.most_point_deletions = 10;
  return options;
}

// A source that has changed since the target was made.
struct Night {
  ScratchDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";
  Night() {
    Fill(source);
    REQUIRE_OK(Refresh(source, target).status);
    Change(source);
  }
};

// Returns limits that are smaller than a part of kKeys entries.
CompareTuning SmallPieces() {
  CompareTuning tuning;
  tuning.index.entries = 500;
  return tuning;
}

struct Fault {
  CompareFault fault;
  const char* name;
  // Tested with few entries in large groups: then entries are sifted, not told
  // whole.
  bool sifts = false;
};

const Fault kFaults[] = {
    {CompareFault::kIndexLacksEntry, "an entry is not in the index"},
    {CompareFault::kGroupTakenForEqual, "a group that differs is equal"},
    {CompareFault::kMarkBelieved, "a mark is believed", true},
    {CompareFault::kSiftedAway, "a new entry is sifted away", true},
    {CompareFault::kEntryNotTold, "an entry is not told"},
    {CompareFault::kPutLeftOut, "a put is left out"},
    {CompareFault::kDeletionLeftOut, "a deletion is left out"},
    {CompareFault::kRangeTooShort, "a range deletion is too short"},
};

TEST_CASE("A part whose delta is wrong is compared once more, and is then "
          "right",
          "[transfer][refresh][proof]") {
  const Fault fault = GENERATE(from_range(std::begin(kFaults),
                                          std::end(kFaults)));
  INFO(fault.name);
  Night night;
  Planting planting(fault.fault, /*first=*/0, /*times=*/1);
  CompareTuning tuning;
  tuning.few_entries = fault.sifts ? 1 : kMaxMarks;
  tuning.plants = std::ref(planting);
  const ComparedWith compared(tuning);
  const Ferried refreshed = Refresh(night.source, night.target, Comparing());
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  REQUIRE(planting.planted() == 1);
  ExpectSameEntries(night.source, night.target);
  REQUIRE(IsUnproven(refreshed));
}

TEST_CASE("A part that cannot be proven fails the refresh, and nothing of the "
          "part is ingested",
          "[transfer][refresh][proof]") {
  const CompareFault fault =
      GENERATE(CompareFault::kPutLeftOut, CompareFault::kDeletionLeftOut);
  Night night;
  const auto before = Fingerprint(night.target);
  Planting planting(fault, /*first=*/0, /*times=*/1'000'000);
  {
    CompareTuning tuning;
    tuning.plants = std::ref(planting);
    const ComparedWith compared(tuning);
    const Ferried refreshed = Refresh(night.source, night.target, Comparing());
    INFO(refreshed.message());
    REQUIRE(refreshed.state() == EndState::kInternal);
    REQUIRE(refreshed.message().find("part 0 of column family 'default': "
                                     "expected the source's 2903 entries") !=
            std::string::npos);
    REQUIRE(refreshed.message().find("after a second comparison") !=
            std::string::npos);
    // The target is unchanged: it has none of the source's changes.
    OpenDb target(night.target, OneFamily(Quiet()));
    std::string value;
    REQUIRE_OK(target->Get({}, NumberedKey(7), &value));
    REQUIRE(target->Get({}, NumberedKey(0) + "-new", &value).IsNotFound());
  }
  // Without the fault, the next run succeeds.
  PullOptions options = Comparing();
  const Ferried again = Refresh(night.source, night.target, options);
  INFO(again.message());
  REQUIRE_OK(again.status);
  ExpectSameEntries(night.source, night.target);
}

TEST_CASE("A part of several pieces is proven by all of them",
          "[transfer][refresh][proof]") {
  const bool is_wrong = GENERATE(false, true);
  Night night;
  // The fault is in the last piece.
  Planting planting(CompareFault::kPutLeftOut, /*first=*/200,
                    /*times=*/is_wrong ? 1 : 0);
  CompareTuning tuning = SmallPieces();
  tuning.plants = std::ref(planting);
  const ComparedWith compared(tuning);
  const Ferried refreshed = Refresh(night.source, night.target, Comparing());
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  REQUIRE(planting.planted() == (is_wrong ? 1 : 0));
  ExpectSameEntries(night.source, night.target);
  const Summary& summary = refreshed.summary;
  REQUIRE(IsUnproven(refreshed) == is_wrong);
  REQUIRE(summary.chunks_delta > summary.parts_delta);
  REQUIRE(summary.entries_put == kPuts);
}

TEST_CASE("A part that the source has lost is proven by its first and last key",
          "[transfer][refresh][proof]") {
  // With SmallPieces(), the index does not have room for all of the target's
  // keys.
  const bool fits = GENERATE(true, false);
  Night night;
  {
    OpenDb db(night.source, OneFamily(Quiet()));
    db.DeleteRange("", "z");
    db.Put("z", "the only one");
    db.Flush();
    db.Compact();
  }
  const ComparedWith compared(fits ? CompareTuning() : SmallPieces());
  PullOptions options = Comparing();
  options.selection.interval.end = "z";
  const Ferried refreshed = Refresh(night.source, night.target, options);
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.summary.entries_deleted == 2);
  REQUIRE_FALSE(IsUnproven(refreshed));
  options.selection.interval.end.reset();
  REQUIRE_OK(Refresh(night.source, night.target, options).status);
  ExpectSameEntries(night.source, night.target);
}

TEST_CASE("Writes of an application during the comparison are not part of the "
          "proof",
          "[transfer][refresh][proof]") {
  enum class Write { kNone, kPut, kIngestion, kDeletionOfFiles };
  const Write write = GENERATE(Write::kNone, Write::kPut, Write::kIngestion,
                               Write::kDeletionOfFiles);
  const bool writes = write != Write::kNone;
  Night night;
  OpenDb target(night.target, OneFamily(Quiet()));
  const uint64_t sequence = target->GetLatestSequenceNumber();
  rocksdb::SstFileWriter writer{rocksdb::EnvOptions(), target->GetOptions()};
  REQUIRE_OK(writer.Open(night.dir / "zzz.sst"));
  REQUIRE_OK(writer.Put("zzz", "outside of all keys"));
  REQUIRE_OK(writer.Finish());
  std::atomic<bool> written{false};
  CompareTuning tuning;
  tuning.plants = [&](CompareFault fault) {
    // The application writes while the target reads.
    if (fault != CompareFault::kIndexLacksEntry || !writes ||
        written.exchange(true)) {
      return false;
    }
    if (write == Write::kPut) {
      REQUIRE_OK(target->Put({}, "written meanwhile", "value"));
      return false;
    }
    if (write == Write::kIngestion) {
      REQUIRE_OK(target->IngestExternalFile({night.dir / "zzz.sst"}, {}));
    } else {
      REQUIRE_OK(rocksdb::DeleteFilesInRange(target.get(), target.cf(), nullptr,
                                             nullptr));
    }
    REQUIRE(target->GetLatestSequenceNumber() == sequence);
    return false;
  };
  const ComparedWith compared(tuning);
  const Ferried refreshed =
      RefreshOpen(night.source, &target, {"default"}, Comparing());
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  REQUIRE(written == writes);
  REQUIRE_FALSE(IsUnproven(refreshed));
  REQUIRE(refreshed.notes_mention("wrote to the target while it was compared") ==
          (write == Write::kPut));
  REQUIRE(refreshed.notes_mention("while it was compared") == writes);
  REQUIRE((refreshed.summary.parts_proven == 0) == writes);
}

// Opens a database whose values end with times.
std::unique_ptr<rocksdb::DBWithTTL> OpenWithTtl(const std::string& dir) {
  rocksdb::Options options{rocksdb::DBOptions(), Quiet()};
  options.create_if_missing = true;
  rocksdb::DBWithTTL* db = nullptr;
  REQUIRE_OK(rocksdb::DBWithTTL::Open(options, dir, &db, /*ttl=*/1'000'000));
  return std::unique_ptr<rocksdb::DBWithTTL>(db);
}

TEST_CASE("An open replica with TTL is compared with the times of its values",
          "[transfer][refresh][proof]") {
  const ScratchDir dir;
  const auto put = [&dir](uint64_t step, const std::string& word) {
    const std::unique_ptr<rocksdb::DBWithTTL> db = OpenWithTtl(dir / "source");
    for (uint64_t i = 0; i < kKeys; i += step) {
      REQUIRE_OK(db->Put({}, NumberedKey(i), word));
    }
    REQUIRE_OK(db->Flush({}));
  };
  put(1, "");
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  put(100, "changed");
  const std::unique_ptr<rocksdb::DBWithTTL> target =
      OpenWithTtl(dir / "target");
  PullOptions options = Comparing();
  options.source.directory = dir / "source";
  options.snapshot_ttl = std::chrono::seconds(0);
  options.verify = true;
  OpenReplica replica;
  replica.db = target.get();
  replica.families = {target->DefaultColumnFamily()};
  for (const uint64_t puts : {kKeys / 100, uint64_t{0}}) {
    Summary summary;
    const rocksdb::Status status =
        MakeRefresh(options, replica)->Run(&summary);
    INFO(status.ToString());
    REQUIRE_OK(status);
    REQUIRE(summary.entries_put == puts);
    REQUIRE(summary.verified);
  }
  std::string value;
  REQUIRE_OK(target->Get({}, NumberedKey(100), &value));
  REQUIRE(value == "changed");
}

TEST_CASE("A part that a lost connection interrupted is compared from its "
          "first piece",
          "[transfer][refresh][proof]") {
  Night night;
  ServeOptions serve = ServeSample(night.source);
  serve.snapshot_ttl = std::chrono::seconds(60);
  const TestServer server(serve);
  Relay relay(server.address());
  PullOptions options = PullFrom(relay.address(), night.target);
  options.mode = PullMode::kRefresh;
  options.most_point_deletions = 10;
  options.lanes = 1;
  options.timeouts.retry = std::chrono::seconds(60);
  // Cuts the connection at the third piece.
  std::atomic<int> told{0};
  std::atomic<bool> cut{false};
  CompareTuning tuning = SmallPieces();
  tuning.plants = [&](CompareFault fault) {
    if (fault == CompareFault::kEntryNotTold && ++told == 3 &&
        !cut.exchange(true)) {
      relay.ResetAll();
    }
    return false;
  };
  const ComparedWith compared(tuning);
  Summary summary;
  const rocksdb::Status status = MakePull(options)->Run(&summary);
  INFO(status.ToString());
  REQUIRE_OK(status);
  REQUIRE(cut);
  REQUIRE(summary.retries > 0);
  ExpectSameEntries(night.source, night.target);
  REQUIRE(summary.entries_put == kPuts);
  // The pieces before the cut were compared once more.
  REQUIRE(told > static_cast<int>(summary.chunks_delta));
}

TEST_CASE("A swap by links also proves its parts",
          "[transfer][refresh][linked][proof]") {
  const bool is_wrong = GENERATE(false, true);
  const ScratchDir dir;
  Fill(dir / "source");
  PullOptions options;
  options.mode = PullMode::kSwap;
  options.method = PullMethod::kIngest;
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  Change(dir / "source");
  Planting planting(CompareFault::kDeletionLeftOut, 0, is_wrong ? 1 : 0);
  CompareTuning tuning;
  tuning.plants = std::ref(planting);
  const ComparedWith compared(tuning);
  const Ferried swapped = Refresh(dir / "source", dir / "target", options);
  INFO(swapped.message());
  REQUIRE_OK(swapped.status);
  REQUIRE(planting.chances() > 0);
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE(IsUnproven(swapped) == is_wrong);
}

}  // namespace
}  // namespace sstferry::test::refresh_proof_test
