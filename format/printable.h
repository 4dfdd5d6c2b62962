// Text of others, made safe for terminals and logs: no control characters of
// C0 or C1, no marks that change the direction of text, no line separators, and
// only well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// Length of the printable UTF-8 sequence at the start of `text`, 1 to 4; 0 if
// there is none. REQUIRES: text is not empty.
size_t PrintableLength(const rocksdb::Slice& text);

// One line: every byte outside of a printable sequence becomes '?'.
std::string Printable(const std::string& text);
// The same, but line ends stay.
std::string PrintableLines(const std::string& text);
// Text of a JSON document: what is not printable is escaped, so the document's
// meaning stays. REQUIRES: well-formed UTF-8.
std::string PrintableJson(const std::string& text);

}  // namespace sstferry
