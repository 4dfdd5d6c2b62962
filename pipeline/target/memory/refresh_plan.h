// Compares two descriptions that a source may get of a target.
#pragma once

#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/target/memory/cover_record.h"
#include "rocksdb/db.h"

namespace sstferry {

// Compares the description that the source got (`told`) with a later one.
// Returns a phrase on the first claim that no longer holds (a record is doubted
// now, or a family is new); empty if all claims hold.
std::string FindLost(const TargetMemory& told, const TargetMemory& now);

}  // namespace sstferry
