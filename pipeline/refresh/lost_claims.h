// Finds what a target has lost since it described itself to its source.
#pragma once

#include <string>

#include "format/messages.h"

namespace sstferry {

// Compares the description that the source received (`told`) with a later one.
// Returns a phrase on the first claim that no longer holds (a record is doubted
// now, or a family is new); empty if all claims hold.
std::string FindLost(const ReplicaRecord& told, const ReplicaRecord& now);

}  // namespace sstferry
