#include "pipeline/refresh/single_deletes.h"

#include <memory>

#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/file_source.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kInternalTrailerBytes = 8;
constexpr char kTypeSingleDeletion = 0x07;

}  // namespace

Status FindSingleDelete(rocksdb::FileSystem* file_system,
                        const std::string& path,
                        const std::function<bool()>& cancelled, bool* found) {
  std::unique_ptr<FileSource> source;
  Status status =
      FileSource::Open(file_system, path, &source, EndState::kSourceError);
  SstReader reader;
  if (status.ok()) {
    status = reader.Open(source.get());
  }
  if (status.ok()) {
    status = reader.ForEachIndexEntry([&](const SstIndexEntry& block) {
      if (cancelled && cancelled()) {
        return MakeStatus(EndState::kCancelled, "plan: stopped on request");
      }
      return reader.ForEachEntry(
          block.handle, [found](const Slice& key, const Slice&) {
            *found |=
                key[key.size() - kInternalTrailerBytes] == kTypeSingleDeletion;
            return Status::OK();
          });
    });
  }
  return status.ok() ? status : WithContext(status, EndStateOf(status), path);
}

}  // namespace sstferry
