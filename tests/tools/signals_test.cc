#include "tools/sstferry/signals.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <future>

#include "tests/support/catch.h"

namespace sstferry::signals_test {
namespace {

// Blocks the signals before main(), so that every thread inherits this, also
// RocksDB's threads from earlier tests.
[[maybe_unused]] const bool signals_are_held = (HoldSignals(), true);

// A datagram socket with a unique abstract name; sets NOTIFY_SOCKET to it.
class NotifySocket {
 public:
  NotifySocket() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(fd_ >= 0);
    name_ = "@sstferry-test-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    address.sun_path[0] = '\0';
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                        name_.size())) == 0);
    setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  }
  ~NotifySocket() {
    unsetenv("NOTIFY_SOCKET");
    close(fd_);
  }
  std::string Receive() {
    char buffer[64];
    const ssize_t bytes = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
    return bytes < 0 ? "" : std::string(buffer, static_cast<size_t>(bytes));
  }

 private:
  const int fd_;
  std::string name_;
};

}  // namespace

TEST_CASE("A stop signal calls back once, and a second one has no effect",
          "[tools]") {
  HoldSignals();
  std::atomic<int> calls{0};
  std::promise<void> called;
  {
    StopWatcher watcher([&] {
      if (++calls == 1) {
        called.set_value();
      }
    });
    REQUIRE(kill(getpid(), SIGTERM) == 0);
    called.get_future().wait();
    REQUIRE(kill(getpid(), SIGINT) == 0);
    watcher.Trigger();
  }
  REQUIRE(calls == 1);
  // Removes the SIGINT if it arrived too late for the watcher.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  const timespec now{};
  while (sigtimedwait(&set, nullptr, &now) > 0) {
  }
}

TEST_CASE("Trigger calls back without a signal", "[tools]") {
  HoldSignals();
  std::promise<void> called;
  StopWatcher watcher([&] { called.set_value(); });
  watcher.Trigger();
  called.get_future().wait();
}

TEST_CASE("A watcher without a signal ends without a callback", "[tools]") {
  HoldSignals();
  int calls = 0;
  { const StopWatcher watcher([&] { ++calls; }); }
  REQUIRE(calls == 0);
}

TEST_CASE("NotifyReady writes to an abstract socket and reports a missing one",
          "[tools]") {
  unsetenv("NOTIFY_SOCKET");
  REQUIRE_OK(NotifyReady("serves a\nSTOPPING=1"));
  {
    NotifySocket socket;
    REQUIRE_OK(NotifyReady("serves a\nSTOPPING=1"));
    // A newline in the text cannot add another field.
    const std::string said = socket.Receive();
    REQUIRE(said.starts_with("READY=1\nSTATUS=serves a"));
    REQUIRE(said.find("\nSTOPPING") == std::string::npos);
  }
  setenv("NOTIFY_SOCKET", "/no/such/socket", 1);
  REQUIRE(NotifyReady("serves a\nSTOPPING=1").IsIOError());
  setenv("NOTIFY_SOCKET", "relative", 1);
  REQUIRE(NotifyReady("serves a\nSTOPPING=1").IsInvalidArgument());
  setenv("NOTIFY_SOCKET", std::string(300, '/').c_str(), 1);
  REQUIRE(NotifyReady("serves a\nSTOPPING=1").IsInvalidArgument());
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace sstferry::signals_test
