// What it is called when RocksDB cannot read the source's data.
#pragma once

#include "format/end_state.h"

namespace sstferry {

// Bytes that are there and wrong are kCorrupt, anything else is kSourceError,
// unless the status says already what it is. OK stays OK.
[[nodiscard]] inline rocksdb::Status ReadFailure(const rocksdb::Status& status,
                                                 const rocksdb::Slice& where) {
  return WithContext(
      status,
      status.IsCorruption() ? EndState::kCorrupt : EndState::kSourceError,
      where);
}

}  // namespace sstferry
