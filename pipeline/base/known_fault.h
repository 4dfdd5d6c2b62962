// Reads the known fault of a replica (format/health_file.h). pull/health.h has
// the functions that record and remove faults.
#pragma once

#include <string>

#include "format/health_file.h"

namespace sstferry {

// Reads the known fault of the replica in `dir`; kNone if there is no fault, or
// no replica. A damaged record counts as damage of the replica. Returns an
// error of ReadRecord() if this account may not read the record.
[[nodiscard]] rocksdb::Status ReadKnownFault(const std::string& dir,
                                             HealthFile* health);

// Checks that no fault of the replica in `dir` is known: a copy of the replica
// would not show it.
//   kRefused      there is one; the message says what to do
//   kSourceError  the record cannot be read
[[nodiscard]] rocksdb::Status CheckNoKnownFault(const std::string& dir);

// Returns a sentence part about a fault: "it is known to be damaged (found
// 2026-11-24T02:00:03Z: 000012.sst: ...)". REQUIRES: the fault is not kNone.
std::string FaultSentence(const HealthFile& fault);

}  // namespace sstferry
