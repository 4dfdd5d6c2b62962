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

// Returns a failure without its end state, for callers that read either side's
// data. Keeps OK.
[[nodiscard]] inline rocksdb::Status WithoutState(
    const rocksdb::Status& status) {
  return status.ok()             ? status
         : status.IsCorruption() ? rocksdb::Status::Corruption(
                                       SentenceOf(status))
                                 : rocksdb::Status::IOError(SentenceOf(status));
}

}  // namespace sstferry
