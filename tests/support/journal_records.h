// Counts the records of a journal on disk.
#pragma once

#include <string>

#include "format/journal.h"
#include "tests/support/sample_database.h"

namespace sstferry {

// Returns the number of a journal's complete records of this type.
inline uint64_t RecordsOf(const std::string& journal_path,
                          JournalRecordType type) {
  const std::string bytes = BytesOf(journal_path);
  uint64_t at = kJournalMagicBytes;
  uint64_t count = 0;
  JournalRecord record;
  while (ReadJournalRecord(bytes, at, &record).ok()) {
    count += record.type == type;
    at += record.total_bytes;
  }
  return count;
}

// Returns the number of chunks in a journal's complete records.
inline uint64_t RecordedChunks(const std::string& journal_path) {
  return RecordsOf(journal_path, JournalRecordType::kChunk);
}

}  // namespace sstferry
