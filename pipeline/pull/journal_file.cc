#include "pipeline/pull/journal_file.h"

#include "format/end_state.h"
#include "pipeline/disk/durable.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

JournalFile::JournalFile(std::string path,
                         std::unique_ptr<rocksdb::FSWritableFile> file)
    : path_(std::move(path)), file_(std::move(file)) {}

Status JournalFile::Create(rocksdb::FileSystem* file_system,
                           const std::string& path,
                           std::unique_ptr<JournalFile>* journal) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const Status status = file_system->NewWritableFile(
      path, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status), "journal " + path);
  }
  journal->reset(new JournalFile(path, std::move(file)));
  std::lock_guard<std::mutex> lock((*journal)->mu_);
  return (*journal)->Write(Slice(kJournalMagic, kJournalMagicBytes));
}

Status JournalFile::Reopen(rocksdb::FileSystem* file_system,
                           const std::string& path, uint64_t bytes,
                           std::unique_ptr<JournalFile>* journal) {
  uint64_t found = 0;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  rocksdb::IOStatus status =
      file_system->GetFileSize(path, IOOptions(), &found, nullptr);
  if (status.ok()) {
    status = file_system->ReopenWritableFile(path, rocksdb::FileOptions(),
                                             &file, nullptr);
  }
  if (status.ok() && found > bytes) {
    status = file->Truncate(bytes, IOOptions(), nullptr);
    FaultPoint("JournalFile:TailCut");
  }
  if (status.ok()) {
    // Check the size, because some file systems report success without
    // truncating.
    status = file_system->GetFileSize(path, IOOptions(), &found, nullptr);
  }
  if (status.ok() && found != bytes) {
    return MakeStatus(EndState::kInternal,
                      "journal " + path + ": expected " +
                          std::to_string(bytes) + " bytes, found " +
                          std::to_string(found));
  }
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status), "journal " + path);
  }
  journal->reset(new JournalFile(path, std::move(file)));
  {
    std::lock_guard<std::mutex> lock((*journal)->mu_);
    (*journal)->offset_ = bytes;
  }
  return (*journal)->Sync();
}

Status JournalFile::Keep(const Status& status, const char* step) {
  if (!status.ok()) {
    status_ = WithContext(status, EndStateOf(status),
                          std::string(step) + " journal " + path_);
  }
  return status_;
}

Status JournalFile::Write(const Slice& data) {
  const Status status =
      Keep(file_->Append(data, IOOptions(), nullptr), "append to");
  offset_ += data.size();
  synced_ = false;
  return status;
}

Status JournalFile::AppendPayload(JournalRecordType type,
                                  const Slice& payload) {
  std::lock_guard<std::mutex> lock(mu_);
  RETURN_IF_ERROR(status_);
  if (payload.size() > kMaxJournalPayloadBytes) {
    return MakeStatus(EndState::kRefused,
                      std::string("journal record ") +
                          JournalRecordTypeName(type) +
                          ": expected at most " +
                          std::to_string(kMaxJournalPayloadBytes) +
                          " bytes, found " + std::to_string(payload.size()));
  }
  std::string record;
  AppendJournalRecord(type, payload, offset_, &record);
  return Write(record);
}

Status JournalFile::Sync() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!status_.ok() || synced_) {
    return status_;
  }
  synced_ = true;
  return Keep(file_->Sync(IOOptions(), nullptr), "sync");
}

Status JournalFile::Close() {
  std::lock_guard<std::mutex> lock(mu_);
  RETURN_IF_ERROR(status_);
  return Keep(file_->Close(IOOptions(), nullptr), "close");
}

}  // namespace sstferry
