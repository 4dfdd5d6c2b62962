// Local copies of tables and blob files of which only a part is needed: sparse
// files that receive the requested blocks and records.
//
// RocksDB reads them like other files. It never reads a hole, because all
// blocks that it needs are fetched before. Everything is checked before it is
// written: RocksDB aborts on bad tables, and the digests in the set's record
// cover only whole units. A block from another offset or another table has a
// correct checksum; comparing its keys with the index, and the table's
// identity, reveals it.
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

// The directory of the files, and the reader that fetches them.
struct PartialFiles {
  SetReader* reader = nullptr;
  std::string directory;
};

// A partial local file.
//
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

  // Creates the file with its full size as one hole.
  [[nodiscard]] rocksdb::Status Make() const;
  // Writes bytes that were already checked.
  [[nodiscard]] rocksdb::Status Write(uint64_t offset,
                                      const rocksdb::Slice& bytes);
  // Returns true if all of the span was written.
  bool Has(const ByteSpan& span) const;

 private:
  const PartialFiles* const files_;
  const ArchivedFile* const file_;
  mutable std::mutex mu_;
  std::map<uint64_t, uint64_t> spans_;  // begin -> end; guarded by mu_
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

  // Fetches the records of these blobs.
  [[nodiscard]] rocksdb::Status Fetch(std::vector<PartialBlob> blobs,
                                      const SetReader::Cancelled& cancelled);

 private:
  [[nodiscard]] rocksdb::Status FetchEnds(
      const SetReader::Cancelled& cancelled);
  [[nodiscard]] rocksdb::Status FetchRun(const PartialBlob* first,
                                         const PartialBlob* last,
                                         const SetReader::Cancelled& cancelled);
};

// A range deletion: user keys, the second one exclusive.
using KeySpan = std::pair<std::string, std::string>;

class PartialTable : public PartialFile {
 public:
  // `known`: from the MANIFEST; must outlive this object.
  PartialTable(const PartialFiles* files, const ArchivedFile* file,
               const ManifestFile* known, const rocksdb::Comparator* order);

  // The table's bounds, as user keys.
  const std::string& smallest() const { return smallest_; }
  const std::string& largest() const { return largest_; }
  // Valid after FetchTail():
  const std::vector<KeySpan>& deletions() const { return deletions_; }

  // Fetches everything after the data blocks except filters, which are not
  // used. *bytes: total size of the data blocks that may have keys of the
  // interval.
  //   kRefused  no part of this table can be read and checked
  [[nodiscard]] rocksdb::Status FetchTail(const KeyInterval& interval,
                                          const SetReader::Cancelled& cancelled,
                                          uint64_t* bytes);
  // Fetches the data blocks that may have keys of the interval, and those that
  // an iterator reads when it seeks a key in `sought`. Adds to *blobs the blobs
  // that entries of the interval refer to.
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
