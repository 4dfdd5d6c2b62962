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

// Moves complete tables that an earlier pull received to their link paths in
// `layout`, then removes `earlier_dir`. That pull wrote `journal`, and
// `earlier_dir` is its db/. Moves a table if a file in `layout` has the same
// identity and the table's bytes on the disk match the digests in the journal.
// Skips files that `layout` already reuses. Sets *numbers to the numbers that
// the moved files have in `layout`.
//   kCancelled  `cancelled` returned true
[[nodiscard]] rocksdb::Status TakeEarlierFiles(
    const std::string& earlier_dir, const JournalState& journal,
    const CloneLayout& layout, rocksdb::FileSystem* file_system,
    const std::function<bool()>& cancelled, std::set<uint64_t>* numbers);

}  // namespace sstferry
