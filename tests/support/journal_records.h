// What a journal on disk says.
#pragma once

#include <string>

#include "format/journal.h"
#include "tests/support/sample_database.h"

namespace sstferry {

// Chunks that the whole records of a journal promise.
inline uint64_t RecordedChunks(const std::string& journal_path) {
  const std::string bytes = BytesOf(journal_path);
  uint64_t at = kJournalMagicBytes;
  uint64_t chunks = 0;
  JournalRecord record;
  while (ReadJournalRecord(bytes, at, &record).ok()) {
    chunks += record.type == JournalRecordType::kChunk;
    at += record.total_bytes;
  }
  return chunks;
}

}  // namespace sstferry
