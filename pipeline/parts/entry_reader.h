// Reads entries in key order: the interface for chunk builders and comparisons.
#pragma once

#include <string>

#include "format/coding.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/wide_columns.h"

namespace sstferry {

// Returns true if the columns belong to a wide-column entity. RocksDB's API
// returns a plain value as one column with an empty name. An entity that has
// only a column with an empty name looks the same, so this function returns
// false for it, too.
inline bool IsEntity(const rocksdb::WideColumns& columns) {
  return columns.size() != 1 || !columns[0].name().empty();
}

// Reads entries in key order. Threads: one at a time.
class EntryReader {
 public:
  virtual ~EntryReader() = default;

  virtual bool Valid() const = 0;
  virtual void Next() = 0;
  // Return the key and the value of the current entry. They stay valid until
  // the next call of Next(). REQUIRES: Valid().
  virtual rocksdb::Slice key() const = 0;
  virtual rocksdb::Slice value() const = 0;
  // Returns OK after the last entry, or an error if reading failed. Valid() is
  // false in both cases, so callers must check the status after every loop.
  [[nodiscard]] virtual rocksdb::Status status() const = 0;
  // Returns true if the entry is a wide-column entity, which value() cannot
  // represent.
  virtual bool is_entity() const = 0;
  // Returns the columns of the current entry. They stay valid until the next
  // call of Next(). REQUIRES: is_entity().
  virtual const rocksdb::WideColumns& columns() const = 0;

  // Returns the value in the form that ContentDigest::Add() takes. A plain
  // value is returned unchanged. The columns of an entity are encoded into
  // *scratch. Sets *entity (may be null) to true for an entity.
  rocksdb::Slice DigestValue(std::string* scratch,
                             bool* entity = nullptr) const;
};

inline rocksdb::Slice EntryReader::DigestValue(std::string* scratch,
                                               bool* entity) const {
  const bool found = is_entity();
  if (entity != nullptr) {
    *entity = found;
  }
  if (!found) {
    return value();
  }
  scratch->clear();
  for (const rocksdb::WideColumn& column : columns()) {
    PutFixed32(scratch, static_cast<uint32_t>(column.name().size()));
    PutFixed32(scratch, static_cast<uint32_t>(column.value().size()));
    scratch->append(column.name().data(), column.name().size());
    scratch->append(column.value().data(), column.value().size());
  }
  return *scratch;
}

}  // namespace sstferry
