#include "pipeline/base/entry_reader.h"

#include "format/coding.h"
#include "rocksdb/wide_columns.h"

namespace sstferry {

using rocksdb::Slice;

Slice EntryReader::DigestValue(std::string* scratch, bool* entity) const {
  const bool found = is_entity();
  if (entity != nullptr) {
    *entity = found;
  }
  if (!found) {
    return value();
  }
  scratch->clear();
  for (const rocksdb::WideColumn& column : iterator()->columns()) {
    PutFixed32(scratch, static_cast<uint32_t>(column.name().size()));
    PutFixed32(scratch, static_cast<uint32_t>(column.value().size()));
    scratch->append(column.name().data(), column.name().size());
    scratch->append(column.value().data(), column.value().size());
  }
  return *scratch;
}

}  // namespace sstferry
