// Checks the data blocks in a part of a table file while the part's bytes
// arrive, so that they need not be read again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/byte_source.h"
#include "format/rocksdb/sst_file_check.h"
#include "format/rocksdb/sst_footer.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks the data blocks of one part. Threads: one.
class SstPartCheck {
 public:
  // Creates a check of the data blocks that are completely inside `part`. Reads
  // `table` only from `readable_from` on, where the index is expected. Returns
  // null if it cannot find the blocks, for example in another kind of table,
  // without checksums, with an index that begins earlier, with padding, or
  // after damage. CheckSstFile() then reads the part and reports the error.
  static std::unique_ptr<SstPartCheck> Make(const ByteSource& table,
                                            uint64_t readable_from,
                                            const ByteSpan& part);

  // Adds the next bytes of the part, in order. Corruption: a block's checksum
  // is wrong.
  [[nodiscard]] rocksdb::Status Add(rocksdb::Slice bytes);

  // Returns the span of checked blocks, which all matched. It is empty until
  // all bytes of the span were added.
  ByteSpan checked() const;

 private:
  SstPartCheck(const SstFooter& footer, const ByteSpan& part)
      : footer_(footer), at_(part.begin) {}
  // Returns false if the block does not directly follow the previous block, or
  // is too large.
  bool AddBlock(const SstBlockHandle& handle);
  [[nodiscard]] rocksdb::Status Verify(const rocksdb::Slice& block);

  const SstFooter footer_;
  uint64_t at_;              // offset of the next byte to add
  uint64_t first_ = 0;       // start of the first block
  uint64_t block_at_ = 0;    // start of the next block
  size_t next_ = 0;          // index of the next block in sizes_
  std::vector<uint32_t> sizes_;  // payload size of each block
  std::string partial_;      // start of a block that is not yet complete
};

}  // namespace sstferry
