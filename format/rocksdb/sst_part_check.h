// Checks the data blocks of a part of a table file while its bytes arrive, so
// that nobody has to read them again.
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

// Threads: one.
class SstPartCheck {
 public:
  // For the data blocks that lie in `part` as a whole. Of `table` it reads only
  // bytes from `readable_from` on, where the index is expected. Null if it
  // cannot tell the blocks, for whatever reason: another kind of table, no
  // checksums, an index that begins before, padding, damage. CheckSstFile()
  // then reads the part and says what is wrong.
  static std::unique_ptr<SstPartCheck> Make(const ByteSource& table,
                                            uint64_t readable_from,
                                            const ByteSpan& part);

  // The next bytes of the part, in order. Corruption: a block's checksum.
  [[nodiscard]] rocksdb::Status Add(rocksdb::Slice bytes);

  // Where every block has matched. Empty before all bytes of them were added.
  ByteSpan checked() const;

 private:
  SstPartCheck(const SstFooter& footer, const ByteSpan& part)
      : footer_(footer), at_(part.begin) {}
  // False: its block does not lie beside the one before, or is too large.
  bool AddBlock(const SstBlockHandle& handle);
  [[nodiscard]] rocksdb::Status Verify(const rocksdb::Slice& block);

  const SstFooter footer_;
  uint64_t at_;              // of the next byte to come
  uint64_t first_ = 0;       // where the first block begins
  uint64_t block_at_ = 0;    // where the next block has to begin
  size_t next_ = 0;          // that block
  std::vector<uint32_t> sizes_;  // of each block's payload, without gaps
  std::string partial_;      // of a block whose rest is still to come
};

}  // namespace sstferry
