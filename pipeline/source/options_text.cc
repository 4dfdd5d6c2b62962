#include "pipeline/source/options_text.h"

#include <cctype>

namespace sstferry {
namespace {

std::string Trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) {
    return std::string();
  }
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// RocksDB escapes ':' and '#', backslash and line ends in what it writes.
std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      plain.push_back(next == 'n' ? '\n' : next == 'r' ? '\r' : next);
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

// A comment starts at the first '#' that is not escaped.
std::string WithoutComment(const std::string& line) {
  for (size_t i = 0; i < line.size(); i++) {
    if (line[i] == '\\') {
      i++;
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

}  // namespace

OptionsText::OptionsText(const std::string& text) {
  Section* section = nullptr;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      end = text.size();
    }
    const std::string line =
        Trim(WithoutComment(text.substr(begin, end - begin)));
    begin = end + 1;
    if (line.size() > 1 && line.front() == '[' && line.back() == ']') {
      const std::string title = line.substr(1, line.size() - 2);
      const size_t open = title.find('"');
      section = nullptr;
      if (title == "DBOptions") {
        section = &database_;
      } else if (title.rfind("CFOptions", 0) == 0 &&
                 open != std::string::npos && title.size() > open + 1 &&
                 title.back() == '"') {
        section = &families_[Unescape(
            title.substr(open + 1, title.size() - open - 2))];
      }
      continue;
    }
    const size_t equal = line.find('=');
    if (section != nullptr && equal != std::string::npos) {
      (*section)[Trim(line.substr(0, equal))] =
          Unescape(Trim(line.substr(equal + 1)));
    }
  }
}

std::string OptionsText::DatabaseOption(const std::string& key,
                                        const std::string& missing) const {
  const auto it = database_.find(key);
  return it == database_.end() ? missing : it->second;
}

std::string OptionsText::FamilyText(const std::string& family,
                                    const std::string& key) const {
  const auto section = families_.find(family);
  if (section == families_.end()) {
    return std::string();
  }
  const auto it = section->second.find(key);
  return it == section->second.end() ? std::string() : it->second;
}

std::string OptionsText::FamilyObject(const std::string& family,
                                      const std::string& key) const {
  const std::string value = FamilyText(family, key);
  if (value == "nullptr") {
    return std::string();
  }
  const size_t id = value.find("id=");
  if (value.empty() || value.front() != '{' || id == std::string::npos) {
    return value;
  }
  const size_t begin = id + 3;
  return value.substr(begin, value.find_first_of(";}", begin) - begin);
}

bool OptionsText::HasFamily(const std::string& family) const {
  return families_.count(family) != 0;
}

}  // namespace sstferry
