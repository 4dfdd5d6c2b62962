#include "sstferry/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "format/end_state.h"

extern char** environ;

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr int kThird = 3;

Status Errno(EndState state, const std::string& what) {
  return MakeStatus(state, what + ": " + strerror(errno));
}

// Owns the file actions and attributes of one posix_spawn().
class SpawnCall {
 public:
  SpawnCall() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnCall() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnCall(const SpawnCall&) = delete;
  SpawnCall& operator=(const SpawnCall&) = delete;

  // Passes a descriptor to the child, which gets it under the number `to`.
  // REQUIRES: no later call passes the number `to` as its `descriptor`.
  void Give(int descriptor, int to) {
    if (descriptor == ProgramStart::kNothing) {
      posix_spawn_file_actions_addopen(&actions_, to, "/dev/null", O_RDWR, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions_, descriptor, to);
    }
  }
  void CloseFrom(int first) {
    posix_spawn_file_actions_addclosefrom_np(&actions_, first);
  }
  // Unblocks all signals in the child, because this process blocks some. Resets
  // SIGCHLD, which an application may ignore, because a shell needs it. Signals
  // that nohup ignores stay ignored in the child.
  void Attributes(bool own_group) {
    sigset_t none;
    sigemptyset(&none);
    sigset_t defaults = none;
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    sigaddset(&defaults, SIGCHLD);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                           (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  }
  int Start(std::vector<std::string> words,
            std::optional<std::vector<std::string>> environment,
            pid_t* child) {
    std::vector<char*> argv;
    std::vector<char*> envp;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    if (environment) {
      for (std::string& variable : *environment) {
        envp.push_back(variable.data());
      }
    }
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    return posix_spawn(child, argv[0], &actions_, &attributes_, argv.data(),
                       environment ? envp.data() : environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Returns true if the account may have the variable of root's environment.
// These are the variables for the terminal, the language, network proxies and
// object stores. Others may hold secrets, such as a token of root.
bool MayHave(std::string_view variable) {
  static constexpr const char* kNames[] = {
      "PATH",        "LANG",        "LANGUAGE",    "TZ",         "TERM",
      "NO_COLOR",    "TMPDIR",      "http_proxy",  "HTTP_PROXY", "https_proxy",
      "HTTPS_PROXY", "all_proxy",   "ALL_PROXY",   "no_proxy",   "NO_PROXY",
      "SSL_CERT_DIR", "SSL_CERT_FILE"};
  const std::string_view name = variable.substr(0, variable.find('='));
  return name.starts_with("LC_") || name.starts_with("AWS_") ||
         std::find(std::begin(kNames), std::end(kNames), name) !=
             std::end(kNames);
}

// Replaces root's environment by one for the account. The account will be able
// to read this process's memory, including freed memory. So overwrites the old
// variables, and does not copy variables that the account may not have.
Status ReplaceEnvironment(const Account& account) {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (MayHave(*variable)) {
      kept.emplace_back(*variable);
    }
    explicit_bzero(*variable, strlen(*variable));
  }
  bool is_set = clearenv() == 0;
  for (const std::string& variable : kept) {
    const size_t equals = variable.find('=');
    if (equals != std::string::npos) {
      is_set = is_set && setenv(variable.substr(0, equals).c_str(),
                                variable.c_str() + equals + 1, 1) == 0;
    }
  }
  is_set = is_set && setenv("HOME", account.home.c_str(), 1) == 0 &&
           setenv("SHELL", account.shell.c_str(), 1) == 0 &&
           setenv("USER", account.name.c_str(), 1) == 0 &&
           setenv("LOGNAME", account.name.c_str(), 1) == 0;
  return is_set ? Status::OK() : Errno(EndState::kRefused, "setenv");
}

// Closes all descriptors from 3 on, except those in `kept`.
void CloseOthers(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  int first = kThird;
  for (const int each : kept) {
    for (; first < each; ++first) {
      close(first);
    }
    first = std::max(first, each + 1);
  }
  closefrom(first);
}

// Disconnects this process from root's terminal. Otherwise a process of the
// account could insert input into the terminal (TIOCSTI). It could do so in a
// session with the terminal, or through a descriptor of the terminal.
Status GiveStreams(const AccountStart& start) {
  const int nothing = open("/dev/null", O_RDWR);
  if (setsid() < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
      dup2(start.out, STDOUT_FILENO) < 0 ||
      dup2(start.err, STDERR_FILENO) < 0) {
    return Errno(EndState::kRefused, "cannot leave the terminal");
  }
  CloseOthers(start.kept);
  return Status::OK();
}

Status Become(const Account& account) {
  const uid_t uid = account.uid;
  const gid_t gid = account.group;
  if (initgroups(account.name.c_str(), gid) != 0 ||
      setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0 ||
      setuid(0) == 0) {
    return Errno(EndState::kRefused, "cannot become user " + account.name);
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Errno(EndState::kRefused, "no_new_privs");
  }
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else root owns /proc/self/fd
  return Status::OK();
}

// Makes the kernel end this process when its parent ends. Fails if the parent
// has already ended.
Status EndWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  return getppid() == parent
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "the parent process of this one has ended");
}

}  // namespace

Status Spawn(const ProgramStart& start, pid_t* child) {
  // Copy the descriptors to numbers that are higher than the child's numbers.
  // Then no dup2() in the child overwrites a descriptor that is still needed.
  constexpr int kAbove = 10;
  std::array<int, 4> given = {start.in, start.out, start.err, start.third};
  std::vector<int> copies;
  for (int& each : given) {
    if (each != ProgramStart::kNothing) {
      each = fcntl(each, F_DUPFD_CLOEXEC, kAbove);
      copies.push_back(each);
    }
  }
  SpawnCall call;
  for (int i = 0; i < kThird; ++i) {
    call.Give(given[static_cast<size_t>(i)], i);
  }
  if (start.third != ProgramStart::kNothing) {
    call.Give(given[kThird], kThird);
  }
  call.CloseFrom(start.third == ProgramStart::kNothing ? kThird : kThird + 1);
  call.Attributes(start.own_group);
  int error = std::find(copies.begin(), copies.end(), -1) == copies.end()
                  ? 0
                  : EBADF;
  if (error == 0) {
    error = call.Start(start.words, start.environment, child);
  }
  for (const int copy : copies) {
    close(copy);
  }
  return error == 0 ? Status::OK()
                    : MakeStatus(EndState::kInternal,
                                 "cannot start " + start.words[0] + ": " +
                                     strerror(error));
}

bool ReapChild(pid_t child, int* wait_status) {
  const pid_t reaped = waitpid(child, wait_status, WNOHANG);
  if (reaped < 0) {
    *wait_status = kUnknownEnd;
  }
  return reaped != 0;
}

int AwaitChild(pid_t child) {
  int wait_status = kUnknownEnd;
  while (waitpid(child, &wait_status, 0) < 0) {
    if (errno != EINTR) {
      return kUnknownEnd;
    }
  }
  return wait_status;
}

void SignalChild(pid_t child, int signal, bool whole_group) {
  siginfo_t info;
  if (waitid(P_PID, static_cast<id_t>(child), &info,
             WEXITED | WNOHANG | WNOWAIT) == 0) {
    kill(whole_group ? -child : child, signal);
  }
}

Account FindAccount(uid_t uid) {
  struct passwd entry;
  struct passwd* found = nullptr;
  std::vector<char> room(1 << 16);
  Account account;
  account.uid = uid;
  if (getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 &&
      found != nullptr) {
    account.group = entry.pw_gid;
    account.name = entry.pw_name;
    account.home = entry.pw_dir;
    account.shell = entry.pw_shell;
  }
  return account;
}

Status ForkAs(const AccountStart& start, pid_t* child) {
  *child = -1;
  if (start.account.name.empty()) {
    return MakeStatus(EndState::kRefused,
                      "user " + std::to_string(start.account.uid) +
                          ", which owns the directory of TARGET_DIR, has no "
                          "account on this machine; run the command as that "
                          "user");
  }
  const pid_t parent = getpid();
  *child = fork();
  if (*child < 0) {
    return Errno(EndState::kRefused, "fork");
  }
  if (*child > 0) {
    return Status::OK();
  }
  RETURN_IF_ERROR(GiveStreams(start));
  RETURN_IF_ERROR(ReplaceEnvironment(start.account));
  RETURN_IF_ERROR(Become(start.account));
  return EndWithParent(parent);
}

}  // namespace sstferry
