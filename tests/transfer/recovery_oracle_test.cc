// Random histories of applications that crash, with databases of all kinds and
// with damaged WALs: a pull delivers what the application itself would recover,
// or is refused.
// (tests/support/random_histories.h explains the environment variables.)
#include <fcntl.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>

#include "format/end_state.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/crashing_application.h"
#include "tests/support/forked.h"
#include "tests/support/process.h"
#include "tests/support/random_histories.h"
#include "tests/support/test_db.h"

namespace sstferry::test::recovery_oracle_test {
namespace {

namespace fs = std::filesystem;

enum class Damage {
  kNone, kTornNewest, kTornOlder, kMissing, kFlipped, kNoWalDir, kWalsBeside
};
const char* const kDamageNames[] = {
    "whole",   "newest torn", "older torn", "missing",
    "flipped", "no wal_dir",  "WALs beside the tables"};

struct Crash {
  AppHistory history;
  Damage damage;
  uint32_t which;  // which WAL is damaged
  uint32_t where;  // where in that WAL
  uint32_t stale;  // 0: none; leaves WALs beside the tables despite a wal_dir
};

void showValue(const Crash& crash, std::ostream& os) {
  showValue(crash.history, os);
  os << "\n  then " << kDamageNames[static_cast<int>(crash.damage)] << " "
     << crash.which << " " << crash.where << " stale " << crash.stale;
}

rc::Gen<Crash> CrashGen() {
  const auto numbers =
      rc::gen::resize(100, rc::gen::inRange<uint32_t>(0, 1000000));
  return rc::gen::build<Crash>(
      rc::gen::set(&Crash::history, AppHistoryGen()),
      rc::gen::set(&Crash::damage,
                   rc::gen::weightedElement<Damage>(
                       {{8, Damage::kNone},
                        {4, Damage::kTornNewest},
                        {4, Damage::kTornOlder},
                        {3, Damage::kMissing},
                        {1, Damage::kFlipped},
                        {1, Damage::kNoWalDir},
                        {2, Damage::kWalsBeside}})),
      rc::gen::set(&Crash::which, numbers),
      rc::gen::set(&Crash::where, numbers),
      rc::gen::set(&Crash::stale,
                   rc::gen::element<uint32_t>(0, 0, 1, 2)));
}

// Returns the WALs in a directory, oldest first.
std::vector<fs::path> Wals(const std::string& directory) {
  std::map<uint64_t, fs::path> wals;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") {
      wals[std::stoull(entry.path().stem())] = entry.path();
    }
  }
  std::vector<fs::path> paths;
  for (const auto& [number, path] : wals) {
    paths.push_back(path);
  }
  return paths;
}

// The directories of one history, and the processes that use them.
class CrashedSource {
 public:
  explicit CrashedSource(const Crash& crash)
      : crash_(crash),
        setup_(crash.history.setup),
        wal_dir_(setup_.has_wal_dir ? dir_ / "wals" : "") {}

  void Play() {
    fs::create_directories(dir_ / "source");
    for (const AppLife& life : crash_.history.lives) {
      const int code = RunQuietly(
          [&] { PlayLife(setup_, life, dir_ / "source", wal_dir_); });
      // A failing RocksDB itself may end the run (MarkLogsSynced in 7.8.3), or
      // may not open the database again.
      RC_ASSERT(code == 0 || code == kCannotOpen || code > 128);
      cut_lives_ += code == 0 ? 0 : 1;
    }
    const std::vector<fs::path> wals = Wals(WalPlace());
    wals_ = wals.size();
    newest_wal_bytes_ = wals.empty() ? 0 : fs::file_size(wals.back());
    if (crash_.damage == Damage::kNoWalDir ||
        crash_.damage == Damage::kWalsBeside) {
      LoseWalDir(wals);
    } else if (!wals.empty()) {
      LeaveStaleLogs(wals);
      DamageWals(wals);
    }
  }

  AppView AsRecovered() {
    fs::copy(dir_ / "source", dir_ / "copy", fs::copy_options::recursive);
    std::string wals;
    if (!wal_dir_.empty() && crash_.damage != Damage::kWalsBeside) {
      wals = dir_ / "copy wals";
      if (fs::exists(wal_dir_)) {
        fs::copy(wal_dir_, wals, fs::copy_options::recursive);
      }
    }
    return View(setup_, "copy", wals);
  }

  AppView AsPulled() { return View(setup_, "target", ""); }

  struct Pulled {
    EndState state = EndState::kInternal;
    std::string message;
    std::string notes;
  };

  // Pulls. If the pull is refused although nothing is damaged, because the
  // operator must name the WAL directory, names it and pulls again.
  Pulled Pull(PullMethod method) {
    const Pulled pulled = PullOnce(method, "");
    const bool is_asked = !wal_dir_.empty() && crash_.stale == 0 &&
                          crash_.damage == Damage::kNone &&
                          crash_.history.hides_sequences() &&
                          pulled.state == EndState::kRefused;
    return is_asked ? PullOnce(method, wal_dir_) : pulled;
  }

  bool has_target() const { return fs::exists(dir_ / "target"); }
  size_t wals() const { return wals_; }
  // Returns true if WALs with entries may be missing unnoticed: an empty WAL
  // beside the tables looks the same as one that was made by an open without
  // wal_dir.
  bool may_lack_wals() const {
    return crash_.damage == Damage::kWalsBeside && !wal_dir_.empty() &&
           newest_wal_bytes_ <= kMostMetaBytes;
  }
  int cut_lives() const { return cut_lives_; }

 private:
  Pulled PullOnce(PullMethod method, const std::string& wal_dir) {
    const std::string before = Print();
    const int code = RunForked(
        [&] { return PullInto(method, wal_dir, dir_ / "pulled"); });
    RC_ASSERT(Print() == before);
    Pulled pulled;
    pulled.message = "the pull died with " + std::to_string(code);
    std::ifstream in(dir_ / "pulled");
    int state = 0;
    if (code == 0 && in >> state) {
      pulled.state = static_cast<EndState>(state);
      std::getline(in, pulled.message);
      std::getline(in, pulled.message);
      std::getline(in, pulled.notes, '\0');
    }
    return pulled;
  }

  static int RunQuietly(const std::function<void()>& work) {
    return RunForked([&] {
      const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
      dup2(null, STDERR_FILENO);
      work();
      return 0;
    });
  }

  std::string WalPlace() const {
    return wal_dir_.empty() ? dir_ / "source" : wal_dir_;
  }

  // Moves or removes the WALs of wal_dir. A checkpoint has its WALs beside its
  // tables; other copies forget them.
  void LoseWalDir(const std::vector<fs::path>& wals) {
    if (wal_dir_.empty()) {
      return;
    }
    if (crash_.damage == Damage::kWalsBeside) {
      for (const fs::path& wal : wals) {
        fs::copy(wal, dir_ / "source");
      }
    }
    fs::remove_all(wal_dir_);
  }

  // Leaves a WAL beside the tables: an old one, or one with the number of a
  // needed WAL. Does nothing if the last needed WAL is missing in wal_dir,
  // because then the directory would be a valid checkpoint.
  void LeaveStaleLogs(const std::vector<fs::path>& wals) {
    const fs::path& like = wals[crash_.which % wals.size()];
    const std::string name =
        crash_.stale == 1 ? "000003.log" : like.filename().string();
    if (!wal_dir_.empty() && crash_.stale > 0 &&
        crash_.damage != Damage::kMissing) {
      fs::copy_file(like, fs::path(dir_ / "source") / name);
    }
  }

  void DamageWals(const std::vector<fs::path>& wals) {
    if (crash_.damage == Damage::kNone) {
      return;
    }
    const bool older = crash_.damage == Damage::kTornOlder && wals.size() > 1;
    const fs::path& wal =
        crash_.damage == Damage::kTornNewest ? wals.back()
        : older ? wals[crash_.which % (wals.size() - 1)]
                : wals[crash_.which % wals.size()];
    const uint64_t size = fs::file_size(wal);
    if (crash_.damage == Damage::kMissing) {
      fs::remove(wal);
    } else if (size > 0 && crash_.damage == Damage::kFlipped) {
      std::fstream file(wal, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(crash_.where % size));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(crash_.where % size));
      file.put(static_cast<char>(byte ^ 0x10));
    } else if (size > 0) {
      fs::resize_file(wal, crash_.where % size);
    }
  }

  AppView View(const AppSetup& setup, const std::string& name,
               const std::string& wals) {
    const std::string file = dir_ / (name + " view");
    // If RocksDB fails an assertion, the database counts as one that does not
    // open.
    RunQuietly([&] { WriteView(setup, dir_ / name, wals, file); });
    return ReadView(file);
  }

  int PullInto(PullMethod method, const std::string& wal_dir,
               const std::string& file) {
    PullOptions options;
    options.wal_dir = wal_dir;
    options.method = method;
    options.source.directory = dir_ / "source";
    options.target_dir = dir_ / "target";
    options.snapshot_ttl = std::chrono::seconds(0);
    options.durability = Durability::kNone;
    options.lanes = 1;
    Summary summary;
    const rocksdb::Status status = MakePull(options)->Run(&summary);
    std::ofstream out(file);
    out << static_cast<int>(status.ok() ? EndState::kOk : EndStateOf(status))
        << "\n" << MessageOf(status) << "\n";
    for (const std::string& note : summary.notes) {
      out << note << "\n";
    }
    return 0;
  }

  std::string Print() const {
    return Fingerprint(dir_ / "source") +
           (!wal_dir_.empty() && fs::exists(wal_dir_) ? Fingerprint(wal_dir_)
                                                      : "");
  }

  const Crash& crash_;
  const AppSetup& setup_;
  const ScratchDir dir_;
  const std::string wal_dir_;
  // Maximum size of a WAL that has only records about itself.
  static constexpr uint64_t kMostMetaBytes = 32;
  size_t wals_ = 0;
  uint64_t newest_wal_bytes_ = 0;
  int cut_lives_ = 0;
};

bool IsRefusal(EndState state) {
  return state == EndState::kRefused || state == EndState::kIncompatible ||
         state == EndState::kCorrupt || state == EndState::kSourceError;
}

// Returns true if a pull must be equal to the source, because nothing is
// damaged and no transaction is prepared.
bool MustBeEqual(const Crash& crash, const AppView& recovered) {
  const AppKind kind = crash.history.setup.kind;
  const bool has_stale =
      crash.stale > 0 && crash.history.setup.has_wal_dir;
  return ((crash.damage == Damage::kNone && !has_stale) ||
          crash.damage == Damage::kWalsBeside) &&
         !recovered.died && recovered.error.empty() &&
         recovered.prepared.empty() &&
         (kind == AppKind::kPlain || kind == AppKind::kWriteCommitted ||
          (kind == AppKind::kTtl && !crash.history.merges()));
}

constexpr char kHistories[] = "child: crashed applications";
constexpr char kClonedHistories[] = "child: cloned crashed applications";

// Requires that a clone of a database that the application can open shows the
// same, transactions included. A database that the application cannot open may
// be cloned, because the clone is equally damaged. Returns true if both open
// and are equal.
bool CheckClone(const Crash& crash, CrashedSource* source) {
  const AppView recovered = source->AsRecovered();
  const CrashedSource::Pulled pulled = source->Pull(PullMethod::kClone);
  const std::string told = std::string(EndStateName(pulled.state)) + ": " +
                           pulled.message + "\n" + pulled.notes;
  const bool opens = recovered.error.empty() && !recovered.died;
  if (pulled.state != EndState::kOk) {
    const bool sound = crash.damage == Damage::kNone &&
                       (crash.stale == 0 || !crash.history.setup.has_wal_dir);
    if (!IsRefusal(pulled.state) || pulled.message.empty()) {
      RC_FAIL("no refusal: " + told);
    }
    RC_ASSERT(!source->has_target());
    if (sound && opens) {
      RC_FAIL("refused without need: " + told);
    }
    return false;
  }
  const AppView found = source->AsPulled();
  if (!opens) {
    return false;
  }
  if (found.died || !found.error.empty()) {
    RC_FAIL("the clone does not open: " + found.error + "\n" + told);
  }
  const std::string difference = Difference(recovered, found);
  if (!difference.empty()) {
    RC_FAIL(difference + "\n" + told);
  }
  RC_ASSERT(found.prepared == recovered.prepared);
  return true;
}

}  // namespace

TEST_CASE("A clone has what a crashed application would recover, with its "
          "prepared transactions",
          "[transfer][exact][clone]") {
  Process histories(CaseOfThisProgram(kClonedHistories));
  const int code = histories.Wait(std::chrono::hours(12));
  std::cerr << histories.err();
  INFO(histories.out());
  REQUIRE(code == 0);
}

TEST_CASE(kClonedHistories, "[.child]") {
  const int histories = HistoryCount(100);
  std::map<std::string, int> equal;
  const auto play = [&] {
    const Crash crash = *CrashGen();
    CrashedSource source(crash);
    source.Play();
    equal[AppKindName(crash.history.setup.kind)] +=
        CheckClone(crash, &source) ? 1 : 0;
  };
  const bool received =
      CheckHistories("what is recovered is cloned", histories, 60, play);
  int all = 0;
  for (const auto& [kind, count] : equal) {
    std::cerr << kind << ": " << count << " equal\n";
    REQUIRE(count > 0);
    all += count;
  }
  REQUIRE(received);
  REQUIRE(2 * all > histories);
}

TEST_CASE("A pull delivers what a crashed application would recover, or is "
          "refused",
          "[transfer][exact]") {
  // Runs in a process without threads, because the test forks.
  Process histories(CaseOfThisProgram(kHistories));
  const int code = histories.Wait(std::chrono::hours(12));
  std::cerr << histories.err();
  INFO(histories.out());
  REQUIRE(code == 0);
}

TEST_CASE(kHistories, "[.child]") {
  const int histories = HistoryCount(100);
  std::map<std::string, std::map<std::string, int>> ended;
  std::map<std::string, int> refusals;
  size_t most_wals = 0;
  int cut_lives = 0;
  const auto play = [&] {
    const Crash crash = *CrashGen();
    CrashedSource source(crash);
    source.Play();
    most_wals = std::max(most_wals, source.wals());
    cut_lives += source.cut_lives();
    const AppView recovered = source.AsRecovered();
    const CrashedSource::Pulled pulled = source.Pull(PullMethod::kIngest);
    const std::string group =
        std::string(AppKindName(crash.history.setup.kind)) + ", " +
        kDamageNames[static_cast<int>(crash.damage)];
    const std::string told = std::string(EndStateName(pulled.state)) + ": " +
                             pulled.message + "\n" + pulled.notes;
    if (pulled.state != EndState::kOk) {
      const bool opens = recovered.error.empty() && !recovered.died;
      ++ended[group][opens ? "refused" : "not openable"];
      if (!IsRefusal(pulled.state) || pulled.message.empty()) {
        RC_FAIL("no refusal: " + told);
      }
      RC_ASSERT(!source.has_target());
      if (MustBeEqual(crash, recovered) && !source.may_lack_wals()) {
        RC_FAIL("refused without need: " + told);
      }
      ++refusals[std::string(EndStateName(pulled.state))];
      return;
    }
    if (recovered.died) {
      ++ended[group]["moved, not openable"];
      return;
    }
    if (!recovered.error.empty()) {
      RC_FAIL("the application cannot open it: " + recovered.error);
    }
    if (!recovered.prepared.empty() &&
        pulled.notes.find("prepared") == std::string::npos) {
      RC_FAIL("transactions are prepared, and no note says so: " + told);
    }
    const AppView found = source.AsPulled();
    if (found.died || !found.error.empty()) {
      RC_FAIL("the target does not open: " + found.error);
    }
    const std::string difference = Difference(recovered, found);
    if (!difference.empty()) {
      RC_FAIL(difference + "\n" + told);
    }
    ++ended[group][recovered.prepared.empty() ? "equal" : "equal but prepared"];
  };
  const bool received =
      CheckHistories("what is recovered is pulled", histories, 60, play);
  int equal = 0;
  for (const auto& [group, counts] : ended) {
    std::cerr << group << ":";
    for (const auto& [end, count] : counts) {
      std::cerr << " " << count << " " << end;
      equal += end == "equal" ? count : 0;
    }
    std::cerr << "\n";
  }
  for (const auto& [state, count] : refusals) {
    std::cerr << state << " " << count << "\n";
  }
  std::cerr << "at most " << most_wals << " WALs; " << cut_lives
            << " lives were ended by RocksDB\n";
  REQUIRE(received);
  // If all pulls were refused, the test would prove nothing.
  REQUIRE(4 * equal > histories);
  REQUIRE(most_wals > 2);
}

}  // namespace sstferry::test::recovery_oracle_test
