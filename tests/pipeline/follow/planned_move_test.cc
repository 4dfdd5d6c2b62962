// A standby replaces its source after the source is closed in random ways. The
// promoted database must have all contents of the closed source. Nothing may be
// promoted while the source is open, even if a process crashes or restarts.
//
// SSTFERRY_HISTORIES is the number of moves. SSTFERRY_MOVES_SEED is the seed of
// the first one.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "format/end_state.h"
#include "pipeline/base/standby_record.h"
#include "sstferry/follow.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/random_histories.h"
#include "tests/support/standby_world.h"
#include "tests/support/test_db.h"

namespace sstferry::test::planned_move_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;
using std::chrono::milliseconds;

enum class Closing {
  kPlain,
  kUnlogged,            // has writes without the WAL
  kNever,               // the source stays open
  kReopened,            // the source was closed and opened again
  kReopenedInHook,      // the source is opened while --before runs
  kServerGone,
  kFollowerGone,
  kWithoutAfterClosed,  // promoted without --after-source-closed
};
constexpr int kClosings = 8;

const char* NameOf(Closing closing) {
  constexpr const char* kNames[kClosings] = {
      "plain",           "unlogged",    "never",         "reopened",
      "reopened in hook", "server gone", "follower gone", "without the option"};
  return kNames[static_cast<size_t>(closing)];
}

// A follower in its own thread.
class RunningFollower {
 public:
  RunningFollower(const StandbyWorld& world, const TestServer* server) {
    FollowOptions options;
    options.pull = world.Options();
    if (server != nullptr) options.pull.source = AddressAt(server->address());
    options.pull.full_rate = true;  // cuts are not slowed down
    options.durable = milliseconds(10);
    options.on_state = [this](const StandbyState&) {
      const std::lock_guard<std::mutex> lock(mu_);
      is_told_ = true;
      changed_.notify_all();
    };
    job_ = MakeFollow(options);
    thread_ = std::thread([this] {
      StandbyState state;
      ended_ = job_->Run(&state);
      const std::lock_guard<std::mutex> lock(mu_);
      has_ended_ = true;
      changed_.notify_all();
    });
  }
  ~RunningFollower() { Stop(); }

  // Waits until the standby exists.
  void AwaitStandby() {
    std::unique_lock<std::mutex> lock(mu_);
    REQUIRE(changed_.wait_for(lock, std::chrono::minutes(2),
                              [this] { return is_told_ || has_ended_; }));
    REQUIRE_FALSE(has_ended_);
  }
  void Stop() {
    if (job_ == nullptr) return;
    job_->Cancel();
    thread_.join();
    job_.reset();  // releases the standby's lock
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool is_told_ = false;
  bool has_ended_ = false;
  std::unique_ptr<StandbyJob> job_;
  std::thread thread_;
  Status ended_;
};

class Move {
 public:
  Move(uint64_t seed, Closing closing)
      : random_(seed),
        closing_(closing),
        world_(OptionsOf(closing == Closing::kUnlogged && Chance(2))) {
    if (closing == Closing::kServerGone || Chance(2)) {
      server_ = std::make_unique<TestServer>(ServeSample(world_.source_dir()));
    }
  }

  void Play() {
    Write();
    StartFollower();
    Write();
    if (closing_ == Closing::kServerGone) {
      PlayWithoutServer();
      return;
    }
    switch (closing_) {
      case Closing::kUnlogged:
        WriteUnlogged();
        break;
      case Closing::kNever:
        RequireNone(Promote(Soon()), EndState::kDeadline);
        break;
      case Closing::kReopened:
        world_.CloseSource();
        if (Chance(2)) AwaitHeard(false);
        world_.OpenSource();
        RequireNone(Promote(Soon()), EndState::kDeadline);
        Write();
        break;
      case Closing::kReopenedInHook:
        world_.CloseSource();
        RequireNone(Promote(Whenever(), [this] {
          world_.OpenSource();
          Write();
          AwaitHeard(true);
        }), EndState::kRefused);
        StartFollower();
        break;
      case Closing::kFollowerGone:
        follower_->Stop();
        if (Chance(2)) world_.CloseSource();
        RequireNone(Promote(Whenever()), EndState::kRefused);
        if (world_.source() == nullptr) world_.OpenSource();
        Write();
        StartFollower();
        break;
      case Closing::kWithoutAfterClosed: {
        AwaitHeard(true);
        PromoteOptions options = Soon();
        options.after_source_closed = false;
        RequireNone(Promote(options), EndState::kRefused);
        break;
      }
      default:
        break;
    }
    CloseAndPromote();
  }

 private:
  static rocksdb::DBOptions OptionsOf(bool loses_unlogged) {
    rocksdb::DBOptions options;
    options.avoid_flush_during_shutdown = loses_unlogged;
    return options;
  }
  bool Chance(uint64_t of) { return random_() % of == 0; }

  void Write() {
    for (uint64_t i = random_() % 4; i > 0; --i) {
      world_.Write(1 + random_() % 30);
      if (Chance(3)) world_.source()->Flush();
    }
  }
  void WriteUnlogged() {
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    for (uint64_t i = 0; i <= random_() % 3; ++i) {
      REQUIRE_OK((*world_.source())
                     ->Put(unlogged, "unlogged" + std::to_string(i), "value"));
    }
  }

  void StartFollower() {
    follower_.reset();
    follower_ = std::make_unique<RunningFollower>(world_, server_.get());
    follower_->AwaitStandby();
  }
  // Waits until the standby's state says that the source is open, or closed.
  void AwaitHeard(bool is_open) {
    const auto is_heard = [&] {
      bool found = false;
      StandbyState state;
      // While DIR is exchanged, reading it may fail for a moment.
      const Status read = ReadStandbyState(world_.dir(), &found, &state);
      return read.ok() && found &&
             (is_open ? state.source_process == SourceProcess::kOpen
                      : state.source_closed);
    };
    REQUIRE(AwaitThat(is_heard, std::chrono::minutes(2)));
  }

  PromoteOptions Whenever() const {
    PromoteOptions options;
    options.dir = world_.dir();
    options.after_source_closed = true;
    options.wait = std::chrono::minutes(2);
    return options;
  }
  // Returns options for a promotion that must fail. They wait only as long as
  // the follower needs to hear from the source.
  PromoteOptions Soon() const {
    PromoteOptions options = Whenever();
    options.wait = milliseconds(300);
    return options;
  }
  Status Promote(PromoteOptions options,
                 const std::function<void()>& in_hook = nullptr) {
    options.before = [this, &in_hook](const SwapEvent&) {
      if (in_hook) in_hook();
      follower_->Stop();
      return Status::OK();
    };
    StandbyState state;
    return MakePromote(options)->Run(&state);
  }
  void RequireNone(const Status& status, EndState expected) {
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == expected);
    REQUIRE(IsStandby(world_.dir()));
  }

  void CloseAndPromote() {
    const bool promotes_first = Chance(2);
    Status promoted;
    std::thread promotes;
    if (promotes_first) {
      promotes = std::thread([&] { promoted = Promote(Whenever()); });
      world_.Write(1 + random_() % 30);
    }
    world_.CloseSource();
    if (promotes_first) {
      promotes.join();
    } else {
      promoted = Promote(Whenever());
    }
    REQUIRE_OK(promoted);
    REQUIRE(HasCurrent(world_.dir()));
    server_.reset();
    Expectation expected;
    expected.families = {{"default", Quiet()}, {"other", Quiet()}};
    ExpectSameEntries(world_.source_dir(), world_.dir(), expected);
  }

  // Without the server, a promotion fails, unless the operator says that the
  // source is down.
  void PlayWithoutServer() {
    server_->Stop();
    if (Chance(2)) Write();
    const uint64_t sequence = world_.sequence();
    world_.CloseSource();
    RequireNone(Promote(Soon()), EndState::kDeadline);
    PromoteOptions options = Soon();
    options.after_source_closed = false;
    options.source_is_down = true;
    REQUIRE_OK(Promote(options));
    REQUIRE(world_.RequirePrefix(world_.dir()) <= sequence);
  }

  std::mt19937_64 random_;
  const Closing closing_;
  StandbyWorld world_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<RunningFollower> follower_;
};

TEST_CASE("A planned move loses nothing, and promotes nothing while the source "
          "is open",
          "[follow][promote]") {
  const char* const asked = getenv("SSTFERRY_MOVES_SEED");
  const uint64_t first =
      asked == nullptr ? 1 : strtoull(asked, nullptr, 10);
  const auto moves = static_cast<uint64_t>(HistoryCount(2 * kClosings));
  for (uint64_t i = 0; i < moves; ++i) {
    const auto closing = static_cast<Closing>((first + i) % kClosings);
    INFO("SSTFERRY_MOVES_SEED=" << first + i << ": " << NameOf(closing));
    Move(first + i, closing).Play();
  }
}

}  // namespace
}  // namespace sstferry::test::planned_move_test
