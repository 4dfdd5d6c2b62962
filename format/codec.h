// Encodes and decodes messages and records, using their field lists
// (format/fields.h). A struct with a field list has its name in kName.
#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Appends the message to *out.
template <typename Message>
void Encode(const Message& message, std::string* out);

// Decodes exactly one complete message. Before using a length or count,
// compares it with its limit and with the remaining bytes.
//   kCorrupt  the message names the struct, the field, the expected and the
//             found value
template <typename Message>
[[nodiscard]] rocksdb::Status Decode(const rocksdb::Slice& payload,
                                     Message* message);

}  // namespace sstferry
