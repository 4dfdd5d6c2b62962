#include "pipeline/parts/table_file.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "rocksdb/comparator.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Number of tables that are open for merges in this process.
std::atomic<size_t> open_tables{0};

}  // namespace

size_t SharedFile::MostOpen() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0
             ? static_cast<size_t>(limit.rlim_cur / 4)
             : 0;
}

Status SharedFile::Open(rocksdb::FileSystem* file_system,
                        const std::string& path,
                        std::shared_ptr<const FileSource>* file) {
  const std::lock_guard<std::mutex> lock(mu_);
  *file = file_.lock();
  if (*file != nullptr) {
    return Status::OK();
  }
  if (++open_tables > MostOpen()) {
    --open_tables;
    return Status::NotSupported("too many open tables");
  }
  std::unique_ptr<FileSource> opened;
  const Status status = FileSource::Open(file_system, path, &opened,
                                         EndState::kSourceError);
  if (!status.ok()) {
    --open_tables;
    return status;
  }
  file->reset(opened.release(), [](const FileSource* source) {
    delete source;
    --open_tables;
  });
  file_ = *file;
  return status;
}

TableFile DescribeTable(const rocksdb::SstFileMetaData& metadata, int level,
                        size_t place) {
  // Added to level numbers. It is larger than the index of any file in level 0.
  constexpr uint64_t kBelowLevel0 = uint64_t{1} << 32;
  TableFile file;
  file.path = metadata.directory + "/" + metadata.relative_filename;
  file.smallest = metadata.smallestkey;
  file.largest = metadata.largestkey;
  file.depth =
      level == 0 ? place : kBelowLevel0 + static_cast<uint64_t>(level);
  file.smallest_sequence = metadata.smallest_seqno;
  file.largest_sequence = metadata.largest_seqno;
  file.bytes = metadata.size;
  file.has_blobs = metadata.oldest_blob_file_number != 0;
  return file;
}

bool HasMemtables(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  for (const std::string& property :
       {rocksdb::DB::Properties::kNumEntriesActiveMemTable,
        rocksdb::DB::Properties::kNumDeletesActiveMemTable,
        rocksdb::DB::Properties::kNumImmutableMemTable}) {
    uint64_t count = 0;
    if (!db->GetIntProperty(family, property, &count) || count != 0) {
      return true;
    }
  }
  return false;
}

std::vector<TableFile> ListTableFiles(rocksdb::DB* db,
                                      rocksdb::ColumnFamilyHandle* family) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  std::vector<TableFile> files;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (size_t place = 0; place < level.files.size(); ++place) {
      files.push_back(
          DescribeTable(level.files[place], level.level, place));
    }
  }
  const rocksdb::Comparator* const order = family->GetComparator();
  std::sort(files.begin(), files.end(),
            [order](const TableFile& a, const TableFile& b) {
              return order->Compare(a.smallest, b.smallest) < 0;
            });
  return files;
}

}  // namespace sstferry
