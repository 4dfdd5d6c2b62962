#include "pipeline/read/table_file.h"

#include <algorithm>

#include "rocksdb/comparator.h"
#include "rocksdb/metadata.h"

namespace sstferry {

std::vector<TableFile> ListTableFiles(rocksdb::DB* db,
                                      rocksdb::ColumnFamilyHandle* family) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  std::vector<TableFile> files;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (size_t place = 0; place < level.files.size(); ++place) {
      const rocksdb::SstFileMetaData& found = level.files[place];
      TableFile file;
      file.path = found.directory + "/" + found.relative_filename;
      file.smallest = found.smallestkey;
      file.largest = found.largestkey;
      file.depth = DepthOf(level.level, place);
      file.smallest_sequence = found.smallest_seqno;
      file.largest_sequence = found.largest_seqno;
      file.has_blobs = found.oldest_blob_file_number != 0;
      files.push_back(std::move(file));
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
