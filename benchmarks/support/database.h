// The database every benchmark program speaks of: one family, leveled, with a
// block cache, a 10-bit filter and 64 MB files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace sstferry::bench {

rocksdb::Options DatabaseOptions();

// Opens dir with the options its OPTIONS file tells, read-only.
[[nodiscard]] rocksdb::Status OpenReadOnly(const std::string& dir,
                                           std::unique_ptr<rocksdb::DB>* db);

// [begin, end) in bytewise order; an empty end means "to the last key".
struct KeyRange {
  std::string begin;
  std::string end;
};

// About count parts of about equal file bytes, cut at the bounds of SST
// files of all levels, together covering every key. At least one part.
std::vector<KeyRange> SplitByFiles(rocksdb::DB* db, size_t count);

// A bounded, ordered iterator over one part that leaves the cache alone.
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

// {"0": files, ...}, only levels that have files.
std::string LevelsJson(const Shape& shape);

}  // namespace sstferry::bench
