// Finds what a target has lost since it described itself to its source.
#pragma once

#include <string>

#include "format/messages.h"

namespace sstferry {

// Compares the description of the target that the source received (`told`) with
// a later one. Returns a phrase on the first difference that the source must
// know (an interval record is doubted now, or a family is new); empty: none.
std::string FindLost(const ReplicaRecord& told, const ReplicaRecord& now);

}  // namespace sstferry
