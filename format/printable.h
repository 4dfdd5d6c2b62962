// Makes text from others safe for terminals and logs: no control characters of
// C0 or C1, no marks that change the direction of text, no line separators, and
// only well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// Returns the length of the printable UTF-8 sequence at the start of `text`, 1
// to 4; 0 if there is none. REQUIRES: text is not empty.
size_t PrintableLength(const rocksdb::Slice& text);

// Returns one line: every byte outside a printable sequence becomes '?'.
std::string Printable(const std::string& text);
// Like Printable(), but keeps line ends.
std::string PrintableLines(const std::string& text);
// Makes a JSON document printable by escaping, which preserves the document's
// meaning. REQUIRES: well-formed UTF-8.
std::string PrintableJson(const std::string& text);

}  // namespace sstferry
