#include "format/rocksdb/manifest_append.h"

#include <algorithm>

#include "format/coding.h"
#include "format/crc32c.h"
#include "format/rocksdb/log_follower.h"

namespace sstferry {
namespace {

constexpr uint64_t kLogHeaderBytes = 7;
constexpr uint32_t kDatabaseIdTag = (1u << 13) + 1;
constexpr uint32_t kLastSequenceTag = 4;
constexpr uint32_t kRemovedTableTag = 6;
constexpr uint32_t kFamilyTag = 200;
constexpr uint32_t kDropFamilyTag = 202;

void PutVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

// Writes a logical record in the format described in log_follower.h.
void AppendLogRecord(uint64_t at, const std::string& record,
                     std::string* out) {
  size_t done = 0;
  bool first = true;
  do {
    uint64_t room = kLogBlockBytes - at % kLogBlockBytes;
    if (room < kLogHeaderBytes) {
      out->append(room, '\0');
      at += room;
      room = kLogBlockBytes;
    }
    const size_t bytes =
        std::min<uint64_t>(room - kLogHeaderBytes, record.size() - done);
    const bool last = done + bytes == record.size();
    const uint8_t type = first ? (last ? 1 : 2) : (last ? 4 : 3);
    std::string checked(1, static_cast<char>(type));
    checked.append(record, done, bytes);
    PutFixed32(out, MaskCrc32c(Crc32c(checked.data(), checked.size())));
    PutFixed16(out, static_cast<uint16_t>(bytes));
    *out += checked;
    at += kLogHeaderBytes + bytes;
    done += bytes;
    first = false;
  } while (done < record.size());
}

}  // namespace

void AppendDatabaseId(uint64_t file_bytes, const std::string& database_id,
                      std::string* out) {
  std::string edit;
  PutVarint(&edit, kDatabaseIdTag);
  PutVarint(&edit, database_id.size());
  edit += database_id;
  AppendLogRecord(file_bytes, edit, out);
}

void AppendLastSequence(uint64_t file_bytes, uint64_t sequence,
                        std::string* out) {
  std::string edit;
  PutVarint(&edit, kLastSequenceTag);
  PutVarint(&edit, sequence);
  AppendLogRecord(file_bytes, edit, out);
}

void AppendDroppedFamily(uint64_t file_bytes, uint32_t family_id,
                         std::string* out) {
  std::string edit;
  PutVarint(&edit, kFamilyTag);
  PutVarint(&edit, family_id);
  PutVarint(&edit, kDropFamilyTag);
  AppendLogRecord(file_bytes, edit, out);
}

void AppendRemovedTables(
    uint64_t file_bytes, uint32_t family_id,
    const std::vector<std::pair<int, uint64_t>>& tables, std::string* out) {
  std::string edit;
  PutVarint(&edit, kFamilyTag);
  PutVarint(&edit, family_id);
  for (const auto& [level, number] : tables) {
    PutVarint(&edit, kRemovedTableTag);
    PutVarint(&edit, static_cast<uint64_t>(level));
    PutVarint(&edit, number);
  }
  AppendLogRecord(file_bytes, edit, out);
}

}  // namespace sstferry
