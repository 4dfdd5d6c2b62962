// Reads the record of a replica's fault: damage, or a difference from the
// source (format/health_file.h). The functions in pull/health.h write and
// remove this record.
#pragma once

#include <string>

#include "format/health_file.h"

namespace sstferry {

// Reads the fault that is recorded for the replica in `dir`. The result is
// kNone if no fault is recorded. If the record itself is damaged, the result is
// kDamaged. Returns an error of ReadRecord() if the record cannot be read.
[[nodiscard]] rocksdb::Status ReadKnownFault(const std::string& dir,
                                             HealthFile* health);

// Checks that no fault is recorded for the replica in `dir`. Callers use this
// function before they copy the replica, because the copy would have the same
// fault, but no record of it.
//   kRefused      a fault is recorded; the message tells how to continue
//   kSourceError  the record cannot be read
[[nodiscard]] rocksdb::Status CheckNoKnownFault(const std::string& dir);

// Returns text for a message: "it is known to be damaged (found
// 2026-11-24T02:00:03Z: 000012.sst: ...)". REQUIRES: the fault is not kNone.
std::string FaultSentence(const HealthFile& fault);

}  // namespace sstferry
