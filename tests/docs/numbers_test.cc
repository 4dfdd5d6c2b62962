// Compares numbers and names in the documents with the code. Each rule is
// first tried on a small bad text.
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/frame.h"
#include "format/messages.h"
#include "pipeline/pull/method_rule.h"
#include "sstferry/options.h"
#include "tests/docs/markdown.h"
#include "tests/support/catch.h"
#include "tools/sstferry/metric_table.h"
#include "tools/sstferry/progress.h"

namespace sstferry::numbers_test {
namespace {

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    const size_t begin = part.find_first_not_of(' ');
    const size_t end = part.find_last_not_of(' ');
    parts.push_back(begin == std::string::npos
                        ? ""
                        : part.substr(begin, end - begin + 1));
  }
  return parts;
}

// Returns the cells of all rows of all tables, including header rows.
std::vector<std::vector<std::string>> Rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : Split(text, '\n')) {
    if (line.starts_with("| ")) {
      rows.push_back(Split(line.substr(1), '|'));
    }
  }
  return rows;
}

bool IsNumber(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// Returns the section that begins with `heading` ("## Name"). It ends at the
// next heading of the same or a higher level.
std::string Section(const std::string& text, const std::string& heading) {
  const std::string start = "\n" + heading + "\n";
  const size_t begin = text.find(start);
  if (begin == std::string::npos) {
    throw std::runtime_error("there is no section " + heading);
  }
  const std::string rank =
      "\n" + heading.substr(0, heading.find(' ') + 1);
  return text.substr(begin, text.find(rank, begin + 1) - begin);
}

std::string WithoutBreaks(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

using Names = std::map<int, std::string>;

// Returns the rows "| BIT | NAME | ... |" after "Feature bits".
Names FeatureBits(const std::string& text) {
  Names bits;
  for (const auto& cells :
       Rows(text.substr(std::min(text.find("**Feature bits**"),
                                 text.size())))) {
    if (IsNumber(cells[0])) {
      bits[std::stoi(cells[0])] = cells[1];
    }
  }
  return bits;
}

// Returns each "feature bit N (NAME)" of the text that is not in `bits` or has
// no name.
std::string BadFeatureBits(const std::string& text, const Names& bits) {
  const std::string flat = WithoutBreaks(text);
  static const std::regex mention("feature bit (\\d+)(?: \\(([^)]*)\\))?");
  std::string bad;
  for (std::sregex_iterator it(flat.begin(), flat.end(), mention), last;
       it != last; ++it) {
    const auto found = bits.find(std::stoi((*it)[1]));
    if (found == bits.end() || found->second != (*it)[2]) {
      bad += it->str() + "\n";
    }
  }
  return bad;
}

// Returns the rows "| NUMBERS | MESSAGES | SENDER | ... |".
Names MessageTypes(const std::string& text) {
  Names types;
  for (const auto& cells : Rows(text)) {
    const auto numbers = Split(cells[0], ',');
    const auto names = Split(cells[1], ',');
    for (size_t i = 0; i < numbers.size() && i < names.size(); ++i) {
      if (IsNumber(numbers[i])) {
        types[std::stoi(numbers[i])] = names[i];
      }
    }
  }
  return types;
}

// Returns the end states whose exit code in the text differs from the code's.
std::string BadExitCodes(const std::string& text) {
  std::string bad;
  for (int i = 0; i <= kMaxEndState; ++i) {
    const EndState state = static_cast<EndState>(i);
    const std::string name = std::string("`") + EndStateName(state) + "`";
    bool found = false;
    for (const auto& cells : Rows(text)) {
      found |= cells[0] == std::to_string(ExitCodeOf(state)) &&
               cells[1].find(name) != std::string::npos;
    }
    bad += found ? "" : name + " ";
  }
  return bad;
}

// Returns the text between backticks in the first cell of each row.
std::set<std::string> FirstCells(const std::string& text) {
  static const std::regex code("`([^`]*)`");
  std::set<std::string> names;
  for (const auto& cells : Rows(text)) {
    for (std::sregex_iterator it(cells[0].begin(), cells[0].end(), code), last;
         it != last; ++it) {
      names.insert((*it)[1]);
    }
  }
  return names;
}

TEST_CASE("A feature bit that is missing from the list is found", "[docs]") {
  const Names bits = FeatureBits(
      "| 9 | no list |\n**Feature bits**:\n| Bit | Name |\n| 2 | wide | x |\n"
      "| 3 | zip | y |\n");
  REQUIRE(bits == Names{{2, "wide"}, {3, "zip"}});
  REQUIRE(BadFeatureBits("if feature bit 3\n  (zip) was agreed on", bits) ==
          "");
  REQUIRE(BadFeatureBits("feature bit 2 (zip)", bits) ==
          "feature bit 2 (zip)\n");
  REQUIRE(BadFeatureBits("feature bit 3 and", bits) == "feature bit 3\n");
  REQUIRE(BadFeatureBits("feature bit 4 (zip)", bits) ==
          "feature bit 4 (zip)\n");
}

TEST_CASE("Feature bits of FORMAT.md are those of the code", "[docs]") {
  const std::string text = TextOfDocument("format/FORMAT.md");
  const Names bits = FeatureBits(text);
  const std::map<uint64_t, std::string> code = {
      {kFeatureEntities, "wide-column entities"},
      {kFeatureWireCompression, "compressed chunk data"},
      {kFeatureMarkedBlocks, "marked blocks"}};
  uint64_t listed = 0;
  for (const auto& [bit, name] : bits) {
    INFO(bit << ": " << name);
    listed |= uint64_t{1} << bit;
    REQUIRE(code.count(uint64_t{1} << bit) == 1);
    REQUIRE(code.at(uint64_t{1} << bit) == name);
  }
  REQUIRE(listed == kSupportedFeatures);
  REQUIRE(BadFeatureBits(text, bits) == "");
}

TEST_CASE("Message types and end states of FORMAT.md are those of the code",
          "[docs]") {
  REQUIRE(MessageTypes("| 7, 8 | A, B | T |\n| x | y |\n") ==
          Names{{7, "A"}, {8, "B"}});
  const std::string text = TextOfDocument("format/FORMAT.md");
  Names code;
  for (int i = 0; i < 256; ++i) {
    if (IsKnownFrameType(static_cast<uint8_t>(i))) {
      code[i] = FrameTypeName(static_cast<FrameType>(i));
    }
  }
  REQUIRE(MessageTypes(Section(text, "## 3 Messages")) == code);
  std::string states = "End states:";
  for (int i = 0; i <= kMaxEndState; ++i) {
    states += std::string(i == 0 ? " " : ", ") + std::to_string(i) + " " +
              EndStateName(static_cast<EndState>(i));
  }
  REQUIRE(WithoutBreaks(text).find(states + ".") != std::string::npos);
}

TEST_CASE("Exit codes of the documents are those of the code", "[docs]") {
  REQUIRE(BadExitCodes("| 0 | `OK` | |\n") ==
          BadExitCodes("| 0 | `OK` | |\n| 1 | `BUSY` | |\n"));
  REQUIRE(BadExitCodes("| 0 | `OK` | |\n").find("`OK`") == std::string::npos);
  const std::string text = TextOfDocument("docs/operations.md");
  REQUIRE(BadExitCodes(Section(text, "## Exit codes")) == "");
  const std::set<std::string> told =
      FirstCells(Section(text, "## Status by status"));
  for (int i = 1; i <= kMaxEndState; ++i) {
    INFO(EndStateName(static_cast<EndState>(i)));
    REQUIRE(told.count(EndStateName(static_cast<EndState>(i))) == 1);
  }
}

TEST_CASE("docs/json.md has every key of a summary, and no other", "[docs]") {
  REQUIRE(FirstCells("| `a`, `b` | `c` |\n") ==
          std::set<std::string>{"a", "b"});
  const std::string text = TextOfDocument("docs/json.md");
  std::set<std::string> written = {"transfers", "transfers_failed"};
  for (const char* command : {"pull", "verify", "plan"}) {
    const auto json = nlohmann::json::parse(SummaryToJson({}, command));
    for (const auto& [key, value] : json.items()) {
      written.insert(key);
      INFO(key);
      REQUIRE(text.find("`" + key + "`") != std::string::npos);
    }
  }
  for (const std::string& key :
       FirstCells(text.substr(0, text.find("\n## `status`")))) {
    INFO(key);
    REQUIRE(written.count(key) == 1);
  }
}

TEST_CASE("docs/metrics.md has every metric with its labels", "[docs]") {
  const std::string text = TextOfDocument("docs/metrics.md");
  size_t rows = 0;
  for (const MetricSpec* spec : MetricSpec::All()) {
    INFO(spec->name);
    const std::string labels = spec->labels;
    const std::string row = std::string("\n| `") + spec->name + "` | " +
                            (labels.empty() ? "" : labels + " ") + "| ";
    REQUIRE(text.find(row) != std::string::npos);
    const std::string name = spec->name;
    REQUIRE(name.starts_with("sstferry_"));
    // The page says so instead of naming each type.
    REQUIRE(name.ends_with("_total") == (spec->kind == MetricKind::kCounter));
    ++rows;
  }
  for (size_t at = text.find("\n| `sstferry_"); at != std::string::npos;
       at = text.find("\n| `sstferry_", at + 1)) {
    REQUIRE(rows > 0);
    --rows;
  }
  REQUIRE(rows == 0);
}

TEST_CASE("docs/json.md has every key of a progress object, and no other",
          "[docs]") {
  const std::string text = TextOfDocument("docs/json.md");
  std::set<std::string> written;
  const auto json = nlohmann::json::parse(ProgressFormatter().Json());
  for (const auto& [key, value] : json.items()) {
    written.insert(key);
  }
  REQUIRE(FirstCells(Section(text, "## `--progress json`")) == written);
}

// A row of the rule that chooses the method of a pull (docs/methods.md). `give`
// changes the input so that the condition is true. It does not make the
// condition of an earlier row true.
struct RuleRow {
  const char* condition;
  const char* then;
  void (*give)(MethodInput* input);
  PullMethod method;
  const char* reason;
};

const std::vector<RuleRow>& RuleRows() {
  static const std::vector<RuleRow> rows = {
      {"an application refreshes its own open database", "`ingest`",
       [](MethodInput* input) { input->is_open = true; },
       PullMethod::kIngest, "the application has the replica open"},
      {"`--method` names one", "that one",
       [](MethodInput* input) { input->asked = PullMethod::kClone; },
       PullMethod::kClone, "asked for"},
      {"a part of the keys is asked for (`--begin`, `--end`), or column "
       "families without `default`", "`ingest`",
       [](MethodInput* input) {
         Selection selection;
         selection.families = {"users"};
         input->no_clone = WhyNoClone(selection);
       },
       PullMethod::kIngest,
       "auto: a clone must contain the column family 'default'"},
      {"a refresh has `--adopt`, `--cf`, `--begin` or `--end`", "`ingest`",
       [](MethodInput* input) {
         input->no_clone = "a part of a replica is refreshed in place";
       },
       PullMethod::kIngest, "auto: a part of a replica is refreshed in place"},
      {"the source says that its files cannot be a clone", "`ingest`",
       [](MethodInput* input) { input->no_clone = "a clone is refused: X"; },
       PullMethod::kIngest, "auto: a clone is refused: X"},
      {"an unfinished pull is resumed", "the method with which it began",
       [](MethodInput* input) { input->unfinished = PullMethod::kClone; },
       PullMethod::kClone, "auto: the unfinished pull uses this method"},
      {"the replica is made of chunks", "`ingest`",
       [](MethodInput* input) { input->replica = PullMethod::kIngest; },
       PullMethod::kIngest, "auto: the replica was built from chunks"},
      {"otherwise", "`clone`", [](MethodInput* /*input*/) {},
       PullMethod::kClone,
       "auto: the files of a whole database are sent as they are"},
  };
  return rows;
}

TEST_CASE("Each row of the rule in docs/methods.md chooses what it says, "
          "whatever the rows below it say",
          "[docs][method]") {
  const size_t at = GENERATE(range<size_t>(0, 8));
  const RuleRow& row = RuleRows()[at];
  INFO(row.condition);
  MethodInput input;
  // The conditions of all later rows are true as well: the first one must win.
  for (size_t below = RuleRows().size(); below-- > at + 1;) {
    RuleRows()[below].give(&input);
  }
  row.give(&input);
  const MethodDecision decision = DecideMethod(input);
  INFO(decision.reason);
  REQUIRE(decision.method == row.method);
  REQUIRE(decision.reason.starts_with(row.reason));
}

TEST_CASE("docs/methods.md has the rule's rows, in their order, and no other",
          "[docs][method]") {
  const auto written =
      Rows(Section(TextOfDocument("docs/methods.md"), "## The rule"));
  REQUIRE(RuleRows().size() == 8);
  for (size_t i = 0; i < RuleRows().size(); ++i) {
    const RuleRow& row = RuleRows()[i];
    REQUIRE(written[i + 1][0] == row.condition);
    REQUIRE(written[i + 1][1] == row.then);
  }
  REQUIRE(written.size() == RuleRows().size() + 1);
}

}  // namespace
}  // namespace sstferry::numbers_test
