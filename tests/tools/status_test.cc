// sstferry status and release as an operator runs them: real processes.
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::status_test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

Outcome Run(const Words& arguments) {
  Process process(Sstferry(arguments));
  Outcome outcome;
  outcome.code = process.Wait();
  outcome.out = process.out();
  outcome.err = process.err();
  return outcome;
}

json RunJson(Words arguments, int code = 0) {
  arguments.push_back("--json");
  const Outcome outcome = Run(arguments);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == code);
  const json object = json::parse(outcome.out, nullptr, false);
  REQUIRE(object.is_object());
  REQUIRE(object["exit_code"] == code);
  return object;
}

// Asks until `wanted` accepts the answer, for at most a minute.
json AskUntil(const Words& arguments, const std::function<bool(json)>& wanted) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  json answer;
  do {
    Words with_json = arguments;
    with_json.push_back("--json");
    answer = json::parse(Run(with_json).out, nullptr, false);
  } while (!wanted(answer) && std::chrono::steady_clock::now() < until);
  INFO(answer.dump(2));
  REQUIRE(wanted(answer));
  return answer;
}

struct Bench {
  Bench() { MakeSampleDatabase(dir / "source"); }
  Words Serve() const {
    return {"--db", std::string("db=").append(dir / "source")};
  }
  Words Pull(const std::string& url) const {
    return {"pull", url, dir / "target", "--chunk-bytes", "64Ki"};
  }
  Words Slow(const std::string& url) const {
    Words words = Pull(url);
    words.insert(words.end(), {"--max-rate", "50K"});
    return words;
  }
  ScratchDir dir;
};

TEST_CASE("status shows a pull that runs, was killed and ended, and release "
          "removes its snapshot",
          "[tools][status]") {
  Bench bench;
  ServeProcess server(bench.Serve());
  const std::string source = bench.dir / "source";
  const std::string target = bench.dir / "target";
  Process pull(Sstferry(bench.Slow(server.url())));
  json state = AskUntil({"status", target}, [](const json& answer) {
    return answer["target"].is_object() &&
           answer["target"]["unfinished"]["chunks"] >= 2;
  });
  REQUIRE(state["target"]["state"] == "running");
  REQUIRE(state["source"].is_null());
  const std::string id = state["target"]["unfinished"]["transfer_id"];

  json retained = RunJson({"status", server.url()});
  REQUIRE(retained["target"].is_null());
  REQUIRE(retained["source"]["snapshots"].size() == 1);
  REQUIRE(retained["source"]["snapshots"][0]["id"] == id.substr(0, 8));
  REQUIRE(retained["source"]["snapshots"][0]["readers"] == 1);
  REQUIRE(RunJson({"status", server.list_url()})["source"]["snapshots"]
              .size() == 1);
  retained = RunJson({"status", source});
  REQUIRE(retained["source"]["snapshots"][0]["id"] == id);
  REQUIRE(retained["source"]["pinned_bytes"] > 2'000'000);
  json refused = RunJson({"release", source, id}, 5);
  REQUIRE(refused["status"] == "BUSY");

  pull.Signal(SIGKILL);
  REQUIRE(pull.Wait() == 128 + SIGKILL);
  state = RunJson({"status", target});
  REQUIRE(state["target"]["state"] == "unfinished");
  REQUIRE(state["target"]["unfinished"]["percent"] > 0);
  REQUIRE(state["target"]["next"] ==
          Sstferry({})[0] + " pull " + server.url() + " " + target +
              " --chunk-bytes 64Ki --max-rate 50K");
  AskUntil({"status", server.url()}, [](const json& answer) {
    return answer["source"]["snapshots"][0]["readers"] == 0;
  });
  refused = RunJson({"release", source, std::string(32, 'f')}, 1);
  REQUIRE(std::string(refused["error"]["message"]).find("retained: " + id) !=
          std::string::npos);
  const Outcome released = Run({"release", source, id.substr(0, 10)});
  INFO(released.err);
  REQUIRE(released.code == 0);
  REQUIRE(released.out.find("released: the snapshot of transfer " + id) == 0);
  REQUIRE(Run({"status", source}).out ==
          "source: " + source + "\nno snapshot is retained or in use; "
          "followers are in the status of a server, not here\n");
  REQUIRE(Run({"status", server.url()}).out ==
          "source: " + server.url() + "\nno snapshot is retained or in use\n");
  REQUIRE(NamesOf(bench.dir.path()) ==
          Words{"source", "target.sstferry"});

  const Outcome anew = Run(bench.Pull(server.url()));
  INFO(anew.err);
  REQUIRE(anew.code == 0);
  REQUIRE(anew.err.find("no longer has the snapshot") != std::string::npos);
  // The directory can now be a source and is the target of a pull: status shows
  // both.
  state = RunJson({"status", target});
  REQUIRE(state["target"]["state"] == "complete");
  REQUIRE(state["target"]["complete"]["source"] == server.url());
  REQUIRE(state["source"]["snapshots"].empty());
  const std::string text = Run({"status", target}).out;
  REQUIRE(text.find("target: " + target + "\ncomplete, 0:") == 0);
  REQUIRE(text.find(" old: as of ") != std::string::npos);
  REQUIRE(text.find("source: ") == std::string::npos);
  REQUIRE(state["target"]["complete"]["age_seconds"] < 3600);
}

TEST_CASE("A pull waits for a transfer slot of the source, and says so",
          "[tools][status]") {
  Bench bench;
  Words serve = bench.Serve();
  serve.insert(serve.end(), {"--max-transfers", "1"});
  ServeProcess server(serve);
  Process first(Sstferry(bench.Slow(server.url())));
  AskUntil({"status", server.url()}, [](const json& answer) {
    return !answer["source"]["snapshots"].empty();
  });
  Process second(Sstferry({"pull", server.url(), bench.dir / "second"}));
  REQUIRE(second.WaitForErr("all transfer slots of the source are in use"));
  first.Signal(SIGTERM);
  REQUIRE(second.Wait() == 0);
}

TEST_CASE("release works without a server, and pull --restart releases",
          "[tools][status]") {
  Bench bench;
  const std::string source = bench.dir / "source";
  const auto cut = [&](const std::string& url) {
    Process pull(Sstferry(bench.Slow(url)));
    AskUntil({"status", bench.dir / "target"}, [](const json& answer) {
      return answer["target"].is_object() &&
             answer["target"]["unfinished"]["chunks"] >= 1;
    });
    pull.Signal(SIGKILL);
    pull.Wait();
  };
  cut(source);  // from a directory, without a server
  json retained = RunJson({"status", source});
  REQUIRE(retained["source"]["snapshots"].size() == 1);
  REQUIRE(retained["source"]["snapshots"][0]["readers"] == 0);
  SECTION("release") {
    REQUIRE(
        RunJson({"release", source,
                 retained["source"]["snapshots"][0]["id"]})["pinned_bytes"] >
        2'000'000);
    REQUIRE(RunJson({"status", source})["source"]["snapshots"].empty());
  }
  SECTION("--restart") {
    ServeProcess server(bench.Serve());
    Words again = bench.Pull(source);
    again.push_back("--restart");
    const Outcome outcome = Run(again);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    REQUIRE(outcome.err.find(" was released") != std::string::npos);
  }
  REQUIRE(NamesOf(bench.dir.path()).at(0) == "source");
  for (const std::string& name : NamesOf(bench.dir.path())) {
    REQUIRE(name.find(".sstferry-snapshot-") == std::string::npos);
  }
}

TEST_CASE("pull --restart releases although serve --once still waits",
          "[tools][status]") {
  Bench bench;
  Words once = bench.Serve();
  once.push_back("--once");
  ServeProcess server(once);
  Process pull(Sstferry(bench.Slow(server.url())));
  AskUntil({"status", bench.dir / "target"}, [](const json& answer) {
    return answer["target"].is_object() &&
           answer["target"]["unfinished"]["chunks"] >= 1;
  });
  pull.Signal(SIGKILL);
  pull.Wait();
  AskUntil({"status", server.url()}, [](const json& answer) {
    return answer["source"]["snapshots"][0]["readers"] == 0;
  });
  Words again = bench.Pull(server.url());
  again.push_back("--restart");
  const Outcome outcome = Run(again);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  REQUIRE(outcome.err.find(" was released") != std::string::npos);
  REQUIRE(server.process().Wait() == 0);
}

TEST_CASE("status fails for no directory, no server and an unknown name",
          "[tools][status]") {
  Bench bench;
  const json nothing = RunJson({"status", bench.dir / "nothing"}, 1);
  REQUIRE(nothing["status"] == "REFUSED");
  REQUIRE(nothing["source"].is_null());
  REQUIRE(nothing["target"].is_null());
  ServeProcess server(bench.Serve());
  REQUIRE(RunJson({"status", server.list_url() + "/other"}, 1)["status"] ==
          "REFUSED");
  server.process().Signal(SIGTERM);
  REQUIRE(server.process().Wait() == 0);
  REQUIRE(RunJson({"status", server.url()}, 4)["status"] == "DEAD_PEER");
}

TEST_CASE("The command that status shows finishes an unfinished swap",
          "[tools][status]") {
  Bench bench;
  const std::string target = bench.dir / "a 'target'";
  const Words pull = {"swap", bench.dir / "source", target, "--method",
                      "clone"};
  REQUIRE(Run(pull).code == 0);
  const std::string allowed = bench.dir / "allowed";
  Words again = pull;
  again.insert(again.end(), {"--always-swap", "--before-swap",
                             "test -e '" + allowed + "'"});
  REQUIRE(Run(again).code == 1);
  const json state = RunJson({"status", target});
  REQUIRE(state["target"]["state"] == "unfinished");
  const std::string next = state["target"]["next"];
  INFO(next);
  REQUIRE(Run({"status", target}).out.find("\nnext: " + next + "\n") !=
          std::string::npos);
  WriteBytes(allowed, "");
  Process typed({"/bin/sh", "-c", next});
  const int code = typed.Wait();
  INFO(typed.err());
  REQUIRE(code == 0);
  REQUIRE(RunJson({"status", target})["target"]["state"] == "complete");
}

TEST_CASE("Options --owner and --permissions apply to a new database",
          "[tools]") {
  Bench bench;
  const std::string target = bench.dir / "target";
  Words words = bench.Pull(bench.dir / "source");
  words.insert(words.end(), {"--permissions", "0710"});
  if (geteuid() == 0) {
    words.insert(words.end(), {"--owner", "nobody:nogroup"});
  }
  const Outcome pulled = Run(words);
  INFO(pulled.err);
  REQUIRE(pulled.code == 0);
  struct stat info {};
  REQUIRE(stat(target.c_str(), &info) == 0);
  REQUIRE((info.st_mode & 07777) == 0710);
  REQUIRE(stat((target + "/CURRENT").c_str(), &info) == 0);
  REQUIRE((info.st_mode & 07777) == 0600);
  if (geteuid() == 0) {
    REQUIRE(info.st_uid == getpwnam("nobody")->pw_uid);
    REQUIRE(info.st_gid == getgrnam("nogroup")->gr_gid);
  }
  for (const Words& wrong : std::vector<Words>{{"--permissions", "750x"},
                                               {"--permissions", "0550"},
                                               {"--permissions", "07777777"},
                                               {"--owner", "no such user"},
                                               {"--owner", ""},
                                               {"--owner", "0:"},
                                               {"--owner", ":no such group"},
                                               {"--max-age", "yesterday"}}) {
    Words all = bench.Pull(bench.dir / "source");
    all.insert(all.end(), wrong.begin(), wrong.end());
    const Outcome refused = Run(all);
    INFO(wrong[1] << ": " << refused.err);
    REQUIRE(refused.code == 2);
    REQUIRE(refused.err.find(wrong[0]) != std::string::npos);
  }
}

}  // namespace
}  // namespace sstferry::status_test
