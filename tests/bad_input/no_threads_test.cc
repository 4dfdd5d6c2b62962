// Tests a machine that cannot start more threads.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "rocksdb/version.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace {

// Number of threads that can be started before one start fails; negative: no
// limit.
std::atomic<int> g_threads_left{-1};
// If true, LeakSanitizer reports no leaks of this process.
std::atomic<bool> g_rocksdb_leaks{false};

}  // namespace

extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return g_rocksdb_leaks ? 1 : 0; }

// Replaces the C library's function in this program.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attr,
                              void* (*start)(void*), void* arg) noexcept {
  if (g_threads_left >= 0 && g_threads_left.fetch_sub(1) == 0) {
    return EAGAIN;
  }
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                         void*);
  static const auto next =
      reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attr, start, arg);
}

namespace sstferry::no_threads_test {
namespace {

TEST_CASE("A server that cannot start a thread refuses, and continues to serve",
          "[bad_input][peer]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  const HostPort where = server.address();
  std::unique_ptr<Channel> control;
  Opened opened;
  SECTION("for the connection") {
    g_threads_left = 0;
    REQUIRE(SendRaw(where, "") == "");
    REQUIRE(server.WaitForLog("refused a connection"));
  }
  SECTION("for the transfer") {
    // One of the threads for pings, for the snapshot, or for RocksDB's work on
    // it.
    g_threads_left = GENERATE(1, 2, 3, 6);
    const rocksdb::Status told = OpenSample(where, &opened, &control);
    REQUIRE(EndStateOf(told) == EndState::kInternal);
    REQUIRE(told.ToString().find("cannot start a thread") !=
            std::string::npos);
  }
  REQUIRE(g_threads_left < 0);
  control.reset();
  PullOptions options = PullFrom(where, dir / "target");
  REQUIRE_OK(RunPull(options).status);
}

// RocksDB throws from DB::Open(), or does not throw at all.
TEST_CASE("A server survives if RocksDB cannot start a thread",
          "[bad_input][peer]") {
  if (ROCKSDB_MAJOR >= 11) {
    // DB::Open() of RocksDB 11 then deletes the database and waits forever for
    // a mutex that it has locked itself. No caller can end that.
    SUCCEED("RocksDB 11 does not come back");
    return;
  }
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  std::unique_ptr<Channel> control;
  Opened opened;
  g_threads_left = 7;
  // RocksDB leaks the database whose open throws.
  g_rocksdb_leaks = true;
  const rocksdb::Status told =
      OpenSample(server.address(), &opened, &control);
  g_threads_left = -1;
  INFO(told.ToString());
  REQUIRE((told.ok() || EndStateOf(told) == EndState::kInternal));
  control.reset();
  // The lock of the leaked database does not disturb later snapshots, although
  // the names of private directories are used again.
  for (int i = 0; i < 4; ++i) {
    REQUIRE_OK(RunPull(PullFrom(server.address(),
                                dir / ("target" + std::to_string(i))))
                   .status);
    TestServer another(ServeSample(dir / "source"));
    REQUIRE_OK(RunPull(PullFrom(another.address(),
                                dir / ("other" + std::to_string(i))))
                   .status);
  }
}

TEST_CASE("A connection without requests costs one thread",
          "[bad_input][peer]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  std::vector<std::unique_ptr<Channel>> idle(1);
  REQUIRE_OK(DialControl(server.address(), &idle[0]));
  const size_t before = NamesOf("/proc/self/task").size();
  idle.resize(21);
  for (size_t i = 1; i < idle.size(); ++i) {
    REQUIRE_OK(DialControl(server.address(), &idle[i]));
  }
  REQUIRE(NamesOf("/proc/self/task").size() <= before + 20);
}

}  // namespace
}  // namespace sstferry::no_threads_test
