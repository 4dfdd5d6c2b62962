#include "tools/sstferry/unit_files.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

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
using Strings = std::vector<std::string>;

constexpr char kTarget[] = "sstferry.target";
// Maximum length of a command in a crontab line; cron refuses longer ones.
constexpr size_t kMaxCronCommand = 990;
// Maximum length of a job's name in Kubernetes. A name may have 63 characters,
// but a CronJob adds 11 characters to it.
constexpr size_t kMaxKubernetesName = 52;
// The user of the container image. A job without paths on the node runs as this
// user.
constexpr uint64_t kImageUser = 65532;

std::string ParentOf(const std::string& path) {
  return path.substr(0, std::max<size_t>(path.find_last_of('/'), 1));
}

std::string AboutJob(const HostJob& job) {
  return std::string("sstferry: ") + JobKindName(job.kind) +
         (job.database.empty() ? "" : " of " + job.database);
}

bool HasWord(const HostJob& job, const std::string& begin) {
  return std::any_of(
      job.words.begin(), job.words.end(),
      [&](const std::string& word) { return word.starts_with(begin); });
}

// --- systemd -----------------------------------------------------------------

// Formats a word for a line of a systemd unit. Adds quotes if they are needed.
// Doubles the characters in `doubled`.
std::string Quoted(const std::string& word, const char* doubled) {
  const bool is_plain =
      !word.empty() &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return std::isalnum(c) || std::strchr("/._@+=,:-", c) != nullptr;
      });
  if (is_plain) {
    return word;
  }
  std::string quoted = "\"";
  for (const char c : word) {
    quoted += c == '"' || c == '\\' ? std::string("\\") + c
              : std::strchr(doubled, c) != nullptr ? std::string(2, c)
                                                   : std::string(1, c);
  }
  return quoted + "\"";
}

// Returns the lines of a unit that let the server write to the parents of the
// databases. If a path is below /home, the lines also make /home visible.
std::string WritePaths(const HostJob& job) {
  std::set<std::string> lines;
  for (const JobPath& path : job.paths) {
    if (path.is_written) {
      // A single % begins a specifier. A $ has a meaning only in Exec lines.
      lines.insert("ReadWritePaths=" +
                   Quoted("-" + ParentOf(path.path), "%") + "\n");
    }
    if (path.path.starts_with("/home/")) {
      lines.insert("ProtectHome=no\n");
    }
  }
  return std::accumulate(lines.begin(), lines.end(), std::string());
}

// Returns a packaged unit with changed lines. `changes` contains a new text for
// some keys; an empty text removes the line. Leaves out the comments, which are
// about the packaged unit. Also leaves out [Install], which only
// sstferry.target needs.
std::string Changed(const std::string& unit, const std::string& header,
                    const std::map<std::string, std::string>& changes) {
  std::string text = header;
  std::istringstream lines(unit.substr(0, unit.find("\n[Install]")));
  for (std::string line; std::getline(lines, line);) {
    const auto change = changes.find(line.substr(0, line.find('=')));
    if (!line.starts_with("#")) {
      text += change == changes.end() ? line + "\n" : change->second;
    }
  }
  return text;
}

std::string ServiceText(const HostFile& host, const HostJob& job,
                        const std::string& program) {
  std::string command = "ExecStart=" + UnitWord(program);
  for (const std::string& word : job.words) {
    command += " " + UnitWord(word);
  }
  if (!job.environment_file.empty()) {
    command = "EnvironmentFile=" + job.environment_file + "\n" + command;
  }
  std::map<std::string, std::string> changes = {
      {"Description", "Description=" + AboutJob(job) + "\n"},
      {"Environment", ""},
      {"EnvironmentFile", ""},
      {"ExecStart", command + "\n"}};
  if (RunsForever(job.kind)) {
    changes["[Unit]"] = std::string("[Unit]\nPartOf=") + kTarget + "\n";
  }
  if (!job.account.empty()) {
    // The members of the group sstferry may enter /etc/sstferry.
    changes["[Service]"] = "[Service]\nUser=" + job.account +
                           "\nSupplementaryGroups=sstferry\n";
    changes["User"] = changes["SupplementaryGroups"] = "";
    changes["CapabilityBoundingSet"] = "CapabilityBoundingSet=\n";
  }
  if (job.kind == JobKind::kServe) {
    changes["RuntimeDirectory"] = "RuntimeDirectory=sstferry-serve\n";
    changes["UMask"] = "UMask=0077\n" + WritePaths(job);
    if (HasWord(job, "--allow-uid=")) {
      // In a user namespace, all other accounts would have the same id, and the
      // server could not check --allow-uid.
      changes["PrivateUsers"] = "PrivateUsers=no\n";
    }
  }
  return Changed(
      UnitTemplates().at(
          PackagedUnit(job.kind, !job.account.empty(), "service")),
      OwnHeader(host), changes);
}

void MakeUnits(const HostFile& host, const std::string& program,
               std::vector<MadeFile>* files) {
  std::string wants;
  for (const HostJob& job : host.jobs) {
    const bool forever = RunsForever(job.kind);
    files->push_back(
        {job.unit + ".service", ServiceText(host, job, program)});
    if (!forever) {
      files->push_back(
          {job.unit + ".timer",
           Changed(UnitTemplates().at(PackagedUnit(job.kind, false, "timer")),
                   OwnHeader(host),
                   {{"[Unit]", std::string("[Unit]\nPartOf=") + kTarget + "\n"},
                    {"Description", "Description=" + AboutJob(job) + "\n"},
                    {"OnCalendar",
                     "OnCalendar=" + job.calendar.text + "\n"}})});
    }
    wants += "Wants=" + files->back().name + "\n";
  }
  files->push_back(
      {kTarget, OwnHeader(host) +
                    "[Unit]\nDescription=sstferry: all jobs of this host\n" +
                    wants + "\n[Install]\nWantedBy=multi-user.target\n"});
}

// --- cron --------------------------------------------------------------------

// Adds the line of a job to the cron file.
Status AddCronLine(const HostJob& job, const std::string& program,
                   std::string* text) {
  Strings words;
  const bool forever = RunsForever(job.kind);
  if (forever) {
    // Cron starts this command every minute. If the job already runs, it has
    // the lock, and the new command ends.
    words = {"flock", "-n", "/run/" + job.unit + ".lock"};
    if (!job.account.empty()) {
      words.insert(words.end(), {"runuser", "-u", job.account, "--"});
    }
  } else if (!job.calendar.zone.empty()) {
    return Wrong("when", "no time zone, because cron always uses the machine's",
                 job.calendar.text);
  }
  if (job.kind == JobKind::kServe && job.account.empty()) {
    return Status::InvalidArgument(
        "account: required with --cron, found none: cron cannot run serve as "
        "an unprivileged user with capabilities, as systemd does");
  }
  words.push_back(program);
  words.insert(words.end(), job.words.begin(), job.words.end());
  std::string command =
      job.environment_file.empty()
          ? ""
          : "set -a; . " + ShellWord(job.environment_file) + ";";
  for (const std::string& word : words) {
    command += (command.empty() ? "" : " ") + ShellWord(word);
    if (word.find('\\') != std::string::npos) {
      return Wrong("--cron", "no backslash, because implementations of cron "
                             "differ in how they read it",
                   word);
    }
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
  *text += (forever ? "* * * * *" : job.calendar.cron) + " " +
           (forever || job.account.empty() ? "root" : job.account) + " " +
           command + "\n";
  return Status::OK();
}

// --- Kubernetes --------------------------------------------------------------

constexpr char kDeployment[] = R"json({
"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {},
"spec": {"replicas": 1, "strategy": {"type": "Recreate"}}})json";

// The same as in docs/recipes. If the cluster evicts a pod, this is not a
// failure of the job. After the exit codes 1, 2 and 3, the job is not retried,
// because a retry would not help.
constexpr char kCronJob[] = R"json({
"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {},
"spec": {"schedule": "", "timeZone": "Etc/UTC", "concurrencyPolicy": "Forbid",
"startingDeadlineSeconds": 3600, "jobTemplate": {"spec": {"backoffLimit": 6,
"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions":
  [{"type": "DisruptionTarget", "status": "True"}]}, {"action": "FailJob",
  "onExitCodes": {"containerName": "sstferry", "operator": "In",
  "values": [1, 2, 3]}}]}}}}})json";

constexpr char kPod[] = R"json({"restartPolicy": "",
"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
"containers": [{"name": "sstferry", "args": [], "securityContext": {
  "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
  "capabilities": {"drop": ["ALL"]}}}]})json";

Status CheckKubernetes(const HostJob& job) {
  const bool is_name =
      job.unit.size() <= kMaxKubernetesName && !job.unit.ends_with("-") &&
      std::all_of(job.unit.begin(), job.unit.end(), [](unsigned char c) {
        return std::islower(c) || std::isdigit(c) || c == '-';
      });
  if (!is_name) {
    return Wrong("name",
                 "lower-case letters, digits and -, so that " + job.unit +
                     " has at most " + std::to_string(kMaxKubernetesName) +
                     " characters",
                 job.database);
  }
  if (job.has_hooks) {
    return Status::InvalidArgument(
        "--kubernetes: expected no command among the options, found one: the "
        "image has no shell");
  }
  if (!job.environment_file.empty()) {
    return Wrong("environment-file",
                 "none with --kubernetes, where service-account gives the "
                 "rights",
                 job.environment_file);
  }
  const auto at_root =
      std::find_if(job.paths.begin(), job.paths.end(), [](const JobPath& path) {
        return path.is_written && ParentOf(path.path) == "/";
      });
  return at_root == job.paths.end()
             ? Status::OK()
             : Wrong("path", "a directory that is not directly below /",
                     at_root->path);
}

// Sets the account under which the pod runs. A manifest needs its number,
// because it does not accept names of accounts.
Status SetUser(const HostJob& job, ordered_json* context) {
  uint64_t number = kImageUser;
  if (!job.account.empty()) {
    RETURN_IF_ERROR(ParseNumber("account", job.account, 0, UINT32_MAX - 1,
                                &number));
  } else if (!job.paths.empty()) {
    return Status::InvalidArgument(
        "account: missing. With --kubernetes, give the number of the user who "
        "owns " +
        job.paths[0].path);
  }
  (*context)["runAsUser"] = number;
  (*context)["runAsGroup"] = number;
  return Status::OK();
}

// Mounts the directories of the node that the job uses, at the same paths. If
// the job writes a directory, mounts its parent, because the job also writes
// beside the directory.
void AddVolumes(const HostJob& job, ordered_json* pod) {
  std::map<std::string, bool> mounts;  // true if the job writes the path
  for (const JobPath& path : job.paths) {
    mounts[path.is_written ? ParentOf(path.path) : path.path] |=
        path.is_written;
  }
  if (HasWord(job, "s3://")) {
    mounts.emplace("/etc/ssl/certs", false);  // the image has no certificates
  }
  for (const auto& [path, is_written] : mounts) {
    ordered_json& volumes = (*pod)["volumes"];
    const std::string name = "path-" + std::to_string(volumes.size());
    volumes.push_back({{"name", name}, {"hostPath", {{"path", path}}}});
    ordered_json mount = {{"name", name}, {"mountPath", path}};
    if (!is_written) {
      mount["readOnly"] = true;
    }
    (*pod)["containers"][0]["volumeMounts"].push_back(mount);
  }
}

Status MakePod(const HostFile& host, const HostJob& job, ordered_json* pod) {
  RETURN_IF_ERROR(CheckKubernetes(job));
  const KubernetesPlace& place = host.kubernetes;
  *pod = ordered_json::parse(kPod);
  (*pod)["restartPolicy"] = RunsForever(job.kind) ? "Always" : "Never";
  if (job.kind == JobKind::kFollow) {
    // A follower may take 40 s to store its last segments.
    (*pod)["terminationGracePeriodSeconds"] = 60;
  }
  RETURN_IF_ERROR(SetUser(job, &(*pod)["securityContext"]));
  ordered_json& container = (*pod)["containers"][0];
  container["image"] = place.image;
  for (const std::string& word : job.words) {
    // Doubles each $, because Kubernetes replaces $(NAME) but not $$(NAME).
    std::string argument;
    for (const char c : word) {
      argument += c == '$' ? "$$" : std::string(1, c);
    }
    container["args"].push_back(argument);
  }
  ServeArguments serve;
  if (job.kind == JobKind::kServe &&
      ParseServe({job.words.begin() + 1, job.words.end()}, &serve).ok() &&
      !serve.listen.is_unix()) {
    container["ports"] =
        ordered_json::array({{{"containerPort", serve.listen.port},
                              {"hostPort", serve.listen.port}}});
  }
  if (!place.service_account.empty()) {
    (*pod)["serviceAccountName"] = place.service_account;
  }
  if (!place.node.empty()) {
    (*pod)["nodeSelector"] = {{"kubernetes.io/hostname", place.node}};
  }
  AddVolumes(job, pod);
  return Status::OK();
}

Status MakeManifest(const HostFile& host, const HostJob& job,
                    std::string* text) {
  const bool forever = RunsForever(job.kind);
  ordered_json manifest = ordered_json::parse(forever ? kDeployment : kCronJob);
  ordered_json& spec = manifest["spec"];
  manifest["metadata"]["name"] = job.unit;
  if (!host.kubernetes.space.empty()) {
    manifest["metadata"]["namespace"] = host.kubernetes.space;
  }
  ordered_json pod;
  RETURN_IF_ERROR(MakePod(host, job, &pod));
  if (forever) {
    const ordered_json labels = {{"app", job.unit}};
    spec["selector"] = {{"matchLabels", labels}};
    spec["template"] = {{"metadata", {{"labels", labels}}}, {"spec", pod}};
  } else {
    spec["schedule"] = job.calendar.cron;
    const std::string& zone = job.calendar.zone;
    if (!zone.empty() && zone != "UTC") {
      spec["timeZone"] = zone;
    }
    spec["jobTemplate"]["spec"]["template"] = {{"spec", pod}};
  }
  // Writes JSON, which is also valid YAML. Its quotes are safe for all values.
  *text = OwnHeader(host) + manifest.dump(2) + "\n";
  return Status::OK();
}

}  // namespace

std::string OwnHeader(const HostFile& host) {
  return kWrittenFrom + host.path + kWrittenEnd + "\n";
}

std::string UnitWord(const std::string& word) {
  // A single % begins a specifier, and a $ a variable.
  return Quoted(word, "%$");
}

Status MakeFiles(FileForm form, const HostFile& host,
                 const std::string& program, std::vector<MadeFile>* files) {
  files->clear();
  const std::string where = "--config " + host.path;
  if (form == FileForm::kUnits) {
    MakeUnits(host, program, files);
    return Status::OK();
  }
  if (form == FileForm::kKubernetes && host.kubernetes.image.empty()) {
    return Status::InvalidArgument(
        where + ": expected a table [kubernetes] with image, found none");
  }
  if (form == FileForm::kCron) {
    files->push_back({"sstferry", OwnHeader(host) +
                                      "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"});
  }
  for (const HostJob& job : host.jobs) {
    if (form == FileForm::kKubernetes) {
      files->push_back({job.unit + ".yaml", ""});
    }
    std::string* const text = &files->back().text;
    const Status status =
        !RunsForever(job.kind) && job.calendar.cron.empty()
            ? Wrong("when",
                    "a time that cron can express: no seconds, no year, no day "
                    "counted from the month's end, and no weekday together "
                    "with a day of the month",
                    job.calendar.text)
        : form == FileForm::kCron ? AddCronLine(job, program, text)
                                  : MakeManifest(host, job, text);
    if (!status.ok()) {
      return WithPlace(where + ": " + job.where, status);
    }
  }
  return Status::OK();
}

}  // namespace sstferry
