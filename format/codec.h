// Encodes and decodes messages and records by the lists of their fields
// (format/fields.h). A struct with such a list has its name in kName.
#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Appends the message to *out.
template <typename Message>
void Encode(const Message& message, std::string* out);

// Decodes exactly one whole message. Compares every length and count with its
// bound and with the bytes left before using it.
//   kCorrupt  names the message, the field, the expected and the found value
template <typename Message>
[[nodiscard]] rocksdb::Status Decode(const rocksdb::Slice& payload,
                                     Message* message);

}  // namespace sstferry
