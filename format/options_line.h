// One line of an OPTIONS file, as RocksDB reads it: blanks around a name and a
// value do not count, and a comment begins at the first '#' without a
// backslash.
#pragma once

#include <algorithm>
#include <string>

#include "format/release.h"

namespace sstferry {

// Calls on_line(std::string) for each line of the text, without its end.
template <typename OnLine>
void ForEachLine(const std::string& text, const OnLine& on_line) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    on_line(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// Returns the text without blanks at both ends.
std::string TrimOptionText(const std::string& text);

// Returns the line without its comment and without blanks at both ends.
std::string OptionLineText(const std::string& line);

// Splits "name = value". False: the line has no such form.
bool SplitOptionLine(const std::string& line, std::string* name,
                     std::string* value);

// Begins a comment of an OPTIONS file: the release of the application that it
// is for, where that is older than the one that wrote it.
inline constexpr char kMadeForComment[] = "# made for RocksDB ";

// Returns the release of the application that an OPTIONS file is for, by its
// text: that of the comment, else the one that wrote the file; not known if
// neither is there.
RocksDbRelease ReleaseOfOptions(const std::string& options_text);

}  // namespace sstferry
