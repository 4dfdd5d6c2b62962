#include "format/journal.h"

#include <cassert>

#include "format/journal_fields.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kRecordDigestOffset = 8;
// Maximum number of bytes that the search after a damaged record hashes. A real
// journal needs much less. The maximum limits the time that a crafted journal
// can cost.
constexpr uint64_t kMaxSearchBytes = 64u << 20;

// Returns a record's payload. REQUIRES: the complete payload follows the
// header.
Slice PayloadOf(const char* header) {
  return Slice(header + kJournalHeaderBytes, DecodeFixed32(header));
}

uint64_t RecordDigest(const char* header, uint64_t offset,
                      const Slice& payload) {
  char seeded[16];
  memcpy(seeded, header, kRecordDigestOffset);
  EncodeFixed64(seeded + kRecordDigestOffset, offset);
  return Digest64(payload, Digest64(Slice(seeded, sizeof(seeded))));
}

bool IsKnownType(uint8_t type) {
  return type >= static_cast<uint8_t>(JournalRecordType::kTransfer) &&
         type <= kMaxJournalRecordType;
}

// Returns why there is no complete record at `offset`; empty if its header is
// valid and its payload ends inside the journal.
std::string HeaderProblem(const Slice& journal, uint64_t offset) {
  const uint64_t left = journal.size() - offset;
  if (left < kJournalHeaderBytes) {
    return "header: expected 16 bytes, found " + std::to_string(left);
  }
  const char* header = journal.data() + offset;
  const uint32_t payload_bytes = DecodeFixed32(header);
  if (payload_bytes > kMaxJournalPayloadBytes ||
      payload_bytes > left - kJournalHeaderBytes) {
    return "payload_bytes: expected at most " +
           std::to_string(std::min<uint64_t>(left - kJournalHeaderBytes,
                                             kMaxJournalPayloadBytes)) +
           ", found " + std::to_string(payload_bytes);
  }
  if (!IsKnownType(static_cast<uint8_t>(header[4]))) {
    return "type: expected 1 to " + std::to_string(kMaxJournalRecordType) +
           ", found " +
           std::to_string(static_cast<uint8_t>(header[4]));
  }
  if (header[5] != 0 || header[6] != 0 || header[7] != 0) {
    return "reserved: expected 000000, found " + ToHex(Slice(header + 5, 3));
  }
  return std::string();
}

// Checks the same as HeaderProblem(), but makes no text, because the search
// calls this at every byte.
bool HeaderIsFine(const char* header, uint64_t left) {
  return left >= kJournalHeaderBytes && header[5] == 0 && header[6] == 0 &&
         header[7] == 0 && IsKnownType(static_cast<uint8_t>(header[4])) &&
         DecodeFixed32(header) <= kMaxJournalPayloadBytes &&
         DecodeFixed32(header) <= left - kJournalHeaderBytes;
}

bool DigestMatches(const char* header, uint64_t offset) {
  return DecodeFixed64(header + kRecordDigestOffset) ==
         RecordDigest(header, offset, PayloadOf(header));
}

// Returns true if a complete record begins anywhere after `offset`. Then the
// bytes at `offset` are damaged, not a torn tail. Also returns true if the
// search would have to hash more than kMaxSearchBytes to decide.
bool RecordFollows(const Slice& journal, uint64_t offset) {
  uint64_t searched_bytes = 0;
  for (uint64_t at = offset + 1; at + kJournalHeaderBytes <= journal.size();
       ++at) {
    const char* header = journal.data() + at;
    if (!HeaderIsFine(header, journal.size() - at)) {
      continue;
    }
    searched_bytes += kJournalHeaderBytes + DecodeFixed32(header);
    if (searched_bytes > kMaxSearchBytes || DigestMatches(header, at)) {
      return true;
    }
  }
  return false;
}

}  // namespace

const char* JournalRecordTypeName(JournalRecordType type) {
  switch (type) {
    case JournalRecordType::kTransfer:
      return "Transfer";
    case JournalRecordType::kPlan:
      return "Plan";
    case JournalRecordType::kChunk:
      return "Chunk";
    case JournalRecordType::kPartDone:
      return "PartDone";
    case JournalRecordType::kComplete:
      return "Complete";
    case JournalRecordType::kIngested:
      return "Ingested";
    case JournalRecordType::kTargetFiles:
      return "TargetFiles";
  }
  return "unknown";
}

Status CheckJournalMagic(const Slice& journal) {
  const size_t bytes =
      std::min<size_t>(journal.size(), kJournalMagicBytes);
  if (bytes > 0 && memcmp(journal.data(), kJournalMagic, bytes) != 0) {
    return MakeStatus(EndState::kCorrupt,
                      "journal: magic: expected 53464a4f55524e31, found " +
                          ToHex(Slice(journal.data(), bytes)) + ", offset 0");
  }
  if (bytes < kJournalMagicBytes) {
    return Status::Incomplete("journal: magic: expected 8 bytes, found " +
                              std::to_string(bytes));
  }
  return Status::OK();
}

void AppendJournalRecord(JournalRecordType type, const Slice& payload,
                         uint64_t file_offset, std::string* out) {
  assert(payload.size() <= kMaxJournalPayloadBytes);
  char header[kJournalHeaderBytes] = {};
  EncodeFixed32(header, static_cast<uint32_t>(payload.size()));
  header[4] = static_cast<char>(type);
  EncodeFixed64(header + kRecordDigestOffset,
                RecordDigest(header, file_offset, payload));
  out->append(header, sizeof(header));
  out->append(payload.data(), payload.size());
}

Status ReadJournalRecord(const Slice& journal, uint64_t offset,
                         JournalRecord* record) {
  if (offset >= journal.size()) {
    return Status::NotFound("journal: end at offset " +
                            std::to_string(journal.size()));
  }
  const char* header = journal.data() + offset;
  std::string problem = HeaderProblem(journal, offset);
  if (problem.empty() && !DigestMatches(header, offset)) {
    char found[8];
    EncodeFixed64(found, RecordDigest(header, offset, PayloadOf(header)));
    problem = "digest: expected " +
              ToHex(Slice(header + kRecordDigestOffset, 8)) + ", found " +
              ToHex(Slice(found, 8));
  }
  if (!problem.empty()) {
    problem =
        "journal record: " + problem + ", offset " + std::to_string(offset);
    return RecordFollows(journal, offset)
               ? MakeStatus(EndState::kCorrupt, problem)
               : Status::Incomplete(problem);
  }
  record->offset = offset;
  record->type = static_cast<JournalRecordType>(header[4]);
  record->payload = PayloadOf(header);
  record->total_bytes = kJournalHeaderBytes + record->payload.size();
  return Status::OK();
}

SSTFERRY_CODEC(JournalTransfer)
SSTFERRY_CODEC(JournalPlan)
SSTFERRY_CODEC(JournalChunk)
SSTFERRY_CODEC(JournalIngested)
SSTFERRY_CODEC(JournalTargetFiles)
SSTFERRY_CODEC(JournalPartDone)
SSTFERRY_CODEC(JournalComplete)

}  // namespace sstferry
