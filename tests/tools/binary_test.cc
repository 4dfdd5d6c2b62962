// The real binary: exit codes, standard output and standard error.
#include <spawn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

std::string ReadAll(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

class Runner {
 public:
  Runner() {
    std::string pattern = fs::temp_directory_path() / "sstferry_bin_XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
  }
  ~Runner() { fs::remove_all(directory_); }
  const fs::path& directory() const { return directory_; }

  Outcome Run(const std::vector<std::string>& arguments,
              const std::string& out_path = "") {
    const std::string out =
        out_path.empty() ? (directory_ / "out").string() : out_path;
    const std::string err = directory_ / "err";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<std::string> words = {SSTFERRY_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    pid_t child = 0;
    REQUIRE(posix_spawn(&child, SSTFERRY_BINARY, &actions, nullptr,
                        argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    int state = 0;
    REQUIRE(waitpid(child, &state, 0) == child);
    REQUIRE(WIFEXITED(state));
    return {WEXITSTATUS(state), out_path.empty() ? ReadAll(out) : "",
            ReadAll(err)};
  }

 private:
  fs::path directory_;
};

}  // namespace

TEST_CASE("Wrong usage exits with 2, prints a hint and no standard output",
          "[tools]") {
  Runner runner;
  const std::string source = runner.directory() / "source";
  const std::string target = runner.directory() / "target";
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{}, "see sstferry --help"},
      {{"fetch"}, "see sstferry --help"},
      {{"pul"}, "did you mean pull?"},
      {{"halp"}, "did you mean help?"},
      {{"help", "verfy"}, "did you mean verify?"},
      {{"pull", source, target, "--verfy"}, "did you mean --verify?"},
      {{"help", "fetch"}, "see sstferry --help"},
      {{"help", "pull", "nothing"}, "see sstferry pull --help"},
      {{"pull", "--help=nothing"}, "see sstferry pull --help"},
      {{"pull", "--json"}, "see sstferry pull --help"},
      {{"pull", source, target, "--lanes", "0", "--json"},
       "see sstferry pull --help"},
      {{"pull", source, target, "--begin", "0x1", "--json"},
       "see sstferry pull --help"},
      {{"serve", "--json", "--db", source, "--listen", "0.0.0.0:0"},
       "see sstferry serve --help"},
      {{"serve", "--db", "a=" + source, "--db", "a=" + source, "--json"},
       "see sstferry serve --help"},
      {{"verify", source, "--json"}, "see sstferry verify --help"},
      {{"plan", "--json"}, "see sstferry plan --help"},
  };
  for (const auto& [arguments, hint] : rows) {
    const Outcome outcome = runner.Run(arguments);
    INFO(hint << "\n" << outcome.err);
    REQUIRE(outcome.exit_code == 2);
    REQUIRE(outcome.out.empty());
    REQUIRE(outcome.err.find(hint) != std::string::npos);
    REQUIRE_FALSE(fs::exists(source));
    REQUIRE_FALSE(fs::exists(target));
  }
}

TEST_CASE("Help and version print to standard output and exit with 0",
          "[tools]") {
  Runner runner;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--version"},
                                             {"pull", "--help"},
                                             {"serve", "-h"},
                                             {"pull", "--nonsense", "--help"},
                                             {"pull", "--help=network"},
                                             {"pull", "--help", "--all"},
                                             {"help"},
                                             {"help", "pull"},
                                             {"help", "pull", "limits"},
                                             {"-V"},
                                             {"plan", "--version"}}) {
    const Outcome outcome = runner.Run(arguments);
    REQUIRE(outcome.exit_code == 0);
    REQUIRE_FALSE(outcome.out.empty());
    REQUIRE(outcome.err.empty());
  }
}

TEST_CASE("A failed write to standard output makes the command fail",
          "[tools]") {
  Runner runner;
  const Outcome outcome = runner.Run({"--version"}, "/dev/full");
  REQUIRE(outcome.exit_code == 1);
  REQUIRE(outcome.err.find("standard output") != std::string::npos);
}

