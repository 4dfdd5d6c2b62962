#include "pipeline/target/journal_file.h"

#include "format/end_state.h"

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
  return status;
}

Status JournalFile::AppendPayload(JournalRecordType type,
                                  const Slice& payload) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!status_.ok()) {
    return status_;
  }
  std::string record;
  AppendJournalRecord(type, payload, offset_, &record);
  return Write(record);
}

Status JournalFile::Sync() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!status_.ok()) {
    return status_;
  }
  return Keep(file_->Sync(IOOptions(), nullptr), "sync");
}

Status JournalFile::Close() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!status_.ok()) {
    return status_;
  }
  return Keep(file_->Close(IOOptions(), nullptr), "close");
}

}  // namespace sstferry
