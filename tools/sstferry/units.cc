// sstferry units
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/printable.h"
#include "format/quantity.h"
#include "sstferry/descriptor.h"
#include "sstferry/spawn.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/unit_files.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;
using Strings = std::vector<std::string>;

constexpr off_t kMaxUnitBytes = 1 << 20;

// How a file of the directory changes.
enum class Change { kNew, kChanged, kSame, kRemoved };

const char* ChangeName(Change change) {
  switch (change) {
    case Change::kNew: return "new";
    case Change::kChanged: return "changed";
    case Change::kSame: return "unchanged";
    case Change::kRemoved: return "removed";
  }
  return "";
}

struct ChangedFile {
  std::string name;
  Change change = Change::kSame;
  std::string before;  // empty: new
  std::string after;   // empty: removed
};

Status Refused(const std::string& what) {
  return MakeStatus(EndState::kRefused, what);
}

// Reads a file of the directory. *is_own: it is a regular file of this account,
// and begins with the header.
Status ReadOld(const Descriptor& directory, const std::string& path,
               const std::string& name, const std::string& header,
               std::string* text, bool* exists, bool* is_own) {
  *exists = *is_own = false;
  const Descriptor file = OpenIn(directory.get(), name, O_RDONLY);
  if (!file.is_open() && errno == ENOENT) {
    return Status::OK();
  }
  *exists = true;
  if (!file.is_open() && errno == ELOOP) {
    return Status::OK();  // a link, such as that of a masked unit
  }
  struct stat info;
  if (!file.is_open() || fstat(file.get(), &info) != 0) {
    return Refused("cannot read " + path + "/" + name + ": " +
                   std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
      info.st_size > kMaxUnitBytes) {
    return Status::OK();
  }
  text->resize(static_cast<size_t>(info.st_size));
  const ssize_t got = read(file.get(), text->data(), text->size());
  text->resize(got > 0 ? static_cast<size_t>(got) : 0);
  *is_own = text->starts_with(header);
  return Status::OK();
}

// Returns true for names that this command may have given to a file, also to a
// draft that a killed run left.
bool MayBeOwn(const std::string& name) {
  const bool is_draft = name.ends_with(".tmp");
  return name.starts_with("sstferry") &&
         (name == "sstferry" || is_draft || name.ends_with(".service") ||
          name.ends_with(".timer") || name.ends_with(".target") ||
          name.ends_with(".yaml"));
}

// Compares what the directory has with what it should have.
Status FindChanges(const std::string& path, const std::string& header,
                   const std::vector<MadeFile>& files,
                   std::vector<ChangedFile>* changes) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  errno = error.value();
  const Descriptor directory =
      error ? Descriptor() : OpenDirectory(real.string());
  const DirectoryStream names =
      directory.is_open() ? NamesIn(directory.get()) : nullptr;
  if (names == nullptr) {
    return Refused("--directory: cannot read " + path + ": " +
                   std::strerror(errno));
  }
  for (const MadeFile& file : files) {
    ChangedFile& change = changes->emplace_back();
    change.name = file.name;
    change.after = file.text;
    bool exists = false;
    bool is_own = false;
    RETURN_IF_ERROR(ReadOld(directory, path, file.name, header, &change.before,
                            &exists, &is_own));
    if (exists && !is_own) {
      return Refused(path + "/" + file.name +
                     ": expected no such file, or one that was written from "
                     "this --config, found another; next: remove it, or give "
                     "the database another name");
    }
    change.change = !exists                        ? Change::kNew
                    : change.before == change.after ? Change::kSame
                                                    : Change::kChanged;
  }
  Strings others;
  for (const dirent* entry = readdir(names.get()); entry != nullptr;
       entry = readdir(names.get())) {
    const std::string name = entry->d_name;
    if (MayBeOwn(name) &&
        std::none_of(files.begin(), files.end(),
                     [&](const MadeFile& one) { return one.name == name; })) {
      others.push_back(name);
    }
  }
  std::sort(others.begin(), others.end());
  for (const std::string& name : others) {
    ChangedFile change = {name, Change::kRemoved, "", ""};
    bool exists = false;
    bool is_own = false;
    RETURN_IF_ERROR(ReadOld(directory, path, name, header, &change.before,
                            &exists, &is_own));
    if (is_own) {
      changes->push_back(change);
    }
  }
  return Status::OK();
}

// Writes new files before it removes old ones: a run that was killed leaves
// whole files, and the next one completes it.
Status Apply(const std::string& path,
             const std::vector<ChangedFile>& changes) {
  for (const ChangedFile& file : changes) {
    if (file.change == Change::kNew || file.change == Change::kChanged) {
      RETURN_IF_ERROR(
          WriteWholeFile("--directory", path + "/" + file.name, file.after));
    }
  }
  for (const ChangedFile& file : changes) {
    if (file.change == Change::kRemoved &&
        unlink((path + "/" + file.name).c_str()) != 0) {
      return MakeStatus(EndState::kInternal,
                        "--directory: cannot remove " + path + "/" + file.name +
                            ": " + std::strerror(errno));
    }
  }
  return Status::OK();
}

Strings LinesOf(const std::string& text) {
  Strings lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Returns the lines that differ, after - or +.
std::string Difference(const std::string& before, const std::string& after) {
  const Strings old = LinesOf(before);
  const Strings now = LinesOf(after);
  // common[i][j]: the most lines that old[i..] and now[j..] share, in order.
  std::vector<std::vector<size_t>> common(
      old.size() + 1, std::vector<size_t>(now.size() + 1, 0));
  for (size_t i = old.size(); i-- > 0;) {
    for (size_t j = now.size(); j-- > 0;) {
      common[i][j] = old[i] == now[j]
                         ? common[i + 1][j + 1] + 1
                         : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string text;
  size_t i = 0;
  size_t j = 0;
  while (i < old.size() || j < now.size()) {
    if (i < old.size() && j < now.size() && old[i] == now[j]) {
      ++i;
      ++j;
    } else if (j == now.size() ||
               (i < old.size() && common[i + 1][j] >= common[i][j + 1])) {
      text += "- " + old[i++] + "\n";
    } else {
      text += "+ " + now[j++] + "\n";
    }
  }
  return text;
}

// Returns the names with one of these changes. `forever`: only services that
// run until they are stopped.
Strings NamesWith(const std::vector<ChangedFile>& changes,
                  const std::vector<Change>& which, bool forever) {
  Strings names;
  for (const ChangedFile& file : changes) {
    const std::string& text = file.after.empty() ? file.before : file.after;
    const bool is_service = file.name.ends_with(".service") &&
                            text.find("\nType=notify\n") != std::string::npos;
    if (std::find(which.begin(), which.end(), file.change) != which.end() &&
        (is_service || (!forever && file.name.ends_with(".timer")))) {
      names.push_back(file.name);
    }
  }
  return names;
}

// Returns the commands of systemctl that make the changes effective. A job that
// runs now runs to its end.
std::vector<Strings> StartCommands(const std::vector<ChangedFile>& changes) {
  std::vector<Strings> commands = {{"systemctl", "daemon-reload"}};
  const auto add = [&](const char* verb, const Strings& names) {
    if (!names.empty()) {
      Strings& command = commands.emplace_back(Strings{"systemctl", verb});
      command.insert(command.end(), names.begin(), names.end());
    }
  };
  add("stop", NamesWith(changes, {Change::kRemoved}, false));
  add("try-restart", NamesWith(changes, {Change::kChanged}, true));
  commands.push_back({"systemctl", "enable", "--now", "sstferry.target"});
  // It may be active already, without what is new.
  commands.push_back({"systemctl", "start", "sstferry.target"});
  return commands;
}

// Runs a command that the shell finds in PATH.
Status RunToEnd(const Strings& words, Console* console) {
  const std::string shown = Printable(words[0] + " " + words[1]);
  console->Log(LogLevel::kInfo, "running " + shown);
  ProgramStart start;
  start.words = {"/bin/sh", "-c", "exec \"$@\"", "sh"};
  start.words.insert(start.words.end(), words.begin(), words.end());
  start.out = STDERR_FILENO;
  pid_t child = 0;
  RETURN_IF_ERROR(Spawn(start, &child));
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) {
      return MakeStatus(EndState::kInternal, shown + ": cannot wait for it");
    }
  }
  return WIFEXITED(state) && WEXITSTATUS(state) == 0
             ? Status::OK()
             : MakeStatus(EndState::kInternal,
                          shown + ": expected exit code 0, found " +
                              std::to_string(WIFEXITED(state)
                                                 ? WEXITSTATUS(state)
                                                 : 128 + WTERMSIG(state)));
}

std::string Text(const UnitsArguments& units,
                 const std::vector<ChangedFile>& changes) {
  std::string counts;
  std::string lines;
  for (const Change change :
       {Change::kNew, Change::kChanged, Change::kSame, Change::kRemoved}) {
    size_t count = 0;
    for (const ChangedFile& file : changes) {
      if (file.change != change) {
        continue;
      }
      ++count;
      if (change != Change::kSame) {
        lines += std::string(ChangeName(change)) + ": " + file.name + "\n" +
                 (units.check ? Difference(file.before, file.after) : "");
      }
    }
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " +
              ChangeName(change);
  }
  std::string text = Printable(units.directory) +
                     (units.check ? " would have" : " has") + ": " +
                     FormatCount(changes.size(), "file") + ", " + counts +
                     "\n" + lines;
  const bool is_same =
      std::all_of(changes.begin(), changes.end(), [](const ChangedFile& file) {
        return file.change == Change::kSame;
      });
  if (units.check) {
    text += is_same ? "" : "next: the same command without --check\n";
  } else if (units.kubernetes) {
    text += "next: kubectl apply -f " + ShellWord(units.directory) + "\n";
  } else if (!units.start && !units.cron) {
    text += "next: the same command with --start\n";
  }
  return text;
}

std::string ToJson(const UnitsArguments& units, const Status& status,
                   const std::vector<ChangedFile>& changes) {
  const EndState state = EndStateOf(status);
  ordered_json json = {{"schema", 1},
                       {"command", "units"},
                       {"status", EndStateName(state)},
                       {"exit_code", ExitCodeOf(state)},
                       {"error", nullptr},
                       {"directory", units.directory},
                       {"check", units.check},
                       {"files", ordered_json::array()}};
  if (!status.ok()) {
    json["error"] = {{"message", MessageOf(status)},
                     {"where", units.directory}};
  }
  for (const ChangedFile& file : changes) {
    json["files"].push_back(
        {{"name", file.name}, {"change", ChangeName(file.change)}});
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

// Returns the path of the program that runs: the units run the same one.
Status OwnProgram(std::string* path) {
  std::error_code error;
  *path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return !error && access(path->c_str(), X_OK) == 0
             ? Status::OK()
             : Refused("expected the file of this program, found that " +
                       *path + " was removed or replaced; next: run it again");
}

Status RunHere(const UnitsArguments& units, const HostFile& host,
               const std::vector<MadeFile>& files, Console* console,
               std::vector<ChangedFile>* changes) {
  RETURN_IF_ERROR(
      FindChanges(units.directory, OwnHeader(host), files, changes));
  if (units.check) {
    return Status::OK();
  }
  RETURN_IF_ERROR(Apply(units.directory, *changes));
  for (const Strings& command :
       units.start ? StartCommands(*changes) : std::vector<Strings>()) {
    RETURN_IF_ERROR(RunToEnd(command, console));
  }
  return Status::OK();
}

}  // namespace

int RunUnits(const std::vector<std::string>& arguments) {
  UnitsArguments units;
  Status usage = ParseUnits(arguments, &units);
  HostFile host;
  if (usage.ok()) {
    usage = ReadHostFile(units.config, &host);
  }
  std::string program;
  if (usage.ok()) {
    usage = OwnProgram(&program);
  }
  std::vector<MadeFile> files;
  if (usage.ok()) {
    usage = units.cron         ? MakeCronFile(host, program, &files)
            : units.kubernetes ? MakeManifests(host, &files)
                               : MakeUnits(host, program, &files);
  }
  if (usage.IsInvalidArgument()) {
    return ReportUsage("units", usage);
  }
  Console console(units.common);
  std::vector<ChangedFile> changes;
  const Status status =
      usage.ok() ? RunHere(units, host, files, &console, &changes) : usage;
  return FinishCommand("units", status, "",
                       units.common.json ? ToJson(units, status, changes)
                       : status.ok()     ? Text(units, changes)
                                         : "",
                       &console);
}

}  // namespace sstferry
