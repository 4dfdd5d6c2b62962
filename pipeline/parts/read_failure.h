// Maps a failure of RocksDB to read the source's data to an end state.
#pragma once

#include "format/end_state.h"

namespace sstferry {

// Damaged data is kCorrupt, any other failure kSourceError, unless the status
// already carries an end state. OK stays OK.
[[nodiscard]] inline rocksdb::Status ReadFailure(const rocksdb::Status& status,
                                                 const rocksdb::Slice& where) {
  return WithContext(
      status,
      status.IsCorruption() ? EndState::kCorrupt : EndState::kSourceError,
      where);
}

}  // namespace sstferry
