#include "tools/sstferry/help.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"

namespace sstferry::help_test {
namespace {

std::string HelpOf(const Command& command, const std::string& group) {
  std::string text;
  REQUIRE(CommandHelp(command, group, &text));
  return text;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Returns how many rows of `help` describe the option.
int Rows(const std::string& help, const OptionSpec& spec) {
  int rows = 0;
  const std::string form = "  " + OptionForm(spec);
  for (const std::string& line : Lines(help)) {
    rows += line == form || line.starts_with(form + " ") ? 1 : 0;
  }
  return rows;
}

}  // namespace

TEST_CASE("Help of every command has at most 50 lines of 80 columns",
          "[tools][help]") {
  for (const Command& command : Commands()) {
    const std::string help = HelpOf(command, "common");
    INFO(help);
    REQUIRE(Lines(help).size() <= 50);
  }
  REQUIRE(Lines(GeneralHelp()).size() <= 50);
}

TEST_CASE("Help of an archive action has exactly the options of that action",
          "[tools][help]") {
  for (const char* action :
       {"init", "push", "list", "check", "prune", "remove", "repair"}) {
    const std::optional<Command> command = FindArchiveAction(action);
    REQUIRE(command.has_value());
    const std::string help = HelpOf(*command, "all");
    INFO(help);
    REQUIRE(help.starts_with("Usage: sstferry archive " + std::string(action)));
    for (const OptionSpec& spec : FindCommand("archive")->options) {
      const auto uses = ArchiveOptionUses().find(spec.name);
      bool is_used = uses == ArchiveOptionUses().end();
      for (const ArchiveAction each :
           is_used ? std::set<ArchiveAction>() : uses->second) {
        is_used = is_used || ArchiveActionName(each) == std::string(action);
      }
      is_used = is_used && spec.group != OptionGroup::kHidden;
      REQUIRE(Rows(help, spec) == (is_used ? 1 : 0));
    }
  }
  REQUIRE_FALSE(FindArchiveAction("common").has_value());
}

TEST_CASE("help of an action of plan and cert is a page of help",
          "[tools][help]") {
  const std::string plan = OutputOf({"help", "plan", "refresh"});
  REQUIRE(plan.starts_with("Usage: sstferry plan refresh SOURCE TARGET_DIR"));
  REQUIRE(plan == OutputOf({"plan", "refresh", "--help"}));
  REQUIRE(OutputOf({"help", "plan", "swap", "all"}).find("--adopt") !=
          std::string::npos);
  REQUIRE(OutputOf({"help", "cert", "issue"}) == OutputOf({"help", "cert"}));
  OutputOf({"help", "cert", "foo"}, 2);
  REQUIRE_FALSE(FindAction("pull", "refresh").has_value());
}

TEST_CASE("No help line has more than 80 columns or trailing spaces",
          "[tools][help]") {
  std::string all = GeneralHelp();
  for (const Command& command : Commands()) {
    all += HelpOf(command, "all");
    for (const OptionGroupName& group : OptionGroups()) {
      if (!OptionsIn(command, group.group).empty()) {
        all += HelpOf(command, group.word);
      }
    }
  }
  for (const std::string& line : Lines(all)) {
    INFO(line);
    REQUIRE(line.size() <= 80);
    REQUIRE((line.empty() || line.back() != ' '));
  }
}

TEST_CASE("Every option is in one group, and once in --help=all unless all "
          "commands have it",
          "[tools][help]") {
  for (const Command& command : Commands()) {
    const std::string all = HelpOf(command, "all");
    std::set<std::string> names;
    for (const OptionSpec& spec : AllOptions(command)) {
      INFO(command.name << " --" << spec.name);
      REQUIRE(names.insert(spec.name).second);
      const bool is_hidden = spec.group == OptionGroup::kHidden;
      REQUIRE(Rows(all, spec) ==
              (is_hidden || spec.group == OptionGroup::kEvery ? 0 : 1));
      int rows = 0;
      for (const OptionGroupName& group : OptionGroups()) {
        std::string text;
        const bool known = CommandHelp(command, group.word, &text);
        REQUIRE(known == !OptionsIn(command, group.group).empty());
        rows += known ? Rows(text, spec) : 0;
      }
      REQUIRE(rows == (is_hidden ? 0 : 1));
    }
  }
}

TEST_CASE("pull --help shows at most 8 options, and --help=all at most 38",
          "[tools][help]") {
  const auto options = [](const std::string& group) {
    size_t count = 0;
    for (const std::string& line : Lines(HelpOf(*FindCommand("pull"), group))) {
      count += line.starts_with("  --") ? 1 : 0;
    }
    return count;
  };
  REQUIRE(options("common") <= 8);
  REQUIRE(options("all") <= 38);
}

TEST_CASE("Help says how to show the other options", "[tools][help]") {
  const Command& pull = *FindCommand("pull");
  const std::string help = HelpOf(pull, "common");
  REQUIRE(Lines(help).back().find("or all.") != std::string::npos);
  REQUIRE(help.find("sstferry pull --help=GROUP") != std::string::npos);
  REQUIRE(HelpGroupNames(pull) ==
          "common, network, limits, output, advanced, every or all");
  REQUIRE(HelpGroupNames(*FindCommand("cert")) == "common, every or all");
  std::string text;
  REQUIRE_FALSE(CommandHelp(*FindCommand("cert"), "network", &text));
  REQUIRE_FALSE(CommandHelp(pull, "", &text));
}

TEST_CASE("An option's text ends with a period, and defaults have one form",
          "[tools][help]") {
  for (const Command& command : Commands()) {
    for (const OptionSpec& spec : AllOptions(command)) {
      const std::string text = HelpText(spec);
      INFO(command.name << " --" << spec.name << ": " << text);
      REQUIRE(text.size() <= 280);
      REQUIRE(text.back() == '.');
      REQUIRE(text.find('\n') == std::string::npos);
      for (const char* word :
           {"go on", "goes on", "anew", "held", "(default:", "in vain"}) {
        REQUIRE(text.find(word) == std::string::npos);
      }
      // "Default: VALUE." may stand only at the end.
      const size_t at = text.find("Default: ");
      REQUIRE((at == std::string::npos || text.find(". ", at) == text.npos));
    }
  }
}

TEST_CASE("Help explains the values of a command's options", "[tools][help]") {
  const auto names = [](const std::string& command) {
    std::string text;
    for (const ValueForm& form : ValueForms()) {
      if (UsesValue(*FindCommand(command), form)) {
        text += std::string(form.name) + ";";
      }
    }
    return text;
  };
  REQUIRE(names("pull") == "BYTES;DURATION;KEY;SOURCE;");
  REQUIRE(names("serve") == "BYTES;DURATION;ADDRESS;");
  REQUIRE(names("verify") == "DURATION;KEY;LEFT, RIGHT;");
  REQUIRE(names("release") == "DURATION;");
}

TEST_CASE("Wrapped text has every word once and no line over the width",
          "[tools][help]") {
  REQUIRE(WrapText("", 10).empty());
  REQUIRE(WrapText("one two  three", 7) ==
          std::vector<std::string>{"one two", "three"});
  REQUIRE(WrapText("longer-than-that a", 5) ==
          std::vector<std::string>{"longer-than-that", "a"});
}

TEST_CASE("Help lists every end state at its exit code", "[tools][help]") {
  std::map<int, std::string> states;
  for (const ExitCodeRow& row : ExitCodes()) {
    states[row.code] = std::string(row.meaning) + ", " + row.states + ",";
  }
  for (uint8_t i = 0; i <= kMaxEndState; ++i) {
    const EndState state = static_cast<EndState>(i);
    INFO(EndStateName(state));
    REQUIRE((states[ExitCodeOf(state)] + " ").find(
                std::string(EndStateName(state)) + ",") != std::string::npos);
  }
  const std::string help = GeneralHelp();
  for (const ExitCodeRow& row : ExitCodes()) {
    REQUIRE(help.find("\n  " + std::to_string(row.code) + "   " +
                      std::string(row.meaning).substr(0, 10)) !=
            std::string::npos);
  }
  REQUIRE(HelpOf(*FindCommand("pull"), "all").find("SNAPSHOT_GONE") !=
          std::string::npos);
}

}  // namespace sstferry::help_test
