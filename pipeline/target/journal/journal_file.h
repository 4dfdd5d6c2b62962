// The journal on disk: appended to by one pull, synced where durability asks.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "format/record/journal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: any; appends go in one at a time.
// Errors:  after a failed write or sync every later call returns that error: a
//   failed sync is never tried again as if nothing had happened.
class JournalFile {
 public:
  // Makes a new journal. REQUIRES: no file of that name is worth keeping.
  [[nodiscard]] static rocksdb::Status Create(
      rocksdb::FileSystem* file_system, const std::string& path,
      std::unique_ptr<JournalFile>* journal);
  // Goes on with one whose whole records take `bytes` bytes: a torn tail is
  // cut off. What is there is durable when this returns.
  [[nodiscard]] static rocksdb::Status Reopen(
      rocksdb::FileSystem* file_system, const std::string& path,
      uint64_t bytes, std::unique_ptr<JournalFile>* journal);

  template <typename Message>
  [[nodiscard]] rocksdb::Status Append(JournalRecordType type,
                                       const Message& message) {
    std::string payload;
    message.EncodeTo(&payload);
    return AppendPayload(type, payload);
  }
  [[nodiscard]] rocksdb::Status AppendPayload(JournalRecordType type,
                                              const rocksdb::Slice& payload);
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
  rocksdb::Status status_;                         // under mu_
};

}  // namespace sstferry
