// Reuses tables that a pull received before it started over with another
// snapshot of the source.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "pipeline/pull/clone_layout.h"
#include "pipeline/pull/journal_state.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Takes over the complete tables that an earlier pull received. `journal` is
// the journal of that pull, and `earlier_dir` has the files of its unfinished
// database. For each file in `layout` that is not reused yet: if a table in
// `earlier_dir` has the same identity, and its bytes on the disk match the
// digests in `journal`, moves the table to layout.LinkPathOf(file). Then
// removes `earlier_dir`. Sets *numbers to the numbers in `layout` of the files
// for which a table was moved.
//   kCancelled  `cancelled` returned true
[[nodiscard]] rocksdb::Status TakeEarlierFiles(
    const std::string& earlier_dir, const JournalState& journal,
    const CloneLayout& layout, rocksdb::FileSystem* file_system,
    const std::function<bool()>& cancelled, std::set<uint64_t>* numbers);

}  // namespace sstferry
