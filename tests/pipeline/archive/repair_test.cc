// Repairs of damaged sets (pipeline/archive/repair.h). Intact objects are
// reused. Damaged ones are replaced by the same bytes from elsewhere. Bytes are
// accepted only if they match the digests in the damaged set's record.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/archive/log_reader.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/repair.h"
#include "pipeline/archive/seal.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/pipeline/archive/stopped_client.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::repair_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

// An archive in memory, with helpers to push and repair.
struct World {
  explicit World(const SealKey* with = nullptr) : key(with) {
    ArchiveHead head;
    head.grace_seconds = kMinGraceSeconds;
    head.has_if_absent = true;
    std::string bytes;
    EncodeArchiveHead(head, &bytes);
    server.Overwrite(kArchiveHeadKey, bytes);
  }
  SetName Push(const std::vector<int>& tables, const std::string& label = "",
               const SetLog& log = {}) {
    server.Advance(60);
    FakeSetSource source(tables, "point " + std::to_string(++points));
    PushOptions options;
    options.lanes = 1;
    options.label = label;
    options.log = log;
    options.host = "db1";
    options.host_seconds = [] { return uint64_t{77}; };
    PushSummary summary;
    REQUIRE_OK(PushSet(Archive(client.get(), key), &source, options,
                       &summary));
    return summary.name;
  }
  Status Repair(const SetName& set, FileDonor* from = nullptr) {
    RepairOptions options;
    options.set = SetNameText(set);
    options.from = from;
    options.lanes = 1;
    return RepairArchive(Archive(client.get(), key), options, &repaired);
  }
  // Takes the lost and wrong bytes from a database with these tables.
  SetName RepairFrom(const std::vector<int>& tables, const SetName& set) {
    FakeSetSource copy(tables, "another point");
    const auto donor = MakeSourceDonor(&copy);
    REQUIRE_OK(Repair(set, donor.get()));
    REQUIRE(repaired.sets.at(0).is_repaired());
    return repaired.sets[0].by;
  }
  // Prunes three times, with a grace after each, and keeps one set.
  void PruneToOne() {
    for (int night = 0; night < 3; ++night) {
      PruneOptions options;
      options.retention.last = 1;
      PruneSummary summary;
      REQUIRE_OK(PruneArchive(Archive(client.get(), key), options, &summary));
      server.Advance(kMinGraceSeconds + 1);
    }
  }
  // Requires that a set counts and has the right bytes.
  void RequireRight(const SetName& set) {
    REQUIRE(server.Has(DoneKey(set)));
    for (const ArchivedFile& file : Read(set).files) {
      const std::string object = ArchiveKeyText(file.key);
      INFO(object);
      REQUIRE(server.Has(object));
      REQUIRE(Sha256Of(server.Objects().at(object)) == file.sha256);
    }
  }
  Status Check() {
    CheckOptions options;
    options.read_percent = 100;
    return CheckArchive(Archive(client.get(), key), options, &checked);
  }
  ArchiveSet Read(const SetName& set) {
    std::optional<ArchiveSet> read;
    REQUIRE_OK(Archive(client.get(), key).ReadSet({set, 0, true}, &read));
    REQUIRE(read.has_value());
    return *std::move(read);
  }
  // Returns the object's key of a set's file, by the file's number. Tables have
  // numbers from 10, the MANIFEST has 5.
  std::string KeyOf(const SetName& set, uint64_t number) {
    for (const ArchivedFile& file : Read(set).files) {
      if (file.file.number == number) {
        return ArchiveKeyText(file.key);
      }
    }
    FAIL("no such file");
    return "";
  }
  SetState StateOf(const SetName& set) {
    for (const ListedSet& listed : checked.sets) {
      if (listed.name == set) {
        return listed.state;
      }
    }
    FAIL("no such set");
    return SetState::kDamaged;
  }
  // Changes a byte of an object, as a bad disk may. The length stays.
  void Rot(const std::string& object) {
    std::string bytes = server.Objects().at(object);
    bytes.back() ^= 1;
    server.Overwrite(object, bytes);
  }

  const SealKey* const key;
  MemoryStore server;
  const std::unique_ptr<ObjectStore> client = server.NewClient();
  RepairSummary repaired;
  CheckSummary checked;
  int points = 0;
};

TEST_CASE("A repair takes lost and wrong bytes from a set that has them, and "
          "uses the others again",
          "[archive]") {
  World world;
  const SetName damaged = world.Push({1, 2, 3}, "nightly");
  const std::string lost = world.KeyOf(damaged, 11);
  world.server.Erase(lost);
  // The next set uploads the table again under another name.
  const SetName next = world.Push({1, 2});
  REQUIRE(world.KeyOf(next, 11) != lost);
  REQUIRE(EndStateOf(world.Check()) == EndState::kCorrupt);
  REQUIRE(world.StateOf(damaged) == SetState::kDamaged);
  const auto before = world.server.Objects();

  REQUIRE_OK(world.Repair(damaged));
  REQUIRE(world.repaired.sets.size() == 1);
  const SetName by = world.repaired.sets[0].by;
  // Table 1 and the MANIFEST, which no other set has.
  REQUIRE(world.repaired.uploaded_files == 2);
  REQUIRE(world.repaired.reused_files == 2);
  for (const auto& [key, bytes] : before) {
    REQUIRE(world.server.Objects().at(key) == bytes);
  }
  const ArchiveSet old = world.Read(damaged);
  const ArchiveSet made = world.Read(by);
  REQUIRE(by.seconds == damaged.seconds);
  REQUIRE(by.id != damaged.id);
  REQUIRE(made.repairs == damaged.id);
  REQUIRE(made.label == "nightly");
  REQUIRE(made.host == "db1");
  REQUIRE(made.host_seconds == 77);
  REQUIRE(made.sequence == old.sequence);
  REQUIRE(made.files.size() == old.files.size());
  for (size_t i = 0; i < made.files.size(); ++i) {
    REQUIRE(made.files[i].file == old.files[i].file);
    REQUIRE(made.files[i].units == old.files[i].units);
  }
  // The check still names the damaged set, and the command that removes it.
  REQUIRE_OK(world.Check());
  REQUIRE(world.StateOf(damaged) == SetState::kDamaged);
  REQUIRE(world.StateOf(by) == SetState::kWhole);
  REQUIRE(world.checked.problems.size() == 1);
  REQUIRE(world.checked.warnings.size() == 1);
  REQUIRE(world.checked.warnings[0].find(
              "sstferry archive remove " + world.client->place() + " " +
              SetNameText(damaged)) != std::string::npos);
  RemoveOptions remove;
  remove.what = SetNameText(damaged);
  REQUIRE_OK(RemoveFromArchive(Archive(world.client.get()), remove));
  REQUIRE_OK(world.Check());
}

// Repairs a set with table 1, which is lost or has wrong bytes, until the
// repaired set has sorted before its original and after it. Calls try_it() each
// time.
void RepairInBothOrders(
    bool is_lost, const SetLog& log,
    const std::function<void(World* world, const SetName& damaged,
                             const SetName& by)>& try_it) {
  bool is_before = false;
  bool is_after = false;
  for (int i = 0; i < 64 && !(is_before && is_after); ++i) {
    World world;
    const SetName damaged = world.Push({1}, "nightly", log);
    const std::string object = world.KeyOf(damaged, 11);
    if (is_lost) {
      world.server.Erase(object);
    } else {
      world.Rot(object);
    }
    const SetName by = world.RepairFrom({1}, damaged);
    (by < damaged ? is_before : is_after) = true;
    INFO(SetNameText(damaged) << " was repaired by " << SetNameText(by));
    try_it(&world, damaged, by);
  }
  REQUIRE(is_before);
  REQUIRE(is_after);
}

TEST_CASE("The repair of a damaged set is restored instead of it, whatever "
          "their names",
          "[archive]") {
  const SetLog log{{1, 2}, 1, 1'000'000};
  RepairInBothOrders(true, log, [](World* world, const SetName& damaged,
                                   const SetName& by) {
    const Archive archive(world->client.get());
    ArchiveSet chosen;
    REQUIRE_OK(ChooseSet(archive, "nightly", &chosen));
    REQUIRE(chosen.name == by);
    // So it is for a time in its log, and for a sequence.
    LogPoint point;
    point.micros = chosen.log.moment_micros;
    std::optional<LogChoice> choice;
    REQUIRE_OK(ChooseLog(archive, point, &choice));
    REQUIRE(choice->set == by);
    point = LogPoint();
    point.sequence = chosen.sequence;
    REQUIRE_OK(ChooseLog(archive, point, &choice));
    REQUIRE(choice->set == by);
    // The damaged set can still be named.
    point.set = damaged;
    REQUIRE_OK(ChooseLog(archive, point, &choice));
    REQUIRE(choice->set == damaged);
    // A time after the log is in no window, and no set is taken without its
    // log.
    point = LogPoint();
    point.micros = 1'000'000 * (by.seconds + 1);
    REQUIRE(EndStateOf(ChooseLog(archive, point, &choice)) ==
            EndState::kRefused);
  });
}

TEST_CASE("Prunes keep the repair of a damaged set, and no push reuses the "
          "original, whatever their names",
          "[archive]") {
  // The repair finds wrong bytes that no check has read. Its findings are
  // stored, or were lost since.
  const bool is_found = GENERATE(true, false);
  RepairInBothOrders(false, {}, [is_found](World* world,
                                           const SetName& damaged,
                                           const SetName& by) {
    const Archive archive(world->client.get());
    const std::string wrong = world->KeyOf(damaged, 11);
    KeyFaults faults;
    REQUIRE_OK(archive.ReadFaults(&faults));
    REQUIRE(faults.size() == 1);
    REQUIRE(faults.at(wrong).starts_with(kWrongBytes));
    if (!is_found) {
      world->server.Erase(kArchiveCheckedKey);
    }
    std::vector<ListedSet> listed;
    REQUIRE_OK(ListArchive(archive, &listed));
    REQUIRE(listed.size() == 2);
    for (const ListedSet& set : listed) {
      REQUIRE(set.state ==
              (set.name == by ? SetState::kWhole : SetState::kDamaged));
      REQUIRE(set.problem.empty() == (set.name == by));
    }
    CheckSummary checked;
    REQUIRE_OK(CheckArchive(archive, CheckOptions(), &checked));
    REQUIRE(checked.warnings.size() == 1);
    world->PruneToOne();
    world->RequireRight(by);
    // The damaged set may go, and then the repaired one is the last.
    const auto remove = [&](const SetName& set) {
      return RemoveFromArchive(archive, {.what = SetNameText(set),
                                         .force = false,
                                         .new_id = RandomSetId});
    };
    REQUIRE(EndStateOf(remove(by)) == EndState::kRefused);
    const SetName pushed = world->Push({1});
    world->RequireRight(pushed);
    REQUIRE(world->KeyOf(pushed, 11) == world->KeyOf(by, 11));
    REQUIRE_OK(remove(damaged));
    world->RequireRight(by);
  });
}

TEST_CASE("A push does not reuse an object that only a repair of an older set "
          "has read",
          "[archive]") {
  World world;
  const SetName older = world.Push({1});
  const SetName newer = world.Push({1, 2});
  const std::string shared = world.KeyOf(older, 11);
  REQUIRE(world.KeyOf(newer, 11) == shared);
  world.Rot(shared);
  // The repair repairs, finds no copy, or dies before it puts the set.
  const int ends = GENERATE(0, 1, 2);
  if (ends == 0) {
    world.RepairFrom({1}, older);
  } else if (ends == 1) {
    REQUIRE(EndStateOf(world.Repair(older)) == EndState::kCorrupt);
  } else {
    StoppedClient repair(&world.server, [&](ObjectStore* store) {
      FakeSetSource copy({1}, "another point");
      const auto donor = MakeSourceDonor(&copy);
      RepairOptions options;
      options.set = SetNameText(older);
      options.from = donor.get();
      options.lanes = 1;
      return RepairArchive(Archive(store), options, &world.repaired);
    });
    REQUIRE(repair.RunUntil(StoreCallKind::kPut, kArchiveSetsPrefix));
    repair.Fail(CallFate::kNeverArrives);
    REQUIRE_FALSE(repair.Finish().ok());
  }
  const SetName pushed = world.Push({1, 2});
  world.RequireRight(pushed);
  REQUIRE(world.KeyOf(pushed, 12) == world.KeyOf(newer, 12));
  // A prune counts only the new set.
  world.PruneToOne();
  world.RequireRight(pushed);
}

TEST_CASE("A repaired set that is damaged stays like its original, and can be "
          "repaired again",
          "[archive]") {
  const bool is_lost = GENERATE(true, false);
  RepairInBothOrders(is_lost, {}, [](World* world, const SetName& damaged,
                                     const SetName& by) {
    world->Rot(world->KeyOf(by, 11));
    REQUIRE(EndStateOf(world->Check()) == EndState::kCorrupt);
    CheckOptions check;
    check.read_percent = 100;
    check.keeps_findings = true;
    const Archive archive(world->client.get());
    REQUIRE(EndStateOf(CheckArchive(archive, check, &world->checked)) ==
            EndState::kCorrupt);
    world->PruneToOne();
    REQUIRE(world->server.Has(DoneKey(damaged)));
    REQUIRE(world->server.Has(DoneKey(by)));
    const SetName again = world->RepairFrom({1}, by);
    world->RequireRight(again);
    REQUIRE_OK(world->Check());
    REQUIRE(world->checked.warnings.size() == 2);
    world->PruneToOne();
    world->RequireRight(again);
  });
}

TEST_CASE("A repair without a given set checks all sets, and repairs each once",
          "[archive]") {
  World world;
  const SetName first = world.Push({1, 2});
  const SetName second = world.Push({1, 2, 3});
  const SetName whole = world.Push({3});
  FakeSetSource copy({1, 2, 3}, "another point");
  world.Rot(world.KeyOf(first, 11));
  const auto donor = MakeSourceDonor(&copy);
  RepairOptions options;
  options.from = donor.get();
  for (int run = 0; run < 2; ++run) {
    REQUIRE_OK(
        RepairArchive(Archive(world.client.get()), options, &world.repaired));
    size_t repaired = 0;
    for (const RepairedSet& set : world.repaired.sets) {
      repaired += set.is_repaired() ? 1 : 0;
    }
    REQUIRE(repaired == (run == 0 ? 2 : 0));
  }
  REQUIRE_OK(world.Check());
  REQUIRE(world.checked.warnings.size() == 2);
  REQUIRE(world.StateOf(first) == SetState::kDamaged);
  REQUIRE(world.StateOf(second) == SetState::kDamaged);
  REQUIRE(world.StateOf(whole) == SetState::kWhole);
  REQUIRE(std::count_if(world.checked.sets.begin(), world.checked.sets.end(),
                        [](const ListedSet& set) {
                          return set.state == SetState::kWhole;
                        }) == 3);
}

TEST_CASE("A repair accepts only the bytes that were pushed", "[archive]") {
  World world;
  const SetName damaged = world.Push({1, 2});
  world.server.Erase(world.KeyOf(damaged, 11));
  world.server.Erase(world.KeyOf(damaged, 5));
  const ScratchDir dir;
  const auto donor = MakeDirectoryDonor(dir.path());
  const auto write = [&dir](const std::string& name, const std::string& text) {
    std::ofstream(dir / name) << text;
  };
  const auto stays = [&] {
    const auto before = world.server.Objects();
    const Status status = world.Repair(damaged, donor.get());
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
    REQUIRE(world.server.Objects() == before);
  };
  stays();
  // Files with the same name and size, but other bytes.
  write("000011.sst", "table x");
  write("MANIFEST-000005", "point 1 and more");
  stays();
  // A symbolic link is not followed.
  fs::remove(dir / "000011.sst");
  write("elsewhere", "table 1");
  fs::create_symlink(dir / "elsewhere", dir / "000011.sst");
  stays();
  fs::remove(dir / "000011.sst");
  write("000011.sst", "table 1");
  REQUIRE_OK(world.Repair(damaged, donor.get()));
  REQUIRE_OK(RemoveFromArchive(Archive(world.client.get()),
                               {.what = SetNameText(damaged),
                                .force = false,
                                .new_id = RandomSetId}));
  REQUIRE_OK(world.Check());
  // The donor's directory must not be changed.
  REQUIRE(fs::file_size(dir / "MANIFEST-000005") == 16);
}

// A donor whose table has other bytes when it is read again.
class FickleDonor : public FileDonor {
 public:
  [[nodiscard]] Status Offer(
      const CloneFile&, uint64_t,
      const std::function<bool(const Open& open)>& take) override {
    take([this](std::unique_ptr<SetFile>* opened) {
      // The first three opens are checks by the repair and the push. The open
      // that reads the bytes for the upload gets another table.
      return (opened_++ < 3 ? first_ : second_).Open(0, opened);
    });
    return Status::OK();
  }

 private:
  FakeSetSource first_{{1}, "point"};
  FakeSetSource second_{{2}, "point"};
  int opened_ = 0;
};

TEST_CASE("Bytes that change when they are read again repair nothing",
          "[archive]") {
  World world;
  const SetName damaged = world.Push({1});
  world.server.Erase(world.KeyOf(damaged, 11));
  FickleDonor donor;
  REQUIRE(EndStateOf(world.Repair(damaged, &donor)) == EndState::kCorrupt);
  REQUIRE(EndStateOf(world.Check()) == EndState::kCorrupt);
  REQUIRE(world.checked.sets.size() == 1);
}

TEST_CASE("A repair of a sealed set takes bytes of another archive",
          "[archive][seal]") {
  SealKey::Bytes bytes{};
  bytes.fill(7);
  const SealKey key(bytes);
  World world(&key);
  World copy;
  const SetName damaged = world.Push({1, 2});
  copy.Push({1, 2});
  world.Rot(world.KeyOf(damaged, 11));
  const Archive other(copy.client.get());
  const auto donor = MakeArchiveDonor(other);
  // Without the key, the digests cannot be decrypted.
  RepairSummary none;
  RepairOptions options;
  options.set = SetNameText(damaged);
  REQUIRE(EndStateOf(RepairArchive(Archive(world.client.get()), options,
                                   &none)) == EndState::kRefused);
  REQUIRE_OK(world.Repair(damaged, donor.get()));
  const SetName by = world.repaired.sets[0].by;
  REQUIRE(world.Read(by).is_sealed);
  REQUIRE_OK(world.Check());
  REQUIRE(world.StateOf(damaged) == SetState::kDamaged);
  REQUIRE(world.StateOf(by) == SetState::kWhole);
}

TEST_CASE("A repair uploads files that a prune just marked, and leaves a whole "
          "set",
          "[archive]") {
  World world;
  const SetName damaged = world.Push({1, 2});
  world.Push({2, 3});
  world.server.Erase(world.KeyOf(damaged, 11));
  PruneOptions prune;
  prune.retention.last = 1;
  PruneSummary pruned;
  REQUIRE_OK(PruneArchive(Archive(world.client.get()), prune, &pruned));
  REQUIRE(pruned.marked_sets == 1);
  FakeSetSource copy({1}, "point x");
  const auto donor = MakeSourceDonor(&copy);
  REQUIRE_OK(world.Repair(damaged, donor.get()));
  const SetName by = world.repaired.sets[0].by;
  for (int night = 0; night < 3; ++night) {
    world.server.Advance(kMinGraceSeconds + 1);
    prune.retention.last = 10;
    REQUIRE_OK(PruneArchive(Archive(world.client.get()), prune, &pruned));
  }
  REQUIRE(pruned.damaged_sets == 1);
  REQUIRE_OK(world.Check());
  REQUIRE(world.checked.warnings.size() == 1);
  REQUIRE(world.StateOf(by) == SetState::kWhole);
  // Once a prune has marked both, no command needs to remove the damaged set.
  world.Push({3});
  prune.retention.last = 1;
  REQUIRE_OK(PruneArchive(Archive(world.client.get()), prune, &pruned));
  REQUIRE_OK(world.Check());
  REQUIRE(world.checked.warnings.size() == 1);
  REQUIRE(world.checked.warnings[0].find("a prune marked it") !=
          std::string::npos);
}

TEST_CASE("A check fails for a damaged set that no repaired set replaces, and "
          "names that set",
          "[archive]") {
  World world;
  const SetName repaired = world.Push({1});
  const SetName damaged = world.Push({2});
  world.Push({3});
  world.server.Erase(world.KeyOf(repaired, 11));
  const std::string lost = world.KeyOf(damaged, 12);
  world.server.Erase(lost);
  FakeSetSource copy({1}, "another point");
  const auto donor = MakeSourceDonor(&copy);
  REQUIRE_OK(world.Repair(repaired, donor.get()));
  const Status status = world.Check();
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find("set " + SetNameText(damaged) + ": ") !=
          std::string::npos);
  REQUIRE(status.ToString().find(lost) != std::string::npos);
  REQUIRE(status.ToString().find("sstferry archive repair") !=
          std::string::npos);
  REQUIRE(world.checked.warnings.size() == 1);
  REQUIRE(world.checked.warnings[0].find(SetNameText(repaired)) !=
          std::string::npos);
}

TEST_CASE("A repair names a set whose record cannot be read, after it has "
          "repaired the others",
          "[archive]") {
  World world;
  const SetName unreadable = world.Push({1});
  const SetName damaged = world.Push({2});
  world.Push({2, 3});
  world.server.Overwrite(SetKey(unreadable), "damage");
  world.server.Erase(world.KeyOf(damaged, 5));  // its MANIFEST
  FakeSetSource copy({}, "point 2");
  const auto donor = MakeSourceDonor(&copy);
  RepairOptions options;
  options.from = donor.get();
  options.set = GENERATE(true, false) ? SetNameText(unreadable) : "";
  const Status status =
      RepairArchive(Archive(world.client.get()), options, &world.repaired);
  const std::string remove = "sstferry archive remove " +
                             world.client->place() + " " +
                             SetNameText(unreadable);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find("set " + SetNameText(unreadable)) !=
          std::string::npos);
  REQUIRE(status.ToString().find(remove) != std::string::npos);
  REQUIRE(world.repaired.sets.back().name == unreadable);
  REQUIRE_FALSE(world.repaired.sets.back().problem.empty());
  if (options.set.empty()) {
    REQUIRE(world.repaired.sets.size() == 3);
    REQUIRE(world.repaired.sets[1].is_repaired());
    // A check says the same.
    const Status check = world.Check();
    REQUIRE(EndStateOf(check) == EndState::kCorrupt);
    REQUIRE(check.ToString().find(remove) != std::string::npos);
  }
}

TEST_CASE("A repair with another key does not say to remove the set",
          "[archive][seal]") {
  SealKey::Bytes bytes{};
  bytes.fill(7);
  const SealKey key(bytes);
  bytes.fill(8);
  const SealKey other(bytes);
  World world(&key);
  const SetName sealed = world.Push({1});
  RepairOptions options;
  options.set = GENERATE(true, false) ? SetNameText(sealed) : "";
  const Status status = RepairArchive(Archive(world.client.get(), &other),
                                      options, &world.repaired);
  REQUIRE_FALSE(status.ok());
  REQUIRE(status.ToString().find("archive remove") == std::string::npos);
  REQUIRE(world.repaired.sets.empty());
}

}  // namespace
}  // namespace sstferry::repair_test
