// Tables and blob files of a set of which only a part is here: local files with
// holes, which get the blocks and records that are asked for.
//
// RocksDB reads them as any others, and is never led into a hole, where a
// block's checksum would be wrong. Nothing gets there that was not checked
// before: RocksDB aborts on bad tables, and no digest of the record covers a
// part of a unit. What a checksum cannot tell, a block of another place or of
// another table, its keys, the index and the table's identity do.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "format/archive_set.h"
#include "format/rocksdb/blob_check.h"
#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/sst_file_check.h"
#include "format/rocksdb/sst_reader.h"
#include "format/types.h"
#include "pipeline/archive/set_reader.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Where the files lie, and what they are got from.
struct PartialFiles {
  SetReader* reader = nullptr;
  std::string directory;
};

// Ownership: borrows the PartialFiles and the ArchivedFile.
// Threads:   any.
// Errors:    those of SetReader; kNoSpace; kSourceError, kInternal for the
//            local file.
class PartialFile {
 public:
  PartialFile(const PartialFiles* files, const ArchivedFile* file)
      : files_(files), file_(file) {}
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const ArchivedFile& file() const { return *file_; }
  SetReader* reader() const { return files_->reader; }
  std::string path() const;

  // Makes the file, of its size, and nothing but a hole.
  [[nodiscard]] rocksdb::Status Make() const;
  // Writes bytes that were checked.
  [[nodiscard]] rocksdb::Status Write(uint64_t offset,
                                      const rocksdb::Slice& bytes);
  // Returns whether all of the span was written.
  bool Has(const ByteSpan& span) const;

 private:
  const PartialFiles* const files_;
  const ArchivedFile* const file_;
  mutable std::mutex mu_;
  std::map<uint64_t, uint64_t> spans_;  // begin to end, apart; under mu_
};

// A value in a blob file that entries refer to.
struct PartialBlob {
  std::string key;  // user key
  BlobReference reference;
  uint64_t begin() const {
    return reference.offset - key.size() - kBlobRecordHeadBytes;
  }
  uint64_t end() const { return reference.offset + reference.bytes; }
};

class PartialBlobFile : public PartialFile {
 public:
  using PartialFile::PartialFile;

  // Gets the records of these blobs, which are sorted here.
  [[nodiscard]] rocksdb::Status Fetch(std::vector<PartialBlob> blobs,
                                      const SetReader::Cancelled& cancelled);

 private:
  [[nodiscard]] rocksdb::Status FetchEnds(
      const SetReader::Cancelled& cancelled);
  [[nodiscard]] rocksdb::Status FetchRun(const PartialBlob* first,
                                         const PartialBlob* last,
                                         const SetReader::Cancelled& cancelled);
};

// A range deletion: user keys, the second excluded.
using KeySpan = std::pair<std::string, std::string>;

class PartialTable : public PartialFile {
 public:
  // `known`: of the MANIFEST, which outlives this.
  PartialTable(const PartialFiles* files, const ArchivedFile* file,
               const ManifestFile* known, const rocksdb::Comparator* order);

  // User keys.
  const std::string& smallest() const { return smallest_; }
  const std::string& largest() const { return largest_; }
  // After FetchTail():
  const std::vector<KeySpan>& deletions() const { return deletions_; }

  // Gets everything behind the data blocks but filters, which nothing here
  // needs. *bytes: of the data blocks that may hold keys of the interval.
  //   kRefused  a table of which no part can be read and checked
  [[nodiscard]] rocksdb::Status FetchTail(const KeyInterval& interval,
                                          const SetReader::Cancelled& cancelled,
                                          uint64_t* bytes);
  // Gets the data blocks that may hold keys of the interval, and those that are
  // met by who seeks one of the keys `sought`. Adds the blobs that entries of
  // the interval refer to.
  [[nodiscard]] rocksdb::Status FetchBlocks(
      const KeyInterval& interval, const std::vector<std::string>& sought,
      const SetReader::Cancelled& cancelled,
      std::vector<PartialBlob>* blobs);

 private:
  class Tail;
  [[nodiscard]] rocksdb::Status ReadTail(const KeyInterval& interval,
                                         const SstReader& table,
                                         std::vector<ByteSpan>* spans,
                                         uint64_t* bytes);
  [[nodiscard]] rocksdb::Status CheckIdentity(const SstReader& table) const;

  const ManifestFile& known_;
  const rocksdb::Comparator* const order_;
  const std::string smallest_;
  const std::string largest_;
  std::vector<KeySpan> deletions_;
};

}  // namespace sstferry
