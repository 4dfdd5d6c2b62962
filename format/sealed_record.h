// Encodes a record of fields as a complete sealed file (sealed_file.h).
#pragma once

#include <cstdint>
#include <string>

#include "format/end_state.h"
#include "format/message_fields.h"
#include "format/sealed_file.h"

namespace sstferry {

// Appends a complete file. REQUIRES: `magic` is 8 bytes.
template <typename Record>
void SealRecord(const char* magic, const Record& record, std::string* out) {
  std::string payload;
  Encode(record, &payload);
  SealFile(magic, payload, out);
}

// Decodes a file. Returns Corruption unless `file` is exactly one complete file
// with this magic. The message begins with Record::kName.
template <typename Record>
[[nodiscard]] rocksdb::Status UnsealRecord(const char* magic,
                                           uint64_t max_payload_bytes,
                                           const rocksdb::Slice& file,
                                           Record* record) {
  *record = Record();
  rocksdb::Slice payload;
  RETURN_IF_ERROR(UnsealFile(Record::kName, magic, max_payload_bytes, file,
                             &payload));
  return Decode(payload, record);
}

}  // namespace sstferry
