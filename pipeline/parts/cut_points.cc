#include "pipeline/parts/cut_points.h"

#include "format/end_state.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/file_source.h"

namespace sstferry {

using rocksdb::Status;

Status ReadCutPoints(const std::string& path, size_t max_count,
                     std::vector<CutPoint>* points) {
  points->clear();
  if (max_count < 2) {
    return Status::OK();
  }
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(rocksdb::FileSystem::Default().get(), path,
                                   &source, EndState::kSourceError));
  SstReader reader;
  Status status = reader.Open(source.get());
  if (status.IsNotSupported()) {
    return Status::OK();  // sstferry cannot cut this table format
  }
  if (!status.ok() || reader.properties().data_bytes == 0) {
    return status;
  }
  std::vector<SstAnchor> anchors;
  status = reader.Anchors(max_count, &anchors);
  uint64_t before = 0;
  for (SstAnchor& anchor : anchors) {
    points->push_back({std::move(anchor.user_key), anchor.file_bytes - before});
    before = anchor.file_bytes;
  }
  return status;
}

}  // namespace sstferry
