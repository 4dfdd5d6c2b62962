// Manuals, docs/commands.md and completions made from the tables of options,
// and the programs that read them.
#include "tools/sstferry/manual.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/scratch_dir.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/completion.h"
#include "tools/sstferry/help.h"

namespace sstferry::manual_test {
namespace {

using Words = std::vector<std::string>;

struct Said {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Said Shell(const std::string& script) {
  Process process({"/bin/bash", "-c", script});
  Said said;
  said.exit_code = process.Wait();
  said.out = process.out();
  said.err = process.err();
  return said;
}

// Returns false, with a warning, if a program is not installed.
bool Have(const std::string& program) {
  const bool there = Shell("command -v " + program).exit_code == 0;
  if (!there) {
    WARN(program << " is missing: not checked with it");
  }
  return there;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Splits a line into words, with single quotes as in a shell.
Words SplitLine(const std::string& line) {
  Words words;
  bool quoted = false;
  bool open = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) {
        words.emplace_back();
        open = true;
      }
      words.back() += c;
    }
  }
  return words;
}

rocksdb::Status Parse(const std::string& command, const Words& words) {
  ServeArguments serve;
  PullArguments pull;
  VerifyArguments verify;
  StatusArguments status;
  ReleaseArguments release;
  CertArguments cert;
  ArchiveArguments archive;
  FollowArguments follow;
  PromoteArguments promote;
  ViewArguments view;
  UnitsArguments units;
  return command == "serve"     ? ParseServe(words, &serve)
         : command == "pull"    ? ParsePull(PullMode::kPull, words, &pull)
         : command == "refresh" ? ParsePull(PullMode::kRefresh, words, &pull)
         : command == "swap"    ? ParsePull(PullMode::kSwap, words, &pull)
         : command == "plan"    ? ParsePlan(words, &pull)
         : command == "verify"  ? ParseVerify(words, &verify)
         : command == "status"  ? ParseStatus(words, &status)
         : command == "ls"      ? ParseLs(words, &status)
         : command == "cert"    ? ParseCert(words, &cert)
         : command == "archive" ? ParseArchive(words, &archive)
         : command == "follow"  ? ParseFollow(words, &follow)
         : command == "promote" ? ParsePromote(words, &promote)
         : command == "view"    ? ParseView(words, &view)
         : command == "units"   ? ParseUnits(words, &units)
                                : ParseRelease(words, &release);
}

// Returns the completions that bash offers at the end of a line. A fake
// `sstferry`, first in PATH, lists two served names.
std::string Offered(const std::string& line, const std::string& directory) {
  const ScratchDir dir;
  WriteFile(dir / "completion", BashCompletion());
  WriteFile(dir / "sstferry",
            "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'plan sst://h:1 --tls c' ] || "
            "exit 1\necho 'sst://h:1 serves 2 databases:'\n"
            "echo '  sst://h:1/orders'\necho '  sst://h:1/users'\n");
  const Said said = Shell(
      "chmod +x " + (dir / "sstferry") + "; PATH=" + dir.path() +
      ":$PATH; source " + (dir / "completion") + "; cd " + directory +
      "; COMP_LINE='" + line + "'; COMP_POINT=${#COMP_LINE}; "
      "COMP_WORDBREAKS=$' \\t\\n\"><=;|&(:'; _sstferry; "
      "((${#COMPREPLY[@]})) || exit 0; printf '%s\\n' \"${COMPREPLY[@]}\" | "
      "sort | paste -sd ' ' -");
  INFO(line << "\n" << said.err);
  REQUIRE(said.exit_code == 0);
  REQUIRE(said.err.empty());
  return said.out.substr(0, said.out.find('\n'));
}

}  // namespace

TEST_CASE("docs/commands.md equals the output of the tables of options",
          "[tools][manual]") {
  std::ifstream file(SSTFERRY_SOURCE_DIR "/docs/commands.md",
                     std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  INFO("cmake --build BUILD_DIR --target commands_md rewrites it");
  REQUIRE(text.str() == CommandsMarkdown());
}

TEST_CASE("The manuals name every command and every option",
          "[tools][manual]") {
  const std::string markdown = CommandsMarkdown();
  const std::vector<ManualPage> pages = ManualPages("1.2.3");
  REQUIRE(pages.size() == Commands().size() + 5);
  for (size_t i = 0; i < Commands().size(); ++i) {
    const Command& command = Commands()[i];
    const ManualPage& page = pages[i + 1];
    REQUIRE(page.file == std::string("sstferry-") + command.name + ".1");
    REQUIRE(page.text.find("sstferry 1.2.3") != std::string::npos);
    REQUIRE(markdown.find(std::string("\n## sstferry ") + command.name +
                          "\n") != std::string::npos);
    for (const OptionSpec& spec : AllOptions(command)) {
      if (spec.group == OptionGroup::kHidden) continue;
      INFO(command.name << " --" << spec.name);
      REQUIRE(markdown.find("`" + OptionForm(spec) + "`") !=
              std::string::npos);
      std::string name;
      for (const char* c = spec.name; *c != '\0'; ++c) {
        name += *c == '-' ? "\\-" : std::string(1, *c);
      }
      REQUIRE(page.text.find("\n.TP\n\\fB\\-\\-" + name) !=
              std::string::npos);
    }
  }
}

TEST_CASE("Every example of the manuals is a valid command line",
          "[tools][manual]") {
  for (const Command& command : Commands()) {
    REQUIRE_FALSE(command.examples.empty());
    for (const CommandExample& example : command.examples) {
      INFO(example.line);
      const Words words = SplitLine(example.line);
      REQUIRE(words.size() > 2);
      REQUIRE(words[0] == "sstferry");
      REQUIRE(words[1] == command.name);
      REQUIRE_OK(Parse(command.name, {words.begin() + 2, words.end()}));
    }
  }
}

TEST_CASE("The manuals have files, environment variables and a nightly job",
          "[tools][manual]") {
  std::map<std::string, std::string> pages;
  for (const ManualPage& page : ManualPages("1.2.3")) {
    pages[page.file] = page.text;
  }
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"sstferry.1", ".SH ENVIRONMENT"},
      {"sstferry.1", "NO_COLOR"},
      {"sstferry-swap.1", "SSTFERRY_EXCHANGED"},
      {"sstferry-pull.1", "TARGET_DIR.sstferry/"},
      {"sstferry-pull.1", "last_transfer.json"},
      {"sstferry-serve.1", "sstferry.toml (5)"},
      {"sstferry.toml.5", "[[database]]"},
      {"sstferry-refresh@.service.8", "orders.timer"},
      {"sstferry-swap@.service.8", "application down 0.05 s"},
  };
  for (const auto& [page, word] : rows) {
    INFO(page << ": " << word);
    REQUIRE(pages[page].find(word) != std::string::npos);
  }
  REQUIRE(pages["sstferry-pull.1"].find("SSTFERRY_EXCHANGED") ==
          std::string::npos);
}

TEST_CASE("Lines of examples in the manuals are shorter than 90 characters",
          "[tools][manual]") {
  for (const ManualPage& page : ManualPages("1.2.3")) {
    std::istringstream lines(page.text);
    bool literal = false;
    for (std::string line; std::getline(lines, line);) {
      literal = line == ".nf" || (literal && line != ".fi");
      INFO(page.file << ": " << line);
      REQUIRE((!literal || line.size() < 90));
    }
  }
}

TEST_CASE("man formats every page without a warning", "[tools][manual]") {
  if (!Have("man")) {
    return;
  }
  const ScratchDir dir;
  const auto format = [&](const ManualPage& page) {
    WriteFile(dir / page.file, page.text);
    return Shell("MANWIDTH=80 LC_ALL=C man --warnings -l " +
                 (dir / page.file));
  };
  for (const ManualPage& page : ManualPages("1.2.3")) {
    const Said said = format(page);
    INFO(page.file << "\n" << said.err);
    REQUIRE(said.exit_code == 0);
    REQUIRE(said.err.empty());
    REQUIRE(said.out.find("NAME\n") != std::string::npos);
  }
  // The check finds an error in a wrong page.
  REQUIRE_FALSE(
      format({"wrong.1", ".TH WRONG 1\n.SH NAME\n.nonsense\n"}).err.empty());
}

TEST_CASE("Shells and shellcheck accept the completions", "[tools][manual]") {
  const ScratchDir dir;
  WriteFile(dir / "sstferry.bash", BashCompletion());
  WriteFile(dir / "_sstferry", ZshCompletion());
  Words checks = {"bash -n " + (dir / "sstferry.bash")};
  if (Have("shellcheck")) {
    checks.push_back("shellcheck " + (dir / "sstferry.bash"));
  }
  if (Have("zsh")) {
    checks.push_back("zsh -n " + (dir / "_sstferry"));
  }
  for (const std::string& check : checks) {
    const Said said = Shell(check);
    INFO(check << "\n" << said.out << said.err);
    REQUIRE(said.exit_code == 0);
  }
}

TEST_CASE("bash completes commands, options, values, names and directories",
          "[tools][manual]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "data");
  WriteFile(dir / "dump.sst", "");
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"sstferry ",
       "archive cert follow help ls plan promote pull refresh release serve "
       "status swap units verify view"},
      {"sstferry pl", "plan"},
      {"sstferry help ve", "verify"},
      {"sstferry refresh --comp", "--compact --compress"},
      {"sstferry pull --compa", ""},
      {"sstferry refresh --compact ", "auto none"},
      {"sstferry refresh --compact n", "none"},
      {"sstferry pull --compress z", "zstd"},
      {"sstferry refresh --compact=n", "none"},
      {"sstferry pull --help=n", "network"},
      {"sstferry pull --lanes ", ""},
      {"sstferry swap --lanes 4 --method c", "clone"},
      {"sstferry pull d", "data"},
      {"sstferry pull --json d", "data"},
      {"sstferry pull x d", "data"},
      {"sstferry pull --ca-file d", "data dump.sst"},
      {"sstferry release x ", ""},
      {"sstferry pull --wal-dir d", "data"},
      {"sstferry pull --tls c sst://h:1/", "1/orders 1/users"},
      {"sstferry pull --tls c sst://h:1/u", "1/users"},
      {"sstferry pull sst://h:1/u", ""},
      {"sstferry pull sst://h:1", ""},
      {"sstferry archive ", "check init list prune push remove repair"},
      {"sstferry archive p", "prune push"},
      {"sstferry archive prune --keep-l", "--keep-last --keep-log"},
      {"sstferry archive push --keep", ""},
      {"sstferry archive push d", "data"},
      {"sstferry cert i", "init issue"},
      {"sstferry cert issue --d", "--days"},
      {"sstferry plan re", "refresh"},
      {"sstferry plan d", "data"},
      {"sstferry plan refresh --method c", "clone"},
  };
  for (const auto& [line, expected] : rows) {
    INFO(line);
    REQUIRE(Offered(line, dir.path()) == expected);
  }
}

TEST_CASE("A server that does not answer delays a completion by one second",
          "[tools][manual]") {
  const ScratchDir dir;
  WriteFile(dir / "completion", BashCompletion());
  WriteFile(dir / "sstferry", "#!/bin/sh\nexec tail -f /dev/null\n");
  const Said said = Shell(
      "chmod +x " + (dir / "sstferry") + "; PATH=" + dir.path() +
      ":$PATH; source " + (dir / "completion") +
      "; time -p _sstferry_served sst://h/");
  INFO(said.err);
  double seconds = 0;
  std::istringstream(said.err.substr(said.err.find("real") + 4)) >> seconds;
  REQUIRE(seconds >= 0.9);
  REQUIRE(seconds < 60);  // tail would never end
}

}  // namespace sstferry::manual_test
