// Table files for tests, as strings: written by RocksDB (in a memory Env) or
// put together by hand, where RocksDB would refuse to write them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"

#include "format/rocksdb/sst_check.h"
#include "format/rocksdb/sst_footer.h"

namespace sstferry::test {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

struct SstShape {
  rocksdb::CompressionType compression = rocksdb::kNoCompression;
  uint32_t dict_bytes = 0;
  rocksdb::ChecksumType checksum = rocksdb::kCRC32c;
  rocksdb::BlockBasedTableOptions::IndexType index =
      rocksdb::BlockBasedTableOptions::kBinarySearch;
  uint32_t format_version = 5;
  bool hash_in_blocks = false;
  int filter = 0;  // 0 none, 1 full, 2 partitioned (with a two-level index)
  size_t block_bytes = 512;
  int restart_interval = 4;
  int index_restart_interval = 1;
  bool align = false;
  bool separate_values = false;  // these three from RocksDB 11.1 on
  bool mark_uniform = false;
  size_t super_block_bytes = 0;

  std::string Name() const;
  rocksdb::Options ToOptions(rocksdb::Env* env) const;
};

// Returns an Env that keeps its files in memory.
std::unique_ptr<rocksdb::Env> NewMemoryEnv();
std::string ReadWhole(rocksdb::Env* env, const std::string& path);

// Returns sorted, compressible entries; value sizes vary.
KeyValues SampleEntries(size_t count, size_t value_bytes = 40);

// Writes /f.sst in `env` with SstFileWriter. Returns the file's bytes.
std::string WriteSst(rocksdb::Env* env, const SstShape& shape,
                     const KeyValues& entries);
// Writes /f.sst in options.env. Returns the file's bytes.
std::string WriteSst(const rocksdb::Options& options,
                     const KeyValues& entries);

// Returns true if the linked RocksDB knows the last three members of SstShape.
bool CanMarkBlocks();

// Returns the format versions, from 2 on, that the linked RocksDB writes.
std::vector<uint32_t> WritableVersions();

// Returns the facts that CheckChunk should find for `entries`.
ChunkExpectation Expect(const SstShape& shape, const KeyValues& entries);

// Returns `user_key` followed by its trailer (sequence and type).
std::string InternalKey(const std::string& user_key, uint8_t type = 1,
                        uint64_t sequence = 0);

void PutVarint(std::string* dst, uint64_t value);
void PutFixed(std::string* dst, uint64_t value, int bytes);
std::string EncodeHandle(const SstBlockHandle& handle);

// Returns a block with a restart at every entry.
std::string PlainBlock(const KeyValues& entries);

// Writes blocks and a footer with correct checksums, whatever the contents.
class RawSst {
 public:
  explicit RawSst(uint32_t format_version = 5,
                  SstChecksum checksum = SstChecksum::kCrc32c);
  SstBlockHandle Add(const std::string& payload, char compression = 0);
  void AddZeros(size_t bytes) { file_.append(bytes, '\0'); }
  // Adds metaindex and footer. Returns the file.
  std::string Finish(const KeyValues& metaindex, const SstBlockHandle& index);
  // Adds this metaindex as it is, and a footer. Returns the file.
  std::string FinishWith(const std::string& metaindex,
                         const SstBlockHandle& index);

 private:
  SstFooter footer_;
  std::string file_;
};

// Returns a properties block for RawTable(); `changed` replaces properties.
std::string RawProperties(uint64_t entries, uint64_t blocks,
                          uint64_t data_bytes, const KeyValues& changed = {});

// Returns a complete external file, with one data block per inner list of
// internal keys. `changed` replaces properties. Range deletions: internal begin
// keys and user end keys.
std::string RawTable(const std::vector<KeyValues>& blocks,
                     const std::vector<std::string>& separators,
                     uint32_t format_version = 5,
                     const KeyValues& changed = {},
                     const KeyValues& range_deletions = {});

// Recomputes the checksum after the block.
void Reseal(std::string* file, const SstBlockHandle& handle);

}  // namespace sstferry::test
