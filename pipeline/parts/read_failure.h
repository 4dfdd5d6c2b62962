// Maps a failure of RocksDB to read the source's data to an end state.
#pragma once

#include "format/end_state.h"

namespace sstferry {

// Adds an end state to an error of a read: kCorrupt for damaged data,
// kSourceError for any other failure. Does not change OK, or a status that has
// an end state.
[[nodiscard]] inline rocksdb::Status ReadFailure(const rocksdb::Status& status,
                                                 const rocksdb::Slice& where) {
  return WithContext(
      status,
      status.IsCorruption() ? EndState::kCorrupt : EndState::kSourceError,
      where);
}

// Removes the end state from an error. For code that runs at the source as well
// as at the target, because only the caller knows which end state is right.
// Does not change OK.
[[nodiscard]] inline rocksdb::Status WithoutState(
    const rocksdb::Status& status) {
  return status.ok()             ? status
         : status.IsCorruption() ? rocksdb::Status::Corruption(
                                       SentenceOf(status))
                                 : rocksdb::Status::IOError(SentenceOf(status));
}

}  // namespace sstferry
