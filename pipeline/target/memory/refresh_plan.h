// What a target would tell the source before a refresh, for `plan`.
#pragma once

#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/target/memory/cover_record.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Reads options.target_dir and what it remembers, and changes nothing.
[[nodiscard]] rocksdb::Status ReadTargetMemory(const PullOptions& options,
                                               TargetMemory* memory,
                                               std::vector<std::string>* notes);

// What of that which the source was told does not hold when the target is
// judged again: a cover is doubted now that was not, or a key lies further out.
// Empty: all holds.
std::string FindLost(const std::vector<FamilyHandle>& families,
                     const TargetMemory& told, const TargetMemory& now);

}  // namespace sstferry
