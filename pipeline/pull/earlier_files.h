// Takes over files that a pull received before it started over with another
// snapshot.
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

// Moves complete tables from `earlier_dir`, the db/ of the pull with journal
// `journal`, to their link paths in `layout`, then removes the directory. Moves
// a table if it has the identity of a file in `layout` and its bytes on the
// disk match the digests in the journal. Sets *numbers to the layout's numbers
// of the moved files. Skips files that the layout already reuses. kCancelled:
// `cancelled` returned true.
[[nodiscard]] rocksdb::Status TakeEarlierFiles(
    const std::string& earlier_dir, const JournalState& journal,
    const CloneLayout& layout, rocksdb::FileSystem* file_system,
    const std::function<bool()>& cancelled, std::set<uint64_t>* numbers);

}  // namespace sstferry
