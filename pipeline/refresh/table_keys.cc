#include "pipeline/refresh/table_keys.h"

#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/file_source.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kInternalTrailerBytes = 8;

}  // namespace

Status ForEachTableKey(
    rocksdb::FileSystem* file_system, const std::string& path,
    const std::function<bool()>& cancelled,
    const std::function<Status(const Slice& key, uint8_t type)>& visit) {
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
        return MakeStatus(EndState::kCancelled, "while planning");
      }
      return reader.ForEachEntry(
          block.handle, [&](const Slice& key, const Slice&) {
            const size_t bytes = key.size() - kInternalTrailerBytes;
            return visit(Slice(key.data(), bytes),
                         static_cast<uint8_t>(key[bytes]));
          });
    });
  }
  return status.ok() ? status : WithContext(status, EndStateOf(status), path);
}

Status FindSingleDelete(rocksdb::FileSystem* file_system,
                        const std::string& path,
                        const std::function<bool()>& cancelled, bool* found) {
  return ForEachTableKey(file_system, path, cancelled,
                         [found](const Slice&, uint8_t type) {
                           *found |= IsSingleDelete(type);
                           return Status::OK();
                         });
}

}  // namespace sstferry
