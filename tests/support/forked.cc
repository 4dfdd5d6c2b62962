#include "tests/support/forked.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>

namespace sstferry::test {
namespace {

constexpr int kThrew = 99;
// More than any work needs, even with sanitizers. The limit exists because
// RocksDB 7.8.3 reads some damaged WALs in an endless loop.
constexpr rlim_t kCpuSeconds = 5;
constexpr unsigned kSeconds = 600;  // enough on a busy machine, too

}  // namespace

int RunForked(const std::function<int()>& work) {
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    // Removes the handlers of the test program, which would report a failed
    // test.
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
      signal(number, SIG_DFL);
    }
    const rlimit limit{kCpuSeconds, kCpuSeconds + 1};
    setrlimit(RLIMIT_CPU, &limit);
    alarm(kSeconds);
    int code = kThrew;
    try {
      code = work();
    } catch (const std::exception& error) {
      fprintf(stderr, "a forked process threw: %s\n", error.what());
    } catch (...) {
      fprintf(stderr, "a forked process threw\n");
    }
    fflush(nullptr);
    _exit(code);
  }
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid < 0 ? kThrew
         : WIFEXITED(status) ? WEXITSTATUS(status)
                             : 128 + WTERMSIG(status);
}

}  // namespace sstferry::test
