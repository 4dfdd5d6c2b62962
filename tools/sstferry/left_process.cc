#include "sstferry/descriptor.h"
#include "tools/sstferry/left_process.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <sstream>

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

constexpr int kLeftLookMillis = 50;
// Number of fields in /proc/PID/stat from the process's state to its start
// time. The state follows the program's name, which ends at the last ')'.
constexpr int kFieldsToStart = 19;

std::string BytesOf(pid_t process, const std::string& name) {
  return ReadProc(std::to_string(process) + "/" + name);
}

// Returns the process id in a name that NameOfProcess() has returned, or 0 if
// there is none.
pid_t IdIn(const std::string& name) {
  pid_t process = 0;
  std::istringstream(name) >> process;
  return process;
}

// Waits for the end of the process `name`. Returns false if the process still
// runs after the time `limit`.
bool Ends(const std::string& name, std::chrono::seconds limit) {
  const steady_clock::time_point until = steady_clock::now() + limit;
  while (IsRunning(name)) {
    if (steady_clock::now() >= until) {
      return false;
    }
    poll(nullptr, 0, kLeftLookMillis);
  }
  return true;
}

std::string CommandOf(pid_t process) {
  std::string words = BytesOf(process, "cmdline");
  while (!words.empty() && words.back() == '\0') {
    words.pop_back();
  }
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

// Returns true if the process's initial environment contains `variable`, a text
// such as "NAME=VALUE".
bool Carries(pid_t process, const std::string& variable) {
  const std::string all = BytesOf(process, "environ");
  const std::string mark = variable + '\0';
  return all.starts_with(mark) ||
         all.find('\0' + mark) != std::string::npos;
}

}  // namespace

std::string NameOfProcess(pid_t process) {
  const std::string text = BytesOf(process, "stat");
  const size_t behind = text.rfind(')');
  if (behind == std::string::npos) {
    return "";
  }
  std::istringstream fields(text.substr(behind + 1));
  std::string state;
  std::string start;
  fields >> state;
  for (int i = 0; i < kFieldsToStart; ++i) {
    fields >> start;
  }
  std::string boot = ReadProc("sys/kernel/random/boot_id");
  boot.resize(boot.find_last_not_of('\n') + 1);
  // The states Z (zombie) and X (dead) mean that the process has ended.
  return !fields || state == "Z" || state == "X"
             ? ""
             : std::to_string(process) + " " + start + " " + boot;
}

bool IsRunning(const std::string& name) {
  const pid_t process = IdIn(name);
  return process > 0 && NameOfProcess(process) == name;
}

Status EndLeftProcess(const std::string& name, const std::string& mark,
                      const std::string& what, std::chrono::seconds grace,
                      const LogFunction& log) {
  const pid_t process = IdIn(name);
  if (process <= 1 || !IsRunning(name) || !Carries(process, mark)) {
    return Status::OK();
  }
  const std::string who =
      what + " still runs as process " + std::to_string(process) + " (" +
      CommandOf(process) + ")";
  if (log) {
    log(LogLevel::kWarning, who + "; it is ended now");
  }
  int error = kill(-process, SIGTERM) == 0 ? 0 : errno;
  if (error == 0 && !Ends(name, grace)) {
    error = kill(-process, SIGKILL) == 0 ? 0 : errno;
  }
  if ((error == 0 || error == ESRCH) && Ends(name, grace)) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kBusy,
      who + " and could not be ended" +
          (error == 0 ? "" : std::string(": ") + strerror(error)) +
          "; end it, then run the same command again");
}

}  // namespace sstferry
