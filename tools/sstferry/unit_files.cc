#include "tools/sstferry/unit_files.h"

#include <pwd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "sstferry/options.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/unit_templates.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

constexpr char kTarget[] = "sstferry.target";
// cron refuses a longer command.
constexpr size_t kMaxCronCommand = 990;
// A CronJob adds 11 characters to the name of a job, which may have 63.
constexpr size_t kMaxKubernetesName = 52;
// The user of the image, which needs no right of the node.
constexpr int64_t kImageUser = 65532;

Status AtJob(const HostFile& host, const HostJob& job, const Status& status) {
  return WithPlace("--config " + host.path + ": " + job.where, status);
}

std::string ParentOf(const std::string& path) {
  return path.substr(0, std::max<size_t>(path.find_last_of('/'), 1));
}

std::string AboutJob(const HostJob& job) {
  return std::string("sstferry: ") + JobKindName(job.kind) +
         (job.database.empty() ? "" : " of " + job.database);
}

bool IsBelow(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

// Returns the directories in which the server writes, beside the databases,
// outside of those that its packaged unit has.
std::string WritePaths(const HostJob& job) {
  std::set<std::string> parents;
  bool in_home = false;
  for (const JobPath& path : job.paths) {
    const std::string parent = ParentOf(path.path);
    if (path.is_written && !IsBelow(parent, "/var/lib") &&
        !IsBelow(parent, "/srv")) {
      parents.insert(parent);
      in_home |= IsBelow(parent, "/home");
    }
  }
  std::string lines;
  for (const std::string& parent : parents) {
    lines += "ReadWritePaths=" + UnitWord("-" + parent) + "\n";
  }
  return lines + (in_home ? "ProtectHome=no\n" : "");
}

std::string CommandLineOf(const std::string& program,
                          const std::vector<std::string>& words) {
  std::string line = UnitWord(program);
  for (const std::string& word : words) {
    line += " " + UnitWord(word);
  }
  return line;
}

// Replaces lines of a packaged unit by their keys; an empty text removes a line.
// Comments are about the packaged unit, and [Install] is the target's.
std::string Changed(const std::string& unit, const std::string& header,
                    const std::map<std::string, std::string>& changes) {
  std::string text = header;
  std::istringstream lines(unit);
  for (std::string line; std::getline(lines, line);) {
    if (line == "[Install]") {
      break;
    }
    const size_t equals = line.find('=');
    const auto change =
        changes.find(equals == std::string::npos ? line
                                                 : line.substr(0, equals));
    if (line.starts_with("#")) {
      continue;
    }
    text += change == changes.end() ? line + "\n" : change->second;
  }
  while (text.ends_with("\n\n")) {
    text.pop_back();
  }
  return text;
}

std::string ServiceText(const HostFile& host, const HostJob& job,
                        const std::string& program) {
  std::map<std::string, std::string> changes = {
      {"Description", "Description=" + AboutJob(job) + "\n"},
      {"EnvironmentFile", ""},
      {"ExecStart", (job.environment_file.empty()
                         ? ""
                         : "EnvironmentFile=" + job.environment_file + "\n") +
                        "ExecStart=" + CommandLineOf(program, job.words) +
                        "\n"}};
  if (RunsForever(job.kind)) {
    changes["[Unit]"] = std::string("[Unit]\nPartOf=") + kTarget + "\n";
  }
  if (!job.account.empty()) {
    // The group lets it enter /etc/sstferry.
    changes["[Service]"] = "[Service]\nUser=" + job.account +
                           "\nSupplementaryGroups=sstferry\n";
    changes["User"] = changes["SupplementaryGroups"] = "";
    changes["CapabilityBoundingSet"] = "CapabilityBoundingSet=\n";
  }
  if (job.kind == JobKind::kServe) {
    changes["RuntimeDirectory"] = "RuntimeDirectory=sstferry-serve\n";
    changes["UMask"] = "UMask=0077\n" + WritePaths(job);
    if (std::any_of(job.words.begin(), job.words.end(),
                    [](const std::string& word) {
                      return word.starts_with("--allow-uid=");
                    })) {
      // Otherwise it cannot tell one account from another.
      changes["PrivateUsers"] = "PrivateUsers=no\n";
    }
  }
  return Changed(
      UnitTemplates().at(
          PackagedUnit(job.kind, !job.account.empty(), "service")),
      OwnHeader(host), changes);
}

std::string TimerText(const HostFile& host, JobKind like,
                      const std::string& about, const std::string& when) {
  return Changed(UnitTemplates().at(PackagedUnit(like, false, "timer")),
                 OwnHeader(host),
                 {{"[Unit]", std::string("[Unit]\nPartOf=") + kTarget + "\n"},
                  {"Description", "Description=" + about + "\n"},
                  {"OnCalendar", "OnCalendar=" + when + "\n"}});
}

// Returns the service that runs `sstferry units` again. It has the sandbox of a
// refresh, but reads what others own, and writes units.
std::string RescanText(const HostFile& host, const std::string& program) {
  return Changed(
      UnitTemplates().at(PackagedUnit(JobKind::kRefresh, false, "service")),
      OwnHeader(host),
      {{"Description", "Description=sstferry: looks for databases\n"},
       {"ExecStart",
        "ExecStart=" +
            CommandLineOf(program,
                          {"units", "--config=" + host.path, "--start"}) +
            "\n"},
       {"CapabilityBoundingSet",
        "CapabilityBoundingSet=CAP_DAC_READ_SEARCH\n"
        "ReadWritePaths=/etc/systemd/system\n"}});
}

std::string ShellCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += (line.empty() ? "" : " ") + ShellWord(word);
  }
  return line;
}

Status CronLine(const HostJob& job, const std::string& program,
                std::string* line) {
  std::vector<std::string> words;
  std::string fields = "* * * * *";
  const bool forever = RunsForever(job.kind);
  if (forever) {
    // Starts it again within a minute after it ended.
    words = {"flock", "-n", "/run/" + job.unit + ".lock"};
    if (!job.account.empty()) {
      words.insert(words.end(), {"runuser", "-u", job.account, "--"});
    }
  } else {
    RETURN_IF_ERROR(job.calendar.ToCron("when", &fields));
    if (!job.calendar.zone().empty()) {
      return Wrong("when", "no zone: cron has that of the machine", job.when);
    }
  }
  if (job.kind == JobKind::kServe && job.account.empty()) {
    return Status::InvalidArgument(
        "account: expected one with --cron, found none: only systemd gives a "
        "server without one its rights");
  }
  words.push_back(program);
  words.insert(words.end(), job.words.begin(), job.words.end());
  std::string command =
      (job.environment_file.empty()
           ? ""
           : "set -a; . " + ShellWord(job.environment_file) + "; ") +
      ShellCommand(words);
  if (std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return word.find('\\') != std::string::npos;
      })) {
    return Wrong("--cron", "no backslash: crons differ in how they read one",
                 command);
  }
  for (size_t at = 0; (at = command.find('%', at)) != std::string::npos;
       at += 2) {
    command.insert(at, "\\");
  }
  if (command.size() > kMaxCronCommand) {
    return Wrong("--cron",
                 "a command of at most " + std::to_string(kMaxCronCommand) +
                     " bytes",
                 std::to_string(command.size()) + " bytes");
  }
  *line = fields + " " +
          (forever || job.account.empty() ? "root" : job.account) + " " +
          command + "\n";
  return Status::OK();
}

// --- Kubernetes --------------------------------------------------------------

// Returns an argument of a container, where $(NAME) would be replaced.
std::string Argument(const std::string& word) {
  std::string argument;
  for (const char c : word) {
    argument += c == '$' ? "$$" : std::string(1, c);
  }
  return argument;
}

Status CheckKubernetes(const HostJob& job) {
  const bool is_name =
      job.unit.size() <= kMaxKubernetesName && !job.unit.ends_with("-") &&
      std::all_of(job.unit.begin(), job.unit.end(), [](unsigned char c) {
        return std::islower(c) || std::isdigit(c) || c == '-';
      });
  if (!is_name) {
    return Wrong("name",
                 "lower-case letters, digits and -, so that " + job.unit +
                     " has at most " + std::to_string(kMaxKubernetesName),
                 job.database);
  }
  if (job.has_hooks) {
    return Status::InvalidArgument(
        "--kubernetes: expected no command among the options, found one: the "
        "image has no shell");
  }
  if (!job.environment_file.empty()) {
    return Wrong("environment-file",
                 "none with --kubernetes: service-account has the rights",
                 job.environment_file);
  }
  for (const JobPath& path : job.paths) {
    if (path.is_written && ParentOf(path.path) == "/") {
      return Wrong("path", "a directory that is not directly below /",
                   path.path);
    }
  }
  return Status::OK();
}

// Finds the number of the account, which the image does not know by name.
Status ReadUser(const HostJob& job, int64_t* user, int64_t* group) {
  *user = *group = kImageUser;
  if (job.account.empty()) {
    return job.paths.empty()
               ? Status::OK()
               : Status::InvalidArgument(
                     "account: expected the owner of " + job.paths[0].path +
                     " with --kubernetes, found none");
  }
  uint64_t number = 0;
  const bool is_number =
      ParseNumber("account", job.account, 0, UINT32_MAX - 1, &number).ok();
  const passwd* const entry =
      is_number ? nullptr : getpwnam(job.account.c_str());
  if (!is_number && entry == nullptr) {
    return Wrong("account", "a number, or a name that this machine knows",
                 job.account);
  }
  *user = is_number ? static_cast<int64_t>(number) : entry->pw_uid;
  *group = is_number ? static_cast<int64_t>(number) : entry->pw_gid;
  return Status::OK();
}

// Adds the directories of the node that the job uses, at the same place. A job
// also writes beside its databases.
void AddVolumes(const HostJob& job, ordered_json* pod) {
  std::map<std::string, bool> mounts;  // path -> is written
  for (const JobPath& path : job.paths) {
    bool& is_written =
        mounts[path.is_written ? ParentOf(path.path) : path.path];
    is_written = is_written || path.is_written;
  }
  if (std::any_of(job.words.begin(), job.words.end(),
                  [](const std::string& word) {
                    return word.starts_with("s3://");
                  })) {
    mounts.emplace("/etc/ssl/certs", false);  // the image has none
  }
  ordered_json volumes = ordered_json::array();
  ordered_json inside = ordered_json::array();
  for (const auto& [path, is_written] : mounts) {
    const std::string name = "path-" + std::to_string(volumes.size());
    volumes.push_back({{"name", name}, {"hostPath", {{"path", path}}}});
    ordered_json mount = {{"name", name}, {"mountPath", path}};
    if (!is_written) {
      mount["readOnly"] = true;
    }
    inside.push_back(mount);
  }
  if (!volumes.empty()) {
    (*pod)["containers"][0]["volumeMounts"] = inside;
    (*pod)["volumes"] = volumes;
  }
}

Status MakePod(const HostFile& host, const HostJob& job, ordered_json* pod) {
  int64_t user = 0;
  int64_t group = 0;
  RETURN_IF_ERROR(CheckKubernetes(job));
  RETURN_IF_ERROR(ReadUser(job, &user, &group));
  const KubernetesPlace& place = host.kubernetes;
  ordered_json arguments = ordered_json::array();
  for (const std::string& word : job.words) {
    arguments.push_back(Argument(word));
  }
  ordered_json container = {
      {"name", "sstferry"}, {"image", place.image}, {"args", arguments}};
  if (job.kind == JobKind::kServe) {
    ServeArguments serve;
    RETURN_IF_ERROR(
        ParseServe({job.words.begin() + 1, job.words.end()}, &serve));
    if (!serve.listen.is_unix()) {
      container["ports"] = ordered_json::array(
          {{{"containerPort", serve.listen.port},
            {"hostPort", serve.listen.port}}});
    }
  }
  container["securityContext"] = {{"allowPrivilegeEscalation", false},
                                  {"readOnlyRootFilesystem", true},
                                  {"capabilities",
                                   {{"drop", ordered_json::array({"ALL"})}}}};
  *pod = {{"restartPolicy", RunsForever(job.kind) ? "Always" : "Never"}};
  if (!place.service_account.empty()) {
    (*pod)["serviceAccountName"] = place.service_account;
  }
  if (!place.node.empty()) {
    (*pod)["nodeSelector"] = {{"kubernetes.io/hostname", place.node}};
  }
  (*pod)["securityContext"] = {
      {"runAsUser", user},
      {"runAsGroup", group},
      {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  (*pod)["containers"] = ordered_json::array({container});
  AddVolumes(job, pod);
  return Status::OK();
}

Status MakeManifest(const HostFile& host, const HostJob& job,
                    ordered_json* manifest) {
  ordered_json pod;
  RETURN_IF_ERROR(MakePod(host, job, &pod));
  ordered_json metadata = {{"name", job.unit}};
  if (!host.kubernetes.space.empty()) {
    metadata["namespace"] = host.kubernetes.space;
  }
  const ordered_json labels = {{"app", job.unit}};
  if (RunsForever(job.kind)) {
    *manifest = {
        {"apiVersion", "apps/v1"},
        {"kind", "Deployment"},
        {"metadata", metadata},
        {"spec",
         {{"replicas", 1},
          {"strategy", {{"type", "Recreate"}}},
          {"selector", {{"matchLabels", labels}}},
          {"template", {{"metadata", {{"labels", labels}}}, {"spec", pod}}}}}};
    return Status::OK();
  }
  std::string schedule;
  RETURN_IF_ERROR(job.calendar.ToCron("when", &schedule));
  const std::string& zone = job.calendar.zone();
  // As in docs/recipes: a pod that the cluster took away is no failure, and
  // trying again helps none of the exit codes 1, 2 and 3.
  const ordered_json policy = {
      {"rules",
       ordered_json::array(
           {{{"action", "Ignore"},
             {"onPodConditions",
              ordered_json::array(
                  {{{"type", "DisruptionTarget"}, {"status", "True"}}})}},
            {{"action", "FailJob"},
             {"onExitCodes",
              {{"containerName", "sstferry"},
               {"operator", "In"},
               {"values", ordered_json::array({1, 2, 3})}}}}})}};
  *manifest = {
      {"apiVersion", "batch/v1"},
      {"kind", "CronJob"},
      {"metadata", metadata},
      {"spec",
       {{"schedule", schedule},
        {"timeZone", zone.empty() || zone == "UTC" ? "Etc/UTC" : zone},
        {"concurrencyPolicy", "Forbid"},
        {"startingDeadlineSeconds", 3600},
        {"jobTemplate",
         {{"spec",
           {{"backoffLimit", 6},
            {"podFailurePolicy", policy},
            {"template", {{"spec", pod}}}}}}}}}};
  return Status::OK();
}

}  // namespace

std::string OwnHeader(const HostFile& host) {
  return "# Written by sstferry units from " + host.path +
         ": change that file, and run it again.\n";
}

std::string UnitWord(const std::string& word) {
  const bool is_plain =
      !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return std::isalnum(c) || std::strchr("/._@+=,:-", c) != nullptr;
      });
  if (is_plain) {
    return word;
  }
  std::string quoted = "\"";
  for (const char c : word) {
    // % is a specifier, $ a variable.
    quoted += c == '"' || c == '\\' ? std::string("\\") + c
              : c == '%' || c == '$' ? std::string(2, c)
                                     : std::string(1, c);
  }
  return quoted + "\"";
}

Status MakeUnits(const HostFile& host, const std::string& program,
                 std::vector<MadeFile>* files) {
  files->clear();
  std::string wants;
  const auto add = [&](const std::string& name, const std::string& text,
                       bool is_wanted) {
    files->push_back({name, text});
    wants += is_wanted ? "Wants=" + name + "\n" : "";
  };
  for (const HostJob& job : host.jobs) {
    const bool forever = RunsForever(job.kind);
    add(job.unit + ".service", ServiceText(host, job, program), forever);
    if (!forever) {
      add(job.unit + ".timer",
          TimerText(host, job.kind, AboutJob(job), job.when), true);
    }
  }
  if (!host.rescan.empty()) {
    add("sstferry-units.service", RescanText(host, program), false);
    add("sstferry-units.timer",
        TimerText(host, JobKind::kRefresh, "sstferry: looks for databases",
                  host.rescan),
        true);
  }
  add(kTarget,
      OwnHeader(host) + "[Unit]\nDescription=sstferry: all jobs of this host\n" +
          wants + "\n[Install]\nWantedBy=multi-user.target\n",
      false);
  return Status::OK();
}

Status MakeCronFile(const HostFile& host, const std::string& program,
                    std::vector<MadeFile>* files) {
  files->clear();
  std::string text = OwnHeader(host) + "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n";
  for (const HostJob& job : host.jobs) {
    std::string line;
    const Status status = CronLine(job, program, &line);
    if (!status.ok()) {
      return AtJob(host, job, status);
    }
    text += line;
  }
  files->push_back({"sstferry", text});
  return Status::OK();
}

Status MakeManifests(const HostFile& host, std::vector<MadeFile>* files) {
  files->clear();
  if (!host.kubernetes.is_given) {
    return Status::InvalidArgument(
        "--config " + host.path +
        ": expected a table [kubernetes] with image, found none");
  }
  for (const HostJob& job : host.jobs) {
    ordered_json manifest;
    const Status status = MakeManifest(host, job, &manifest);
    if (!status.ok()) {
      return AtJob(host, job, status);
    }
    // JSON is YAML, in which no value can end its text.
    files->push_back(
        {job.unit + ".yaml", OwnHeader(host) + manifest.dump(2) + "\n"});
  }
  return Status::OK();
}

}  // namespace sstferry
