// Maps a failure of RocksDB to read the source's data to an end state.
#pragma once

#include "format/end_state.h"

namespace sstferry {

// Returns kCorrupt for damaged data and kSourceError for other failures. Keeps
// OK, and a status that already carries an end state.
[[nodiscard]] inline rocksdb::Status ReadFailure(const rocksdb::Status& status,
                                                 const rocksdb::Slice& where) {
  return WithContext(
      status,
      status.IsCorruption() ? EndState::kCorrupt : EndState::kSourceError,
      where);
}

}  // namespace sstferry
