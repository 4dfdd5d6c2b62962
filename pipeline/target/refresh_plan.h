// What a target would tell the source before a refresh, for `plan`.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/options.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads options.target_dir and what it remembers, and changes nothing. Where
// entries lie in its WAL, all that is remembered of their family is doubted: a
// refresh would flush them, and may then find less to doubt.
[[nodiscard]] rocksdb::Status ReadTargetMemory(const PullOptions& options,
                                               TargetMemory* memory,
                                               std::vector<std::string>* notes);

}  // namespace sstferry
