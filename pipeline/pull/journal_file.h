// Writes the journal of one pull: appends records and syncs them.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "format/journal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// An open journal file.
//
// Threads:  any; appends are serialized.
// Errors:   after a failed write or sync, every later call returns that error.
//           A failed sync is never repeated, because a second sync may succeed
//           although data is lost.
class JournalFile {
 public:
  // Creates a new journal; overwrites an existing file.
  [[nodiscard]] static rocksdb::Status Create(
      rocksdb::FileSystem* file_system, const std::string& path,
      std::unique_ptr<JournalFile>* journal);
  // Opens a journal whose complete records have `bytes` bytes, and truncates
  // the file to them. After OK, the file's contents are durable.
  [[nodiscard]] static rocksdb::Status Reopen(
      rocksdb::FileSystem* file_system, const std::string& path,
      uint64_t bytes, std::unique_ptr<JournalFile>* journal);

  // Appends one record; does not sync it.
  //   kRefused  the payload exceeds kMaxJournalPayloadBytes
  template <typename Message>
  [[nodiscard]] rocksdb::Status Append(JournalRecordType type,
                                       const Message& message) {
    std::string payload;
    Encode(message, &payload);
    return AppendPayload(type, payload);
  }
  [[nodiscard]] rocksdb::Status AppendPayload(JournalRecordType type,
                                              const rocksdb::Slice& payload);
  // Makes all appended records durable. Does nothing if nothing was appended
  // since the last call.
  [[nodiscard]] rocksdb::Status Sync();
  [[nodiscard]] rocksdb::Status Close();

 private:
  JournalFile(std::string path, std::unique_ptr<rocksdb::FSWritableFile> file);
  [[nodiscard]] rocksdb::Status Write(const rocksdb::Slice& data);
  [[nodiscard]] rocksdb::Status Keep(const rocksdb::Status& status,
                                     const char* step);

  const std::string path_;
  std::mutex mu_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;  // under mu_
  uint64_t offset_ = 0;                            // under mu_
  bool synced_ = false;                            // under mu_
  rocksdb::Status status_;                         // under mu_
};

}  // namespace sstferry
