#include "tools/sstferry/run_as.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Metrics are the largest message; a message is one packet.
constexpr size_t kMaxMessageBytes = 1u << 20;
constexpr size_t kMaxFileBytes = 1u << 20;  // of a config or a TLS file
constexpr int kHookLookMillis = 50;

// First byte of a message to root.
constexpr char kBefore = 'b';   // + "yes" or "no", transfer id
constexpr char kAfter = 'a';    // the same
constexpr char kStopHook = 's';     // ends the hook that runs
constexpr char kMetrics = 'm';  // + text
// An answer is 'k', or 'f', the end state and its message.
constexpr char kDone = 'k';
constexpr char kFailed = 'f';

Status Errno(const std::string& what) {
  return MakeStatus(EndState::kRefused, what + ": " + strerror(errno));
}

bool Send(int socket, const std::string& message) {
  return send(socket, message.data(), message.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(message.size());
}

// Empty: the other side is gone.
std::string Receive(int socket) {
  std::string message(kMaxMessageBytes, '\0');
  ssize_t got = 0;
  do {
    got = recv(socket, message.data(), message.size(), 0);
  } while (got < 0 && errno == EINTR);
  message.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return message;
}

std::string AnswerOf(const Status& status) {
  if (status.ok()) {
    return std::string(1, kDone);
  }
  std::string answer(1, kFailed);
  answer.push_back(static_cast<char>(EndStateOf(status)));
  return answer + MessageOf(status).substr(0, kMaxMessageBytes / 2);
}

Status StatusOf(const std::string& answer) {
  if (!answer.empty() && answer[0] == kDone) {
    return Status::OK();
  }
  const uint8_t state = answer.size() > 1 ? static_cast<uint8_t>(answer[1]) : 0;
  return answer.size() > 1 && answer[0] == kFailed && state != 0 &&
                 state <= kMaxEndState
             ? MakeStatus(static_cast<EndState>(state), answer.substr(2))
             : MakeStatus(EndState::kInternal,
                          "the process that root started is gone");
}

// A copy of a file without a name, which any account may open by its
// descriptor.
class OpenCopy {
 public:
  explicit OpenCopy(std::string path) : path_(std::move(path)) {}
  ~OpenCopy() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  OpenCopy(const OpenCopy&) = delete;
  OpenCopy& operator=(const OpenCopy&) = delete;

  // Reads the file again. What cannot be read stays as it was.
  Status Fill() {
    const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      return Errno(path_);
    }
    std::string text(kMaxFileBytes, '\0');
    const ssize_t got = read(file, text.data(), text.size());
    close(file);
    if (fd_ < 0) {
      fd_ = memfd_create("sstferry", 0);
    }
    const size_t bytes = got > 0 ? static_cast<size_t>(got) : 0;
    return got >= 0 && fd_ >= 0 && ftruncate(fd_, 0) == 0 &&
                   pwrite(fd_, text.data(), bytes, 0) == got &&
                   fchmod(fd_, 0444) == 0
               ? Status::OK()
               : Errno(path_);
  }
  // The path itself if it was not filled.
  std::string name() const {
    return fd_ < 0 ? path_ : "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  const std::string path_;
  int fd_ = -1;
};

// The word that names the config file; null: there is none.
std::string* ConfigOf(std::vector<std::string>* arguments,
                      std::string* prefix) {
  for (size_t i = 0; i < arguments->size(); ++i) {
    std::string& word = (*arguments)[i];
    if (word == "--config" && i + 1 < arguments->size()) {
      prefix->clear();
      return &(*arguments)[i + 1];
    }
    if (word.starts_with("--config=")) {
      *prefix = "--config=";
      return &word;
    }
  }
  return nullptr;
}

class ChildSide : public RootSide {
 public:
  explicit ChildSide(int socket) : socket_(socket) {}

  Status RunHook(bool before, const SwapEvent& event) override {
    const std::lock_guard<std::mutex> lock(mu_);
    const std::string ask = std::string(1, before ? kBefore : kAfter) +
                            (event.exchanged ? "yes" : "no") + " " +
                            event.transfer_id;
    if (!Send(socket_, ask)) {
      return StatusOf("");
    }
    bool told = false;
    pollfd answer = {socket_, POLLIN, 0};
    while (poll(&answer, 1, kHookLookMillis) <= 0) {
      if (!told && event.stopped()) {
        told = Send(socket_, std::string(1, kStopHook));
      }
    }
    return StatusOf(Receive(socket_));
  }

  Status WriteMetrics(const std::string& text) override {
    const std::lock_guard<std::mutex> lock(mu_);
    return Send(socket_, kMetrics + text.substr(0, kMaxMessageBytes - 1))
               ? StatusOf(Receive(socket_))
               : StatusOf("");
  }

 private:
  const int socket_;
  std::mutex mu_;
};

// Serves the child until it ends.
class RootLoop {
 public:
  RootLoop(const RootDuties& duties, OpenCopy* config, int socket, pid_t child)
      : duties_(duties), config_(config), socket_(socket), child_(child) {}
  ~RootLoop() { Join(); }
  RootLoop(const RootLoop&) = delete;
  RootLoop& operator=(const RootLoop&) = delete;

  int Run() {
    sigset_t passed;
    sigemptyset(&passed);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&passed, signal);
    }
    const int signals = signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK);
    std::array<pollfd, 2> wait = {pollfd{signals, POLLIN, 0},
                                  pollfd{socket_, POLLIN, 0}};
    bool open = true;
    while (open) {
      if (poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) {
        break;
      }
      signalfd_siginfo info;
      while (read(signals, &info, sizeof(info)) == sizeof(info)) {
        Pass(static_cast<int>(info.ssi_signo));
      }
      if (wait[1].revents != 0) {
        const std::string message = Receive(socket_);
        open = !message.empty();
        Serve(message);
      }
    }
    stopped_ = true;
    Join();
    int state = 0;
    while (waitpid(child_, &state, 0) < 0 && errno == EINTR) {
    }
    close(signals);
    return WIFEXITED(state) ? WEXITSTATUS(state)
                            : ExitCodeOf(EndState::kInternal);
  }

 private:
  void Pass(int signal) {
    if (signal == SIGHUP && config_ != nullptr) {
      const Status status = config_->Fill();
      if (!status.ok() && duties_.log) {
        duties_.log(LogLevel::kError, MessageOf(status));
      }
    }
    kill(child_, signal);
  }

  void Serve(const std::string& message) {
    const char kind = message.empty() ? '\0' : message[0];
    if (kind == kStopHook) {
      stopped_ = true;
    } else if (kind == kMetrics) {
      Send(socket_,
           AnswerOf(duties_.write_metrics
                        ? duties_.write_metrics(message.substr(1))
                        : MakeStatus(EndState::kRefused, "no metrics here")));
    } else if (kind == kBefore || kind == kAfter) {
      Join();
      stopped_ = false;
      hook_ = std::thread([this, kind, message] { RunHook(kind, message); });
    }
  }

  // The words of the account's process reach the hook's environment alone.
  void RunHook(char kind, const std::string& message) {
    SwapEvent event;
    event.target_dir = duties_.target_dir;
    event.exchanged = message.substr(1).starts_with("yes ");
    event.transfer_id = message.substr(message.find(' ') + 1);
    const bool is_id =
        event.transfer_id.size() <= 64 &&
        event.transfer_id.find_first_not_of("0123456789abcdef") ==
            std::string::npos;
    event.stopped = [this] { return stopped_.load(); };
    const SwapHook& hook =
        kind == kBefore ? duties_.before_swap : duties_.after_swap;
    Status status;
    if (!is_id) {
      status = MakeStatus(EndState::kRefused, "a hook without a transfer");
    } else if (hook) {
      status = hook(event);
    }
    Send(socket_, AnswerOf(status));
  }

  void Join() {
    if (hook_.joinable()) {
      hook_.join();
    }
  }

  const RootDuties& duties_;
  OpenCopy* const config_;
  const int socket_;
  const pid_t child_;
  std::atomic<bool> stopped_{false};
  std::thread hook_;
};

struct Account {
  std::string name;  // empty: this machine does not know it
  gid_t group = 0;
};

Account FindAccount(uid_t uid) {
  struct passwd entry;
  struct passwd* found = nullptr;
  std::vector<char> room(1 << 16);
  if (getpwuid_r(uid, &entry, room.data(), room.size(), &found) != 0 ||
      found == nullptr) {
    return {};
  }
  return {entry.pw_name, entry.pw_gid};
}

Status Become(uid_t uid, const Account& account) {
  if (account.name.empty()) {
    return MakeStatus(EndState::kRefused,
                      "user " + std::to_string(uid) +
                          ", which owns the place of TARGET_DIR, is not known "
                          "to this machine; run the command as that user");
  }
  if (initgroups(account.name.c_str(), account.group) != 0 ||
      setresgid(account.group, account.group, account.group) != 0 ||
      setresuid(uid, uid, uid) != 0 || setuid(0) == 0) {
    return Errno("cannot become user " + account.name);
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else /proc/self/fd is root's
  prctl(PR_SET_PDEATHSIG, SIGTERM);    // whoever is to run the hooks is gone
  return Status::OK();
}

int Refused(const Status& status) {
  std::fprintf(stderr, "sstferry pull: %s: %s\n",
               EndStateName(EndStateOf(status)), MessageOf(status).c_str());
  return ExitCodeOf(EndStateOf(status));
}

}  // namespace

int RunAs(uid_t uid, const RootDuties& duties,
          std::vector<std::string> arguments,
          const std::function<int(const std::vector<std::string>&, RootSide*)>&
              child) {
  TlsFiles* const tls = duties.tls;
  OpenCopy cert(tls->cert);
  OpenCopy key(tls->key);
  OpenCopy ca(tls->ca);
  for (const auto& [copy, path] :
       {std::pair(&cert, &tls->cert), std::pair(&key, &tls->key),
        std::pair(&ca, &tls->ca)}) {
    if (!path->empty() && copy->Fill().ok()) {
      *path = copy->name();  // else the pull says what is wrong with it
    }
  }
  std::string prefix;
  std::string* const word = ConfigOf(&arguments, &prefix);
  OpenCopy config(word != nullptr ? word->substr(prefix.size()) : "");
  if (word != nullptr && config.Fill().ok()) {
    *word = prefix + config.name();
  }
  const Account account = FindAccount(uid);
  if (duties.log && !account.name.empty()) {
    duties.log(LogLevel::kInfo,
               "runs as account " + account.name +
                   ", which may change names on the way to " +
                   duties.target_dir +
                   (duties.uses_ssh ? "; ssh has its keys and known hosts"
                                    : ""));
  }
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) !=
      0) {
    return Refused(Errno("socketpair"));
  }
  const int room = static_cast<int>(kMaxMessageBytes);
  for (const int socket : sockets) {
    setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
  }
  const pid_t process = fork();
  if (process < 0) {
    return Refused(Errno("fork"));
  }
  if (process == 0) {
    close(sockets[0]);
    const Status status = Become(uid, account);
    ChildSide root(sockets[1]);
    return status.ok() ? child(arguments, &root) : Refused(status);
  }
  close(sockets[1]);
  const int code =
      RootLoop(duties, word != nullptr ? &config : nullptr, sockets[0], process)
          .Run();
  close(sockets[0]);
  return code;
}

}  // namespace sstferry
