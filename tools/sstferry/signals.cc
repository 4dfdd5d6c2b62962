#include "tools/sstferry/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "format/printable.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Values that are added to the eventfd wake_. The thread may read the sum of
// both.
constexpr uint64_t kStop = 1;
constexpr uint64_t kEnd = 1ull << 32;

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

sigset_t ReloadSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  return set;
}

void Add(int fd, uint64_t value) {
  // Repeats the call only after EINTR. An eventfd refuses a value only if the
  // sum becomes too large, which does not occur here.
  while (write(fd, &value, sizeof(value)) < 0 && errno == EINTR) {
  }
}

}  // namespace

void HoldSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // write() then fails with EFBIG (ulimit -f)
  // The caller may have set SIGCHLD to be ignored. waitpid() would then not
  // return the exit code of a hook's command.
  signal(SIGCHLD, SIG_DFL);
}

void HoldReloadSignal() {
  const sigset_t set = ReloadSignal();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void DropStopSignals() {
  const sigset_t set = StopSignals();
  const timespec none{};
  while (sigtimedwait(&set, nullptr, &none) > 0) {
  }
}

StopWatcher::StopWatcher(std::function<void()> stop,
                         std::function<void()> reload)
    : stop_(std::move(stop)), reload_(std::move(reload)) {
  sigset_t set = StopSignals();
  if (reload_) {
    sigaddset(&set, SIGHUP);
  }
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Loop(); });
}

StopWatcher::~StopWatcher() {
  Add(wake_, kEnd);
  thread_.join();
  close(signals_);
  close(wake_);
}

void StopWatcher::Trigger() { Add(wake_, kStop); }

int StopWatcher::TakeSignal(bool readable) {
  signalfd_siginfo info;
  return readable && read(signals_, &info, sizeof(info)) > 0
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

void StopWatcher::Loop() {
  bool stopped = false;
  while (true) {
    pollfd waits[2] = {{signals_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0) {
      continue;  // EINTR is the only possible error for two open descriptors
    }
    const int signal = TakeSignal((waits[0].revents & POLLIN) != 0);
    if (signal == SIGHUP) {
      reload_();
    }
    bool stop = signal != 0 && signal != SIGHUP;
    uint64_t value = 0;
    if ((waits[1].revents & POLLIN) != 0 &&
        read(wake_, &value, sizeof(value)) < 0) {
      value = 0;
    }
    if (value >= kEnd) {
      return;
    }
    stop = stop || value > 0;
    if (stop && !stopped) {
      stopped = true;
      stop_();
    }
  }
}

namespace {

Status Notify(const std::string& message) {
  const char* name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr || *name == '\0') {
    return Status::OK();
  }
  const size_t length = std::strlen(name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (length >= sizeof(address.sun_path) ||
      (name[0] != '/' && name[0] != '@')) {
    return Status::InvalidArgument(
        "NOTIFY_SOCKET: expected a path or @NAME of at most 107 bytes, found",
        name);
  }
  std::memcpy(address.sun_path, name, length);
  if (name[0] == '@') {
    address.sun_path[0] = '\0';
  }
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return Status::IOError("NOTIFY_SOCKET: socket", std::strerror(errno));
  }
  const ssize_t sent =
      sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  const int error = errno;
  close(fd);
  return sent < 0 ? Status::IOError("NOTIFY_SOCKET: " + std::string(name),
                                    std::strerror(error))
                  : Status::OK();
}

}  // namespace

Status NotifyReady(const std::string& status) {
  return Notify("READY=1\nSTATUS=" + Printable(status));
}

Status NotifyStopping() { return Notify("STOPPING=1"); }

}  // namespace sstferry
