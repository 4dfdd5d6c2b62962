// Makes untrusted text safe for terminals and logs. The result has no C0 or C1
// control characters, no marks that change the text direction, no line
// separators, and only well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// Returns the length (1 to 4) of the printable UTF-8 sequence at the start of
// `text`; 0 if there is no such sequence. REQUIRES: text is not empty.
size_t PrintableLength(const rocksdb::Slice& text);

// Returns one line: every byte outside a printable sequence becomes '?'.
std::string Printable(const std::string& text);
// Like Printable(), but keeps line ends.
std::string PrintableLines(const std::string& text);
// Makes a JSON document printable by escaping, which preserves its meaning.
// REQUIRES: well-formed UTF-8.
std::string PrintableJson(const std::string& text);

}  // namespace sstferry
