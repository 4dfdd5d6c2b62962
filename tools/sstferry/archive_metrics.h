// Makes the metrics of sstferry archive push, check and prune.
#pragma once

#include <string>

#include "sstferry/archive.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Returns the new text of the metrics file after a push, check or prune.
// `before` is the old text of the file. Copies the values that the command did
// not determine from `before`: after a push, for example, those of a check.
std::string ArchiveMetricsText(const ArchiveOptions& options,
                               const ArchiveReport& report,
                               const std::string& before);

// Locks the directory of the metrics file `file`. Jobs that share a metrics
// file need the lock, because each job copies the values of the other jobs.
// Waits at most two seconds for a job that holds the lock. Closing the returned
// descriptor releases the lock. If locking failed, the descriptor is not open.
Descriptor LockMetrics(const std::string& file);

}  // namespace sstferry
