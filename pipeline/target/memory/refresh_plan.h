// Describes a target for the source of a refresh, for the command `plan`.
#pragma once

#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/target/memory/cover_record.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Describes options.target_dir, with its interval records. Opens it for reading
// and changes nothing. *notes gets sentences for the operator.
[[nodiscard]] rocksdb::Status ReadTargetMemory(const PullOptions& options,
                                               TargetMemory* memory,
                                               std::vector<std::string>* notes);

// Compares the description that the source got (`told`) with a later one.
// Returns a phrase on the first claim that no longer holds (a record is doubted
// now, or a key is further out); empty if all claims hold.
std::string FindLost(const std::vector<FamilyHandle>& families,
                     const TargetMemory& told, const TargetMemory& now);

}  // namespace sstferry
