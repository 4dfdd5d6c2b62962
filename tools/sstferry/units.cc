// Implements the command sstferry units.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "format/archive.h"
#include "format/end_state.h"
#include "format/printable.h"
#include "format/quantity.h"
#include "sstferry/descriptor.h"
#include "sstferry/spawn.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/unit_files.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

constexpr off_t kMaxUnitBytes = 1 << 20;
// The changes of a file in the directory of units, as they are printed.
constexpr const char* kNew = "new";
constexpr const char* kChanged = "changed";
constexpr const char* kSame = "unchanged";
constexpr const char* kRemoved = "removed";
// A file in the directory of units. It lists units whose files have changed but
// which systemd has not stopped or restarted yet, and metrics files of removed
// jobs. After a header line, each line has the name of a unit or the path of a
// metrics file.
constexpr char kPendingName[] = ".sstferry-units.pending";
constexpr char kPendingHeader[] =
    "# Units that sstferry units --start stops or restarts.\n";

struct ChangedFile {
  std::string name;
  const char* change = kSame;
  std::string text;  // the new text; the old text if the file is removed
  std::string before;  // the old text; empty if the file is new
};

// Returns the path of the host file from which sstferry units has made `text`.
// Returns "" if sstferry units has not made it.
std::string WriterOf(const std::string& text) {
  const std::string head = kWrittenFrom;
  const size_t end = text.find(kWrittenEnd);
  return text.starts_with(head) && end != std::string::npos &&
                 end < text.find('\n')
             ? text.substr(head.size(), end - head.size())
             : "";
}

// Reads a file of the directory, if it is a regular file that belongs to this
// account. Sets *is_own to true if the file begins with `header`, that is, if
// sstferry units has written it.
Status ReadOld(const Descriptor& directory, const std::string& name,
               const std::string& header, std::string* text, bool* exists,
               bool* is_own) {
  *is_own = false;
  const Descriptor file = OpenIn(directory.get(), name, O_RDONLY);
  *exists = file.is_open() || errno != ENOENT;
  if (!*exists || (!file.is_open() && errno == ELOOP)) {
    return Status::OK();  // a symbolic link, for example of a masked unit
  }
  struct stat info;
  if (!file.is_open() || fstat(file.get(), &info) != 0) {
    return MakeStatus(EndState::kRefused, "--directory: cannot read " + name +
                                              ": " + std::strerror(errno));
  }
  if (S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      info.st_size <= kMaxUnitBytes) {
    text->resize(static_cast<size_t>(info.st_size));
    const ssize_t got = read(file.get(), text->data(), text->size());
    text->resize(got > 0 ? static_cast<size_t>(got) : 0);
    *is_own = text->starts_with(header);
  }
  return Status::OK();
}

Descriptor OpenUnits(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  errno = error.value();
  return error ? Descriptor() : OpenDirectory(real);
}

// Compares the files in the directory `path` with `files`, the files that it
// should contain. Adds each file to *changes.
Status FindChanges(const std::string& path, const std::string& header,
                   const std::vector<MadeFile>& files,
                   std::vector<ChangedFile>* changes) {
  const Descriptor directory = OpenUnits(path);
  const DirectoryStream names =
      directory.is_open() ? NamesIn(directory.get()) : nullptr;
  if (names == nullptr) {
    return MakeStatus(EndState::kRefused, "--directory: cannot read " + path +
                                              ": " + std::strerror(errno));
  }
  // The new texts of the files. A file that must not exist has an empty text.
  std::map<std::string, std::string> wanted;
  while (const dirent* const entry = readdir(names.get())) {
    if (std::string(entry->d_name).starts_with("sstferry")) {
      wanted[entry->d_name];
    }
  }
  for (const MadeFile& file : files) {
    wanted[file.name] = file.text;
  }
  for (const auto& [name, text] : wanted) {
    std::string before;
    bool exists = false;
    bool is_own = false;
    RETURN_IF_ERROR(
        ReadOld(directory, name, header, &before, &exists, &is_own));
    if (exists && !is_own && !text.empty()) {
      const std::string other = WriterOf(before);
      if (!other.empty()) {
        return MakeStatus(
            EndState::kRefused,
            path + "/" + name +
                ": expected no such file, or one that sstferry units wrote "
                "from this --config, found one that it wrote from " + other +
                "; have all jobs of a host in one file");
      }
      return MakeStatus(EndState::kRefused,
                        path + "/" + name +
                            ": expected no such file, or one that sstferry "
                            "units wrote from this --config, found another",
                        "rm " + ShellWord(path + "/" + name));
    }
    if (!text.empty()) {
      changes->push_back({name,
                          !exists          ? kNew
                          : before == text ? kSame
                                           : kChanged,
                          text, before});
    } else if (is_own) {
      changes->push_back({name, kRemoved, before, before});
    }
  }
  return Status::OK();
}

// Returns true if `text` contains `path`. Ignores longer paths that begin with
// `path`, such as /data/orders2 for /data/orders.
bool HasPath(const std::string& text, const std::string& path) {
  for (size_t at = text.find(path); at != std::string::npos;
       at = text.find(path, at + 1)) {
    const char next = (text + "\n")[at + path.size()];
    const bool goes_on = isalnum(static_cast<unsigned char>(next)) != 0 ||
                         std::string("._-/").find(next) != std::string::npos;
    if (!goes_on) return true;
  }
  return false;
}

// Refuses changes that would end the jobs of a database that has disappeared
// although its directory still exists. Probably the volume of the database is
// not mounted.
Status CheckStillThere(const HostFile& host,
                       const std::vector<ChangedFile>& changes) {
  for (const std::string& path : host.without_database) {
    for (const ChangedFile& file : changes) {
      if (HasPath(file.before, path) &&
          (file.change == kRemoved || !HasPath(file.text, path))) {
        return MakeStatus(EndState::kRefused,
                          path + ": expected a database, as when " + file.name +
                              " was written, found none: is its file system "
                              "mounted? Nothing was changed; if the database "
                              "was removed, remove its directory, too");
      }
    }
  }
  return Status::OK();
}

// Returns the metrics file in metrics-dir that the job of the service `name`
// writes. `text` is the text of the service. Returns "" if the job writes none
// there.
std::string MetricsFileOf(const std::string& name, const std::string& text) {
  const std::string begin = " --metrics-file=/";
  const size_t at = text.find(begin);
  if (at == std::string::npos || !name.ends_with(".service")) {
    return "";
  }
  const size_t path = at + begin.size() - 1;
  const std::string file =
      text.substr(path, text.find_first_of(" \n", path) - path);
  const std::string unit = name.substr(0, name.rfind('.'));
  return file.ends_with("/" + unit + ".prom") ||
                 file.ends_with("/" + unit.substr(0, unit.rfind('-')) +
                                "-archive.prom")
             ? file
             : "";
}

// Removes the metrics files in `pending` that no job in `changes` writes. An
// alert about the age of a removed database would otherwise fire.
void RemoveMetrics(const std::vector<ChangedFile>& changes,
                   const std::set<std::string>& pending, Console* console) {
  for (const std::string& path : pending) {
    const bool is_written =
        std::any_of(changes.begin(), changes.end(),
                    [&path](const ChangedFile& file) {
                      return file.change != kRemoved &&
                             HasPath(file.text, path);
                    });
    if (path.starts_with("/") && !is_written && unlink(path.c_str()) != 0 &&
        errno != ENOENT) {
      console->Log(LogLevel::kWarning, "cannot remove " + path + ": " +
                                           std::strerror(errno));
    }
  }
}

// Adds to *pending the units that systemd must stop or restart: units that
// `changes` removes or changes, and units in the file kPendingName. Earlier
// runs have recorded the latter, but did not stop or restart them, for example
// because they ran without --start. Also adds the metrics files of removed
// jobs.
//
// Writes all of these units into kPendingName before a unit's file changes. If
// this run is killed, the next run finds there which units systemd still runs
// in an old form.
Status NotePending(const std::string& path,
                   const std::vector<ChangedFile>& changes,
                   std::set<std::string>* pending) {
  std::string text;
  bool exists = false;
  bool is_own = false;
  RETURN_IF_ERROR(ReadOld(OpenUnits(path), kPendingName, kPendingHeader, &text,
                          &exists, &is_own));
  if (exists && !is_own) {
    return MakeStatus(EndState::kRefused,
                      path + "/" + kPendingName +
                          ": expected a list that sstferry units wrote, found "
                          "another file",
                      "rm " + ShellWord(path + "/" + kPendingName));
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("sstferry") || line.starts_with("/")) {
      pending->insert(line);
    }
  }
  const size_t left = pending->size();
  for (const ChangedFile& file : changes) {
    const bool forever = file.text.find("\nType=notify\n") != std::string::npos;
    // Leaves out the services of timers, because stopping one would interrupt a
    // running job.
    if ((file.change == kChanged && forever) ||
        (file.change == kRemoved &&
         (forever || file.name.ends_with(".timer")))) {
      pending->insert(file.name);
    }
    const std::string metrics = MetricsFileOf(file.name, file.before);
    if (file.change == kRemoved && !metrics.empty()) {
      pending->insert(metrics);
    }
  }
  if (pending->size() == left) {
    return Status::OK();
  }
  text = kPendingHeader;
  for (const std::string& name : *pending) text += name + "\n";
  return WriteWholeFile("--directory", path + "/" + kPendingName, text);
}

// Writes the new and changed files, and then removes old ones. Replaces each
// file atomically. If this run is killed, the next run makes the other changes.
Status Apply(const std::string& path, const std::vector<ChangedFile>& changes) {
  for (const ChangedFile& file : changes) {
    if (file.change == kNew || file.change == kChanged) {
      RETURN_IF_ERROR(
          WriteWholeFile("--directory", path + "/" + file.name, file.text));
    }
  }
  for (const ChangedFile& file : changes) {
    if (file.change == kRemoved &&
        unlink((path + "/" + file.name).c_str()) != 0) {
      return MakeStatus(EndState::kInternal,
                        "--directory: cannot remove " + path + "/" + file.name +
                            ": " + std::strerror(errno));
    }
  }
  return Status::OK();
}

// Makes systemd apply the changes. Stops the units in `pending` whose files
// were removed, and restarts the others. Removes the metrics files in
// `pending`. Returns an error if a server, a follower or a timer is not active
// at the end.
Status Start(const std::string& path, const std::vector<ChangedFile>& changes,
             const std::set<std::string>& pending, Console* console) {
  std::string stop;
  std::string forget;
  std::string restart;
  std::string active;
  for (const ChangedFile& file : changes) {
    const bool forever = file.text.find("\nType=notify\n") != std::string::npos;
    if (file.change != kRemoved &&
        (forever || file.name.ends_with(".timer"))) {
      active += " " + ShellWord(file.name);
    }
  }
  for (const std::string& name : pending) {
    if (name.starts_with("/")) {
      continue;  // a metrics file
    }
    std::error_code error;
    const bool is_unit = std::filesystem::is_regular_file(
        std::filesystem::symlink_status(path + "/" + name, error));
    (is_unit ? restart : stop) += " " + ShellWord(name);
    if (!is_unit) {
      forget += " " + ShellWord(name);
      if (name.ends_with(".timer")) {
        forget += " " + ShellWord(name.substr(0, name.rfind('.')) + ".service");
      }
    }
  }
  // Stops before daemon-reload, which would make an active timer without a file
  // a failed unit. `stop` and `reset-failed` may fail for a unit that systemd
  // has not loaded. `start` follows `enable --now`, because only `start` starts
  // new units of a target that is already active.
  const std::string script =
      (stop.empty() ? ""
                    : "{ systemctl stop" + stop +
                          " || ! systemctl is-active --quiet" + stop +
                          "; } && { systemctl reset-failed" + forget +
                          " 2>/dev/null || :; } && ") +
      "systemctl daemon-reload" +
      (restart.empty() ? "" : " && systemctl try-restart" + restart) +
      " && systemctl enable --now sstferry.target"
      " && systemctl start sstferry.target"
      // Checks each unit: a target starts even if its units fail to start.
      " && { bad=; for unit in" + active +
      "; do systemctl --quiet is-active \"$unit\" || { bad=1; "
      "echo \"$unit is not active: see systemctl status\" >&2; }; done; "
      "[ -z \"$bad\" ]; }";
  ProgramStart start;
  start.words = {"/bin/sh", "-c", script};
  start.out = STDERR_FILENO;
  console->Log(LogLevel::kInfo, "running " + script);
  pid_t child = 0;
  RETURN_IF_ERROR(Spawn(start, &child));
  if (AwaitChild(child) != 0) {
    return MakeStatus(EndState::kInternal,
                      "systemctl failed, or a unit did not start; the message "
                      "is above");
  }
  RemoveMetrics(changes, pending, console);
  const std::string done = path + "/" + kPendingName;
  return unlink(done.c_str()) == 0 || errno == ENOENT
             ? Status::OK()
             : MakeStatus(EndState::kInternal,
                          "--directory: cannot remove " + done + ": " +
                              std::strerror(errno));
}

// Returns kubectl's arguments for the object of a manifest, such as
// "CronJob/sstferry-orders-push". Returns "" if the text is not a manifest.
std::string ObjectOf(const std::string& manifest) {
  const ordered_json object = ordered_json::parse(
      manifest.substr(std::min(manifest.find('\n'), manifest.size())), nullptr,
      /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("metadata")) {
    return "";
  }
  const ordered_json& about = object["metadata"];
  const std::string space = about.value("namespace", "");
  return object.value("kind", "") + "/" + about.value("name", "") +
         (space.empty() ? "" : " --namespace " + ShellWord(space));
}

// Returns the commands that delete the Kubernetes objects whose manifests were
// removed. `kubectl apply` does not delete these objects.
std::string DeleteOld(const std::vector<ChangedFile>& changes) {
  std::string commands;
  for (const ChangedFile& file : changes) {
    const std::string object = ObjectOf(file.before);
    if (!object.empty() &&
        (file.change == kRemoved || object != ObjectOf(file.text))) {
      commands += "kubectl delete --ignore-not-found " + object + " && ";
    }
  }
  return commands;
}

// Returns the command that ends the servers and followers whose lines in the
// cron file were changed or removed. If a line was changed, cron starts the job
// again with the new line.
std::string EndOld(const std::vector<ChangedFile>& changes) {
  const std::string begin = " flock -n ";
  std::string locks;
  for (const ChangedFile& file : changes) {
    std::istringstream lines(file.before);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find(begin);
      const bool stays = ("\n" + file.text).find("\n" + line + "\n") !=
                         std::string::npos;
      if (at != std::string::npos &&
          (file.change == kRemoved || !stays)) {
        const size_t lock = at + begin.size();
        locks += " " + line.substr(lock, line.find(' ', lock) - lock);
      }
    }
  }
  return locks.empty() ? "" : "fuser -k -TERM" + locks;
}

std::string Text(const UnitsArguments& units,
                 const std::vector<ChangedFile>& changes) {
  std::string lines;
  for (const ChangedFile& file : changes) {
    if (file.change != kSame) {
      lines += std::string(file.change) + ": " + file.name + "\n";
    }
  }
  const std::string next =
      units.kubernetes
          ? DeleteOld(changes) + "kubectl apply -f " +
                ShellWord(units.directory)
      : units.cron  ? EndOld(changes)
      : units.start ? ""
                    : "the same command with --start";
  return Printable(units.directory) +
         (units.check ? " would have " : " has ") +
         FormatCount(changes.size(), "file") +
         (lines.empty() ? ", all unchanged\n" : "\n" + lines) +
         (next.empty() || units.check ? "" : "next: " + next + "\n");
}

std::string ToJson(const UnitsArguments& units, const Status& status,
                   const std::vector<ChangedFile>& changes) {
  ordered_json json = ResultJson("units", status, units.directory);
  json["directory"] = units.directory;
  json["check"] = units.check;
  json["files"] = ordered_json::array();
  for (const ChangedFile& file : changes) {
    json["files"].push_back({{"name", file.name}, {"change", file.change}});
  }
  return DumpJson(json);
}

// Sets *path to the path of the program file of this process. The units run the
// same program.
Status OwnProgram(std::string* path) {
  std::error_code error;
  *path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return !error && access(path->c_str(), X_OK) == 0
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "the file of this running program was removed or "
                          "replaced: " + *path);
}

// Returns true if it is known that `path` does not exist. Returns false if this
// account may not look.
bool IsAbsent(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) != 0 &&
         (errno == ENOENT || errno == ENOTDIR);
}

// Returns the directory that must be an archive before the job can run, or ""
// if the job needs none. push --all makes its archives.
std::string NeededArchive(const HostJob& job) {
  // Parsing cannot fail, because ReadHostFile() has checked the command lines.
  const std::vector<std::string> words(job.words.begin() + 1, job.words.end());
  ArchiveArguments archive;
  FollowArguments follow;
  if (job.words[0] == "archive" && ParseArchive(words, &archive).ok()) {
    return archive.all ? "" : archive.options.store.where.directory;
  }
  if (job.kind == JobKind::kFollow && !job.words[2].starts_with("/") &&
      ParseFollow(words, &follow).ok()) {
    return follow.options.store.where.directory;
  }
  return "";
}

// Logs a warning for each thing that the jobs need and that does not exist:
// archives, files, and the parents of what the jobs make, such as metrics-dir.
void WarnOfMissing(const HostFile& host, Console* console) {
  std::set<std::string> seen;
  for (const HostJob& job : host.jobs) {
    std::vector<std::string> needed;
    for (const JobPath& path : job.paths) {
      needed.push_back(
          path.is_written
              ? std::filesystem::path(path.path).parent_path().string()
              : path.path);
    }
    if (!job.environment_file.empty()) {
      needed.push_back(job.environment_file);
    }
    for (const std::string& path : needed) {
      if (IsAbsent(path) && seen.insert(path).second) {
        console->Log(LogLevel::kWarning,
                     job.unit + ": expected " + path + ", found nothing");
      }
    }
    const std::string archive = NeededArchive(job);
    if (!archive.empty() && IsAbsent(archive + "/" + kArchiveHeadKey) &&
        seen.insert(archive + "/").second) {
      console->Log(LogLevel::kWarning,
                   job.unit + ": expected an archive in " + archive +
                       ", found none; sstferry archive init makes one");
    }
  }
}

Status Run(const UnitsArguments& units, Console* console,
           std::vector<ChangedFile>* changes) {
  HostFile host;
  std::string program;
  std::vector<MadeFile> files;
  RETURN_IF_ERROR(ReadHostFile(units.config, &host));
  RETURN_IF_ERROR(OwnProgram(&program));
  RETURN_IF_ERROR(MakeFiles(units.cron         ? FileForm::kCron
                            : units.kubernetes ? FileForm::kKubernetes
                                               : FileForm::kUnits,
                            host, program, &files));
  RETURN_IF_ERROR(
      FindChanges(units.directory, OwnHeader(host), files, changes));
  RETURN_IF_ERROR(CheckStillThere(host, *changes));
  if ((units.check || units.start) && !units.kubernetes) {
    WarnOfMissing(host, console);
  }
  if (units.check) {
    return Status::OK();
  }
  std::set<std::string> pending;
  RETURN_IF_ERROR(NotePending(units.directory, *changes, &pending));
  RETURN_IF_ERROR(Apply(units.directory, *changes));
  return units.start
             ? Start(units.directory, *changes, pending, console)
             : Status::OK();
}

}  // namespace

int RunUnits(const std::vector<std::string>& arguments) {
  UnitsArguments units;
  const Status usage = ParseUnits(arguments, &units);
  if (!usage.ok()) {
    return ReportUsage("units", usage);
  }
  Console console(units.common);
  std::vector<ChangedFile> changes;
  const Status status = Run(units, &console, &changes);
  if (status.IsInvalidArgument()) {  // a wrong line of the host's file
    return ReportUsage("units", status);
  }
  return FinishCommand("units", status, "",
                       units.common.json ? ToJson(units, status, changes)
                       : status.ok()     ? Text(units, changes)
                                         : "",
                       &console);
}

}  // namespace sstferry
