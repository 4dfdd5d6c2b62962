#include "format/options_line.h"

#include <algorithm>
#include <cctype>

namespace sstferry {

std::string TrimOptionText(const std::string& text) {
  size_t begin = 0;
  size_t end = text.size();
  while (begin < end && isspace(static_cast<unsigned char>(text[begin])) != 0) {
    ++begin;
  }
  while (end > begin &&
         isspace(static_cast<unsigned char>(text[end - 1])) != 0) {
    --end;
  }
  return text.substr(begin, end - begin);
}

std::string OptionLineText(const std::string& line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '#') {
      return TrimOptionText(line.substr(0, i));
    }
  }
  return TrimOptionText(line);
}

std::string UnescapeOptionText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    out.push_back(c == 'n' ? '\n' : c == 'r' ? '\r' : c);
  }
  return out;
}

bool SplitOptionLine(const std::string& line, std::string* name,
                     std::string* value) {
  const std::string text = OptionLineText(line);
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return false;
  }
  *name = TrimOptionText(text.substr(0, equals));
  *value = TrimOptionText(text.substr(equals + 1));
  return true;
}

RocksDbRelease ReleaseOfOptions(const std::string& options_text) {
  RocksDbRelease release;
  std::string name;
  std::string value;
  for (size_t begin = 0; begin < options_text.size();) {
    const size_t end = std::min(options_text.find('\n', begin),
                                options_text.size());
    const std::string line = options_text.substr(begin, end - begin);
    if (line.starts_with(kMadeForComment) &&
        ParseRelease(line.substr(sizeof(kMadeForComment) - 1), &release)) {
      return release;
    }
    if (SplitOptionLine(line, &name, &value) && name == "rocksdb_version") {
      return ParseRelease(value, &release) ? release : RocksDbRelease();
    }
    begin = end + 1;
  }
  return release;
}

}  // namespace sstferry
