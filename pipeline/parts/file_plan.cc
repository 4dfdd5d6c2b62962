#include "pipeline/parts/file_plan.h"

#include <algorithm>
#include <memory>

#include "format/end_state.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/key_interval.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

FilePlan Describe(const rocksdb::SstFileMetaData& metadata, int level,
                  size_t place) {
  FilePlan file;
  static_cast<TableFile&>(file) = DescribeTable(metadata, level, place);
  file.name = metadata.relative_filename;
  file.bytes = metadata.size;
  file.entries = metadata.num_entries;
  return file;
}

Status ReadOne(TableSums* sums, FilePlan* file) {
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                   file->path, &source,
                                   EndState::kSourceError));
  SstReader reader;
  const Status opened = reader.Open(source.get());
  if (opened.IsNotSupported()) {
    return Status::OK();  // not block-based: RocksDB reads it
  }
  RETURN_IF_ERROR(opened);
  const SstProperties& properties = reader.properties();
  file->is_block_based = true;
  file->entries = properties.num_entries;
  file->deletions = properties.num_deletions;
  sums->merge_operands += properties.num_merge_operands;
  sums->max_format_version =
      std::max(sums->max_format_version, reader.footer().format_version);
  return Status::OK();
}

}  // namespace

std::vector<FilePlan> ListFiles(rocksdb::DB* db,
                                rocksdb::ColumnFamilyHandle* family,
                                const KeyInterval& interval,
                                uint32_t* sorted_runs) {
  const Comparator* comparator = family->GetComparator();
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  std::vector<FilePlan> files;
  *sorted_runs = 0;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    if (!level.files.empty()) {
      *sorted_runs += level.level == 0
                          ? static_cast<uint32_t>(level.files.size())
                          : 1;
    }
    for (size_t i = 0; i < level.files.size(); ++i) {
      const rocksdb::SstFileMetaData& file = level.files[i];
      if (MeetsSpan(interval, comparator, file.smallestkey,
                    file.largestkey)) {
        files.push_back(Describe(file, level.level, i));
      }
    }
  }
  std::sort(files.begin(), files.end(),
            [comparator](const FilePlan& a, const FilePlan& b) {
              const int order = comparator->Compare(a.smallest, b.smallest);
              return order != 0 ? order < 0 : a.name < b.name;
            });
  return files;
}

Status ReadProperties(const std::function<bool()>& cancelled, TableSums* sums,
                      std::vector<FilePlan>* files) {
  for (FilePlan& file : *files) {
    if (cancelled && cancelled()) {
      return MakeStatus(EndState::kCancelled, "plan: stopped on request");
    }
    const Status status = ReadOne(sums, &file);
    if (!status.ok()) {
      return WithContext(status, EndState::kSourceError, file.path);
    }
  }
  return Status::OK();
}

}  // namespace sstferry
