#include "pipeline/source/sst_facts.h"

#include "format/sst_reader.h"
#include "pipeline/file_source.h"

namespace sstferry {

using rocksdb::Status;

Status ReadSstFacts(const std::string& path, size_t max_cut_points,
                    SstFileFacts* facts) {
  std::unique_ptr<FileSource> source;
  Status status =
      FileSource::Open(rocksdb::FileSystem::Default().get(), path, &source);
  if (!status.ok()) {
    return status;
  }
  SstReader reader;
  status = reader.Open(source.get());
  if (status.IsNotSupported()) {
    return Status::OK();  // RocksDB reads it; it cannot be cut inside
  }
  if (!status.ok()) {
    return status;
  }
  facts->format_version = reader.footer().format_version;
  facts->merge_operands = reader.properties().num_merge_operands;
  if (max_cut_points < 2 || reader.properties().num_data_blocks == 0) {
    return Status::OK();
  }
  std::vector<SstAnchor> anchors;
  status = reader.Anchors(max_cut_points, &anchors);
  uint64_t before = 0;
  for (SstAnchor& anchor : anchors) {
    facts->cut_points.push_back(
        {std::move(anchor.user_key), anchor.file_bytes - before});
    before = anchor.file_bytes;
  }
  return status;
}

}  // namespace sstferry
