#include "format/rocksdb/wide_columns.h"

#include <utility>
#include <vector>

#include "format/coding.h"
#include "format/rocksdb/sst_coding.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr uint32_t kVersion = 1;

Status Damaged(const std::string& what) {
  return Status::Corruption("wide-column entity: expected " + what +
                            ", found other bytes");
}

}  // namespace

// Encodes the columns. A stored entity first lists its columns, each with name
// and value size, followed by the values in the same order:
//
//   version 1, 2 columns, "a" 3, "b" 2, "xyz" "uv"
Status EncodeColumnsForDigest(const Slice& entity, std::string* encoded) {
  Slice in = entity;
  uint32_t version = 0;
  uint32_t count = 0;
  if (!sst::GetVarint32(&in, &version)) {
    return Damaged("a version");
  }
  if (version != kVersion) {
    return Status::NotSupported("wide-column entity: expected version " +
                                std::to_string(kVersion) + ", found " +
                                std::to_string(version));
  }
  if (!sst::GetVarint32(&in, &count)) {
    return Damaged("the number of its columns");
  }
  std::vector<std::pair<Slice, uint32_t>> columns;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t name_bytes = 0;
    uint32_t value_bytes = 0;
    if (!sst::GetVarint32(&in, &name_bytes) || name_bytes > in.size()) {
      return Damaged("the name of column " + std::to_string(i));
    }
    const Slice name(in.data(), name_bytes);
    in.remove_prefix(name_bytes);
    if (!sst::GetVarint32(&in, &value_bytes)) {
      return Damaged("the size of column " + std::to_string(i));
    }
    columns.emplace_back(name, value_bytes);
  }
  encoded->clear();
  for (const auto& [name, value_bytes] : columns) {
    if (value_bytes > in.size()) {
      return Damaged("the value of every column");
    }
    PutFixed32(encoded, static_cast<uint32_t>(name.size()));
    PutFixed32(encoded, value_bytes);
    encoded->append(name.data(), name.size());
    encoded->append(in.data(), value_bytes);
    in.remove_prefix(value_bytes);
  }
  return in.empty() ? Status::OK() : Damaged("no bytes after its columns");
}

}  // namespace sstferry
