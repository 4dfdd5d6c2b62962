// Lines of an OPTIONS file, parsed as RocksDB parses them: blanks around names
// and values are ignored, and a comment begins at the first unescaped '#'.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "format/release.h"

namespace sstferry {

// Calls on_line(std::string) for each line of the text, without the line end.
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

// Removes RocksDB's escapes of ':', '#', backslashes and line ends.
std::string UnescapeOptionText(std::string_view text);

// Splits "name = value". Returns false if the line has another form.
bool SplitOptionLine(const std::string& line, std::string* name,
                     std::string* value);

// Prefix of a comment in an OPTIONS file. The comment names the RocksDB release
// of the application for which the file was made. It is written only if this
// release is older than the release that wrote the file.
inline constexpr char kMadeForComment[] = "# made for RocksDB ";

// Returns the RocksDB release of the application that an OPTIONS file is for.
// This is the release in the comment or, without the comment, the release that
// wrote the file. Returns an unknown release if the text has neither.
RocksDbRelease ReleaseOfOptions(const std::string& options_text);

}  // namespace sstferry
