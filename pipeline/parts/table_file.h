// One table file (SST file) of a column family, as those who read it need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/base/file_source.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// The open file of a table that merges read: one descriptor, however many of
// them read the table at a time.
//
// Threads: any.
class SharedFile {
 public:
  // Sets *file to the table's file, which stays open as long as somebody has
  // it.
  //   NotSupported  this process has MostOpen() tables open for merges
  // also the errors of FileSource::Open()
  [[nodiscard]] rocksdb::Status Open(rocksdb::FileSystem* file_system,
                                     const std::string& path,
                                     std::shared_ptr<const FileSource>* file);

  // Returns how many tables may be open for merges in this process: a quarter
  // of its descriptors. RocksDB's iterators, which read what is not merged, and
  // connections have the others.
  static size_t MostOpen();

 private:
  std::mutex mu_;
  std::weak_ptr<const FileSource> file_;
};

struct TableFile {
  std::string path;
  std::string smallest;  // user keys, including range deletions
  std::string largest;
  // Read order. Reads find the entries of the file with the smaller depth
  // first: it is in a higher level, or is newer in level 0.
  uint64_t depth = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  bool has_blobs = false;
  std::shared_ptr<SharedFile> shared = std::make_shared<SharedFile>();
};

// Describes a live file. `place` is its place among those of its level, which
// RocksDB lists newest first in level 0.
TableFile DescribeTable(const rocksdb::SstFileMetaData& metadata, int level,
                        size_t place);

// Lists the live files of a family of an open database, sorted by their
// smallest keys. Opens no file.
std::vector<TableFile> ListTableFiles(rocksdb::DB* db,
                                      rocksdb::ColumnFamilyHandle* family);

}  // namespace sstferry
