#include <algorithm>
#include <cctype>
#include <cstring>

#include "sstferry/options.h"

namespace sstferry {

std::string ShellWord(const std::string& text) {
  const bool plain =
      !text.empty() &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c >= 0x80 || isalnum(c) || strchr("@%+=:,./-_[]", c) != nullptr;
      });
  if (plain) {
    return text;
  }
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace sstferry
