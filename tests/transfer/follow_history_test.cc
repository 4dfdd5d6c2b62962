// Follows applications that write, crash, lose power and live again, with
// databases of all kinds: after every round the standby is exactly what
// RocksDB recovers from a copy of the source that was made at that moment.
// (tests/support/random_histories.h says how many histories.)
#include <fcntl.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include "format/codec.h"
#include "format/end_state.h"
#include "pipeline/follow/followed_source.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot.h"
#include "tests/support/catch.h"
#include "tests/support/crashing_application.h"
#include "tests/support/forked.h"
#include "tests/support/process.h"
#include "tests/support/random_histories.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

// What the follower does before a step of the application.
enum class Visit : uint8_t {
  kNone,
  kFollow,  // to the end of what is there
  kRace,    // a round, while the application takes its steps up to the next
};

struct FollowedHistory {
  AppHistory history;
  std::vector<uint32_t> visits;  // used in turn, one for each step
  std::vector<uint32_t> torn;    // bytes that a power cut takes, one for a life
};

void showValue(const FollowedHistory& followed, std::ostream& os) {
  showValue(followed.history, os);
  os << "\n  visits";
  for (const uint32_t visit : followed.visits) os << " " << visit;
  os << "\n  torn";
  for (const uint32_t torn : followed.torn) os << " " << torn;
}

rc::Gen<FollowedHistory> FollowedHistoryGen() {
  return rc::gen::build<FollowedHistory>(
      rc::gen::set(&FollowedHistory::history, AppHistoryGen(true)),
      rc::gen::set(&FollowedHistory::visits,
                   rc::gen::container<std::vector<uint32_t>>(
                       31, Below(100))),
      rc::gen::set(&FollowedHistory::torn,
                   rc::gen::container<std::vector<uint32_t>>(
                       5, Below(4000))));
}

Visit VisitOf(uint32_t number) {
  return number < 70   ? Visit::kNone
         : number < 85 ? Visit::kFollow
                       : Visit::kRace;
}

void BeQuiet() {
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDERR_FILENO);
}

// One life of the application, in a process that waits before some steps until
// it is told to go on.
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
      close(to_parent[0]);
      close(to_child[1]);
      for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
        signal(number, SIG_DFL);
      }
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

  // Blocks until the application waits; kNone: it is gone.
  Visit Await() {
    char byte = 0;
    return read(from_, &byte, 1) == 1 ? VisitOf(static_cast<uint32_t>(byte))
                                      : Visit::kNone;
  }
  void Go() {
    const char byte = 0;
    if (write(to_, &byte, 1) != 1) {
      // It is gone; Await() says so.
    }
  }
  // With the process standing still, also its threads that compact.
  void Still(const std::function<void()>& work) {
    int status = 0;
    kill(pid_, SIGSTOP);
    waitpid(pid_, &status, WUNTRACED);
    work();
    kill(pid_, SIGCONT);
  }
  // Kills it, if it still lives.
  void End() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      int status = 0;
      waitpid(pid_, &status, 0);
      pid_ = 0;
    }
  }
  // Waits for its end.
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
  int rounds = 0;                   // that brought bytes
  int compared = 0;
  int refused = 0;
  int not_openable = 0;
  int races_won = 0;  // a race whose round counted
};

class FollowedApplication {
 public:
  FollowedApplication(const FollowedHistory& followed, Counts* counts)
      : followed_(followed),
        setup_(followed.history.setup),
        wal_dir_(setup_.has_wal_dir ? dir_ / "wals" : ""),
        counts_(counts) {
    fs::create_directories(dir_ / "source");
    if (!wal_dir_.empty()) fs::create_directories(wal_dir_);
    request_.exact_filters = true;
  }

  void Play() {
    for (size_t life = 0; life < followed_.history.lives.size(); ++life) {
      PlayOne(followed_.history.lives[life]);
      if (refused_) return;
      Compare("after a life");
      // A power cut takes the end of the newest WAL.
      if (!followed_.history.lives[life].ends_well) {
        Tear(followed_.torn[life % followed_.torn.size()]);
        Compare("after a power cut");
      }
    }
  }

 private:
  void PlayOne(const AppLife& life) {
    PlayedLife played(followed_, life, dir_ / "source", wal_dir_);
    for (Visit visit = played.Await(); visit != Visit::kNone && !refused_;) {
      if (visit == Visit::kFollow) {
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

  // Lets the application go on between the reading of W and of M.
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
    const Status status = source_->Answer(request_, &found, &round);
    RC_ASSERT(status.ok());
    if (!refused_ && standby_ > 0 && round.end.cut == CutReason::kNone &&
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

  // Follows to the end of what is there. Two rounds must find nothing: what a
  // table has and no WAL shows only in the round behind that of its flush.
  void Follow() {
    int nothing = 0;
    for (int i = 0; i < 20 && !refused_; ++i) {
      if (!fs::exists(dir_ / "source/CURRENT")) {
        return;  // it died before it had a database
      }
      ReadRound();
      if (refused_) return;
      Round round;
      FollowedSource::Found found;
      const Status status = source_->Answer(request_, &found, &round);
      if (!status.ok()) RC_FAIL("answer: " + status.ToString());
      if (found == FollowedSource::Found::kNothing) {
        if (++nothing == 2) return;
        continue;
      }
      nothing = 0;
      if (found == FollowedSource::Found::kAhead) {
        round.end.cut = CutReason::kNewLife;
      }
      if (round.end.cut == CutReason::kNone) {
        Apply(round);
      } else {
        ++counts_->cuts[CutReasonName(round.end.cut)];
        if (!TakeCut()) return;
      }
    }
    if (!refused_) RC_FAIL("it never ends");
  }

  std::string Standby() const {
    return dir_ / ("standby" + std::to_string(standby_));
  }

  // The cut, in a process of its own. False: there is none.
  bool TakeCut() {
    const std::string next = dir_ / ("standby" + std::to_string(standby_ + 1));
    const std::string told = dir_ / "cut";
    const int code = RunForked([&] {
      SnapshotOptions options;
      options.database_dir = fs::canonical(dir_ / "source");
      options.as_files = true;
      options.options_patience = std::chrono::milliseconds(0);
      std::unique_ptr<Snapshot> snapshot;
      FollowRequest request;
      request.exact_filters = true;
      Status status = Snapshot::Create(options, &snapshot);
      if (status.ok()) {
        const std::string from = snapshot->own_path() + "/db";
        status = PositionOfCut(snapshot->files()->files, from,
                               &request.position);
        fs::create_directories(next);
        for (const CloneFile& file : snapshot->files()->files) {
          fs::copy(fs::path(from) / CloneFileName(file), next);
        }
      }
      std::string bytes;
      Encode(request, &bytes);
      std::ofstream out(told, std::ios::binary);
      out << (status.ok() ? bytes : status.ToString());
      out.close();
      const EndState state = status.ok() ? EndState::kOk : EndStateOf(status);
      return static_cast<int>(state);
    });
    std::ifstream in(told, std::ios::binary);
    const std::string bytes = BytesIn(in);
    if (code != 0) {
      message_ = bytes;
      refused_ = true;
      return false;
    }
    RC_ASSERT(Decode(bytes, &request_).ok());
    if (standby_ > 0) fs::remove_all(Standby());
    ++standby_;
    // What follows begins behind the last whole record.
    const fs::path wal = WalOf(request_.position.wal_number);
    if (fs::exists(wal)) fs::resize_file(wal, request_.position.wal_bytes);
    return true;
  }

  fs::path WalOf(uint64_t number) const {
    CloneFile file;
    file.kind = CloneFileKind::kWal;
    file.number = number;
    return fs::path(Standby()) / CloneFileName(file);
  }

  void Apply(const Round& round) {
    for (const LogBytes& log : round.logs) {
      const fs::path wal = WalOf(log.wal_number);
      const uint64_t bytes = fs::exists(wal) ? fs::file_size(wal) : 0;
      RC_ASSERT(bytes == log.offset_bytes);
      std::ofstream out(wal, std::ios::binary | std::ios::app);
      out << log.bytes;
      request_.position.wal_number = log.wal_number;
      request_.position.wal_bytes = log.offset_bytes + log.bytes.size();
    }
    counts_->rounds += round.logs.empty() ? 0 : 1;
  }

  void Compare(const std::string& when) {
    Follow();
    if (refused_) return;
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
    if (refused_ || standby_ == 0) return;
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
    fs::copy(Standby(), dir_ / "promoted");
    std::ofstream(dir_ / "promoted/CURRENT")
        << ManifestName(request_.position.manifest_number) << "\n";
    const AppView found = View("promoted", "");
    ++counts_->compared;
    if (found.died || !found.error.empty()) {
      RC_FAIL(when + ": the standby does not open: " + found.error);
    }
    const std::string difference = Difference(expected, found);
    if (!difference.empty()) RC_FAIL(when + ": " + difference);
    RC_ASSERT(found.prepared == expected.prepared);
  }

  static std::string ManifestName(uint64_t number) {
    CloneFile file;
    file.kind = CloneFileKind::kManifest;
    file.number = number;
    return CloneFileName(file);
  }

  AppView View(const std::string& name, const std::string& wals) {
    const std::string file = dir_ / (name + " view");
    fs::remove(file);
    // A RocksDB that asserts is a database that does not open.
    RunForked([&] {
      BeQuiet();
      WriteView(setup_, dir_ / name, wals, file);
      return 0;
    });
    return ReadView(file);
  }

  void Tear(uint32_t bytes) {
    std::map<uint64_t, fs::path> wals;
    for (const auto& entry : fs::directory_iterator(
             wal_dir_.empty() ? dir_ / "source" : wal_dir_)) {
      if (entry.path().extension() == ".log") {
        wals[std::stoull(entry.path().stem())] = entry.path();
      }
    }
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
  FollowRequest request_;
  int standby_ = 0;  // number of the last cut
  bool refused_ = false;
  std::string message_;
};

constexpr char kHistories[] = "child: followed applications";

}  // namespace

TEST_CASE("A standby is after every round what its source would recover",
          "[transfer][exact][follow]") {
  // A process without threads, which can fork.
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
            << counts.not_openable << " not openable\n";
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

}  // namespace sstferry::test
