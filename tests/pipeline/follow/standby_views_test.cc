// Views of a standby: each shows one point in time, never changes, and stays
// long enough for its readers, even after crashes. Nothing else in DIR.view is
// changed.
//
// SSTFERRY_VIEW_SECONDS is the duration of the long stress test ("storm"),
// which also measures the standby's lag, with and without views.
#include "pipeline/follow/standby_views.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "format/end_state.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/health.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/gate.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::standby_views_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A standby with views. Only the test makes them.
class ViewsWorld : public StandbyWorld {
 public:
  ViewsWorld() {
    Write(100);
    source()->Flush();
    Write(20);
    REQUIRE_OK(Open());
    REQUIRE_OK(Cut());
    Write(5);
    REQUIRE_OK(Follow());
  }

  // Opens the views again, as a restarted follower does.
  rocksdb::Status OpenViews(milliseconds every = std::chrono::hours(1),
                            uint32_t keep = 2) {
    views_.reset();
    const rocksdb::Status status = StandbyViews::Open(
        {dir(), every, keep, rocksdb::FileSystem::Default(), nullptr},
        standby(), &views_);
    if (status.ok()) views_->SetConfirmed(true);
    return status;
  }
  // Writes and follows new records, and makes a view of them.
  std::string MakeView() {
    Write(3);
    REQUIRE_OK(Follow());
    bool made = false;
    REQUIRE_OK(views_->Make(&made));
    REQUIRE(made);
    return fs::canonical(current());
  }
  StandbyViews* views() { return views_.get(); }
  std::string view_dir() const { return dir() + ".view"; }
  std::string current() const { return view_dir() + "/current"; }

 private:
  std::unique_ptr<StandbyViews> views_;
};

ino_t InodeOf(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::map<std::string, std::string> FilesIn(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(dir)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = BytesIn(in);
  }
  return files;
}

TEST_CASE("A view shows one moment and never changes while records arrive",
          "[follow][views]") {
  ViewsWorld world;
  // The family `other` still needs the ended WAL.
  REQUIRE_OK((*world.source())->Flush(rocksdb::FlushOptions()));
  world.Write(10);
  REQUIRE_OK(world.Follow());
  REQUIRE(FileCount(world.dir(), ".log") == 2);
  REQUIRE_OK(world.OpenViews());
  const std::string view = world.MakeView();
  const uint64_t sequence = world.sequence();
  const auto before = FilesIn(view);
  uint64_t linked = 0;
  for (const auto& [name, bytes] : before) {
    INFO(name);
    const bool is_link =
        InodeOf(view + "/" + name) == InodeOf(world.dir() + "/" + name);
    const bool is_newest_wal =
        world.newest_wal() == world.dir() + "/" + name;
    REQUIRE(is_link == (name.ends_with(".sst") ||
                        (name.ends_with(".log") && !is_newest_wal)));
    linked += is_link ? 1 : 0;
  }
  REQUIRE(linked > 1);
  REQUIRE(FileCount(view, ".log") == 2);
  for (int i = 0; i < 4; ++i) {
    world.Write(10);
    REQUIRE_OK(world.Follow());
    if (i == 1) world.source()->Flush();
    if (i == 2) REQUIRE_OK(world.Cut(CutReason::kCutEvery));
  }
  REQUIRE(FilesIn(view) == before);
  REQUIRE(RequireView(view) == sequence);
  const std::string next = world.MakeView();
  REQUIRE(next != view);
  REQUIRE(RequireView(world.current()) == world.sequence());
  REQUIRE(FilesIn(view) == before);
}

TEST_CASE("A view contains only confirmed records of an intact standby",
          "[follow][views]") {
  ViewsWorld world;
  REQUIRE_OK(world.OpenViews());
  const std::string first = world.MakeView();
  bool made = true;
  REQUIRE_OK(world.views()->Make(&made));  // nothing new
  REQUIRE_FALSE(made);
  world.Write(3);
  REQUIRE_OK(world.Follow());
  const std::string why = GENERATE(as<std::string>(), "not confirmed",
                                   "different", "a table is missing");
  INFO(why);
  if (why == "not confirmed") {
    world.views()->SetConfirmed(false);
    REQUIRE(EndStateOf(world.views()->Make(&made)) == EndState::kSourceError);
    world.views()->SetConfirmed(true);
    REQUIRE_OK(world.views()->Make(&made));
    REQUIRE(made);
    return;
  }
  if (why == "different") {
    HealthFile fault = MakeFault(ReplicaFault::kDifferent, "k1", Selection());
    REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.dir(),
                           &fault));
  } else {
    for (const std::string& table : PathsWith(world.dir(), ".sst")) {
      fs::remove(table);
    }
  }
  REQUIRE(EndStateOf(world.views()->Make(&made)) == EndState::kCorrupt);
  REQUIRE(fs::canonical(world.current()) == first);
  REQUIRE(RequireView(first) < world.sequence());
}

TEST_CASE("Records arrive while a view is made, and a cut waits for it",
          "[follow][views]") {
  ViewsWorld world;
  REQUIRE_OK(world.OpenViews());
  Gate making;
  Gate ready;
  Gate carried;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "StandbyViews:Begun") making.Pass();
    if (name == "Workspace:ExchangeRecorded") ready.Pass();
    if (name == "Standby:WalsCarried") carried.Pass();
  });
  const uint64_t sequence = world.sequence();
  std::thread maker([&] {
    bool made = false;
    world.views()->Make(&made).PermitUncheckedError();
  });
  const bool is_making = making.AwaitReached();
  world.Write(10);
  const rocksdb::Status followed = world.Follow();
  const rocksdb::Status synced = world.standby()->Sync();
  const uint64_t durable = world.standby()->durable().last_sequence;
  ready.Open();
  carried.Open();
  std::thread cutter([&] {
    world.Cut(CutReason::kMaxReplay).PermitUncheckedError();
  });
  const bool is_ready = ready.AwaitReached();
  const bool was_carried = carried.AwaitReached(std::chrono::seconds(1));
  making.Open();
  maker.join();
  cutter.join();
  TEST_SetFaultHook(nullptr);
  REQUIRE(is_making);
  REQUIRE_OK(followed);
  REQUIRE_OK(synced);
  REQUIRE(durable == world.sequence());
  REQUIRE(is_ready);
  REQUIRE_FALSE(was_carried);
  REQUIRE(world.standby()->record().reason == CutReason::kMaxReplay);
  REQUIRE(RequireView(world.current()) == sequence);
}

TEST_CASE(
    "Views are removed after some time, also those of an earlier follower",
    "[follow][views]") {
  ViewsWorld world;
  REQUIRE_OK(world.OpenViews());
  std::vector<std::string> views;
  for (int i = 0; i < 5; ++i) views.push_back(world.MakeView());
  const auto present = [&views] {
    std::string text;
    for (const std::string& view : views) text += fs::exists(view) ? '1' : '0';
    return text;
  };
  REQUIRE(present() == "11111");
  // The second view replaced the first one three and a half hours ago.
  const auto set_age = [](const std::string& view, milliseconds age) {
    fs::last_write_time(view, fs::file_time_type::clock::now() - age);
  };
  set_age(views[0], std::chrono::hours(4));
  set_age(views[1], std::chrono::minutes(210));
  set_age(views[2], std::chrono::minutes(150));
  set_age(views[3], std::chrono::minutes(90));
  set_age(views[4], std::chrono::minutes(30));
  REQUIRE_OK(world.OpenViews());
  REQUIRE_OK(world.views()->RemoveOld());
  // views stay for two hours after they are replaced
  REQUIRE(present() == "00111");
  // The newest view stays, however old it is. A view with a time in the future
  // (the clock was set back) replaces nothing.
  set_age(views[3], std::chrono::hours(-9));
  set_age(views[4], std::chrono::hours(9));
  REQUIRE_OK(world.OpenViews());
  REQUIRE_OK(world.views()->RemoveOld());
  REQUIRE(present() == "00101");
  REQUIRE(fs::canonical(world.current()) == views[4]);
  views.push_back(world.MakeView());
  REQUIRE(present() == "001011");
}

TEST_CASE("Only leftovers of a crash are removed from DIR.view",
          "[follow][views]") {
  ViewsWorld world;
  REQUIRE_OK(world.OpenViews());
  const std::string view = world.MakeView();
  const std::string root = world.view_dir();
  fs::copy(view, root + "/sstferry.making");
  // `current` has never led to it
  fs::copy(view, root + "/sstferry.view-7-99");
  fs::create_symlink("sstferry.view-7-99", root + "/sstferry.next");
  REQUIRE_OK(world.OpenViews());
  REQUIRE_OK(world.views()->RemoveOld());
  REQUIRE_FALSE(fs::exists(root + "/sstferry.making"));
  REQUIRE_FALSE(fs::exists(root + "/sstferry.view-7-99"));
  REQUIRE_FALSE(fs::is_symlink(root + "/sstferry.next"));
  REQUIRE(fs::canonical(world.current()) == view);
  const std::string next = world.MakeView();
  REQUIRE(next.ends_with("-100"));
  REQUIRE(RequireView(world.current()) == world.sequence());
}

TEST_CASE("A DIR.view with other files, or of another account, is refused",
          "[follow][views]") {
  ViewsWorld world;
  const std::string root = world.view_dir();
  const std::string elsewhere = world.root() + "/elsewhere";
  fs::create_directory(elsewhere);
  std::ofstream(elsewhere + "/precious") << "bytes";
  const bool has_views = GENERATE(false, true);
  if (has_views) {
    REQUIRE_OK(world.OpenViews());
    world.MakeView();
  } else {
    fs::create_directory(root);
  }
  const std::string attack =
      GENERATE("a link", "a file", "another file", "a making link",
               "a view link", "a current file", "others may write", "an account");
  INFO(attack << (has_views ? " with views" : ""));
  if (attack == "a link" || attack == "a file") {
    fs::rename(root, world.root() + "/moved");
    if (attack == "a link") fs::create_directory_symlink(elsewhere, root);
    if (attack == "a file") std::ofstream(root) << "bytes";
  }
  if (attack == "another file") std::ofstream(root + "/notes") << "bytes";
  if (attack == "a making link") {
    fs::create_directory_symlink(elsewhere, root + "/sstferry.making");
  }
  if (attack == "a view link") {
    fs::create_directory_symlink(elsewhere, root + "/sstferry.view-7-99");
  }
  if (attack == "a current file") {
    fs::remove(root + "/current");
    std::ofstream(root + "/current") << "bytes";
  }
  if (attack == "others may write") {
    fs::permissions(root, fs::perms::others_write, fs::perm_options::add);
  }
  if (attack == "an account") {
    if (geteuid() != 0) return;
    REQUIRE(chown(root.c_str(), 1, static_cast<gid_t>(-1)) == 0);
  }
  // It is refused while the follower runs, and when it starts.
  if (has_views && (attack == "a link" || attack == "a file")) {
    bool made = false;
    world.Write(3);
    REQUIRE_OK(world.Follow());
    REQUIRE(EndStateOf(world.views()->Make(&made)) == EndState::kRefused);
  }
  const rocksdb::Status opened = world.OpenViews();
  REQUIRE(EndStateOf(opened) == EndState::kRefused);
  REQUIRE(opened.ToString().find(root) != std::string::npos);
  REQUIRE(FilesIn(elsewhere) ==
          std::map<std::string, std::string>{{"precious", "bytes"}});
}

TEST_CASE("A running follower does not write through a link named DIR.view",
          "[follow][views]") {
  ViewsWorld world;
  REQUIRE_OK(world.OpenViews());
  world.MakeView();
  const std::string elsewhere = world.root() + "/elsewhere";
  fs::create_directory(elsewhere);
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "StandbyViews:Begun") {
      fs::rename(world.view_dir(), world.root() + "/moved");
      fs::create_directory_symlink(elsewhere, world.view_dir());
    }
  });
  world.Write(3);
  REQUIRE_OK(world.Follow());
  bool made = false;
  world.views()->Make(&made).PermitUncheckedError();
  TEST_SetFaultHook(nullptr);
  REQUIRE(fs::is_empty(elsewhere));
  REQUIRE(RequireView(world.root() + "/moved/current") == world.sequence());
}

TEST_CASE("A view's name is parsed exactly", "[follow][views]") {
  ViewName name;
  REQUIRE(ParseViewName("sstferry.view-1764304500123456-17", &name));
  REQUIRE(name == ViewName{1764304500123456, 17});
  for (const char* const text :
       {"", "current", "sstferry.view-", "sstferry.view-1", "sstferry.view-1-",
        "sstferry.view-01-1", "sstferry.view-1-+1", "sstferry.view- 1-1",
        "sstferry.view-1-1/", "sstferry.view-1-99999999999999999999",
        "../sstferry.view-1-1"}) {
    INFO(text);
    REQUIRE_FALSE(ParseViewName(text, &name));
  }
}

// --- Stress tests with many views -------------------------------------------

// Returns the sum of the sizes of all files below a directory. A file with
// several links counts once. Files that are removed meanwhile are ignored.
uint64_t DiskBytes(const std::string& dir) {
  std::map<ino_t, uint64_t> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir, error), end;
       !error && it != end; it.increment(error)) {
    struct stat info;
    if (lstat(it->path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      files[info.st_ino] = static_cast<uint64_t>(info.st_size);
    }
  }
  uint64_t bytes = 0;
  for (const auto& [inode, size] : files) bytes += size;
  return bytes;
}

uint64_t ViewsIn(const std::string& dir) {
  uint64_t views = 0;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    views += it->path().filename().string().starts_with("sstferry.view-");
  }
  return views;
}

// Returns the number and the size of the newest WAL.
std::pair<uint64_t, uint64_t> NewestWal(const std::string& dir) {
  std::pair<uint64_t, uint64_t> newest{0, 0};
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info;
    if (it->path().extension() == ".log" &&
        lstat(it->path().c_str(), &info) == 0 && info.st_size > 0) {
      newest = std::max(newest,
                        {std::strtoull(it->path().filename().c_str(), nullptr,
                                       10),
                         static_cast<uint64_t>(info.st_size)});
    }
  }
  return newest;
}

struct StormResult {
  uint64_t views = 0;
  uint64_t opens = 0;
  uint64_t late = 0;        // opens that took longer than a view is kept
  std::string wrong;        // the first failure of an open that was not late
  uint64_t most_views = 0;  // in DIR.view at once
  uint64_t most_bytes = 0;  // on the disk
  uint64_t cuts = 0;
  uint64_t batches = 0;
  std::vector<double> lags_millis;
  std::string problem;
};

struct StormOptions {
  milliseconds every{20};  // 0: no views
  uint32_t keep = 100;
  milliseconds cut_every{200};
  uint32_t readers = 2;
  std::chrono::seconds time{0};   // 0: up to `opens` opens of each reader
  uint64_t opens = 20;
  milliseconds pause{1};          // after each batch
};

class Storm {
 public:
  explicit Storm(const StormOptions& options) : options_(options) {}

  StormResult Run() {
    world_.Write(500);
    FollowOptions follow;
    follow.pull = world_.Options();
    follow.pull.full_rate = true;
    follow.pull.log = [this](LogLevel level, const std::string& text) {
      if (level == LogLevel::kWarning) Note(text);
    };
    follow.view_every = options_.every;
    follow.keep_views = options_.keep;
    follow.cut_every = options_.cut_every;
    follow.max_audit_bytes = 0;  // an audit would read as much as the readers
    follow.on_state = [this](const StandbyState& state) {
      std::lock_guard<std::mutex> lock(mu_);
      result_.views = state.views_made;
      result_.cuts = 0;
      for (const auto& [reason, cuts] : state.cuts) result_.cuts += cuts;
      if (!state.view_problem.empty()) result_.problem = state.view_problem;
    };
    RunningFollower follower(follow);
    std::vector<std::thread> threads;
    threads.emplace_back([this] { Watch(); });
    threads.emplace_back([this] { MeasureLag(); });
    if (options_.every.count() > 0) {
      for (uint32_t i = 0; i < options_.readers; ++i) {
        threads.emplace_back([this] { Read(); });
      }
    }
    const Clock::time_point end = Clock::now() + options_.time;
    uint64_t written = 0;
    while (options_.time.count() > 0 ? Clock::now() < end
                                     : reading_ > 0 || written == 0) {
      world_.Write(1);
      if (++written % 400 == 0) world_.source()->Flush();
      stop_.WaitFor(options_.pause);
    }
    result_.batches = written;
    stop_.Stop();
    for (std::thread& thread : threads) thread.join();
    if (options_.every.count() > 0) RequireLast();
    REQUIRE_OK(follower.Stop());
    return result_;
  }

 private:
  std::string view_dir() const { return world_.dir() + ".view"; }

  void Note(const std::string& text) {
    std::lock_guard<std::mutex> lock(mu_);
    result_.problem = text;
  }

  // Waits until a view has all that was written. A view that is kept for only a
  // few milliseconds may be removed before it is read, so this retries.
  void RequireLast() {
    const Clock::time_point end = Clock::now() + std::chrono::minutes(1);
    std::string wrong = "nothing was read";
    uint64_t sequence = 0;
    while (!wrong.empty() || sequence != world_.sequence()) {
      INFO(wrong);
      REQUIRE(Clock::now() < end);
      HistoryModel model(2);
      wrong = ReadView(view_dir() + "/current", &model, &sequence);
    }
  }

  bool IsOver(uint64_t opens) const {
    return stop_.stopped() ||
           (options_.time.count() == 0 && opens >= options_.opens);
  }

  void Read() {
    HistoryModel model(2);
    for (uint64_t opens = 0; !IsOver(opens);) {
      const Clock::time_point begin = Clock::now();
      uint64_t sequence = 0;
      if (!fs::exists(view_dir() + "/current")) {
        stop_.WaitFor(milliseconds(1));  // no view yet
        continue;
      }
      const std::string wrong =
          ReadView(view_dir() + "/current", &model, &sequence);
      const bool is_in_time =
          Clock::now() - begin < options_.every * options_.keep;
      ++opens;
      std::lock_guard<std::mutex> lock(mu_);
      ++result_.opens;
      result_.late += is_in_time ? 0 : 1;
      if (is_in_time && !wrong.empty() && result_.wrong.empty()) {
        result_.wrong = wrong;
      }
    }
    --reading_;
  }

  void Watch() {
    while (!stop_.WaitFor(milliseconds(50))) {
      const uint64_t views = ViewsIn(view_dir());
      const uint64_t bytes = DiskBytes(world_.root());
      std::lock_guard<std::mutex> lock(mu_);
      result_.most_views = std::max(result_.most_views, views);
      result_.most_bytes = std::max(result_.most_bytes, bytes);
    }
  }

  // Measures how long the standby needs to get the source's newest byte.
  void MeasureLag() {
    while (!stop_.WaitFor(milliseconds(10))) {
      const auto target = NewestWal(world_.source_dir());
      const Clock::time_point begin = Clock::now();
      while (NewestWal(world_.dir()) < target && !stop_.stopped()) {
        stop_.WaitFor(milliseconds(1));
      }
      if (stop_.stopped()) return;
      const double millis = std::chrono::duration<double, std::milli>(
                                Clock::now() - begin)
                                .count();
      std::lock_guard<std::mutex> lock(mu_);
      result_.lags_millis.push_back(millis);
    }
  }

  const StormOptions options_;
  StandbyWorld world_;
  StopSignal stop_;
  std::atomic<uint32_t> reading_{
      options_.every.count() > 0 ? options_.readers : 0};
  std::mutex mu_;
  StormResult result_;  // guarded by mu_ while threads run
};

TEST_CASE("Under stress, readers of views see one moment each and never fail",
          "[follow][views][storm]") {
  const StormResult result = Storm(StormOptions()).Run();
  INFO(result.problem);
  REQUIRE(result.wrong == "");
  REQUIRE(result.opens >= 40);
  REQUIRE(result.late < result.opens);
  REQUIRE(result.cuts > 0);
}

TEST_CASE("Under stress, views that are no longer needed are removed",
          "[follow][views][storm]") {
  StormOptions options;
  options.every = milliseconds(10);
  options.keep = 3;
  const StormResult result = Storm(options).Run();
  INFO(result.problem);
  REQUIRE(result.wrong == "");
  // The number of views is not checked: a follower reports it each second, and
  // the test may be shorter.
  REQUIRE(result.opens >= 40);
  // Views that were replaced within 30 ms, the newest view, and one that is
  // being made.
  REQUIRE(result.most_views <= 3 + 4);
}

double Percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0
                        : values[static_cast<size_t>(
                              part * static_cast<double>(values.size() - 1))];
}

TEST_CASE("A long stress test of views, and the lag with and without them",
          "[.slow][views]") {
  const char* const asked = getenv("SSTFERRY_VIEW_SECONDS");
  StormOptions options;
  options.time = std::chrono::seconds(asked == nullptr ? 60 : std::stoi(asked));
  options.every = milliseconds(1000);
  options.keep = 6;
  options.cut_every = std::chrono::seconds(5);
  for (const bool has_views : {true, false}) {
    StormOptions half = options;
    if (!has_views) {
      half.every = milliseconds(0);
      half.time = std::min(half.time, std::chrono::seconds(600));
    }
    const StormResult result = Storm(half).Run();
    printf("%s views: %llu made, %llu opens (%llu late), at most %llu at once; "
           "%llu batches, %llu cuts, at most %.1f MB on the disk; lag p50 %.1f "
           "ms, p99 %.1f ms of %zu\n",
           has_views ? "with" : "without",
           static_cast<unsigned long long>(result.views),
           static_cast<unsigned long long>(result.opens),
           static_cast<unsigned long long>(result.late),
           static_cast<unsigned long long>(result.most_views),
           static_cast<unsigned long long>(result.batches),
           static_cast<unsigned long long>(result.cuts),
           static_cast<double>(result.most_bytes) / 1e6,
           Percentile(result.lags_millis, 0.5),
           Percentile(result.lags_millis, 0.99), result.lags_millis.size());
    fflush(stdout);
    INFO(result.problem);
    REQUIRE(result.wrong == "");
  }
}

TEST_CASE("No view is made on an answer that confirms nothing",
          "[follow][views]") {
  const bool is_decided = GENERATE(false, true);
  INFO(is_decided);
  StandbyWorld world;
  world.Write(10);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  const Round last = world.Read();
  REQUIRE_OK(world.standby()->Append(world.standby()->position(), last));
  REQUIRE_OK(world.standby()->Sync());
  world.CloseStandby();
  FakeSource source([&](Channel* channel) {
    Hello hello;
    HelloAck ack;
    const WaitLimit soon = WaitLimit::Within(std::chrono::seconds(60));
    if (!ServerHandshake(channel, "fake", "0", soon, &hello, &ack).ok()) {
      return;
    }
    Frame frame;
    while (channel->Receive(WaitLimit::Forever(), &frame).ok()) {
      if (frame.type == FrameType::kFollowRequest) {
        FollowEnd end;
        end.read_micros = 1;
        end.more_bytes = is_decided ? 0 : 1;
        MustWork(channel->SendMessage(FrameType::kFollowEnd, end, soon));
      }
    }
  });
  FollowOptions options;
  options.pull = world.Options();
  options.pull.source = AddressAt(source.address());
  options.cut_every = milliseconds(0);
  options.view_every = milliseconds(1);
  std::atomic<int> seconds{0};
  options.on_state = [&seconds](const StandbyState&) { ++seconds; };
  const std::string current = world.dir() + ".view/current";
  RunningFollower follower(options);
  REQUIRE(AwaitThat(
      [&] { return is_decided ? fs::is_symlink(current) : seconds >= 3; }));
  REQUIRE_OK(follower.Stop());
  REQUIRE(fs::is_symlink(current) == is_decided);
}

}  // namespace
}  // namespace sstferry::test::standby_views_test
