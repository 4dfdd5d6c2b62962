// Reads the known fault of a replica (format/health_file.h). pull/health.h has
// the functions that record and remove faults.
#pragma once

#include <string>

#include "format/health_file.h"

namespace sstferry {

// Reads the known fault of the replica in `dir`; kNone if there is no fault, or
// no replica. A record with wrong bytes counts as damage. A record that this
// account may not read is an error of ReadRecord().
[[nodiscard]] rocksdb::Status ReadKnownFault(const std::string& dir,
                                             HealthFile* health);

// Returns a phrase about a fault: "it is known to be damaged (found
// 2026-11-24T02:00:03Z: 000012.sst: ...)". REQUIRES: the fault is not kNone.
std::string FaultSentence(const HealthFile& fault);

}  // namespace sstferry
