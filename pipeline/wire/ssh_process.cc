#include "pipeline/wire/ssh_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <thread>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/wire/tcp_socket.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"
#include "sstferry/spawn.h"

namespace sstferry {

using rocksdb::Status;

namespace {

constexpr char kSshShell[] = "/bin/sh";
constexpr std::chrono::milliseconds kSshLook{5};
// Time that a process may take to end after its input has ended or after a
// signal.
constexpr std::chrono::milliseconds kSshGrace{500};

// Returns true if a user or host has only harmless characters. ssh may insert
// the name into commands of its configuration. `more` contains the allowed
// characters besides letters and digits.
bool IsPlainName(const std::string& name, const char* more) {
  return !name.empty() && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [more](unsigned char c) {
           return c < 0x80 && (isalnum(c) != 0 || strchr(more, c) != nullptr);
         });
}

bool HasControl(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Status WrongWord(const std::string& what, const std::string& expected,
                 const std::string& found) {
  return Status::InvalidArgument(what + ": expected " + expected +
                                 ", found \"" + Printable(found) + "\"");
}

}  // namespace

Status CheckSshPlace(const SshPlace& place) {
  if (!IsPlainName(place.host, "._-:")) {
    return WrongWord("ssh host",
                     "letters, digits and . _ - : without - at the start",
                     place.host);
  }
  if (!place.user.empty() && !IsPlainName(place.user, "._-+@")) {
    return WrongWord("ssh user",
                     "letters, digits and . _ - + @ without - at the start",
                     place.user);
  }
  if (place.directory.size() < 2 || place.directory[0] != '/' ||
      HasControl(place.directory)) {
    return WrongWord("directory at " + place.host,
                     "a path that begins with /, without control characters",
                     place.directory);
  }
  return Status::OK();
}

Status SshWords(const SshPlace& place, const std::vector<std::string>& words,
                bool asks_nobody, std::vector<std::string>* out) {
  RETURN_IF_ERROR(WithContext(CheckSshPlace(place), EndState::kRefused, "ssh"));
  std::string remote = place.commands.remote;
  for (const std::string& word : words) {
    if (HasControl(word)) {
      return WithContext(WrongWord("a word for the shell at " + place.host,
                                   "no control characters", word),
                         EndState::kRefused, "ssh");
    }
    remote += " " + ShellWord(word);
  }
  *out = {kSshShell, "-c",
          // Makes ssh ignore an interrupt (Ctrl-C). The command that started
          // ssh reports the reason and then ends ssh.
          "trap '' INT; exec " + place.commands.ssh + " \"$@\"", "sh", "-T"};
  if (asks_nobody) {
    out->insert(out->end(), {"-o", "BatchMode=yes"});
  }
  if (!place.user.empty()) {
    out->insert(out->end(), {"-l", place.user});
  }
  if (place.port != 0) {
    out->insert(out->end(), {"-p", std::to_string(place.port)});
  }
  out->insert(out->end(), {place.host, remote});
  return Status::OK();
}

bool HasTerminal() {
  return OpenPath("/dev/tty", O_RDWR).is_open();
}

Status SshProcess::Start(const std::vector<std::string>& words,
                         Descriptor* socket,
                         std::unique_ptr<SshProcess>* process) {
  std::array<int, 2> pair = {-1, -1};
  if (socket != nullptr &&
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return MakeStatus(EndState::kInternal, "socketpair: " + ErrorText(errno));
  }
  Descriptor here(pair[0]);
  const Descriptor there(pair[1]);
  ProgramStart start;
  start.words = words;
  start.in = socket != nullptr ? there.get() : STDIN_FILENO;
  start.out = socket != nullptr ? there.get() : STDOUT_FILENO;
  pid_t pid = 0;
  RETURN_IF_ERROR(Spawn(start, &pid));
  process->reset(new SshProcess(pid));
  if (socket != nullptr) {
    *socket = std::move(here);
  }
  return Status::OK();
}

SshProcess::~SshProcess() {
  if (Wait(kSshGrace)) {
    return;
  }
  Signal(SIGTERM);
  if (!Wait(kSshGrace)) {
    Signal(SIGKILL);
    while (!Wait(kSshGrace)) {
    }
  }
}

bool SshProcess::Reap() {
  const std::lock_guard<std::mutex> lock(mu_);
  int state = 0;
  if (!ended_ && ReapChild(pid_, &state)) {
    ended_ = state;
  }
  return ended_.has_value();
}

std::optional<int> SshProcess::Wait(std::chrono::milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  while (!Reap() && Clock::now() < until) {
    std::this_thread::sleep_for(kSshLook);
  }
  const std::lock_guard<std::mutex> lock(mu_);
  return ended_;
}

void SshProcess::Signal(int signal) {
  const std::lock_guard<std::mutex> lock(mu_);
  if (!ended_) {
    SignalChild(pid_, signal);
  }
}

std::string DescribeExit(int wait_status) {
  if (wait_status == kUnknownEnd) {
    return "ended with an unknown exit code, because this process ignores "
           "SIGCHLD or reaps all its children";
  }
  return WIFSIGNALED(wait_status)
             ? "was ended by signal " + std::to_string(WTERMSIG(wait_status))
             : "ended with exit code " +
                   std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace sstferry
