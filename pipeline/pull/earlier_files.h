// Takes files that a pull received before it started over with another
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

// Gives whole tables in `earlier_dir`, the db/ of the pull that `journal` tells
// of, their place among the links of `layout`, and removes the directory. A
// table is the same if its identity is, and it is taken if its bytes are those
// which the journal recorded. *numbers gets those of the layout's files; files
// that it has already stay as they are. kCancelled: `cancelled` returned true.
[[nodiscard]] rocksdb::Status TakeEarlierFiles(
    const std::string& earlier_dir, const JournalState& journal,
    const CloneLayout& layout, rocksdb::FileSystem* file_system,
    const std::function<bool()>& cancelled, std::set<uint64_t>* numbers);

}  // namespace sstferry
