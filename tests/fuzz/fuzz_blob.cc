// Input: a blob file of a clone.
#include <cstdlib>

#include "format/rocksdb/blob_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const SliceSource source(
      rocksdb::Slice(reinterpret_cast<const char*>(data), size));
  uint64_t count = 0;
  // Header and footer take 62 bytes, and a record at least 32.
  if (CheckBlobFile(source, &count).ok() && count > size / 32) {
    abort();
  }
  return 0;
}
