// Local copies of tables and blob files of which only a part is needed. A copy
// is a sparse file that contains the requested blocks and records.
//
// RocksDB reads these files like other files. It never reads a hole, because
// all blocks that it needs are fetched before. Every block is checked before it
// is written, because RocksDB aborts on a bad table. The digests in the set's
// record do not help, because they cover whole units. A block from another
// offset or another table has a correct checksum. It is detected because its
// keys do not fit the index, or the table's identity is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
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

// The directory that contains the partial files, and the reader that fetches
// their bytes.
struct PartialFiles {
  SetReader* reader = nullptr;
  std::string directory;
};

// A partial local copy of a file of a set.
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

  // Creates the file with its full size, as one hole.
  [[nodiscard]] rocksdb::Status Make() const;
  // Writes bytes. The caller has already checked them.
  [[nodiscard]] rocksdb::Status Write(uint64_t offset,
                                      const rocksdb::Slice& bytes);
  // Returns true if all bytes of the span were written.
  bool Has(const ByteSpan& span) const;

 private:
  const PartialFiles* const files_;
  const ArchivedFile* const file_;
  mutable std::mutex mu_;
  std::map<uint64_t, uint64_t> spans_;  // begin -> end; guarded by mu_
};

// A value in a blob file, and the key of the entry that refers to it.
struct PartialBlob {
  std::string key;  // user key of the entry
  BlobReference reference;
  uint64_t begin() const {
    return reference.offset - key.size() - kBlobRecordHeadBytes;
  }
  uint64_t end() const { return reference.offset + reference.bytes; }
};

class PartialBlobFile : public PartialFile {
 public:
  using PartialFile::PartialFile;

  // Fetches the records that contain these values.
  [[nodiscard]] rocksdb::Status Fetch(std::vector<PartialBlob> blobs,
                                      const SetReader::Cancelled& cancelled);

 private:
  [[nodiscard]] rocksdb::Status FetchEnds(
      const SetReader::Cancelled& cancelled);
  [[nodiscard]] rocksdb::Status FetchRun(const PartialBlob* first,
                                         const PartialBlob* last,
                                         const SetReader::Cancelled& cancelled);
};

// A range deletion: the first deleted user key, and the first user key after
// it.
using KeySpan = std::pair<std::string, std::string>;

class PartialTable : public PartialFile {
 public:
  // `known` is the table's entry in the MANIFEST, and must outlive this object.
  PartialTable(const PartialFiles* files, const ArchivedFile* file,
               const ManifestFile* known, const rocksdb::Comparator* order);

  const ManifestFile& known() const { return known_; }
  // Return the smallest and the largest user key of the table.
  const std::string& smallest() const { return smallest_; }
  const std::string& largest() const { return largest_; }
  // Returns the range deletions of the table. REQUIRES: FetchTail() returned
  // OK.
  const std::vector<KeySpan>& deletions() const { return deletions_; }
  // Returns true if an iterator that seeks the key in this table may read a
  // data block that was not fetched. REQUIRES: FetchTail() returned OK.
  bool MayLack(const std::string& key) const;

  // Fetches everything after the data blocks, except filters, which are not
  // used. Sets *bytes to the total size of the data blocks that may contain
  // keys of the interval.
  //   kRefused  a part of this table cannot be read and checked separately
  [[nodiscard]] rocksdb::Status FetchTail(const KeyInterval& interval,
                                          const SetReader::Cancelled& cancelled,
                                          uint64_t* bytes);
  // Fetches the data blocks that may contain keys of the interval, and the data
  // blocks that an iterator reads when it seeks a key in `sought`. Adds to
  // *blobs the values in blob files to which the entries in the interval refer
  // (ForEachBlobReference).
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
  ByteSpan first_block_;
  // The last separator of the index. The separator may be above largest_. It
  // may be below largest_ if range deletions end after all data blocks.
  // nullopt: no data blocks.
  std::optional<std::string> last_separator_;
};

}  // namespace sstferry
