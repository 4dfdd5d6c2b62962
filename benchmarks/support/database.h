// The database of all benchmark programs: one family, leveled, with a block
// cache, a 10-bit filter and 64 MB files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace sstferry::bench {

rocksdb::Options DatabaseOptions();

// Opens `dir` read-only, with the options in its OPTIONS file.
[[nodiscard]] rocksdb::Status OpenReadOnly(const std::string& dir,
                                           std::unique_ptr<rocksdb::DB>* db);

// [begin, end) in bytewise order; an empty end: up to the last key.
struct KeyRange {
  std::string begin;
  std::string end;
};

// Returns about `count` parts with similar file sizes, split at the bounds of
// SST files of all levels. Together they cover every key. At least one part.
std::vector<KeyRange> SplitByFiles(rocksdb::DB* db, size_t count);

// Makes a bounded, ordered iterator over one part that does not fill the cache.
std::unique_ptr<rocksdb::Iterator> NewRangeIterator(
    rocksdb::DB* db, const KeyRange& part, const rocksdb::Slice* upper_bound);

struct Shape {
  uint64_t files = 0;
  uint64_t bytes = 0;
  // Files whose largest sequence number is not zero.
  uint64_t files_with_sequence = 0;
  std::vector<uint64_t> files_per_level;
};

Shape ShapeOf(rocksdb::DB* db);

// Returns {"0": files, ...}, with only the levels that have files.
std::string LevelsJson(const Shape& shape);

}  // namespace sstferry::bench
