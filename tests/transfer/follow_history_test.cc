// Random histories: a follower follows applications that write, crash, lose
// power and start again, with databases of all kinds. After every round, the
// standby must be exactly what RocksDB recovers from a copy of the source of
// that moment. If the source is replaced by an older copy or by a new database,
// all that the standby had is in the next standby or in a directory beside it.
// (tests/support/random_histories.h explains the environment variables.)
#include <fcntl.h>
#include <rapidcheck.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "format/end_state.h"
#include "pipeline/disk/durable.h"
#include "pipeline/follow/followed_source.h"
#include "pipeline/follow/standby.h"
#include "tests/support/catch.h"
#include "tests/support/crashing_application.h"
#include "tests/support/forked.h"
#include "tests/support/process.h"
#include "tests/support/random_histories.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::follow_history_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr rlim_t kCpuSeconds = 30;  // for one run of the application

// The follower's action before a step of the application.
enum class Visit : uint8_t {
  kNone,
  kFollow,  // until it has all records of the source
  kRace,    // a round during the steps up to the next visit
  kCut,     // a due cut during these steps, with their records
};

struct FollowedHistory {
  AppHistory history;
  std::vector<uint32_t> visits;  // used in turn, one for each step
  std::vector<uint32_t> torn;    // bytes that a power cut removes, per life
  std::vector<uint32_t> fates;   // changes of the directory, per life
};

// A change of the source's directory while no application has it open.
enum class Fate : uint8_t {
  kNothing,
  kSaved,     // copied
  kRestored,  // replaced by the last copy
  kMadeAnew,  // removed; the next life starts without a database
  kMoved,     // replaced by a copy of itself
  kWalAhead,  // gets an empty WAL file with the next number
};

void showValue(const FollowedHistory& followed, std::ostream& os) {
  showValue(followed.history, os);
  os << "\n  visits";
  for (const uint32_t visit : followed.visits) os << " " << visit;
  os << "\n  torn";
  for (const uint32_t torn : followed.torn) os << " " << torn;
  os << "\n  fates";
  for (const uint32_t fate : followed.fates) os << " " << fate;
}

rc::Gen<FollowedHistory> FollowedHistoryGen() {
  return rc::gen::build<FollowedHistory>(
      rc::gen::set(&FollowedHistory::history, AppHistoryGen(true)),
      rc::gen::set(&FollowedHistory::visits,
                   rc::gen::container<std::vector<uint32_t>>(
                       31, Below(100))),
      rc::gen::set(&FollowedHistory::torn,
                   rc::gen::container<std::vector<uint32_t>>(
                       5, Below(4000))),
      rc::gen::set(&FollowedHistory::fates,
                   rc::gen::container<std::vector<uint32_t>>(
                       5, Below(100))));
}

Fate FateOf(uint32_t number) {
  return number < 40   ? Fate::kNothing
         : number < 60 ? Fate::kSaved
         : number < 75 ? Fate::kRestored
         : number < 80 ? Fate::kMadeAnew
         : number < 90 ? Fate::kMoved
                       : Fate::kWalAhead;
}

Visit VisitOf(uint32_t number) {
  return number < 70   ? Visit::kNone
         : number < 82 ? Visit::kFollow
         : number < 94 ? Visit::kRace
                       : Visit::kCut;
}

void BeQuiet() {
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDERR_FILENO);
}

// A process that runs one life of the application. Before some steps it waits
// until Go().
class PlayedLife {
 public:
  PlayedLife(const FollowedHistory& followed, const AppLife& life,
             const std::string& dir, const std::string& wal_dir) {
    int to_parent[2];
    int to_child[2];
    if (pipe2(to_parent, O_CLOEXEC) != 0 || pipe2(to_child, O_CLOEXEC) != 0) {
      std::abort();
    }
    fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      // Closes all descriptors, because the standby's lock is held as long as a
      // descriptor of it is open.
      for (int number = 3; number < 1024; ++number) {
        if (number != to_parent[1] && number != to_child[0]) close(number);
      }
      for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
        signal(number, SIG_DFL);
      }
      // RocksDB 7.8.3 reads some damaged WALs in an endless loop.
      const rlimit limit{kCpuSeconds, kCpuSeconds + 1};
      setrlimit(RLIMIT_CPU, &limit);
      alarm(600);
      BeQuiet();
      PlayLife(followed.history.setup, life, dir, wal_dir, [&](size_t step) {
        const uint32_t number = followed.visits[step % followed.visits.size()];
        char byte = static_cast<char>(number);
        if (VisitOf(number) != Visit::kNone &&
            (write(to_parent[1], &byte, 1) != 1 ||
             read(to_child[0], &byte, 1) != 1)) {
          _exit(0);
        }
      });
    }
    close(to_parent[1]);
    close(to_child[0]);
    from_ = to_parent[0];
    to_ = to_child[1];
  }
  ~PlayedLife() {
    End();
    close(from_);
    close(to_);
  }
  PlayedLife(const PlayedLife&) = delete;
  PlayedLife& operator=(const PlayedLife&) = delete;

  // Blocks until the application waits. Returns kNone if its process has ended.
  Visit Await() {
    char byte = 0;
    return read(from_, &byte, 1) == 1 ? VisitOf(static_cast<uint32_t>(byte))
                                      : Visit::kNone;
  }
  void Go() {
    const char byte = 0;
    if (write(to_, &byte, 1) != 1) {
      // The process has ended, which Await() reports.
    }
  }
  // Calls `work` while all threads of the process are stopped, including its
  // compactions.
  void Still(const std::function<void()>& work) {
    int status = 0;
    kill(pid_, SIGSTOP);
    waitpid(pid_, &status, WUNTRACED);
    work();
    kill(pid_, SIGCONT);
  }
  // Kills the process if it still runs.
  void End() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      int status = 0;
      waitpid(pid_, &status, 0);
      pid_ = 0;
    }
  }
  // Waits for the end of the process.
  void Finish() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int from_ = -1;
  int to_ = -1;
};

struct Counts {
  std::map<std::string, int> cuts;  // by reason
  int rounds = 0;                   // with new bytes
  int compared = 0;
  int refused = 0;
  int not_openable = 0;
  int races_won = 0;  // rounds of races that were applied
  int carried = 0;    // cuts to which records were appended
  int kept = 0;       // cuts that kept old WALs beside the standby
  int lost = 0;       // cuts that kept an old standby as a database
  std::map<Fate, int> fates;
};

class FollowedApplication {
 public:
  FollowedApplication(const FollowedHistory& followed, Counts* counts)
      : followed_(followed),
        setup_(followed.history.setup),
        wal_dir_(setup_.has_wal_dir ? dir_ / "wals" : ""),
        counts_(counts) {
    fs::create_directories(dir_ / "source");
    fs::create_directories(dir_ / "disk");
    OpenStandby();
    if (!wal_dir_.empty()) fs::create_directories(wal_dir_);
  }

  void Play() {
    for (size_t life = 0; life < followed_.history.lives.size(); ++life) {
      PlayOne(followed_.history.lives[life]);
      if (refused_) return;
      Compare("after a life");
      // A power cut removes the end of the newest WAL.
      if (!followed_.history.lives[life].ends_well) {
        Tear(followed_.torn[life % followed_.torn.size()]);
        Compare("after a power cut");
      }
      if (refused_) return;
      const Fate fate = FateOf(followed_.fates[life % followed_.fates.size()]);
      Remember(fate);
      if (Suffer(fate)) {
        ++counts_->fates[fate];
        Compare("after its directory had fate " +
                std::to_string(static_cast<int>(fate)));
      }
    }
  }

 private:
  // What the standby had before its source was replaced by something older.
  struct Had {
    AppView view;
    uint64_t cut = 0;       // sequence of its last cut
    uint64_t received = 0;  // sequence of its last record
    uint64_t common = 0;    // up to here, the source has the same records
  };

  // Remembers what the standby has, if this fate replaces the source. The
  // standby has just received everything.
  void Remember(Fate fate) {
    had_.reset();
    if (!fs::exists(dir_ / "source/CURRENT") || !standby_->exists()) return;
    const uint64_t received = standby_->received().last_sequence;
    common_with_saved_ = std::min(common_with_saved_, received);
    if (fate == Fate::kSaved || !fs::exists(dir_ / "saved")) {
      common_with_saved_ = received;
    }
    if (fate != Fate::kRestored && fate != Fate::kMadeAnew) return;
    const bool is_new = fate == Fate::kMadeAnew;
    had_.emplace();
    had_->common = is_new ? 0 : common_with_saved_;
    had_->received = received;
    had_->cut = standby_->record().sequence;
    if (is_new) common_with_saved_ = 0;
    fs::remove_all(dir_ / "had");
    fs::copy(dir(), dir_ / "had");
    const Status promoted =
        PromoteIn(dir_ / "had", rocksdb::FileSystem::Default().get());
    if (!promoted.ok()) RC_FAIL("promote: " + promoted.ToString());
    had_->view = View("had", "");
  }

  // Requires, after a cut, that nothing is lost of what was remembered.
  void RequireNothingLost(const FollowFile& before, const FollowFile& now) {
    if (!had_.has_value()) return;
    const Had had = *std::exchange(had_, std::nullopt);
    if (had.common >= had.received) return;
    RC_ASSERT(now.lost_dir != before.lost_dir ||
              now.unproven_dirs != before.unproven_dirs);
    if (had.common >= had.cut) return;  // all of it is in WALs
    RC_ASSERT(now.lost_dir != before.lost_dir);
    RC_ASSERT(fs::exists(now.lost_dir + "/CURRENT"));
    fs::remove_all(dir_ / "lost");
    fs::copy(now.lost_dir, dir_ / "lost");
    const AppView found = View("lost", "");
    if (had.view.died || !had.view.error.empty()) return;
    ++counts_->lost;
    const std::string difference = Difference(had.view, found);
    if (!difference.empty()) RC_FAIL("lost: " + difference);
    RC_ASSERT(found.prepared == had.view.prepared);
  }

  void PlayOne(const AppLife& life) {
    PlayedLife played(followed_, life, dir_ / "source", wal_dir_);
    for (Visit visit = played.Await(); visit != Visit::kNone && !refused_;) {
      if (visit == Visit::kCut) {
        visit = CutMeanwhile(&played);
      } else if (visit == Visit::kFollow) {
        Follow();
        played.Still([&] { CopySource(); });
        CompareWithCopy("while it lives");
        played.Go();
        visit = played.Await();
      } else {
        visit = Race(&played);
      }
    }
    if (refused_) {
      played.End();
    } else {
      played.Finish();
    }
  }

  // Lets the application continue after the round has read the WALs and before
  // it reads the MANIFEST.
  Visit Race(PlayedLife* played) {
    Follow();
    if (refused_) return Visit::kNone;
    played->Still([&] { CopySource(); });
    Visit next = Visit::kNone;
    bool went = false;
    between_ = [&] {
      if (!std::exchange(went, true)) {
        played->Go();
        next = played->Await();
      }
    };
    ReadRound();
    between_ = nullptr;
    if (!went) {  // the source could not be read
      played->Go();
      next = played->Await();
    }
    Round round;
    FollowedSource::Found found;
    const Status status = source_->Answer(Request(), &found, &round);
    RC_ASSERT(status.ok());
    if (!refused_ && standby_->exists() &&
        round.end.cut == CutReason::kNone &&
        found != FollowedSource::Found::kAhead) {
      Apply(round);
      ++counts_->races_won;
      CompareWithCopy("in a race");
    }
    return next;
  }

  void ReadRound() {
    if (source_ == nullptr) {
      FollowedSourceOptions options;
      options.database_dir = fs::canonical(dir_ / "source");
      options.wal_dir = AskedWalDir();
      options.wals_read = [this] {
        if (between_) between_();
      };
      source_ = std::make_unique<FollowedSource>(options);
    }
    bool more = true;
    while (more && !refused_) {
      const Status status = source_->ReadRound(true, &more);
      if (!status.ok()) {
        if (EndStateOf(status) != EndState::kRefused &&
            EndStateOf(status) != EndState::kSourceError) {
          RC_FAIL("reading: " + status.ToString());
        }
        message_ = status.ToString();
        refused_ = EndStateOf(status) == EndState::kRefused;
        return;
      }
    }
  }

  // Follows until two rounds in a row find nothing. One is not enough: entries
  // that a flushed table has and no WAL has are found only in the round after
  // the flush.
  void Follow() {
    int nothing = 0;
    std::string cuts;
    for (int i = 0; i < 20 && !refused_; ++i) {
      if (!fs::exists(dir_ / "source/CURRENT")) {
        return;  // crashed before it had made a database
      }
      ReadRound();
      if (refused_) return;
      Round round;
      FollowedSource::Found found;
      const Status status = source_->Answer(Request(), &found, &round);
      if (!status.ok()) RC_FAIL("answer: " + status.ToString());
      if (found == FollowedSource::Found::kNothing) {
        if (++nothing == 2) return;
        continue;
      }
      nothing = 0;
      if (found == FollowedSource::Found::kAhead) {
        round.end.cut = CutReason::kNewLife;
      }
      Gap gap = {round.end.cut, round.end.note};
      if (gap.reason == CutReason::kNone) {
        Apply(round);
        gap = standby_->gap();
      }
      if (gap.reason != CutReason::kNone) {
        ++counts_->cuts[CutReasonName(gap.reason)];
        cuts += std::string(" ") + CutReasonName(gap.reason) + " (" +
                gap.note + ")";
        if (!TakeCut(gap.reason)) return;
      }
    }
    if (!refused_) RC_FAIL("it never ends; cuts:" + cuts);
  }

  std::string dir() const { return dir_ / "disk/standby"; }

  // Returns the WAL directory if an operator may have to name it.
  std::string AskedWalDir() const {
    return followed_.history.hides_sequences() ? wal_dir_ : "";
  }

  FollowRequest Request() const {
    FollowRequest request;
    request.position = standby_->position();
    request.exact_filters = true;
    return request;
  }

  void OpenStandby() {
    standby_.reset();
    const Status status =
        Standby::Open(dir(), rocksdb::FileSystem::Default(), &standby_);
    if (!status.ok()) RC_FAIL("opening the standby: " + status.ToString());
  }

  // Takes a cut in another process, because a cut needs threads. There, calls
  // `meanwhile` with the cut's standby before the standby is published. *told:
  // the bytes that `meanwhile` returned, or an error.
  EndState CutApart(CutReason reason,
                    const std::function<std::string(Standby*)>& meanwhile,
                    std::string* told) {
    const std::string file = dir_ / "cut";
    fs::remove(file);
    standby_.reset();
    const int code = RunForked([&] {
      BeQuiet();
      std::unique_ptr<Standby> standby;
      Status status =
          Standby::Open(dir(), rocksdb::FileSystem::Default(), &standby);
      std::string text;
      TEST_SetFaultHook([&](const std::string& name) {
        if (name == "Puller:TotalsAgreed" && meanwhile != nullptr) {
          text = meanwhile(standby.get());
        }
      });
      if (status.ok()) {
        PullOptions options;
        options.source.directory = fs::canonical(dir_ / "source");
        options.wal_dir = AskedWalDir();
        options.target_dir = dir();
        options.lanes = 1;
        options.full_rate = true;  // full speed on a busy machine, too
        options.adopt = true;  // a source that is made anew is another database
        status = CutStandby(options, {reason}, standby.get());
      }
      std::ofstream(file, std::ios::binary)
          << text << (status.ok() ? "" : status.ToString());
      return status.ok() ? 0 : static_cast<int>(EndStateOf(status));
    });
    std::ifstream in(file, std::ios::binary);
    *told = BytesIn(in);
    OpenStandby();
    return static_cast<EndState>(code);
  }

  // Takes a cut. Returns false if the source refuses it.
  bool TakeCut(CutReason reason) {
    const bool existed = standby_->exists();
    const FollowFile before = standby_->record();
    const EndState state = CutApart(reason, nullptr, &message_);
    refused_ = state != EndState::kOk;
    const FollowFile now = standby_->record();
    counts_->kept += existed && (now.lost_dir != before.lost_dir ||
                                 now.unproven_dirs != before.unproven_dirs);
    if (!refused_) RequireNothingLost(before, now);
    return !refused_;
  }

  // Takes a due cut while the application takes its steps up to the next visit,
  // and appends the new records to the cut.
  Visit CutMeanwhile(PlayedLife* played) {
    Follow();
    if (refused_) return Visit::kNone;
    std::string told;
    if (standby_->exists()) {
      const EndState state = CutApart(
               CutReason::kCutEvery,
               [&](Standby* standby) {
                 played->Go();
                 std::string text(1, static_cast<char>(played->Await()));
                 ReadRound();  // the child's own copy of source_
                 Round round;
                 FollowedSource::Found found;
                 FollowRequest request;
                 request.position = standby->position();
                 request.exact_filters = true;
                 const bool has_round =
                     source_->Answer(request, &found, &round).ok() &&
                     found == FollowedSource::Found::kRound &&
                     round.end.cut == CutReason::kNone;
                 if (has_round &&
                     standby->Append(request.position, round).ok()) {
                   text += '+';
                 }
                 return text;
               },
               &told);
      // The source may have been opened again during the cut.
      if (state != EndState::kOk && state != EndState::kSourceError) {
        RC_FAIL("a cut meanwhile: " + told);
      }
    }
    if (told.empty() || told[0] > static_cast<char>(Visit::kCut)) {
      played->Go();  // `meanwhile` was not called
      return played->Await();
    }
    counts_->carried += told.size() == 2 && told[1] == '+';
    return static_cast<Visit>(told[0]);
  }

  void Apply(const Round& round) {
    const Status status = standby_->Append(standby_->position(), round);
    if (!status.ok()) RC_FAIL("append: " + status.ToString());
    if (++appended_ % 3 == 0 && !standby_->Sync().ok()) RC_FAIL("sync");
    counts_->rounds += round.logs.empty() ? 0 : 1;
  }

  void Compare(const std::string& when) {
    Follow();
    if (refused_ || !fs::exists(dir_ / "source/CURRENT")) return;
    CopySource();
    CompareWithCopy(when);
  }

  void CopySource() {
    fs::remove_all(dir_ / "copy");
    fs::remove_all(dir_ / "copy wals");
    fs::copy(dir_ / "source", dir_ / "copy", fs::copy_options::recursive);
    if (!wal_dir_.empty()) {
      fs::copy(wal_dir_, dir_ / "copy wals", fs::copy_options::recursive);
    }
  }

  void CompareWithCopy(const std::string& when) {
    if (refused_ || !standby_->exists()) return;
    fs::remove_all(dir_ / "recovered");
    fs::copy(dir_ / "copy", dir_ / "recovered", fs::copy_options::recursive);
    std::string wals;
    if (!wal_dir_.empty()) {
      wals = dir_ / "recovered wals";
      fs::remove_all(wals);
      fs::copy(dir_ / "copy wals", wals, fs::copy_options::recursive);
    }
    const AppView expected = View("recovered", wals);
    if (expected.died || !expected.error.empty()) {
      ++counts_->not_openable;
      return;
    }
    fs::remove_all(dir_ / "promoted");
    fs::copy(dir(), dir_ / "promoted");
    const Status promoted =
        PromoteIn(dir_ / "promoted", rocksdb::FileSystem::Default().get());
    if (!promoted.ok()) RC_FAIL("promote: " + promoted.ToString());
    const AppView found = View("promoted", "");
    ++counts_->compared;
    if (found.died || !found.error.empty()) {
      RC_FAIL(when + ": the standby does not open: " + found.error);
    }
    const std::string difference = Difference(expected, found);
    if (!difference.empty()) RC_FAIL(when + ": " + difference);
    RC_ASSERT(found.prepared == expected.prepared);
  }

  AppView View(const std::string& name, const std::string& wals) {
    const std::string file = dir_ / (name + " view");
    fs::remove(file);
    // If RocksDB fails an assertion, the database counts as one that does not
    // open.
    RunForked([&] {
      BeQuiet();
      WriteView(setup_, dir_ / name, wals, file);
      return 0;
    });
    return ReadView(file);
  }

  std::map<uint64_t, fs::path> Wals() const {
    std::map<uint64_t, fs::path> wals;
    for (const auto& entry : fs::directory_iterator(
             wal_dir_.empty() ? dir_ / "source" : wal_dir_)) {
      if (entry.path().extension() == ".log") {
        wals[std::stoull(entry.path().stem())] = entry.path();
      }
    }
    return wals;
  }

  // Makes `to` a copy of `from`, WALs included; both are names in dir_.
  void Replace(const std::string& from, const std::string& to) {
    for (const std::string wals : {"", " wals"}) {
      const std::string target =
          !wals.empty() && to == "source" ? wal_dir_ : dir_ / (to + wals);
      const std::string origin =
          !wals.empty() && from == "source" ? wal_dir_ : dir_ / (from + wals);
      if (!wals.empty() && wal_dir_.empty()) continue;
      fs::remove_all(target);
      fs::copy(origin, target, fs::copy_options::recursive);
    }
  }

  // Returns false if nothing happened.
  bool Suffer(Fate fate) {
    if (!fs::exists(dir_ / "source/CURRENT")) return false;
    if (!fs::exists(dir_ / "saved")) Replace("source", "saved");
    switch (fate) {
      case Fate::kNothing:
        return false;
      case Fate::kSaved:
        Replace("source", "saved");
        return true;
      case Fate::kRestored:
        Replace("saved", "source");
        return true;
      case Fate::kMadeAnew:
        fs::remove_all(dir_ / "source");
        fs::create_directories(dir_ / "source");
        if (!wal_dir_.empty()) {
          fs::remove_all(wal_dir_);
          fs::create_directories(wal_dir_);
        }
        return true;
      case Fate::kMoved:
        Replace("source", "moved");
        Replace("moved", "source");
        return true;
      case Fate::kWalAhead: {
        // Finds the highest number of all files: RocksDB never gives one number
        // to two files, whatever their kind.
        uint64_t newest = 0;
        for (const auto& entry : fs::directory_iterator(dir_ / "source")) {
          const std::string name = entry.path().filename();
          const size_t digits = name.starts_with("MANIFEST-") ? 9 : 0;
          if (isdigit(static_cast<unsigned char>(name[digits])) != 0) {
            newest = std::max<uint64_t>(newest, std::stoull(name.substr(digits)));
          }
        }
        const std::map<uint64_t, fs::path> wals = Wals();
        if (wals.empty()) return false;
        newest = std::max(newest, wals.rbegin()->first);
        char name[32];
        std::snprintf(name, sizeof name, "%06llu.log",
                      static_cast<unsigned long long>(newest + 1));
        std::ofstream(wals.rbegin()->second.parent_path() / name);
        return true;
      }
    }
    return false;
  }

  void Tear(uint32_t bytes) {
    const std::map<uint64_t, fs::path> wals = Wals();
    if (!wals.empty()) {
      const fs::path& newest = wals.rbegin()->second;
      const uint64_t size = fs::file_size(newest);
      fs::resize_file(newest, size - std::min<uint64_t>(size, bytes));
    }
  }

 public:
  bool refused() const { return refused_; }
  const std::string& message() const { return message_; }

 private:
  const FollowedHistory& followed_;
  const AppSetup& setup_;
  const ScratchDir dir_;
  const std::string wal_dir_;
  Counts* const counts_;
  std::unique_ptr<FollowedSource> source_;
  std::function<void()> between_;
  std::unique_ptr<Standby> standby_;
  std::optional<Had> had_;
  // The sequence up to which the saved copy and the source have the same
  // records.
  uint64_t common_with_saved_ = 0;
  int appended_ = 0;
  bool refused_ = false;
  std::string message_;
};

constexpr char kHistories[] = "child: followed applications";

}  // namespace

TEST_CASE("After every round, a standby is what its source would recover",
          "[transfer][exact][follow]") {
  // Runs in a process without threads, because the test forks.
  Process histories(CaseOfThisProgram(kHistories));
  const int code = histories.Wait(std::chrono::hours(12));
  std::cerr << histories.err();
  INFO(histories.out());
  REQUIRE(code == 0);
}

TEST_CASE(kHistories, "[.child]") {
  const int histories = HistoryCount(25);
  Counts counts;
  std::map<std::string, int> refused;
  const auto play = [&] {
    const FollowedHistory followed = *FollowedHistoryGen();
    FollowedApplication application(followed, &counts);
    application.Play();
    if (application.refused()) {
      ++refused[AppKindName(followed.history.setup.kind)];
      if (followed.history.setup.kind == AppKind::kPlain) {
        std::cerr << application.message() << "\n";
      }
    }
  };
  const bool held = CheckHistories("the standby is what the source recovers",
                                   histories, 60, play);
  std::cerr << counts.compared << " compared, " << counts.rounds
            << " rounds with bytes, " << counts.races_won << " races, "
            << counts.carried << " cuts meanwhile, " << counts.kept
            << " times WALs kept, " << counts.lost << " lost databases, "
            << counts.not_openable << " not openable\n";
  for (const auto& [fate, count] : counts.fates) {
    std::cerr << "fate " << static_cast<int>(fate) << ": " << count << "\n";
  }
  for (const auto& [reason, count] : counts.cuts) {
    std::cerr << "cuts, " << reason << ": " << count << "\n";
  }
  for (const auto& [kind, count] : refused) {
    std::cerr << "refused, " << kind << ": " << count << "\n";
  }
  REQUIRE(held);
  REQUIRE(counts.compared > histories);
  REQUIRE(counts.rounds > 0);
  REQUIRE(counts.races_won > 0);
  REQUIRE(refused.count(AppKindName(AppKind::kPlain)) == 0);
  REQUIRE(refused.count(AppKindName(AppKind::kWriteCommitted)) == 0);
}

}  // namespace sstferry::test::follow_history_test
