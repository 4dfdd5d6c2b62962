// A long random run against an archive. Its steps are pushes, prunes with any
// options, repairs, checks that record what they find, restores and removals,
// by one machine or by several at once that may crash. Between them, objects
// are lost or damaged, and clocks jump. After every step:
// - No step of sstferry has removed the last whole set (one without an object
//   that a check found wrong, which no repaired set replaces), or an object of
//   a set that counts (a set with a done/ object).
// - A prune alone keeps the newest whole set.
// - The findings still name every object that a check or a repair has read and
//   found wrong, and no set that was made since uses such an object.
// - A restore of the newest set returns that set, or an error that names the
//   newest whole one.
//
// SSTFERRY_ARCHIVE_GAME is the number of steps (default: 1,000).
// SSTFERRY_ARCHIVE_GAME_SEED is the seed of the first world. A world runs 100
// steps.
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
#include "pipeline/archive/check.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/repair.h"
#include "pipeline/archive/set_reader.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/pipeline/archive/turns.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"

namespace sstferry::game_test {
namespace {

using rocksdb::Status;
using Objects = std::map<std::string, std::string>;

constexpr UnixSeconds kGrace = kMinGraceSeconds;
constexpr int kTables = 5;
constexpr uint64_t kStepsOfWorld = 100;

// A donor that has every file that was ever pushed.
class WholePast : public FileDonor {
 public:
  void Add(const std::string& point) { points_.push_back(point); }
  [[nodiscard]] Status Offer(
      const CloneFile& file, uint64_t,
      const std::function<bool(const Open& open)>& take) override {
    if (file.kind == CloneFileKind::kTable) {
      FakeSetSource source({static_cast<int>(file.number) - 10}, "");
      take([&source](std::unique_ptr<SetFile>* opened) {
        return source.Open(0, opened);
      });
      return Status::OK();
    }
    for (const std::string& point : points_) {
      FakeSetSource source({}, point);
      if (point.size() == file.bytes &&
          take([&source](std::unique_ptr<SetFile>* opened) {
            return source.Open(0, opened);
          })) {
        break;
      }
    }
    return Status::OK();
  }

 private:
  std::vector<std::string> points_;
};

// Reasons why sets are not whole although all of their objects exist.
struct Known {
  bool is_readable = true;      // the findings can be read
  std::set<std::string> wrong;  // objects that the findings name
  std::set<SetName> replaced;   // sets that repaired sets replace
};

// The sets in an archive that count, and those of them that are whole.
struct Truth {
  // The objects and their sizes of each set that counts. nullopt: the set's
  // record cannot be read.
  std::map<SetName, std::optional<std::map<std::string, uint64_t>>> sets;
  std::map<std::string, Sha256Digest> digests;  // of these objects
  std::vector<SetName> whole;  // the oldest first
  Known known;

  explicit Truth(const Objects& objects) {
    const auto findings = objects.find(kArchiveCheckedKey);
    if (findings != objects.end()) {
      ArchiveChecked checked;
      known.is_readable = DecodeArchiveChecked(findings->second, &checked).ok();
      for (const FoundFault& fault : checked.faults) {
        known.wrong.insert(fault.key);
      }
    }
    for (const auto& [key, bytes] : objects) {
      SetName name;
      if (!key.starts_with(kArchiveDonePrefix) ||
          !ParseSetName(key.substr(sizeof(kArchiveDonePrefix) - 1), &name)) {
        continue;
      }
      const auto record = objects.find(SetKey(name));
      if (record == objects.end()) {
        continue;
      }
      auto& named = sets[name];
      ArchiveSet set;
      ArchiveDone done;
      if (!DecodeArchiveDone(bytes, &done).ok() ||
          done.set != DigestOf(record->second) ||
          !DecodeArchiveSet(record->second, name, &set).ok()) {
        continue;
      }
      named.emplace();
      if (set.repairs != SetId()) {
        known.replaced.insert({name.seconds, set.repairs});
      }
      bool is_there = true;
      for (const ArchivedFile& file : set.files) {
        const std::string object = ArchiveKeyText(file.key);
        (*named)[object] = set.ObjectBytes(file);
        digests[object] = file.sha256;
        const auto there = objects.find(object);
        is_there &= there != objects.end() &&
                    there->second.size() == set.ObjectBytes(file);
      }
      if (is_there) {
        whole.push_back(name);
      }
    }
  }

  // Returns the whole sets that are whole by this knowledge, too.
  std::vector<SetName> WholeBy(const Known& by) const {
    std::vector<SetName> found;
    for (const SetName& name : whole) {
      const auto& objects = *sets.at(name);
      if (by.replaced.count(name) == 0 &&
          std::none_of(objects.begin(), objects.end(),
                       [&by](const auto& object) {
                         return by.wrong.count(object.first) != 0;
                       })) {
        found.push_back(name);
      }
    }
    return found;
  }
};

class Game {
 public:
  explicit Game(uint64_t seed)
      : random_(seed), turns_(&random_, [this] { PassTime(); }) {
    MemoryStoreRules rules;
    rules.checks_signatures = false;  // a directory has none
    rules.honours_if_absent = Chance(2);
    server_ = std::make_unique<MemoryStore>(rules);
    ArchiveHead head;
    head.grace_seconds = kGrace;
    head.has_if_absent = rules.honours_if_absent;
    std::string bytes;
    EncodeArchiveHead(head, &bytes);
    server_->Overwrite(kArchiveHeadKey, bytes);
  }

  // Runs steps. Returns the promise that was broken, or "".
  const std::string& Play(uint64_t steps) {
    for (uint64_t i = 0; i < steps && broken_.empty(); ++i) {
      Step();
    }
    return broken_;
  }

  std::string Trace() const {
    std::string text;
    for (const std::string& line : trace_) {
      text += line + "\n";
    }
    return text;
  }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  bool Chance(uint64_t of) { return random_() % of == 0; }
  uint64_t Below(uint64_t n) { return random_() % n; }
  void Break(const std::string& what) {
    if (broken_.empty()) {
      broken_ = what;
    }
  }
  void Note(const std::string& what, const Status& status) {
    trace_.push_back(what + ": " + status.ToString());
    ++counts_[what.substr(0, what.find(' ')) +
              (status.ok() ? "" : " failed")];
    if (EndStateOf(status) == EndState::kInternal) {
      Break(trace_.back());
    }
  }
  SetId NewId() {
    SetId id{};
    const uint64_t number = ++ids_;
    id[0] = static_cast<uint8_t>(Below(256));  // ids have no order
    id[6] = static_cast<uint8_t>(number >> 8);
    id[7] = static_cast<uint8_t>(number);
    return id;
  }

  void PassTime() {
    if (Chance(8)) {
      server_->Advance(Chance(3) ? kGrace + 1
                                 : static_cast<UnixSeconds>(Below(1200)));
    }
  }

  void Step() {
    const uint64_t kind = Below(20);
    if (kind < 3) {
      Fault();
      return;
    }
    if (kind == 3) {
      Jump();
      return;
    }
    const Objects before = server_->Objects();
    const bool is_alone = kind < 16;
    if (is_alone) {
      const std::unique_ptr<ObjectStore> store = server_->NewClient();
      Act(store.get(), true, Below(kActs));
    } else {
      // Several machines at once, which may crash. Sometimes all check.
      const bool all_check = Chance(5);
      std::vector<std::function<void(int)>> clients;
      for (uint64_t i = 0; i < 2 + Below(2); ++i) {
        clients.emplace_back([this, all_check](int self) {
          const uint64_t dies_at = 20 + Below(600);
          const std::unique_ptr<ObjectStore> store = server_->NewClient(
              [this, self, dies_at](StoreCall* call) {
                // Findings are read just before they are put. push.h says what
                // is lost if others put between these calls.
                if (call->kind != StoreCallKind::kPut ||
                    call->key != kArchiveCheckedKey) {
                  turns_.Pause(self);
                }
                return call->number >= dies_at ? CallFate::kNeverArrives
                                               : CallFate::kArrives;
              });
          Act(store.get(), false, all_check ? kCheckAct : Below(kActs));
        });
      }
      turns_.Run(clients);
      ++counts_["together"];
    }
    Compare(before, server_->Objects());
  }

  // Compares the objects before and after a step of sstferry.
  void Compare(const Objects& before, const Objects& after) {
    const Truth was(before);
    const Truth is(after);
    // If a check together with others changes which sets are whole, the promise
    // is only about those that are whole before and after it, and what it has
    // cleared or found meanwhile does not break the promise.
    Known any = was.known;
    Known both = was.known;
    any.wrong.insert(is.known.wrong.begin(), is.known.wrong.end());
    std::erase_if(both.wrong, [&is](const std::string& key) {
      return is.known.wrong.count(key) == 0;
    });
    const std::vector<SetName> whole = was.WholeBy(any);
    if (!whole.empty() && is.WholeBy(both).empty()) {
      Break("the last whole set is gone: " + SetNameText(whole.back()));
    }
    CompareFindings(was, is, before, after);
    for (const auto& [name, objects] : is.sets) {
      if (!objects.has_value()) {
        continue;
      }
      for (const auto& [object, bytes] : *objects) {
        const auto there = before.find(object);
        if (there != before.end() && there->second.size() == bytes &&
            after.count(object) == 0) {
          Break("a step took " + object + " from the set " +
                SetNameText(name));
        }
      }
    }
    for (const auto& [key, bytes] : before) {
      const auto now = after.find(key);
      if (now == after.end()) {
        if (!key.starts_with(kArchiveIntentsPrefix)) {
          dead_.insert(key);
        }
      } else if (now->second != bytes && key != kArchiveCheckedKey &&
                 !key.starts_with(kArchiveIntentsPrefix) &&
                 !IsTakenBack(key, bytes, now->second)) {
        Break("a step changed " + key);
      }
    }
    for (const auto& [key, bytes] : after) {
      // A prune that takes a mark back may put it again.
      if (before.count(key) == 0 && dead_.count(key) != 0 &&
          key != kArchiveCheckedKey && !key.starts_with(kArchiveMarksPrefix)) {
        Break("a name is used again: " + key);
      }
    }
  }

  // Requires that no object that was found wrong is forgotten or used again.
  void CompareFindings(const Truth& was, const Truth& is, const Objects& before,
                       const Objects& after) {
    for (const Truth* const truth : {&was, &is}) {
      digests_.insert(truth->digests.begin(), truth->digests.end());
    }
    const auto is_wrong = [&](const std::string& key) {
      const auto there = after.find(key);
      const auto digest = digests_.find(key);
      return there != after.end() && digest != digests_.end() &&
             Sha256Of(there->second) != digest->second;
    };
    for (const auto& [name, objects] : is.sets) {
      if (was.sets.count(name) != 0 || !objects.has_value()) {
        continue;
      }
      for (const auto& [key, bytes] : *objects) {
        if (found_.count(key) != 0 && is_wrong(key)) {
          Break("the new set " + SetNameText(name) + " uses " + key +
                ", which was found wrong");
        }
      }
    }
    for (const SetName& name : read_) {
      const auto set = was.sets.find(name);
      const auto now = is.sets.find(name);
      if (set != was.sets.end() && set->second.has_value() &&
          now != is.sets.end()) {
        for (const auto& [key, bytes] : *set->second) {
          found_.insert(key);
        }
      }
    }
    read_.clear();
    std::erase_if(found_, [&](const std::string& key) {
      return !is_wrong(key) || before.count(key) == 0;
    });
    if (!was.known.is_readable || !is.known.is_readable) {
      found_.clear();  // no run could keep what it did not know
    }
    for (const std::string& key : found_) {
      ++counts_["found"];
      if (is.known.wrong.count(key) == 0) {
        Break("the findings do not name " + key +
              " any more, which was found wrong");
      }
    }
  }

  // Returns true if a mark still names the same, and only says of fewer sets
  // that they were whole.
  static bool IsTakenBack(const std::string& key, const std::string& before,
                          const std::string& now) {
    ArchiveMark was;
    ArchiveMark is;
    if (!key.starts_with(kArchiveMarksPrefix) ||
        !DecodeArchiveMark(before, &was).ok() ||
        !DecodeArchiveMark(now, &is).ok() ||
        was.sets.size() != is.sets.size()) {
      return false;
    }
    for (size_t i = 0; i < is.sets.size(); ++i) {
      was.sets[i].was_done &= is.sets[i].was_done;
    }
    return was == is;
  }

  // Loses an object, or changes its bytes or its size.
  void Fault() {
    const Objects objects = server_->Objects();
    auto object = objects.begin();
    std::advance(object, static_cast<std::ptrdiff_t>(Below(objects.size())));
    if (objects.count(kArchiveCheckedKey) != 0 && Chance(5)) {
      object = objects.find(kArchiveCheckedKey);
    }
    if (object->first == kArchiveHeadKey) {
      return;
    }
    const uint64_t kind = Below(4);
    std::string bytes = object->second;
    if (kind == 0 || bytes.empty()) {
      server_->Erase(object->first);
      dead_.insert(object->first);
    } else if (kind == 1) {
      server_->Overwrite(object->first, bytes.substr(0, bytes.size() - 1));
    } else {
      bytes[Below(bytes.size())] ^= 1;
      server_->Overwrite(object->first, bytes);
    }
    if (object->first == kArchiveCheckedKey) {
      found_.clear();
    }
    ++counts_["fault"];
    trace_.push_back("fault " + std::to_string(kind) + " of " +
                     object->first);
  }

  void Jump() {
    constexpr UnixSeconds kJumps[] = {-7200, -1800, -60,  -1,        1,
                                      60,    1800,  7200, kGrace + 1, 100'000};
    const UnixSeconds jump = kJumps[Below(std::size(kJumps))];
    server_->Advance(jump);
    ++counts_["jump"];
    trace_.push_back("clock " + std::to_string(jump));
  }

  static constexpr uint64_t kActs = 14;
  static constexpr uint64_t kCheckAct = 10;
  void Act(ObjectStore* store, bool is_alone, uint64_t act) {
    const Archive archive(store);
    switch (act) {
      case 0:
      case 1:
      case 2:
        return Push(archive, is_alone);
      case 3:
      case 4:
      case 5:
        return Prune(archive, is_alone);
      case 6:
      case 7:
        return Repair(archive, is_alone);
      case 8:
      case 9:
        return is_alone ? Restore() : Push(archive, is_alone);
      case kCheckAct:
      case kCheckAct + 1:
        return Check(archive);
      default:
        return Remove(archive);
    }
  }

  void Push(const Archive& archive, bool is_alone) {
    std::vector<int> tables;
    for (int i = 0; i < kTables; ++i) {
      if (!Chance(3)) {
        tables.push_back(i);
      }
    }
    const std::string point = "point in time " + std::to_string(++points_);
    past_.Add(point);
    FakeSetSource source(tables, point);
    PushOptions options;
    options.lanes = 1;
    options.new_id = [this] { return NewId(); };
    options.steady_seconds = [this] {
      return static_cast<uint64_t>(server_->now());
    };
    options.host_seconds = options.steady_seconds;
    const Truth before(server_->Objects());
    PushSummary summary;
    const Status status = PushSet(archive, &source, options, &summary);
    Note("push " + SetNameText(summary.name), status);
    if (!status.ok() || !is_alone) {
      return;
    }
    const Truth now(server_->Objects());
    const std::vector<SetName> whole = now.WholeBy(now.known);
    if (whole.empty() || whole.back() != summary.name) {
      Break("a push is not the newest whole set: " +
            SetNameText(summary.name));
    }
    if (!before.sets.empty() &&
        before.sets.rbegin()->first.seconds >= summary.name.seconds) {
      Break("a push is not after the sets before it");
    }
  }

  void Prune(const Archive& archive, bool is_alone) {
    PruneOptions options;
    options.retention.last = static_cast<uint32_t>(Below(4));
    options.retention.daily = static_cast<uint32_t>(Chance(3) ? Below(4) : 0);
    options.retention.weekly = static_cast<uint32_t>(Chance(4) ? 2 : 0);
    options.dry_run = Chance(5);
    options.new_id = [this] { return NewId(); };
    const Objects before = server_->Objects();
    PruneSummary summary;
    const Status status = PruneArchive(archive, options, &summary);
    Note(std::string(options.dry_run ? "dry" : "prune") + " last " +
             std::to_string(options.retention.last),
         status);
    counts_["dropped"] += options.dry_run ? 0 : summary.dropped_sets;
    const Truth was(before);
    const std::vector<SetName> whole = was.WholeBy(was.known);
    for (const PrunedSet& set : summary.sets) {
      if (is_alone && !whole.empty() && set.name == whole.back() &&
          set.fate != SetFate::kStays) {
        Break("a prune does not keep the newest whole set: " +
              SetNameText(set.name));
      }
    }
    if (is_alone && (options.dry_run || EndStateOf(status) ==
                                            EndState::kCorrupt) &&
        server_->Objects() != before) {
      Break("a dry run, or a prune that met damage, changed something");
    }
  }

  void Repair(const Archive& archive, bool is_alone) {
    const Truth truth(server_->Objects());
    RepairOptions options;
    options.lanes = 1;
    options.new_id = [this] { return NewId(); };
    options.steady_seconds = [this] {
      return static_cast<uint64_t>(server_->now());
    };
    if (!truth.sets.empty() && Chance(2)) {
      auto set = truth.sets.begin();
      std::advance(set, static_cast<std::ptrdiff_t>(Below(truth.sets.size())));
      options.set = SetNameText(set->first);
    }
    // Each machine has its own donor.
    WholePast past = past_;
    options.from = Chance(3) ? nullptr : &past;
    RepairSummary summary;
    const Status status = RepairArchive(archive, options, &summary);
    Note("repair " + options.set, status);
    const Objects objects = server_->Objects();
    for (const RepairedSet& set : summary.sets) {
      if (!set.problem.empty()) {
        read_.insert(set.name);
      }
      if (!set.is_repaired()) {
        continue;
      }
      ++counts_["repaired"];
      ArchiveSet record;
      const auto found = objects.find(SetKey(set.by));
      if (found == objects.end() ||
          !DecodeArchiveSet(found->second, set.by, &record).ok()) {
        if (is_alone) {
          Break("a repaired set is not there");
        }
        continue;
      }
      for (const ArchivedFile& file : record.files) {
        const auto object = objects.find(ArchiveKeyText(file.key));
        if (is_alone && (object == objects.end() ||
                         Sha256Of(object->second) != file.sha256)) {
          Break("a repaired set has wrong bytes: " +
                ArchiveKeyText(file.key));
        }
      }
    }
  }

  void Check(const Archive& archive) {
    CheckOptions options;
    options.read_percent = Chance(2) ? 100 : static_cast<double>(Below(51));
    options.lanes = 1;
    options.keeps_findings = true;
    CheckSummary summary;
    Note("check " + std::to_string(static_cast<int>(options.read_percent)),
         CheckArchive(archive, options, &summary));
    if (options.read_percent == 100 && summary.is_complete &&
        summary.not_kept.empty()) {
      for (const ListedSet& set : summary.sets) {
        if (set.state != SetState::kUnfinished) {
          read_.insert(set.name);
        }
      }
    }
  }

  void Remove(const Archive& archive) {
    // Mostly removes marks and intents that cannot be read, else any set.
    std::vector<std::string> names;
    for (const auto& [key, bytes] : server_->Objects()) {
      const size_t slash = key.find('/');
      ArchiveMark mark;
      ArchiveIntent intent;
      if ((key.starts_with(kArchiveMarksPrefix) &&
           !DecodeArchiveMark(bytes, &mark).ok()) ||
          (key.starts_with(kArchiveIntentsPrefix) &&
           !DecodeArchiveIntent(bytes, &intent).ok())) {
        names.push_back(key.substr(slash + 1));
      }
    }
    if (names.empty() || Chance(4)) {
      names.clear();
      for (const auto& [name, objects] : Truth(server_->Objects()).sets) {
        names.push_back(SetNameText(name));
      }
    }
    if (names.empty()) {
      return;
    }
    RemoveOptions options;
    options.what = names[Below(names.size())];
    options.new_id = [this] { return NewId(); };
    Note("remove " + options.what, RemoveFromArchive(archive, options));
  }

  void Restore() {
    const std::shared_ptr<ObjectStore> store = server_->NewClient();
    const Archive archive(store.get());
    const Truth truth(server_->Objects());
    ArchiveSet set;
    Status status = ChooseSet(archive, "latest", &set);
    if (truth.sets.empty()) {
      if (EndStateOf(status) != EndState::kRefused) {
        Break("a restore of nothing: " + status.ToString());
      }
      return;
    }
    const SetName newest = truth.sets.rbegin()->first;
    if (status.ok()) {
      // A set that repairs another has the same second in its name.
      if (set.name.seconds != newest.seconds) {
        Break("a restore falls back to " + SetNameText(set.name));
      }
      SetReader reader(store, nullptr, set);
      std::vector<const ArchivedFile*> files;
      for (const ArchivedFile& file : set.files) {
        files.push_back(&file);
      }
      status = reader.LookFor(files);
      for (size_t i = 0; i < files.size() && status.ok(); ++i) {
        status = reader.ReadWhole(*files[i], nullptr,
                                  [](uint64_t, const rocksdb::Slice&) {
                                    return Status::OK();
                                  });
        while (EndStateOf(status) == EndState::kDeadPeer) {
          status = reader.ReadWhole(*files[i], nullptr,
                                    [](uint64_t, const rocksdb::Slice&) {
                                      return Status::OK();
                                    });
        }
      }
      const bool is_whole = std::count(truth.whole.begin(), truth.whole.end(),
                                       set.name) != 0;
      const std::vector<SetName> whole = truth.WholeBy(truth.known);
      if (status.ok() && !is_whole) {
        Break("a restore of a damaged set succeeded");
      }
      // While a mark cannot be read, it is unknown which sets are whole.
      if (!status.ok() && !is_whole && !whole.empty() &&
          status.ToString().find("@" + SetNameText(whole.back())) ==
              std::string::npos &&
          status.ToString().find("archive remove") == std::string::npos) {
        Break("a restore does not name the newest whole set " +
              SetNameText(whole.back()) + ": " + status.ToString());
      }
    } else if (EndStateOf(status) != EndState::kCorrupt) {
      Break("a restore: " + status.ToString());
    }
    Note("restore", status);
  }

  std::mt19937_64 random_;
  Turns turns_;
  std::unique_ptr<MemoryStore> server_;
  WholePast past_;
  uint64_t ids_ = 0;
  uint64_t points_ = 0;
  std::set<std::string> dead_;  // names that were deleted
  std::map<std::string, Sha256Digest> digests_;  // of all objects of sets
  // Objects with wrong bytes that a check or a repair has read.
  std::set<std::string> found_;
  std::set<SetName> read_;  // sets of which this step has read all objects
  std::map<std::string, uint64_t> counts_;
  std::vector<std::string> trace_;
  std::string broken_;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text == nullptr ? otherwise : strtoull(text, nullptr, 10);
}

TEST_CASE("No step removes the last whole set, whatever objects are lost",
          "[archive]") {
  const uint64_t asked = FromEnvironment("SSTFERRY_ARCHIVE_GAME", 1'000);
  const uint64_t first = FromEnvironment("SSTFERRY_ARCHIVE_GAME_SEED", 1);
  std::map<std::string, uint64_t> counts;
  for (uint64_t steps = 0; steps < asked; steps += kStepsOfWorld) {
    const uint64_t seed = first + steps / kStepsOfWorld;
    Game game(seed);
    const std::string broken =
        game.Play(std::min(kStepsOfWorld, asked - steps));
    if (!broken.empty()) {
      FAIL("seed " << seed << ": " << broken << "\n" << game.Trace());
    }
    for (const auto& [what, count] : game.counts()) {
      counts[what] += count;
    }
  }
  std::string told;
  for (const auto& [what, count] : counts) {
    told += what + " " + std::to_string(count) + ", ";
  }
  INFO(told);
  if (asked > 1'000) {
    WARN(asked << " steps: " << told);
  }
  // The run proves nothing if its steps rarely succeed.
  REQUIRE(counts["push"] * 20 > asked);
  REQUIRE(counts["dropped"] * 100 > asked);
  REQUIRE(counts["repaired"] * 100 > asked);
  REQUIRE(counts["remove"] * 100 > asked);
  REQUIRE(counts["found"] * 100 > asked);
}

}  // namespace
}  // namespace sstferry::game_test
