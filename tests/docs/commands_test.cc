// Checks command lines, options and config lines in the documents against the
// parser. Each rule is first tried on a small bad text.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "tests/docs/markdown.h"
#include "tests/support/catch.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/commands.h"
#include "tools/sstferry/host_file.h"

namespace sstferry::commands_test {
namespace {

using rocksdb::Status;
using Words = std::vector<std::string>;

template <typename Arguments>
Status Parsed(Status (*parse)(const Words&, Arguments*), const Words& words) {
  Arguments arguments;
  return parse(words, &arguments);
}

Status ParseAny(const std::string& command, const Words& words) {
  if (command == "serve") return Parsed(ParseServe, words);
  PullArguments pull;
  if (command == "pull") return ParsePull(PullMode::kPull, words, &pull);
  if (command == "refresh") return ParsePull(PullMode::kRefresh, words, &pull);
  if (command == "swap") return ParsePull(PullMode::kSwap, words, &pull);
  if (command == "plan") return Parsed(ParsePlan, words);
  if (command == "verify") return Parsed(ParseVerify, words);
  if (command == "status") return Parsed(ParseStatus, words);
  if (command == "release") return Parsed(ParseRelease, words);
  if (command == "ls") return Parsed(ParseLs, words);
  if (command == "cert") return Parsed(ParseCert, words);
  if (command == "archive") return Parsed(ParseArchive, words);
  if (command == "follow") return Parsed(ParseFollow, words);
  if (command == "promote") return Parsed(ParsePromote, words);
  if (command == "view") return Parsed(ParseView, words);
  if (command == "units") return Parsed(ParseUnits, words);
  return Status::InvalidArgument("there is no command " + command);
}

bool TakesOption(const Command& command, const std::string& name) {
  const auto is_it = [&](const OptionSpec& spec) { return name == spec.name; };
  return std::any_of(command.options.begin(), command.options.end(), is_it) ||
         std::any_of(CommonOptions().begin(), CommonOptions().end(), is_it);
}

bool AnyTakesOption(const std::string& name) {
  return std::any_of(
      Commands().begin(), Commands().end(),
      [&](const Command& command) { return TakesOption(command, name); });
}

// "--cf NAME" -> "cf"
std::string OptionName(const std::string& word) {
  const size_t end = word.find_first_not_of(
      "abcdefghijklmnopqrstuvwxyz0123456789-");
  return word.substr(2, end == std::string::npos ? end : end - 2);
}

// Returns what is wrong with a line that a user would type literally, or "".
std::string BadCommand(const Words& words) {
  if (words.empty() || words[0] != "sstferry") {
    return "";
  }
  if (words.size() < 2) {
    return "no command";
  }
  const Words arguments(words.begin() + 2, words.end());
  const Status status = ParseAny(words[1], arguments);
  const char* text = status.getState();
  return status.ok() ? "" : text != nullptr ? text : status.ToString();
}

// Returns what is wrong with a line that may contain placeholders, or "". Only
// the names of its command and options are checked.
std::string BadMention(const std::string& code) {
  if (code.starts_with("--")) {
    const std::string name = OptionName(code);
    return name.empty() || AnyTakesOption(name)
               ? ""
               : "no command has an option --" + name;
  }
  const Words words = ShellWords(code);
  if (words.size() < 2 || words[0] != "sstferry" || words[1] == "COMMAND" ||
      words[1].starts_with("--")) {
    return "";
  }
  const Command* command = FindCommand(words[1]);
  if (command == nullptr) {
    return "there is no command " + words[1];
  }
  for (const std::string& word : words) {
    if (word.starts_with("--") && !TakesOption(*command, OptionName(word))) {
      return words[1] + " has no option " + word;
    }
  }
  return "";
}

// Returns what is wrong with a config file, or "". All its names must be
// options or operands of one command. A file with paths of databases is parsed
// as a host's file.
std::string BadConfig(const Block& block) {
  std::string bad;
  std::string whole;
  bool is_host = false;
  for (const std::string& line : block.lines) {
    whole += line + "\n";
    is_host |= line.starts_with("path = ");
  }
  if (is_host) {
    HostFile host;
    const Status status = ParseHostFile("/host.toml", whole, &host);
    return status.ok() ? "" : status.ToString();
  }
  for (const Command& command : Commands()) {
    std::string unknown;
    for (const std::string& line : block.lines) {
      const size_t end = line.find(" = ");
      if (line.starts_with("[[database]]")) {
        break;  // a table of serve: its keys are not options
      }
      if (end == std::string::npos) {
        continue;  // empty, or a comment
      }
      const std::string name = line.substr(0, end);
      const bool is_operand =
          std::find(command.operands.begin(), command.operands.end(), name) !=
          command.operands.end();
      if (!is_operand && !TakesOption(command, name)) {
        unknown += std::string(" ") + command.name + " has no " + name;
      }
    }
    if (unknown.empty()) {
      return "";
    }
    bad += unknown;
  }
  return bad;
}

std::string BadLines(const Document& document) {
  std::string bad;
  const auto add = [&](size_t line, const std::string& what) {
    if (!what.empty()) {
      bad += document.path + ":" + std::to_string(line) + ": " + what + "\n";
    }
  };
  for (const Block& block : document.blocks) {
    if (block.kind == "toml") {
      add(block.line, BadConfig(block));
    }
    for (size_t i = 0; block.kind == "sh" && i < block.lines.size(); ++i) {
      add(block.line + i, BadMention(block.lines[i]));
    }
    if (!block.kind.empty()) {
      continue;
    }
    for (const CommandLine& command : CommandLines(block)) {
      add(command.line, BadCommand(command.words));
    }
  }
  for (const Span& code : document.codes) {
    add(code.line, BadMention(code.text));
  }
  return bad;
}

std::string BadLinesOf(const std::string& text) {
  return BadLines(ParseDocument("x.md", text));
}

TEST_CASE("A command line that the parser refuses is found", "[docs]") {
  REQUIRE(BadLinesOf("```\n$ sstferry fetch a b\n```\n") ==
          "x.md:2: there is no command fetch\n");
  REQUIRE(BadLinesOf("```\ntarget$ sstferry pull a b --verfy\n```\n")
              .starts_with("x.md:2: "));
  REQUIRE(
      BadLinesOf("```\nsstferry pull a b \\\n  --lanes 0\n```\n") ==
      "x.md:2: --lanes: expected a whole number from 1 to 64, found \"0\"\n");
  REQUIRE(BadLinesOf("```\nmake && sstferry pull a   # no target\n```\n")
              .starts_with("x.md:2: "));
  REQUIRE(BadLinesOf("```\nsstferry serve --db d --listen 0.0.0.0:1\n```\n")
              .starts_with("x.md:2: --listen"));
}

TEST_CASE("A mention of an unknown command or option is found", "[docs]") {
  REQUIRE(BadLinesOf("type `sstferry fetch SOURCE`\n") ==
          "x.md:1: there is no command fetch\n");
  REQUIRE(BadLinesOf("`sstferry status SOURCE --lanes 3`\n") ==
          "x.md:1: status has no option --lanes\n");
  REQUIRE(BadLinesOf("with `--chunk-size BYTES`\n") ==
          "x.md:1: no command has an option --chunk-size\n");
  REQUIRE(BadLinesOf("```sh\nsstferry pull SOURCE [--fast]\n"
                     "sstferry pull SOURCE --fast\n```\n") ==
          "x.md:3: pull has no option --fast\n");
}

TEST_CASE("A config line that no command knows is found", "[docs]") {
  const std::string bad =
      BadLinesOf("```toml\nsource = \"a\"\nlistn = \"b\"\n```\n");
  INFO(bad);
  REQUIRE(bad.find("pull has no listn") != std::string::npos);
  REQUIRE(bad.find("pull has no source") == std::string::npos);
  REQUIRE(BadLinesOf("```toml\n[[database]]\npath = \"/a\"\npush.wen = "
                     "\"b\"\n```\n")
              .find("line 3, column ") != std::string::npos);
  // Both names are known, but no single command has both.
  REQUIRE_FALSE(
      BadLinesOf("```toml\nlisten = \"a\"\nlanes = 4\n```\n").empty());
}

TEST_CASE("A line that a user may type passes", "[docs]") {
  REQUIRE(BadLinesOf("```\n"
                     "source# systemctl reload sstferry-serve\n"
                     "$ sstferry pull sst://h/n '/a b' --cf x --cf y | tee z\n"
                     "listening on 127.0.0.1:7420\n"
                     "```\n"
                     "`sstferry COMMAND --help`, `sstferry.health`, `--`,\n"
                     "`sstferry pull ... --verify`, `--begin K`, `x --y`\n"
                     "```cpp\nsstferry::PullOptions pull;\n```\n"
                     "```toml\nsource = \"a\"\ntarget = \"b\"\n\ncf = "
                     "\"c\"\n```\n") == "");
}

TEST_CASE("Every command line of README and docs parses", "[docs]") {
  std::string bad;
  size_t commands = 0;
  for (const auto& [path, document] : AllDocuments()) {
    if (path != "README.md" && !path.starts_with("docs/")) {
      continue;
    }
    bad += BadLines(document);
    for (const Block& block : document.blocks) {
      if (block.kind.empty()) {
        for (const CommandLine& line : CommandLines(block)) {
          commands += line.words[0] == "sstferry" ? 1 : 0;
        }
      }
    }
  }
  REQUIRE(bad == "");
  REQUIRE(commands >= 10);  // or the search missed the pages
}

// A unit that is only started or stopped is as before after a reboot: then both
// machines, or none, would have a primary.
TEST_CASE("Documented changes of the primary last over a reboot", "[docs]") {
  const Document page =
      ParseDocument("docs/follow.md", TextOfDocument("docs/follow.md"));
  size_t hooks = 0;
  for (const Block& block : page.blocks) {
    for (const CommandLine& line : CommandLines(block)) {
      for (const std::string& word : line.words) {
        const bool is_hook = line.words.size() > 1 &&
                             line.words[1] == "promote" &&
                             word.find("systemctl ") != std::string::npos;
        hooks += is_hook ? 1 : 0;
        INFO(word);
        REQUIRE((!is_hook || word.find("able --now ") != std::string::npos));
      }
    }
  }
  REQUIRE(hooks == 4);
  const std::string text = TextOfDocument("docs/follow.md");
  REQUIRE(text.find("systemctl stop orders") == std::string::npos);
  const std::string runbook = TextOfDocument("docs/operations.md");
  const size_t lost = runbook.find("\n### The source is lost\n");
  REQUIRE(lost != std::string::npos);
  REQUIRE(runbook.substr(lost, runbook.find("\n## ", lost) - lost)
              .find("systemctl disable --now sstferry-refresh@") !=
          std::string::npos);
}

}  // namespace
}  // namespace sstferry::commands_test
