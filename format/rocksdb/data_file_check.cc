#include "format/rocksdb/data_file_check.h"

#include <utility>

#include "format/rocksdb/blob_check.h"

namespace sstferry {

rocksdb::Status CheckDataFile(const ByteSource& source, CloneFileKind kind,
                              std::vector<ByteSpan> checked,
                              SstFileFacts* facts) {
  *facts = SstFileFacts();
  uint64_t blobs = 0;
  return kind == CloneFileKind::kBlob
             ? CheckBlobFile(source, &blobs)
             : CheckSstFile(source, std::move(checked), facts);
}

}  // namespace sstferry
