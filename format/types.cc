#include "format/types.h"

#include "format/coding.h"
#include "rocksdb/slice.h"

namespace sstferry {

std::string ToHex(const TransferId& id) {
  return ToHex(
      rocksdb::Slice(reinterpret_cast<const char*>(id.data()), id.size()));
}

}  // namespace sstferry
