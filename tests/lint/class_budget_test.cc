// No class grows until nobody reads it: at most 700 lines with all its parts,
// and 25 data members. The measure is tested on small texts first.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;

constexpr int kMaxLines = 700;
constexpr int kMaxMembers = 25;
constexpr char kReason[] = "Over the class budget because";

struct Class {
  int lines = 0;  // of its definition, and of what defines its functions
  int members = 0;
  bool has_reason = false;  // in the head of the file that defines it
};

using Classes = std::map<std::string, Class>;
using Lines = std::vector<std::string>;

Lines LinesOf(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// From `begin` to the first line that is `end`.
size_t EndOf(const Lines& lines, size_t begin, const std::string& end) {
  size_t at = begin;
  while (at + 1 < lines.size() && lines[at] != end) {
    ++at;
  }
  return at;
}

void AddDefinitions(const Lines& lines, Classes* classes) {
  static const std::regex kClass(R"(^( *)(?:class|struct) (\w+)\b[^;]*$)");
  static const std::regex kMember(
      R"(^ +[\w:<>,\*&\[\] ]+ \w+_(?: = [^;]*|\{[^;]*\}|\[\w*\])?;.*$)");
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch found;
    const bool opens = lines[i].find('{') != std::string::npos ||
                       (i + 1 < lines.size() &&
                        lines[i + 1].find('{') != std::string::npos);
    if (!opens || !std::regex_match(lines[i], found, kClass)) {
      continue;
    }
    const std::string indent = found[1];
    const size_t end = EndOf(lines, i, indent + "};");
    Class& one = (*classes)[found[2]];
    one.lines += static_cast<int>(end - i + 1);
    for (size_t at = i; at < end; ++at) {
      const bool own = lines[at].starts_with(indent + "  ") &&
                       lines[at].size() > indent.size() + 2 &&
                       lines[at][indent.size() + 2] != ' ';
      one.members += own && std::regex_match(lines[at], kMember) ? 1 : 0;
    }
    for (size_t at = 0; at < std::min<size_t>(20, lines.size()); ++at) {
      one.has_reason |= lines[at].find(kReason) != std::string::npos;
    }
  }
}

void AddFunctions(const Lines& lines, Classes* classes) {
  static const std::regex kFunction(R"(^(?:[A-Za-z_].*[ \*&])?(\w+)::~?\w+\(.*$)");
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch found;
    if (!std::regex_match(lines[i], found, kFunction) ||
        lines[i].ends_with(";")) {
      continue;
    }
    const bool is_short = lines[i].ends_with("}");
    const size_t end = is_short ? i : EndOf(lines, i, "}");
    (*classes)[found[1]].lines += static_cast<int>(end - i + 1);
    i = end;
  }
}

std::string OverBudget(const Classes& classes) {
  std::string over;
  for (const auto& [name, one] : classes) {
    if (!one.has_reason &&
        (one.lines > kMaxLines || one.members > kMaxMembers)) {
      over += name + ": " + std::to_string(one.lines) + " lines, " +
              std::to_string(one.members) + " members\n";
    }
  }
  return over;
}

TEST_CASE("The budget of a class counts all its parts", "[lint]") {
  Classes classes;
  AddDefinitions(LinesOf("class A : public B {\n"
                         " public:\n"
                         "  void Run();\n"
                         "  int size() const { return size_; }\n\n"
                         " private:\n"
                         "  int size_ = 0;\n"
                         "  const std::map<int, std::string> names_;\n"
                         "};\n"),
                 &classes);
  AddFunctions(LinesOf("void A::Run() {\n  size_ = 1;\n}\n\n"
                       "std::string* A::Other(\n    int one) {\n}\n"),
               &classes);
  CHECK(classes["A"].lines == 9 + 3 + 3);
  CHECK(classes["A"].members == 2);
  CHECK(OverBudget(classes).empty());
  classes["A"].lines = kMaxLines + 1;
  CHECK_FALSE(OverBudget(classes).empty());
  classes["A"].has_reason = true;
  CHECK(OverBudget(classes).empty());
  classes["B"].members = kMaxMembers + 1;
  CHECK_FALSE(OverBudget(classes).empty());
}

TEST_CASE("No class is over its budget", "[lint]") {
  Classes classes;
  for (const char* folder : {"format", "pipeline", "tools"}) {
    const fs::path root = fs::path(SSTFERRY_SOURCE_DIR) / folder;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") {
        continue;
      }
      std::ifstream stream(entry.path(), std::ios::binary);
      std::stringstream text;
      text << stream.rdbuf();
      const Lines lines = LinesOf(text.str());
      AddDefinitions(lines, &classes);
      if (extension == ".cc") {
        AddFunctions(lines, &classes);
      }
    }
  }
  REQUIRE(classes.size() > 100);
  const std::string over = OverBudget(classes);
  INFO(over);
  CHECK(over.empty());
}

}  // namespace
