// Encodes messages and records, and reads them back, by the lists of their
// fields (format/fields.h). A struct that has one says its name in kName.
#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Appends the message to *out.
template <typename Message>
void Encode(const Message& message, std::string* out);

// Reads exactly one whole message. Checks every length and count against its
// bound and against the bytes that are left before it believes it.
//   kCorrupt  names the message, the field, what was expected and what was
//             found
template <typename Message>
[[nodiscard]] rocksdb::Status Decode(const rocksdb::Slice& payload,
                                     Message* message);

}  // namespace sstferry
