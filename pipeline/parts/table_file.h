// Describes a table file (SST file) of a column family for readers of tables.
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

// An open table file. All merges that read it share one descriptor.
//
// Threads: any.
class SharedFile {
 public:
  // Sets *file to the open table file. The file stays open as long as a copy of
  // the pointer exists.
  //   NotSupported  this process already has MostOpen() tables open for merges
  //   others        errors of FileSource::Open()
  [[nodiscard]] rocksdb::Status Open(rocksdb::FileSystem* file_system,
                                     const std::string& path,
                                     std::shared_ptr<const FileSource>* file);

  // Returns the maximum number of tables that merges may have open in this
  // process: a quarter of the descriptors that the process may have. The rest
  // stays free for connections and for RocksDB's iterators.
  static size_t MostOpen();

 private:
  std::mutex mu_;
  std::weak_ptr<const FileSource> file_;
};

// Describes a table file by RocksDB's metadata.
struct TableFile {
  std::string path;
  std::string smallest;  // user keys; include range deletions
  std::string largest;
  // Position in the order in which RocksDB searches files for a key. A newer
  // file of level 0 comes before an older one, and a lower level number before
  // a higher one.
  uint64_t depth = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  uint64_t bytes = 0;  // size of the file; 0: unknown
  bool has_blobs = false;
  std::shared_ptr<SharedFile> shared = std::make_shared<SharedFile>();
};

// Describes a live file. `place` is the file's index in RocksDB's list of the
// level's files. In the list of level 0, the newest file comes first.
TableFile DescribeTable(const rocksdb::SstFileMetaData& metadata, int level,
                        size_t place);

// Returns true if memtables may have entries or range deletions of the family.
bool HasMemtables(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family);

// Lists the live files of a family of an open database, sorted by their
// smallest keys. Opens no file.
std::vector<TableFile> ListTableFiles(rocksdb::DB* db,
                                      rocksdb::ColumnFamilyHandle* family);

}  // namespace sstferry
