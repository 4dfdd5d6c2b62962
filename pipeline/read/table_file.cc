#include "pipeline/read/table_file.h"

#include <algorithm>

#include "rocksdb/comparator.h"
#include "rocksdb/metadata.h"

namespace sstferry {

TableFile DescribeTable(const rocksdb::SstFileMetaData& metadata, int level,
                        size_t place) {
  // Exceeds the number of files in level 0.
  constexpr uint64_t kBelowLevel0 = uint64_t{1} << 32;
  TableFile file;
  file.path = metadata.directory + "/" + metadata.relative_filename;
  file.smallest = metadata.smallestkey;
  file.largest = metadata.largestkey;
  file.depth =
      level == 0 ? place : kBelowLevel0 + static_cast<uint64_t>(level);
  file.smallest_sequence = metadata.smallest_seqno;
  file.largest_sequence = metadata.largest_seqno;
  file.has_blobs = metadata.oldest_blob_file_number != 0;
  return file;
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
