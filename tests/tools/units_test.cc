// sstferry units: the host file, and the systemd, cron and Kubernetes files
// made from it.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "pipeline/pull/health.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/standby_world.h"
#include "tests/support/test_db.h"
#include "tools/sstferry/host_file.h"
#include "tools/sstferry/job_status.h"
#include "tools/sstferry/metric_set.h"
#include "tools/sstferry/unit_files.h"

namespace sstferry::units_test {
namespace {

using rocksdb::Status;
using Strings = std::vector<std::string>;

constexpr char kPath[] = "/etc/sstferry/host.toml";
constexpr char kProgram[] = "/usr/bin/sstferry";

// Host file with one job of each kind.
constexpr char kHost[] = R"toml(
metrics-dir = "/var/lib/metrics"

[serve]
listen = "0.0.0.0:7420"
tls = "/etc/sstferry/tls"

[kubernetes]
image = "sstferry:0.1.0"
node = "db1"

[[database]]
path = "/data/orders"
archive = "s3://backups/{name}"
account = "1000"
serve.allow = ["db2.example"]
follow.segment = "5s"
push.when = "02:00"
check.when = "04:30"
drill = {when = "Sun 07:00", drill = "/scratch/drill-{name}"}
prune = {when = "12:00", keep-daily = 14}

[[database]]
path = "/srv/users"
source = "sst://db1/users"
refresh.when = "Mon..Fri 03:00"
[database.swap]
when = "*:0/15"
before-swap = "systemctl stop app"
on-failure = "curl -fsS https://ping.example/$SSTFERRY_EXIT_CODE"

[[database]]
path = "/srv/standby"
source = "sst://db1/users"
follow = {}
)toml";

HostFile Host(const std::string& text) {
  HostFile host;
  REQUIRE_OK(ParseHostFile(kPath, text, &host));
  return host;
}

// Returns the error message for a wrong host file, without the file name.
std::string Refused(const std::string& text) {
  HostFile host;
  const Status status = ParseHostFile(kPath, text, &host);
  INFO(text << "\n" << status.ToString());
  REQUIRE(status.IsInvalidArgument());
  REQUIRE(host.jobs.empty());
  const std::string message = status.getState();
  const std::string begin = std::string("--config ") + kPath + ": ";
  REQUIRE(message.starts_with(begin));
  return message.substr(begin.size());
}

std::string WordsOf(const HostFile& host, const std::string& unit) {
  for (const HostJob& job : host.jobs) {
    if (job.unit == unit) {
      std::string line;
      for (const std::string& word : job.words) {
        line += (line.empty() ? "" : " ") + word;
      }
      return line;
    }
  }
  return "no job " + unit;
}

std::map<std::string, std::string> Units(const HostFile& host) {
  std::vector<MadeFile> files;
  REQUIRE_OK(MakeFiles(FileForm::kUnits, host, kProgram, &files));
  std::map<std::string, std::string> texts;
  for (const MadeFile& file : files) {
    REQUIRE(file.text.starts_with(OwnHeader(host)));
    texts[file.name] = file.text;
  }
  return texts;
}

bool HasLine(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::string TextOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("Each kind of job in a host file gets its command line",
          "[tools][units]") {
  const HostFile host = Host(kHost);
  REQUIRE(host.jobs.size() == 9);
  REQUIRE(WordsOf(host, "sstferry-server") ==
          "serve --db=orders=/data/orders --allow=orders=db2.example "
          "--listen=0.0.0.0:7420 --tls=/etc/sstferry/tls");
  REQUIRE(WordsOf(host, "sstferry-orders-follow") ==
          "follow /data/orders s3://backups/orders "
          "--metrics-file=/var/lib/metrics/sstferry-orders-follow.prom "
          "--segment=5s");
  REQUIRE(WordsOf(host, "sstferry-orders-push") ==
          "archive push /data/orders s3://backups/orders --label=nightly "
          "--metrics-file=/var/lib/metrics/sstferry-orders-archive.prom");
  REQUIRE(WordsOf(host, "sstferry-orders-check") ==
          "archive check s3://backups/orders --read-data=5% "
          "--metrics-file=/var/lib/metrics/sstferry-orders-archive.prom");
  REQUIRE(WordsOf(host, "sstferry-orders-drill") ==
          "archive check s3://backups/orders "
          "--metrics-file=/var/lib/metrics/sstferry-orders-archive.prom "
          "--drill=/scratch/drill-orders");
  REQUIRE(WordsOf(host, "sstferry-orders-prune") ==
          "archive prune s3://backups/orders "
          "--metrics-file=/var/lib/metrics/sstferry-orders-archive.prom "
          "--keep-daily=14");
  REQUIRE(WordsOf(host, "sstferry-users-refresh") ==
          "refresh sst://db1/users /srv/users --progress=never --max-age=20h "
          "--timeout=5m "
          "--metrics-file=/var/lib/metrics/sstferry-users-refresh.prom");
  REQUIRE(WordsOf(host, "sstferry-users-swap")
              .ends_with("--before-swap=systemctl stop app "
                         "--on-failure=curl -fsS "
                         "https://ping.example/$SSTFERRY_EXIT_CODE"));
  REQUIRE(WordsOf(host, "sstferry-standby-follow")
              .starts_with("follow sst://db1/users /srv/standby"));
}

TEST_CASE("Generated units have the sandbox options of the packaged units",
          "[tools][units]") {
  const HostFile host = Host(kHost);
  const auto units = Units(host);
  REQUIRE(units.size() == 9 + 6 + 1);
  const std::string& push = units.at("sstferry-orders-push.service");
  INFO(push);
  REQUIRE(HasLine(push, "Description=sstferry: push of orders"));
  REQUIRE(HasLine(
      push,
      "ExecStart=/usr/bin/sstferry archive push /data/orders "
      "s3://backups/orders --label=nightly "
      "--metrics-file=/var/lib/metrics/sstferry-orders-archive.prom"));
  REQUIRE(HasLine(push, "SystemCallFilter=@system-service"));
  REQUIRE(HasLine(push, "RestartPreventExitStatus=1 2 3"));
  REQUIRE(HasLine(push, "User=1000"));
  REQUIRE(HasLine(push, "CapabilityBoundingSet="));
  const std::string& check = units.at("sstferry-orders-check.service");
  REQUIRE(check.find(" --read-data=5%% ") == std::string::npos);
  REQUIRE(check.find(" \"--read-data=5%%\" ") != std::string::npos);
  const std::string& timer = units.at("sstferry-orders-drill.timer");
  REQUIRE(HasLine(timer, "OnCalendar=Sun 07:00"));
  REQUIRE(HasLine(timer, "Persistent=true"));
  REQUIRE(HasLine(timer, "PartOf=sstferry.target"));
  const std::string& server = units.at("sstferry-server.service");
  INFO(server);
  REQUIRE(HasLine(server, "User=sstferry"));
  REQUIRE(HasLine(server, "ReadWritePaths=-/data"));
  REQUIRE(HasLine(server, "ReadWritePaths=-/var/lib -/srv"));
  const std::string& swap = units.at("sstferry-users-swap.service");
  REQUIRE(swap.find("\nUser=") == std::string::npos);
  REQUIRE(swap.find(" \"--before-swap=systemctl stop app\"") !=
          std::string::npos);
  for (const auto& [name, text] : units) {
    INFO(name << "\n" << text);
    REQUIRE(text.find("%i") == std::string::npos);
    REQUIRE(text.find("${") == std::string::npos);
    REQUIRE(text.find("OPTIONS") == std::string::npos);
    const bool is_target = name == "sstferry.target";
    REQUIRE((text.find("[Install]") != std::string::npos) == is_target);
    const bool is_wanted =
        HasLine(units.at("sstferry.target"), "Wants=" + name);
    const bool runs_forever =
        name == "sstferry-server.service" || name.ends_with("-follow.service");
    REQUIRE(is_wanted == (name.ends_with(".timer") || runs_forever));
  }
}

TEST_CASE("A wrong host file is refused with line and column",
          "[tools][units]") {
  const std::string head = "[[database]]\npath = \"/data/a\"\n";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"[[database]\n", "line 1, column 12: not TOML: "},
      {"", "line 1, column 1: database: expected [[database]]"},
      {"metrics-dirs = \"/x\"\n" + head + "push.when = \"02:00\"\n",
       "line 1, column 1: metrics-dirs: unknown key of a file of a host; did "
       "you mean metrics-dir?"},
      {head, "line 1, column 1: [[database]]: expected a job"},
      {head + "pushes.when = \"02:00\"\n",
       "line 3, column 1: pushes: unknown key of [[database]]; did you mean "
       "push?"},
      {head + "archive = \"s3://b\"\npush = true\n",
       "line 4, column 8: push: expected a table"},
      {head + "archive = \"s3://b\"\npush.wen = \"02:00\"\n",
       "line 4, column 1: push: expected when"},
      {head + "archive = \"s3://b\"\npush = {when = \"02:00\", lable = \"x\"}\n",
       "line 4, column 25: lable: unknown key of push; did you mean label?"},
      {head + "archive = \"s3://b\"\npush.when = \"25:00\"\n",
       "line 4, column 13: when: expected a time as in systemd's OnCalendar"},
      {head + "archive = \"s3://b\"\npush = {when = \"02:00\", lanes = 0}\n",
       "line 4, column 33: --lanes: expected a whole number from 1 to 64"},
      {head + "archive = \"s3://b\"\nprune.when = \"02:00\"\n",
       "line 4, column 1: prune: expected a retention"},
      {head + "archive = \"s3://b\"\ndrill.when = \"02:00\"\n",
       "line 4, column 1: drill: expected drill = \"DIR\""},
      {head + "archive = \"s3://b\"\n"
              "drill = {when = \"02:00\", drill = \"scratch\"}\n",
       "line 4, column 34: drill: expected a path that begins with /"},
      {head + "push.when = \"02:00\"\n",
       "line 3, column 1: push: expected the key archive in its "
       "[[database]]"},
      {head + "refresh.when = \"02:00\"\n",
       "line 3, column 1: refresh: expected the key source in its "
       "[[database]]"},
      {head + "archive = \"s3://b\"\nfollow.when = \"02:00\"\n",
       "line 4, column 15: follow: expected no key 'when'"},
      {"[serve]\nlisten = \"127.0.0.1:1\"\n" + head + "serve.allow = []\n",
       "line 5, column 15: allow: expected at least one certificate"},
      {head + "serve.allow = [\"x\"]\n",
       "line 3, column 1: serve: expected a table [serve]"},
      {"[serve]\nlisten = \"127.0.0.1:1\"\n" + head +
           "archive = \"s3://b\"\npush.when = \"02:00\"\n",
       "line 1, column 1: [serve]: expected a database with a key serve, such "
       "as serve.allow"},
      {"[serve]\nlisten = \"0.0.0.0:1\"\n" + head + "serve = {}\n",
       "line 2, column 10: --listen: expected a loopback address"},
      {head + "archive = \"s3://b\"\npush.when = \"02:00\"\n" + head +
           "archive = \"s3://b\"\npush.when = \"02:00\"\n",
       "line 5, column 1: name: expected each name once"},
      {"[[database]]\npath = \"data/a\"\npush.when = \"02:00\"\n",
       "line 2, column 8: path: expected a path that begins with /"},
      {head + "archive = \"backup\"\npush.when = \"02:00\"\n",
       "line 3, column 11: archive: expected an address"},
      {head + "account = \"-x\"\narchive = \"s3://b\"\npush.when = \"02:00\"\n",
       "line 3, column 11: account: expected the name or number"},
      {head + "rescan = \"x\"\n", "line 3, column 1: rescan: unknown key"},
      {"[kubernetes]\nnode = \"x\"\n" + head, "line 1, column 1: image: "},
  };
  for (const auto& [text, message] : wrong) {
    const std::string found = Refused(text);
    INFO(text << "\n" << found);
    CHECK(found.starts_with(message));
  }
}

TEST_CASE("A value in a host file is at most one word of a command line",
          "[tools][units]") {
  for (const char* const text :
       {"push.label = \"a\\nExecStartPre=/bin/evil\"\n",
        "push.label = \"a\\r\"\n", "push.label = \"a\\u0000b\"\n",
        "environment-file = \"/etc/x\\n[Service]\"\n",
        "environment-file = \"/etc/x \\\\\"\n",
        "account = \"root\\nCapabilityBoundingSet=~\"\n",
        "account = \"%i\"\n", "name = \"a\\n\"\n", "name = \"a b\"\n",
        "name = \"%n\"\n", "name = \"../x\"\n", "name = \"a/b\"\n",
        "push.lanes = \"4\\n\"\n"}) {
    INFO(text);
    HostFile host;
    REQUIRE(ParseHostFile(kPath,
                          std::string("[[database]]\npath = \"/data/a\"\n"
                                      "archive = \"s3://b\"\n"
                                      "push.when = \"02:00\"\n") +
                              text,
                          &host)
                .IsInvalidArgument());
  }
  const std::string label = "a \"b\" %n $HOME `id` 'x' ; | # {}";
  HostFile host =
      Host("[kubernetes]\nimage = \"i\"\n[[database]]\npath = \"/data/a\"\n"
           "account = \"1000\"\narchive = \"s3://b\"\npush.when = \"02:00\"\n"
           "push.label = '''" + label + "'''\n");
  const auto units = Units(host);
  const std::string& push = units.at("sstferry-a-push.service");
  INFO(push);
  REQUIRE(HasLine(push,
                  "ExecStart=/usr/bin/sstferry archive push /data/a s3://b "
                  "\"--label=a \\\"b\\\" %%n $$HOME `id` 'x' ; | # {}\""));
  REQUIRE(UnitWord("a\\") == "\"a\\\\\"");
  const auto served =
      Units(Host("[serve]\nlisten = \"127.0.0.1:1\"\n[[database]]\n"
                 "path = \"/srv/a$b %n/orders\"\nserve = {}\n"));
  // systemd replaces a % here, but no $.
  REQUIRE(HasLine(served.at("sstferry-server.service"),
                  "ReadWritePaths=\"-/srv/a$b %%n\""));
  REQUIRE(UnitWord("") == "\"\"");
  REQUIRE(UnitWord(";") == "\";\"");

  std::vector<MadeFile> files;
  REQUIRE_OK(MakeFiles(FileForm::kCron, host, kProgram, &files));
  REQUIRE(files.size() == 1);
  REQUIRE(files[0].name == "sstferry");
  std::string line = files[0].text.substr(files[0].text.find("\n0 2 ") + 1);
  line.pop_back();
  INFO(line);
  const std::string fields = "0 2 * * * 1000 ";
  REQUIRE(line.starts_with(fields));
  // cron turns \% into % for the shell. A bare % would end the command.
  std::string command;
  for (size_t i = fields.size(); i < line.size(); ++i) {
    REQUIRE(line[i] != '%');
    if (line[i] == '\\' && line[i + 1] == '%') {
      ++i;
    }
    command += line[i];
  }
  Process shell({"/bin/sh", "-c",
                 "set -- " + command + "; printf '%s\\n' \"$@\""});
  REQUIRE(shell.Wait() == 0);
  REQUIRE(shell.out() ==
          "/usr/bin/sstferry\narchive\npush\n/data/a\ns3://b\n--label=" +
              label + "\n");

  REQUIRE_OK(MakeFiles(FileForm::kKubernetes, host, kProgram, &files));
  REQUIRE(files.size() == 1);
  const std::string header = OwnHeader(host);
  const auto manifest =
      nlohmann::json::parse(files[0].text.substr(header.size()));
  const auto& pod =
      manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"];
  REQUIRE(pod["containers"][0]["args"].back() ==
          "--label=a \"b\" %n $$HOME `id` 'x' ; | # {}");
  REQUIRE(pod["securityContext"]["runAsUser"] == 1000);
  REQUIRE(manifest["spec"]["schedule"] == "0 2 * * *");
}

TEST_CASE("Jobs that cron or Kubernetes cannot run are refused with their line",
          "[tools][units]") {
  const auto cron = [](const std::string& text) {
    std::vector<MadeFile> files;
    const Status status = MakeFiles(FileForm::kCron, Host(text), kProgram, &files);
    return status.ok() ? "" : std::string(status.getState());
  };
  const auto manifests = [](const std::string& text) {
    std::vector<MadeFile> files;
    const Status status = MakeFiles(FileForm::kKubernetes, Host(text), kProgram, &files);
    return status.ok() ? "" : std::string(status.getState());
  };
  const std::string head =
      "[[database]]\npath = \"/data/a\"\narchive = \"s3://b\"\n";
  REQUIRE(cron(head + "push.when = \"02:00\"\n") == "");
  REQUIRE(cron(head + "push.when = \"02:00:30\"\n")
              .starts_with("--config /etc/sstferry/host.toml: line 4, column "));
  REQUIRE(cron(head + "push.when = \"02:00 UTC\"\n").find("no time zone") !=
          std::string::npos);
  REQUIRE(cron(head + "push = {when = \"02:00\", label = '\\'}\n")
              .find("no backslash") != std::string::npos);
  REQUIRE(cron("[serve]\nlisten = \"127.0.0.1:1\"\n" + head + "serve = {}\n")
              .find("account: required with --cron") != std::string::npos);
  REQUIRE(manifests(head + "push.when = \"02:00\"\n").find("[kubernetes]") !=
          std::string::npos);
  const std::string place = "[kubernetes]\nimage = \"i\"\n";
  REQUIRE(manifests(place + head + "push.when = \"02:00\"\n")
              .find("account: missing. With --kubernetes, give the number of "
                    "the user who owns /data/a") !=
          std::string::npos);
  REQUIRE(manifests(place + head + "account = \"7\"\nname = \"A\"\n"
                                   "push.when = \"02:00\"\n")
              .find("lower-case") != std::string::npos);
  REQUIRE(manifests(place + head + "account = \"7\"\nsource = \"sst://h/a\"\n"
                                   "[database.swap]\nwhen = \"02:00\"\n"
                                   "after-swap = \"x\"\n")
              .find("no shell") != std::string::npos);
}

TEST_CASE("A path pattern finds databases and no other directories",
          "[tools][units]") {
  const ScratchDir dir;
  namespace fs = std::filesystem;
  for (const char* const name :
       {"b", "a", "a.old-20261125T020003Z", "a.sstferry", "empty", ".hidden",
        "with space"}) {
    fs::create_directory(dir / name);
    if (std::string(name) != "empty") {
      WriteBytes(dir / name + "/CURRENT", "MANIFEST-000001\n");
    }
  }
  fs::create_directory_symlink(dir / "a", dir / "link");
  WriteBytes(dir / "file", "");
  const std::string text = "[[database]]\npath = \"" + dir.path() +
                           "/*\"\narchive = \"s3://b/{name}\"\n"
                           "push.when = \"02:00\"\n";
  const HostFile host = Host(text);
  REQUIRE(host.jobs.size() == 2);
  REQUIRE(WordsOf(host, "sstferry-a-push")
              .starts_with("archive push " + (dir / "a") + " s3://b/a"));
  REQUIRE(WordsOf(host, "sstferry-b-push")
              .starts_with("archive push " + (dir / "b") + " s3://b/b"));
  REQUIRE(Refused("[[database]]\npath = \"/data/*\"\narchive = \"s3://b\"\n"
                  "push.when = \"02:00\"\n")
              .starts_with("line 3, column 11: archive: expected {name}"));
  // A pattern without a match is an error: if a volume is not mounted, the
  // units of its databases must stay.
  HostFile none;
  for (const std::string& pattern : {dir / "empty/*", dir / "missing/*"}) {
    const Status status =
        ParseHostFile(kPath,
                      "[[database]]\npath = \"" + pattern +
                          "\"\narchive = \"s3://b/{name}\"\n"
                          "push.when = \"02:00\"\n",
                      &none);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kRefused);
    REQUIRE(MessageOf(status).find("line 2, column 8: path: ") !=
            std::string::npos);
  }
}

TEST_CASE("units says how to end what a manifest or a cron line ran",
          "[tools][units]") {
  const ScratchDir dir;
  std::filesystem::create_directory(dir / "out");
  const auto said = [&](const std::string& text, const std::string& form) {
    WriteBytes(dir / "host.toml", text);
    return OutputOf({"units", "--config", dir / "host.toml", "--directory",
                     dir / "out", form},
                    0);
  };
  const std::string head = "[[database]]\npath = \"/data/a\"\n"
                           "account = \"7\"\narchive = \"s3://b\"\n";
  SECTION("a CronJob") {
    const auto place = [](const std::string& space) {
      return "[kubernetes]\nimage = \"i\"\nnamespace = \"" + space + "\"\n";
    };
    const std::string push = "push.when = \"02:00\"\n";
    said(place("x") + head + push + "check.when = \"04:30\"\n",
         "--kubernetes");
    const std::string apply = "kubectl apply -f " + (dir / "out") + "\n";
    REQUIRE(said(place("x") + head + push, "--kubernetes")
                .ends_with("next: kubectl delete --ignore-not-found "
                           "CronJob/sstferry-a-check --namespace x && " +
                           apply));
    REQUIRE(said(place("y") + head + push, "--kubernetes")
                .ends_with("next: kubectl delete --ignore-not-found "
                           "CronJob/sstferry-a-push --namespace x && " +
                           apply));
    REQUIRE(said(place("y") + head + push, "--kubernetes")
                .ends_with("next: " + apply));
  }
  SECTION("a follower of cron") {
    const std::string end =
        "next: fuser -k -TERM /run/sstferry-a-follow.lock\n";
    const std::string follow = head + "follow.segment = ";
    REQUIRE(said(follow + "\"5s\"\n", "--cron").find("next:") ==
            std::string::npos);
    REQUIRE(said(follow + "\"6s\"\n", "--cron").ends_with(end));
    REQUIRE(said(follow + "\"6s\"\n", "--cron").find("next:") ==
            std::string::npos);
    REQUIRE(said(head + "push.when = \"02:00\"\n", "--cron").ends_with(end));
  }
}

TEST_CASE("Units of a database whose volume is not mounted stay",
          "[tools][units]") {
  const ScratchDir dir;
  namespace fs = std::filesystem;
  for (const char* const name : {"a", "a-b", "b"}) {
    fs::create_directories(dir / "app/" + name);
    WriteBytes(dir / "app/" + name + "/CURRENT", "MANIFEST-000001\n");
  }
  fs::create_directory(dir / "units");
  WriteBytes(dir / "host.toml",
             "[[database]]\npath = \"" + (dir / "app/*") +
                 "\"\naccount = \"app\"\narchive = \"s3://b/{name}\"\n"
                 "push.when = \"02:00\"\n");
  Strings words = {"units", "--config", dir / "host.toml", "--directory",
                   dir / "units"};
  if (GENERATE(false, true)) words.push_back("--cron");
  const auto run = [&words](int code) {
    Process units(Sstferry(words));
    REQUIRE(units.Wait() == code);
    return units.err();
  };
  run(0);
  // A directory that is gone removes its units.
  fs::remove_all(dir / "app/a-b");
  run(0);
  REQUIRE_FALSE(fs::exists(dir / "units/sstferry-a-b-push.timer"));
  // An empty mount point does not, nor does one that never had a database.
  fs::create_directory(dir / "app/empty");
  run(0);
  fs::remove(dir / "app/b/CURRENT");
  const std::string said = run(1);
  INFO(said);
  REQUIRE(said.find((dir / "app/b") + ": expected a database") !=
          std::string::npos);
  if (words.back() != "--cron") {
    REQUIRE(fs::exists(dir / "units/sstferry-b-push.timer"));
  }
  fs::remove(dir / "app/b");
  run(0);
}

TEST_CASE("units writes and removes only its own files", "[tools][units]") {
  const ScratchDir dir;
  const std::string config = dir / "host.toml";
  const std::string out = dir / "units";
  namespace fs = std::filesystem;
  fs::create_directory(out);
  const std::string head = "[[database]]\npath = \"/data/a\"\n"
                           "archive = \"s3://b\"\npush.when = \"02:00\"\n";
  const auto run = [&](const std::string& text, Strings more, int code) {
    WriteBytes(config, text);
    more.insert(more.begin(),
                {"units", "--config", config, "--directory", out});
    return OutputOf(more, code);
  };
  WriteBytes(out + "/sstferry-mine.timer", "[Timer]\n");
  WriteBytes(out + "/other.service", "[Service]\n");
  // --check writes nothing.
  std::string said = run(head, {"--check"}, 0);
  REQUIRE(said.find("would have 3 files\nnew: ") != std::string::npos);
  REQUIRE(said.find("new: sstferry-a-push.timer\n") != std::string::npos);
  REQUIRE_FALSE(fs::exists(out + "/sstferry-a-push.service"));

  run(head + "check.when = \"04:30\"\n", {}, 0);
  REQUIRE(fs::exists(out + "/sstferry-a-check.timer"));
  const std::string push = TextOfFile(out + "/sstferry-a-push.service");
  // A temporary file left by a killed run.
  WriteBytes(out + "/sstferry-x.service.1.tmp", push);

  // A wrong host file changes nothing.
  run(head + "chek.when = \"04:30\"\n", {}, 2);
  REQUIRE(fs::exists(out + "/sstferry-a-check.timer"));

  said = run(head + "push.label = \"x\"\n", {}, 0);
  INFO(said);
  REQUIRE(said.find("changed: sstferry-a-push.service\n") !=
          std::string::npos);
  REQUIRE(said.find("removed: sstferry-a-check.timer\n") !=
          std::string::npos);
  REQUIRE_FALSE(fs::exists(out + "/sstferry-a-check.timer"));
  REQUIRE_FALSE(fs::exists(out + "/sstferry-a-check.service"));
  REQUIRE_FALSE(fs::exists(out + "/sstferry-x.service.1.tmp"));
  REQUIRE(TextOfFile(out + "/sstferry-a-push.service") != push);
  REQUIRE(TextOfFile(out + "/sstferry-mine.timer") == "[Timer]\n");
  REQUIRE(TextOfFile(out + "/other.service") == "[Service]\n");

  // Refused: a unit of this name comes from another host file, or is a link
  // that the operator made.
  WriteBytes(dir / "second.toml", head);
  Process second(Sstferry(
      {"units", "--config", dir / "second.toml", "--directory", out}));
  REQUIRE(second.Wait() == 1);
  REQUIRE(second.err().find("found one that it wrote from " + config + ";") !=
          std::string::npos);
  REQUIRE(second.err().find("next:") == std::string::npos);
  fs::remove(out + "/sstferry-a-push.timer");
  fs::create_symlink("/dev/null", out + "/sstferry-a-push.timer");
  run(head, {}, 1);
  REQUIRE(fs::is_symlink(out + "/sstferry-a-push.timer"));
  REQUIRE(TextOfFile(out + "/sstferry-a-push.service").find("--label=x") !=
          std::string::npos);
}

TEST_CASE("units --check warns of what the jobs need and is missing",
          "[tools][units]") {
  const ScratchDir dir;
  namespace fs = std::filesystem;
  fs::create_directory(dir / "units");
  WriteBytes(dir / "host.toml",
             "metrics-dir = \"" + (dir / "metrics") +
                 "\"\n[[database]]\npath = \"" + (dir / "app/orders") +
                 "\"\narchive = \"" + (dir / "archive") +
                 "\"\nfollow = {}\ncheck.when = \"04:30\"\n"
                 "[[database]]\npath = \"" + (dir / "replicas/users") +
                 "\"\nsource = \"sst://h/users\"\nrefresh.when = "
                 "\"03:00\"\n");
  const auto check = [&] {
    Process units(Sstferry({"units", "--config", dir / "host.toml",
                            "--directory", dir / "units", "--check"}));
    REQUIRE(units.Wait() == 0);
    return units.err();
  };
  std::string said = check();
  INFO(said);
  for (const std::string& missing :
       {"follow: expected " + (dir / "metrics") + ", found nothing",
        "follow: expected " + (dir / "app") + ", found nothing",
        "follow: expected an archive in " + (dir / "archive") + ", found none",
        "refresh: expected " + (dir / "replicas") + ", found nothing"}) {
    INFO(missing);
    REQUIRE(said.find(missing) != std::string::npos);
  }
  for (const char* const name : {"metrics", "app", "archive", "replicas"}) {
    fs::create_directory(dir / name);
  }
  OutputOf({"archive", "init", dir / "archive"});
  said = check();
  REQUIRE(said.find("expected") == std::string::npos);
}

TEST_CASE("units --start stops removed units and restarts changed ones",
          "[tools][units]") {
  const ScratchDir dir;
  const std::string config = dir / "host.toml";
  const std::string out = dir / "units";
  std::filesystem::create_directory(out);
  // A fake systemctl that logs its arguments. It fails if the file "fail"
  // exists, and knows no unit if the file "unloaded" exists. A unit is active
  // unless a file has its name.
  WriteBytes(dir / "systemctl",
             "#!/bin/sh\n[ \"$1 $2\" = '--quiet is-active' ] && { [ ! -e '" +
                 dir.path() + "'/\"$3\" ]; exit; }\necho \"$@\" >>'" +
                 (dir / "calls") + "'\n[ -e '" + (dir / "fail") +
                 "' ] && exit 1\n[ -e '" + (dir / "unloaded") +
                 "' ] && case $1 in stop|is-active) exit 5;; esac\nexit 0\n");
  REQUIRE(chmod((dir / "systemctl").c_str(), 0755) == 0);
  const std::string path = dir.path() + ":" + std::getenv("PATH");
  const auto run = [&](const std::string& text, const Strings& more,
                       int code) {
    WriteBytes(config, text);
    std::filesystem::remove(dir / "calls");
    Strings words = {"units", "--config", config, "--directory", out};
    words.insert(words.end(), more.begin(), more.end());
    Process units(Sstferry(words), {{"PATH", path}});
    const int ended = units.Wait();
    INFO(units.err());
    REQUIRE(ended == code);
    return TextOfFile(dir / "calls");
  };
  const auto calls = [&](const std::string& text, int code) {
    return run(text, {"--start"}, code);
  };
  const std::string head = "[[database]]\npath = \"/data/a\"\n"
                           "archive = \"s3://b\"\nfollow.segment = ";
  const std::string begin = "daemon-reload\n";
  const std::string end =
      "enable --now sstferry.target\nstart sstferry.target\n";
  REQUIRE(calls(head + "\"5s\"\npush.when = \"02:00\"\n", 0) == begin + end);
  // Stops only the push timer: its service may be running and ends by itself.
  // Stops before daemon-reload, after which the timer would have failed.
  const std::string forget =
      "reset-failed sstferry-a-push.timer sstferry-a-push.service\n";
  const std::string changed =
      begin + "try-restart sstferry-a-follow.service\n" + end;
  REQUIRE(calls(head + "\"6s\"\n", 0) ==
          "stop sstferry-a-push.timer\n" + forget + changed);
  REQUIRE(calls("[[database]]\npath = \"/data/a\"\narchive = \"s3://b\"\n"
                "push.when = \"02:00\"\n", 0) ==
          "stop sstferry-a-follow.service\n"
          "reset-failed sstferry-a-follow.service\n" + begin + end);
  // systemd starts a target even if its units do not start.
  for (const char* const unit :
       {"sstferry-a-follow.service", "sstferry-a-push.timer"}) {
    const std::string both = head + "\"7s\"\npush.when = \"02:00\"\n";
    WriteBytes(dir / unit, "");
    REQUIRE(calls(both, 1).ends_with(end));
    std::filesystem::remove(dir / unit);
    REQUIRE(calls(both, 0).ends_with(end));
  }
  // A wrong host file makes no call.
  REQUIRE(calls("[[database]]\n", 2).empty());
  WriteBytes(dir / "fail", "");
  REQUIRE(calls(head + "\"5s\"\n", 1) ==
          "stop sstferry-a-push.timer\n"
          "is-active --quiet sstferry-a-push.timer\n" + forget + begin);
  // The next run also does what a run left that failed, or had no --start.
  std::filesystem::remove(dir / "fail");
  REQUIRE(calls(head + "\"5s\"\n", 0) ==
          "stop sstferry-a-push.timer\n" + forget + changed);
  REQUIRE(calls(head + "\"5s\"\n", 0) == begin + end);
  REQUIRE(run(head + "\"6s\"\n", {}, 0).empty());
  REQUIRE(run(head + "\"6s\"\n", {"--check"}, 0).empty());
  REQUIRE(calls(head + "\"6s\"\n", 0) ==
          begin + "try-restart sstferry-a-follow.service\n" + end);
  const std::string push = "[[database]]\npath = \"/data/a\"\n"
                           "archive = \"s3://b\"\npush.when = \"02:00\"\n";
  REQUIRE(run(head + "\"7s\"\n", {}, 0).empty());
  REQUIRE(run(push, {}, 0).empty());
  // A unit that systemd does not know cannot be stopped, and need not be.
  WriteBytes(dir / "unloaded", "");
  REQUIRE(calls(push, 0) ==
          "stop sstferry-a-follow.service\n"
          "is-active --quiet sstferry-a-follow.service\n"
          "reset-failed sstferry-a-follow.service\n" + begin + end);
  REQUIRE(calls(push, 0) == begin + end);

  // The metrics of a removed job go, also if an earlier run had no --start, but
  // not a file that another job still writes.
  const std::string metrics = "metrics-dir = \"" + dir.path() + "\"\n";
  const std::string follow = dir / "sstferry-a-follow.prom";
  const std::string archive = dir / "sstferry-a-archive.prom";
  REQUIRE_FALSE(
      calls(metrics + push + "check.when = \"04:30\"\nfollow = {}\n", 0)
          .empty());
  WriteBytes(follow, "");
  WriteBytes(archive, "");
  REQUIRE(run(metrics + push, {}, 0).empty());
  REQUIRE(std::filesystem::exists(follow));
  REQUIRE_FALSE(calls(metrics + push, 0).empty());
  REQUIRE_FALSE(std::filesystem::exists(follow));
  REQUIRE(std::filesystem::exists(archive));
  REQUIRE_FALSE(calls(metrics + head + "\"5s\"\n", 0).empty());
  REQUIRE_FALSE(std::filesystem::exists(archive));
}

TEST_CASE("Calendar times convert to cron if possible, other text is refused",
          "[tools][units]") {
  const auto cron = [](const std::string& text) {
    Calendar calendar;
    REQUIRE_OK(ParseCalendar("when", text, &calendar));
    return calendar.cron.empty() ? "none" : calendar.cron;
  };
  REQUIRE(cron("02:00") == "0 2 * * *");
  REQUIRE(cron("*:0/15") == "0,15,30,45 * * * *");
  REQUIRE(cron("Sun 07:00") == "0 7 * * 0");
  REQUIRE(cron("Mon..Fri *-*-* 04:30:00") == "30 4 * * 1,2,3,4,5");
  REQUIRE(cron("Fri..Mon 04:30") == "30 4 * * 0,1,5,6");
  REQUIRE(cron("*-*-01,15 12:00") == "0 12 1,15 * *");
  REQUIRE(cron("quarterly") == "0 0 1 1,4,7,10 *");
  REQUIRE(cron("hourly UTC") == "0 * * * *");
  REQUIRE(cron("Mon *-*-01 12:00") == "none");
  REQUIRE(cron("*-*~01 12:00") == "none");
  REQUIRE(cron("2027-*-* 12:00") == "none");

  REQUIRE(cron("weekly") == "0 0 * * 1");
  Calendar zone;
  REQUIRE_OK(ParseCalendar("when", "Mon..Fri *-*-* 04:30 Europe/Berlin", &zone));
  REQUIRE(zone.zone == "Europe/Berlin");
  REQUIRE_OK(ParseCalendar("when", "daily UTC", &zone));
  REQUIRE(zone.zone == "UTC");
  REQUIRE(zone.cron == "0 0 * * *");

  Calendar unused;
  for (const char* const text :
       {"", "2", "24:00", "02:60", "*-13-01", "Foo 02:00", "02:00 02:00",
        "*/5:00", "0/0:00", "5..2:00", "02:00\n", "02:00%i", "%i", "Mon,",
        "Mon.. 02:00", "*-*-*-* 02:00", "1:2:3:4", "UTC"}) {
    INFO(text);
    REQUIRE(ParseCalendar("when", text, &unused).IsInvalidArgument());
  }
  // Zones are looked up, unless the machine has none.
  const ScratchDir zones;
  std::filesystem::create_directory(zones / "Europe");
  WriteBytes(zones / "Europe/Berlin", "TZif2");
  const char* const set = std::getenv("TZDIR");
  const std::string before = set == nullptr ? "" : set;
  setenv("TZDIR", zones.path().c_str(), 1);
  const Status known = ParseCalendar("when", "02:00 Europe/Berlin", &unused);
  const Status wrong = ParseCalendar("when", "02:00 Europe/Belrin", &unused);
  setenv("TZDIR", (zones / "none").c_str(), 1);
  const Status none = ParseCalendar("when", "02:00 Europe/Belrin", &unused);
  if (set == nullptr) {
    unsetenv("TZDIR");
  } else {
    setenv("TZDIR", before.c_str(), 1);
  }
  REQUIRE_OK(known);
  REQUIRE(wrong.IsInvalidArgument());
  REQUIRE_OK(none);
}

TEST_CASE("The state of all jobs is read from their metrics and records",
          "[tools][units]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  PullOptions pull = PullFrom(dir / "source", dir / "replica");
  pull.full_rate = true;
  REQUIRE_OK(RunPull(pull).status);
  const std::string text =
      "metrics-dir = \"" + dir.path() +
      "\"\n[[database]]\nname = \"a\"\npath = \"" + (dir / "source") +
      "\"\narchive = \"s3://b/a\"\nfollow = {}\n"
      "push.when = \"02:00 UTC\"\ncheck.when = \"04:30 UTC\"\n"
      "prune = {when = \"12:00 UTC\", keep-last = 3}\n"
      "[[database]]\nname = \"replica\"\nsource = \"" + (dir / "source") +
      "\"\npath = \"" + (dir / "replica") +
      "\"\nrefresh.when = \"03:00 UTC\"\n"
      "[[database]]\nname = \"none\"\nsource = \"sst://h/none\"\npath = \"" +
      (dir / "none") + "\"\nrefresh.when = \"03:00 UTC\"\n";
  const HostFile host = Host(text);
  const std::time_t now = std::time(nullptr);
  const auto seconds = static_cast<double>(now);
  const MetricLabels archive = {{"archive", "s3://b/a"}};
  MetricSet archived;
  archived.Set(metric::kArchiveLastPush, archive, seconds - 100);
  archived.Set(metric::kArchiveLastCheck, archive, 0);
  REQUIRE(WordsOf(host, "sstferry-a-prune").find("a-archive.prom") !=
          std::string::npos);
  WriteBytes(dir / "sstferry-a-archive.prom", archived.Text());
  const MetricLabels log = {{"target", "s3://b/a"}};
  const MetricLabels replica = {{"target", dir / "replica"}};
  MetricSet followed;
  followed.Set(metric::kStandbyWritten, log, seconds - 5);
  followed.Set(metric::kLogPut, log, seconds - 20);
  followed.Set(metric::kLogUnput, log, seconds - 7);
  WriteBytes(dir / "sstferry-a-follow.prom", followed.Text());

  std::vector<JobState> jobs = ReadJobStates(host, now);
  REQUIRE(jobs.size() == 6);
  const auto is = [&](size_t i, JobKind kind, std::optional<uint64_t> good,
                      std::optional<double> lag) {
    INFO(i << ": " << jobs[i].problem);
    REQUIRE(jobs[i].kind == kind);
    REQUIRE(jobs[i].last_good_seconds == good);
    REQUIRE(jobs[i].lag_seconds == lag);
    REQUIRE(jobs[i].when.empty() == RunsForever(kind));
  };
  const auto whole = static_cast<uint64_t>(now);
  is(0, JobKind::kFollow, whole - 20, 7);
  REQUIRE(jobs[0].problem.empty());
  is(1, JobKind::kPush, whole - 100, 100);
  REQUIRE(jobs[1].problem.empty());
  is(2, JobKind::kCheck, 0, std::nullopt);
  REQUIRE(jobs[2].problem == "has never succeeded");
  is(3, JobKind::kPrune, std::nullopt, std::nullopt);
  REQUIRE(jobs[3].problem == "has never run: found none of its metrics in " +
                                 (dir / "sstferry-a-archive.prom"));
  REQUIRE(jobs[4].kind == JobKind::kRefresh);
  REQUIRE(jobs[4].last_good_seconds.has_value());
  REQUIRE(jobs[4].lag_seconds.has_value());
  REQUIRE(jobs[4].problem.empty());
  REQUIRE_FALSE(jobs[5].last_good_seconds.has_value());
  REQUIRE_FALSE(jobs[5].problem.empty());

  // A job whose last run failed has a problem, although an earlier one
  // succeeded.
  MetricSet failed = archived;
  failed.Set(metric::kArchiveRunFailed,
             {{"archive", "s3://b/a"}, {"action", "push"}}, seconds - 50);
  failed.Set(metric::kArchiveRunFailed,
             {{"archive", "s3://b/a"}, {"action", "check"}}, 0);
  WriteBytes(dir / "sstferry-a-archive.prom", failed.Text());
  MetricSet pulled;
  pulled.Set(metric::kReplicaFailuresInRow, replica, 1);
  pulled.Set(metric::kReplicaLastEnd, replica, seconds + 1);
  WriteBytes(dir / "sstferry-replica-refresh.prom", pulled.Text());
  const std::vector<JobState> bad = ReadJobStates(host, now);
  REQUIRE(bad[1].problem.starts_with("its last run failed at "));
  REQUIRE(bad[1].last_good_seconds == static_cast<uint64_t>(now) - 100);
  REQUIRE(bad[2].problem == "has never succeeded");
  REQUIRE(bad[4].problem.starts_with("its last run failed at "));
  REQUIRE(bad[4].last_good_seconds == jobs[4].last_good_seconds);
  // A pull without the metrics of the job has succeeded since then.
  pulled.Set(metric::kReplicaLastEnd, replica, seconds - 3600);
  WriteBytes(dir / "sstferry-replica-refresh.prom", pulled.Text());
  REQUIRE(ReadJobStates(host, now)[4].problem.empty());
  WriteBytes(dir / "sstferry-a-archive.prom", archived.Text());

  const auto json = nlohmann::json::parse(JobStatesJson(host, jobs));
  REQUIRE(json["jobs"].size() == 6);
  REQUIRE(json["jobs"][1]["lag_seconds"] == 100);
  REQUIRE(json["jobs"][3]["last_good"].is_null());
  REQUIRE(JobStatesText(host, jobs).find("\nproblem: a: check: has never "
                                         "succeeded\n") !=
          std::string::npos);
  const std::string metrics = JobStatesMetrics(host, jobs);
  REQUIRE(metrics.find("sstferry_job_lag_seconds{database=\"a\",kind=\"push\"} "
                       "100\n") != std::string::npos);
  REQUIRE(metrics.find("kind=\"prune\"} 1\n") != std::string::npos);

  // A follower that hears nothing has put all that it has received.
  MetricSet deaf;
  deaf.Set(metric::kStandbyWritten, log, seconds - 5);
  WriteBytes(dir / "sstferry-a-follow.prom", deaf.Text());
  jobs = ReadJobStates(host, now);
  is(0, JobKind::kFollow, 0, std::nullopt);
  REQUIRE(jobs[0].problem ==
          "has put nothing into the archive since it started");
  deaf.Set(metric::kLogPut, log, seconds - 7200);
  deaf.Set(metric::kStandbyLag, log, 7200);
  WriteBytes(dir / "sstferry-a-follow.prom", deaf.Text());
  jobs = ReadJobStates(host, now);
  is(0, JobKind::kFollow, whole - 7200, 7205);
  REQUIRE(jobs[0].problem.starts_with("lags by 2:00:05, expected at most 2:0"));
  // A follower that cannot put its data has a problem after ten segments, but
  // not before two minutes.
  const auto waits = [&](const HostFile& of, double lag) {
    MetricSet late = followed;
    late.Set(metric::kLogUnput, log, seconds - lag);
    WriteBytes(dir / "sstferry-a-follow.prom", late.Text());
    return !ReadJobStates(of, now)[0].problem.empty();
  };
  std::string rare = text;
  rare.replace(rare.find("follow = {}"), 11, "follow.segment = \"60s\"");
  REQUIRE_FALSE(waits(host, 119));
  REQUIRE(waits(host, 121));
  REQUIRE_FALSE(waits(Host(rare), 599));
  REQUIRE(waits(Host(rare), 601));
  // If the clock was set back, data may have been waiting since a time in the
  // future. This is a problem, and does not hide that the source is not heard.
  deaf.Set(metric::kLogUnput, log, seconds + 3600);
  WriteBytes(dir / "sstferry-a-follow.prom", deaf.Text());
  jobs = ReadJobStates(host, now);
  is(0, JobKind::kFollow, whole - 7200, 7205);
  REQUIRE(jobs[0].problem.starts_with(
      "its oldest data that is not in the archive is dated "));
  WriteBytes(dir / "sstferry-a-follow.prom", followed.Text());

  // The metrics of a stopped follower grow old. Its last good time stays.
  jobs = ReadJobStates(host, now + 3600);
  is(0, JobKind::kFollow, whole - 20, 3620);
  REQUIRE(jobs[0].problem == "does not run, or writes no metrics");
  // Nor does a file prove that it runs which is from before the clock was set
  // back.
  REQUIRE(ReadJobStates(host, now - 86'400)[0].problem == jobs[0].problem);
  // Nor is a success recent that is from the future.
  jobs = ReadJobStates(host, now - 86'400);
  is(1, JobKind::kPush, whole - 100, std::nullopt);
  REQUIRE(jobs[1].problem.starts_with("its last success is dated "));
  REQUIRE(ReadJobStates(host, now - 300)[1].problem.empty());

  // status --all shows the same states.
  WriteBytes(dir / "host.toml", text);
  const std::string said =
      OutputOf({"status", "--all", "--config", dir / "host.toml",
                "--metrics-file", dir / "jobs.prom"},
               1);
  INFO(said);
  REQUIRE(said.find("DATABASE  JOB") != std::string::npos);
  REQUIRE(TextOfFile(dir / "jobs.prom").find("sstferry_job_problem") !=
          std::string::npos);
  // Without metrics-dir, the state of an archive is unknown.
  const HostFile blind = Host(text.substr(text.find('\n') + 1));
  jobs = ReadJobStates(blind, now);
  REQUIRE(jobs[1].problem ==
          "its state is unknown: the host file has no metrics-dir");
  REQUIRE(EndStateOf(StatusOfJobs(blind, jobs)) == EndState::kRefused);
  REQUIRE_OK(StatusOfJobs(blind, {jobs[4]}));
  OutputOf({"status", dir / "replica", "--metrics-file", dir / "x.prom"}, 2);
  OutputOf({"status", "--all"}, 2);
  OutputOf({"status", "--all", dir / "replica", "--config", dir / "host.toml"},
           2);
}

TEST_CASE("The state of a push of all databases is that of the oldest one",
          "[tools][units]") {
  const ScratchDir dir;
  const HostFile host =
      Host("metrics-dir = \"" + dir.path() +
           "\"\n[[database]]\nname = \"all\"\npath = \"/var/lib/app\"\n"
           "archive = \"s3://b/app\"\n"
           "push = {when = \"02:00 UTC\", all = true}\n");
  const std::time_t now = std::time(nullptr);
  const auto read = [&](double second) {
    const MetricLabels one = {{"archive", "s3://b/app/deep/x"}};
    const MetricLabels two = {{"archive", "s3://b/app/y"}};
    const MetricLabels other = {{"archive", "s3://b/apples"}};
    MetricSet pushed;
    pushed.Set(metric::kArchiveLastPush, one, static_cast<double>(now) - 100);
    pushed.Set(metric::kArchiveLastPush, two, second);
    pushed.Set(metric::kArchiveLastPush, other, 0);
    WriteBytes(dir / "sstferry-all-archive.prom", pushed.Text());
    return ReadJobStates(host, now).at(0);
  };
  REQUIRE(ReadJobStates(host, now).at(0).problem.starts_with(
      "has never run: found none of its metrics in "));
  const JobState good = read(static_cast<double>(now) - 50);
  REQUIRE(good.problem.empty());
  REQUIRE(good.last_good_seconds == static_cast<uint64_t>(now) - 100);
  REQUIRE(good.lag_seconds == 100);
  REQUIRE(read(0).problem == "s3://b/app/y: has never succeeded");
  REQUIRE(read(static_cast<double>(now) + 86'400)
              .problem.starts_with("s3://b/app/y: its last success is dated "));
}

TEST_CASE("A replica that a mirror should have is a problem of its job",
          "[tools][units]") {
  const ScratchDir dir;
  const std::string mirror = dir / "mirror";
  std::filesystem::create_directory(dir / "top");
  SampleShape shape;
  shape.entries = 50;
  MakeSampleDatabase(dir / "top/a", shape);
  MakeSampleDatabase(dir / "top/b", shape);
  OutputOf({"pull", "--all", dir / "top", mirror});
  const HostFile host =
      Host("[[database]]\nname = \"all\"\nsource = \"" + (dir / "top") +
           "\"\npath = \"" + mirror +
           "\"\nrefresh = {when = \"03:00 UTC\", all = true}\n");
  const auto read = [&host] {
    return ReadJobStates(host, std::time(nullptr));
  };
  REQUIRE(read().size() == 1);
  REQUIRE(read()[0].problem.empty());
  std::filesystem::remove_all(mirror + "/b");
  const std::vector<JobState> jobs = read();
  INFO(jobs[0].problem);
  REQUIRE(jobs[0].problem.starts_with("b: " + mirror +
                                      "/b: expected a replica"));
  REQUIRE(EndStateOf(StatusOfJobs(host, jobs)) == EndState::kRefused);
}

TEST_CASE("A standby with a fault is a problem, although its follower runs",
          "[tools][units]") {
  test::StandbyWorld world;
  world.Write(20);
  world.source()->Flush();
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());  // keeps the lock of a follower
  const HostFile host =
      Host("[[database]]\nname = \"s\"\nsource = \"" + world.source_dir() +
           "\"\npath = \"" + world.dir() + "\"\nfollow = {}\n");
  const auto read = [&host] {
    return ReadJobStates(host, std::time(nullptr));
  };
  REQUIRE(read().size() == 1);
  REQUIRE(read()[0].problem.empty());
  REQUIRE_OK(StatusOfJobs(host, read()));
  std::string what;
  SECTION("a recorded one") {
    what = "key 7 differs";
    HealthFile fault = MakeFault(ReplicaFault::kDifferent, what, Selection());
    REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), world.dir(),
                           &fault));
    bool found = false;
    StandbyState state;  // a follower publishes it
    REQUIRE_OK(ReadStandbyState(world.dir(), &found, &state));
    REQUIRE(state.fault == what);
  }
  SECTION("a missing file") {
    what = test::PathsWith(world.dir(), ".sst").front();
    std::filesystem::remove(what);
  }
  const std::vector<JobState> jobs = read();
  INFO(jobs[0].problem);
  REQUIRE(jobs[0].problem.find(what) != std::string::npos);
  REQUIRE(EndStateOf(StatusOfJobs(host, jobs)) == EndState::kRefused);
}

TEST_CASE("A job whose standby was promoted, or never was one, has a problem",
          "[tools][units]") {
  test::StandbyWorld world;
  world.Write(20);
  const std::string copy = world.root() + "/copy";
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  world.CloseStandby();
  REQUIRE_OK(world.Promote());
  REQUIRE_OK(RunPull(PullFrom(world.source_dir(), copy)).status);
  const auto database = [&world](const std::string& name,
                                 const std::string& path,
                                 const std::string& job) {
    return "[[database]]\nname = \"" + name + "\"\nsource = \"" +
           world.source_dir() + "\"\npath = \"" + path + "\"\n" + job + "\n";
  };
  const std::vector<JobState> jobs = ReadJobStates(
      Host(database("promoted", world.dir(), "follow = {}") +
           database("copy", copy, "follow = {}")),
      std::time(nullptr));
  REQUIRE(jobs.size() == 2);
  INFO(jobs[0].problem);
  REQUIRE(jobs[0].problem.starts_with("was promoted at "));
  REQUIRE(jobs[0].last_good_seconds.has_value());
  REQUIRE_FALSE(jobs[0].lag_seconds.has_value());
  REQUIRE(jobs[1].problem == "expected a standby, found a replica");
  // Its refreshes would be refused.
  REQUIRE(ReadJobStates(Host(database("promoted", world.dir(),
                                      "refresh.when = \"03:00 UTC\"")),
                        std::time(nullptr))
              .at(0)
              .problem == jobs[0].problem);
}

}  // namespace sstferry::units_test
