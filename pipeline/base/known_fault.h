// Reads which fault of a replica is known (format/health_file.h). What
// finds faults and what mends them is in pull/health.h.
#pragma once

#include <string>

#include "format/health_file.h"

namespace sstferry {

// Reads the fault that is known of the replica in `dir`; kNone if there is
// none, or no replica. A record with wrong bytes counts as damage; one that this
// account may not read does not, and is an error of ReadRecord().
[[nodiscard]] rocksdb::Status ReadKnownFault(const std::string& dir,
                                             HealthFile* health);

// Returns a sentence about a fault: "it is known to be damaged (found
// 2026-11-24T02:00:03Z: 000012.sst: ...)". REQUIRES: not kNone.
std::string FaultSentence(const HealthFile& fault);

}  // namespace sstferry
