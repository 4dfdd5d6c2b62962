// Encodes and decodes messages and records. The code uses the field list of a
// struct (format/fields.h). A struct with a field list has its name in kName.
#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Appends the message to *out.
template <typename Message>
void Encode(const Message& message, std::string* out);

// Decodes a payload that is exactly one complete message. Compares each length
// and count with its limit and with the remaining bytes before using it.
//   kCorrupt  the message text names the struct, the field, the expected value
//             and the found value
template <typename Message>
[[nodiscard]] rocksdb::Status Decode(const rocksdb::Slice& payload,
                                     Message* message);

}  // namespace sstferry
