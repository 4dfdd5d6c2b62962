// One line of an OPTIONS file, as RocksDB reads it: blanks around a name and a
// value do not count, and a comment begins at the first '#' without a backslash.
#pragma once

#include <string>

#include "format/release.h"

namespace sstferry {

// Returns the text without blanks at both ends.
std::string TrimOptionText(const std::string& text);

// Returns the line without its comment and without blanks at both ends.
std::string OptionLineText(const std::string& line);

// Splits "name = value". False: the line has no such form.
bool SplitOptionLine(const std::string& line, std::string* name,
                     std::string* value);

// Returns the release of RocksDB that wrote an OPTIONS file, by its text; not
// known if that does not say.
RocksDbRelease ReleaseOfOptions(const std::string& options_text);

}  // namespace sstferry
