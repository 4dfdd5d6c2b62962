#include "tools/sstferry/run_as.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include "format/end_state.h"
#include "sstferry/own_file.h"
#include "sstferry/spawn.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/relay.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// The maximum size of a message between the two processes. A message is one
// packet of the socket.
constexpr size_t kMaxMessageBytes = 1u << 20;
constexpr int kHookLookMillis = 50;
// The maximum size of the command's JSON object. The object for 4096 databases
// has about 20 MB.
constexpr size_t kMaxResultBytes = 64u << 20;
// The JSON object and the text of the metrics are sent in pieces of this size.
constexpr size_t kPieceBytes = 64u << 10;

// The first byte of a message from the child to root's process. kMetricsPiece
// and kResult get no answer. In a message with kBefore or kAfter, two fields of
// a SwapEvent follow: `exchanged` as "yes" or "no", a space, and transfer_id.
constexpr char kBefore = 'b';       // runs before_swap
constexpr char kAfter = 'a';        // runs after_swap
constexpr char kStopHook = 's';     // ends the running hook
constexpr char kMetricsPiece = 'p';  // then a piece of the metrics
constexpr char kMetrics = 'm';       // then the last piece of the metrics
constexpr char kResult = 'j';   // then a piece of the JSON object
// The first byte of an answer: kDone for success, or kFailed, which is followed
// by the end state and a message.
constexpr char kDone = 'k';
constexpr char kFailed = 'f';

Status Errno(const std::string& what) {
  return MakeStatus(EndState::kRefused, what + ": " + strerror(errno));
}

bool Send(int socket, const std::string& message) {
  return send(socket, message.data(), message.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(message.size());
}

// Waits for a message and returns it. Returns "" if the other process has
// ended.
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
                          "root's process, which runs the hooks and writes the "
                          "metrics file, ended without an answer");
}

// A copy of a file in memory. A child process that inherits the copy's
// descriptor can open the copy as any account.
class OpenCopy {
 public:
  // The file at `path` must belong to root or to `account` (see ReadOwn()).
  OpenCopy(std::string path, uid_t account)
      : path_(std::move(path)), account_(account) {}
  ~OpenCopy() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  OpenCopy(const OpenCopy&) = delete;
  OpenCopy& operator=(const OpenCopy&) = delete;

  // Copies the file, again if it was copied before. If reading the file fails,
  // the old copy is unchanged.
  Status Fill() {
    std::string text;
    RETURN_IF_ERROR(ReadOwn(path_, account_, &text));
    if (fd_ < 0) {
      fd_ = memfd_create("sstferry", 0);
    }
    return fd_ >= 0 && ftruncate(fd_, 0) == 0 &&
                   pwrite(fd_, text.data(), text.size(), 0) ==
                       static_cast<ssize_t>(text.size()) &&
                   fchmod(fd_, 0444) == 0
               ? Status::OK()
               : Errno(path_);
  }
  int fd() const { return fd_; }  // -1 if there is no copy yet
  // Returns the path of the copy, or the path of the file if there is no copy.
  std::string name() const {
    return fd_ < 0 ? path_ : "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  const std::string path_;
  const uid_t account_;
  int fd_ = -1;
};

// Returns the word that contains the path of the config file, or null if there
// is none. Sets *prefix to the text before the path in this word: "" or
// "--config=".
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

// The width of root's terminal, in memory that both processes share. Root's
// process writes the width and the child reads it. Root's process never reads
// it, because the child could have changed it.
class SharedColumns {
 public:
  SharedColumns()
      : columns_(static_cast<std::atomic<uint32_t>*>(
            mmap(nullptr, sizeof(std::atomic<uint32_t>),
                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    Look();
  }
  SharedColumns(const SharedColumns&) = delete;
  SharedColumns& operator=(const SharedColumns&) = delete;

  // Stores the present width of the terminal.
  void Look() {
    if (columns_ != MAP_FAILED) {
      columns_->store(static_cast<uint32_t>(ScreenOf(stderr).columns()));
    }
  }
  size_t columns() const {
    return columns_ != MAP_FAILED ? columns_->load() : 80;
  }

 private:
  std::atomic<uint32_t>* const columns_;  // stays mapped until the process ends
};

class ChildSide : public RootSide {
 public:
  ChildSide(int socket, const Screen& screen)
      : socket_(socket), screen_(screen) {}

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
    bool sent = true;
    size_t at = 0;
    for (; sent && text.size() - at > kPieceBytes; at += kPieceBytes) {
      sent = Send(socket_, kMetricsPiece + text.substr(at, kPieceBytes));
    }
    return sent && Send(socket_, kMetrics + text.substr(at))
               ? StatusOf(Receive(socket_))
               : StatusOf("");
  }

  void SendResult(const std::string& json) override {
    const std::lock_guard<std::mutex> lock(mu_);
    bool sent = true;
    for (size_t at = 0; sent && at < json.size(); at += kPieceBytes) {
      sent = Send(socket_, kResult + json.substr(at, kPieceBytes));
    }
  }

  Screen screen() const override { return screen_; }

 private:
  const int socket_;
  const Screen screen_;
  std::mutex mu_;
};

// Copies standard output and standard error of the child. If both go to the
// same file, uses one pipe for both, so that their lines stay in order.
class Relays {
 public:
  Status Open() {
    struct stat out;
    struct stat err;
    const bool is_one = fstat(STDOUT_FILENO, &out) == 0 &&
                        fstat(STDERR_FILENO, &err) == 0 &&
                        out.st_dev == err.st_dev && out.st_ino == err.st_ino;
    RETURN_IF_ERROR(OutputRelay::Open(STDOUT_FILENO, &out_));
    return is_one ? Status::OK() : OutputRelay::Open(STDERR_FILENO, &err_);
  }
  int out() const { return out_->pipe(); }
  int err() const { return err_ == nullptr ? out_->pipe() : err_->pipe(); }
  void Begin() {
    out_->Begin();
    if (err_ != nullptr) {
      err_->Begin();
    }
  }
  // Returns false if a part of standard output could not be written.
  bool Finish() {
    if (err_ != nullptr) {
      err_->Finish();
    }
    return out_->Finish();
  }

 private:
  std::unique_ptr<OutputRelay> out_;
  std::unique_ptr<OutputRelay> err_;  // null if out_ is used for both streams
};

// Handles the child's messages and passes signals to the child until it ends.
class RootLoop {
 public:
  RootLoop(const RootDuties& duties, OpenCopy* config, SharedColumns* columns,
           int socket, pid_t child)
      : duties_(duties),
        config_(config),
        columns_(columns),
        socket_(socket),
        child_(child) {}
  ~RootLoop() { Join(); }
  RootLoop(const RootLoop&) = delete;
  RootLoop& operator=(const RootLoop&) = delete;

  int Run() {
    sigset_t passed;
    sigemptyset(&passed);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) {
      sigaddset(&passed, signal);
    }
    pthread_sigmask(SIG_BLOCK, &passed, nullptr);
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
    const int state = AwaitChild(child_);
    close(signals);
    if (CurrentResultReceiver()) {
      CurrentResultReceiver()(result_);
    }
    return WIFEXITED(state) ? WEXITSTATUS(state)
                            : ExitCodeOf(EndState::kInternal);
  }

 private:
  void Pass(int signal) {
    if (signal == SIGWINCH) {
      columns_->Look();
      return;
    }
    if (signal == SIGTSTP) {
      Pause();
      return;
    }
    if (signal == SIGHUP && config_ != nullptr) {
      const Status status = config_->Fill();
      if (!status.ok() && duties_.log) {
        duties_.log(LogLevel::kError, MessageOf(status));
      }
    }
    kill(child_, signal);
  }

  // Handles Ctrl-Z: stops the child and then this process. When the shell
  // continues this process (fg or bg), continues the child.
  void Pause() {
    kill(-child_, SIGSTOP);
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    raise(SIGTSTP);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    kill(-child_, SIGCONT);
  }

  void Serve(const std::string& message) {
    const char kind = message.empty() ? '\0' : message[0];
    if (kind == kStopHook) {
      stopped_ = true;
    } else if (kind == kMetricsPiece || kind == kMetrics) {
      if (metrics_.size() <= kMaxMetricsBytes) {
        metrics_ += message.substr(1);
      }
      if (kind == kMetrics) {
        Send(socket_, AnswerOf(WriteMetrics()));
        metrics_.clear();
      }
    } else if (kind == kResult &&
               result_.size() + message.size() <= kMaxResultBytes) {
      result_ += message.substr(1);
    } else if (kind == kBefore || kind == kAfter) {
      Join();
      stopped_ = false;
      hook_ = std::thread([this, kind, message] { RunHook(kind, message); });
    }
  }

  Status WriteMetrics() const {
    if (!duties_.write_metrics) {
      return MakeStatus(EndState::kRefused, "no metrics here");
    }
    return metrics_.size() <= kMaxMetricsBytes
               ? duties_.write_metrics(metrics_)
               : MakeStatus(EndState::kInternal,
                            "--metrics-file: expected at most " +
                                std::to_string(kMaxMetricsBytes) +
                                " bytes, found more");
  }

  // Runs a hook as root. The command of the hook does not contain text from the
  // child; such text is only in the environment.
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
  SharedColumns* const columns_;
  const int socket_;
  const pid_t child_;
  std::atomic<bool> stopped_{false};
  std::string metrics_;  // the pieces that have arrived
  std::string result_;
  std::thread hook_;
};

int Refused(const RootDuties& duties, const Status& status) {
  std::fprintf(stderr, "sstferry %s: %s: %s\n", duties.command.c_str(),
               EndStateName(EndStateOf(status)), MessageOf(status).c_str());
  return ExitCodeOf(EndStateOf(status));
}

}  // namespace

Screen ScreenFor(const RootSide* root) {
  return root == nullptr ? ScreenOf(stderr) : root->screen();
}

int RunAs(uid_t uid, const RootDuties& duties,
          std::vector<std::string> arguments,
          const std::function<int(const std::vector<std::string>&, RootSide*)>&
              child) {
  TlsFiles* const tls = duties.tls;
  OpenCopy cert(tls->cert, uid);
  OpenCopy key(tls->key, uid);
  OpenCopy ca(tls->ca, uid);
  for (const auto& [option, copy, path] :
       {std::tuple("--tls-cert ", &cert, &tls->cert),
        std::tuple("--tls-key ", &key, &tls->key),
        std::tuple("--tls-ca ", &ca, &tls->ca)}) {
    if (path->empty()) {
      continue;
    }
    const Status read = copy->Fill();
    if (read.ok()) {
      *path = copy->name();
    } else if (duties.log) {
      // Leaves the path as it is. The child then opens the file with the rights
      // of the account.
      duties.log(LogLevel::kWarning,
                 option + MessageOf(read) +
                     "; root does not read this file, so the process of the "
                     "account tries to read it");
    }
  }
  std::string prefix;
  std::string* const word = ConfigOf(&arguments, &prefix);
  OpenCopy config(word != nullptr ? word->substr(prefix.size()) : "",
                  /*account=*/0);
  if (word != nullptr && config.Fill().ok()) {
    *word = prefix + config.name();
  }
  const Account account = FindAccount(uid);
  if (duties.log && !account.name.empty()) {
    duties.log(LogLevel::kInfo,
               "runs as account " + account.name +
                   ", which may rename directories on the path to " +
                   duties.target_dir +
                   (duties.uses_ssh ? "; ssh uses its keys and known hosts"
                                    : ""));
  }
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) !=
      0) {
    return Refused(duties, Errno("socketpair"));
  }
  const int room = static_cast<int>(kMaxMessageBytes);
  for (const int socket : sockets) {
    setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
  }
  SharedColumns columns;
  Screen screen = ScreenOf(stderr);
  screen.columns = [&columns] { return columns.columns(); };
  Relays relays;
  const Status opened = relays.Open();
  if (!opened.ok()) {
    return Refused(duties, opened);
  }
  AccountStart start;
  start.account = account;
  start.out = relays.out();
  start.err = relays.err();
  start.kept = {sockets[1]};
  for (const OpenCopy* const copy : {&cert, &key, &ca, &config}) {
    if (copy->fd() >= 0) {
      start.kept.push_back(copy->fd());
    }
  }
  pid_t process = -1;
  const Status status = ForkAs(start, &process);
  if (process == 0) {
    ChildSide root(sockets[1], screen);
    if (CurrentResultReceiver()) {
      SetResultReceiver([&root](const std::string& json) {
        root.SendResult(json);
      });
    }
    std::exit(status.ok() ? child(arguments, &root) : Refused(duties, status));
  }
  close(sockets[1]);
  if (!status.ok()) {
    close(sockets[0]);
    return Refused(duties, status);
  }
  relays.Begin();
  int code = RootLoop(duties, word != nullptr ? &config : nullptr, &columns,
                      sockets[0], process)
                 .Run();
  close(sockets[0]);
  if (!relays.Finish() && code == 0) {
    code = Refused(duties, MakeStatus(EndState::kInternal,
                                      "standard output: the result could not "
                                      "be written"));
  }
  return code;
}

}  // namespace sstferry
