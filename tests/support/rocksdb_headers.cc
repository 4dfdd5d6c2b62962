#include "tests/support/rocksdb_headers.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace sstferry::test {
namespace {

bool IsWordChar(char c) {
  return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool StartsWithWord(const std::string& text, const std::string& word) {
  return text.compare(0, word.size(), word) == 0 &&
         (text.size() == word.size() || !IsWordChar(text[word.size()]));
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// Returns the text between the braces after `keyword name`. Skips declarations
// without a body and longer names.
std::optional<std::string> BodyOf(const std::string& code,
                                  const std::string& keyword,
                                  const std::string& name) {
  for (size_t at = code.find(keyword); at != std::string::npos;
       at = code.find(keyword, at + 1)) {
    const size_t next = at + keyword.size();
    if ((at > 0 && IsWordChar(code[at - 1])) || IsWordChar(code[next])) {
      continue;
    }
    const size_t open = code.find_first_of("{;(", next);
    std::string head = Trimmed(code.substr(next, open - next));
    for (const char* also : {"class ", "struct "}) {
      if (head.starts_with(also)) head = Trimmed(head.substr(strlen(also)));
    }
    if (!StartsWithWord(head, name) || open == std::string::npos ||
        code[open] != '{') {
      continue;
    }
    int depth = 1;
    size_t end = open + 1;
    for (; end < code.size() && depth > 0; ++end) {
      depth += code[end] == '{' ? 1 : code[end] == '}' ? -1 : 0;
    }
    return code.substr(open + 1, end - open - 2);
  }
  return std::nullopt;
}

// Returns the name of the declared data member; empty if the declaration
// declares none.
std::string DeclaredName(std::string declaration) {
  declaration = Trimmed(declaration);
  for (const char* access : {"public:", "private:", "protected:"}) {
    if (declaration.starts_with(access)) {
      declaration = Trimmed(declaration.substr(strlen(access)));
    }
  }
  for (const char* other : {"enum", "struct", "class", "using", "friend",
                            "typedef", "template"}) {
    if (StartsWithWord(declaration, other)) {
      return "";
    }
  }
  if (declaration.find("static ") != std::string::npos) {
    return "";
  }
  const size_t pointer = declaration.find("(*");
  if (pointer != std::string::npos) {
    const size_t end = declaration.find(')', pointer);
    return Trimmed(declaration.substr(pointer + 2, end - pointer - 2));
  }
  // Cuts off the initial value, which may look like a function call.
  declaration.resize(
      std::min(declaration.find_first_of("={["), declaration.size()));
  declaration = Trimmed(declaration);
  if (declaration.find('(') != std::string::npos ||
      declaration.find("operator") != std::string::npos) {
    return "";
  }
  size_t begin = declaration.size();
  while (begin > 0 && IsWordChar(declaration[begin - 1])) {
    --begin;
  }
  return declaration.substr(begin);
}

std::optional<uint64_t> ValueOf(const std::string& text,
                                const std::map<std::string, uint64_t>& known) {
  const size_t shift = text.find("<<");
  if (shift != std::string::npos) {
    const auto left = ValueOf(Trimmed(text.substr(0, shift)), known);
    const auto right = ValueOf(Trimmed(text.substr(shift + 2)), known);
    return left.has_value() && right.has_value()
               ? std::optional<uint64_t>(*left << *right)
               : std::nullopt;
  }
  char* end = nullptr;
  const uint64_t number = strtoull(text.c_str(), &end, 0);
  if (!text.empty() && *end == '\0') {
    return number;
  }
  const auto found = known.find(text);
  return found == known.end() ? std::nullopt
                              : std::optional<uint64_t>(found->second);
}

}  // namespace

std::string HeaderCode(const std::string& text) {
  std::string code;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (text.compare(i, 2, "/*") == 0) {
      i = std::min(text.find("*/", i), text.size()) + 1;
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        i += text[i] == '\\' ? 1 : 0;
      }
    } else {
      code.push_back(text[i]);
    }
  }
  std::istringstream lines(code);
  code.clear();
  bool goes_on = false;  // the last line ended with a backslash
  for (std::string line; std::getline(lines, line);) {
    if (goes_on || Trimmed(line).starts_with('#')) {
      goes_on = line.ends_with('\\');
    } else {
      code += line + "\n";
    }
  }
  return code;
}

std::optional<std::vector<std::string>> StructMembers(const std::string& code,
                                                      const std::string& name) {
  auto body = BodyOf(code, "struct", name);
  if (!body.has_value()) body = BodyOf(code, "class", name);
  if (!body.has_value()) {
    return std::nullopt;
  }
  std::vector<std::string> members;
  std::string declaration;
  int depth = 0;
  for (const char c : *body) {
    depth += c == '{' ? 1 : 0;
    if (depth == 0 && c != ';') {
      declaration.push_back(c);
    } else if (depth == 1 && c == '{') {
      declaration += "{}";
    }
    depth -= c == '}' ? 1 : 0;
    const std::string head = declaration.substr(0, declaration.find('='));
    const bool ends_function = c == '}' && depth == 0 &&
                               head.find('(') != std::string::npos;
    if ((c == ';' && depth == 0) || ends_function) {
      const std::string member = ends_function ? "" : DeclaredName(declaration);
      if (!member.empty()) members.push_back(member);
      declaration.clear();
    }
  }
  return members;
}

std::optional<std::map<std::string, uint64_t>> Enumerators(
    const std::string& code, const std::string& name) {
  const auto body = BodyOf(code, "enum", name);
  if (!body.has_value()) {
    return std::nullopt;
  }
  std::map<std::string, uint64_t> all;
  uint64_t next = 0;
  std::istringstream items(*body);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t equals = item.find('=');
    const std::string enumerator = Trimmed(item.substr(0, equals));
    if (enumerator.empty()) {
      continue;
    }
    if (equals != std::string::npos) {
      const auto value = ValueOf(Trimmed(item.substr(equals + 1)), all);
      if (!value.has_value()) {
        return std::nullopt;
      }
      next = *value;
    }
    all[enumerator] = next++;
  }
  return all;
}

}  // namespace sstferry::test
