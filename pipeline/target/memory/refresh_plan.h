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

// Whether all that a source was told still holds when it is judged again: no
// cover is doubted now that was not, and no key lies further out.
bool BelievesAsMuch(const std::vector<FamilyHandle>& families,
                    const TargetMemory& told, const TargetMemory& now);

}  // namespace sstferry
