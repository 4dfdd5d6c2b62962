// Metrics of sstferry archive push, check and prune.
#pragma once

#include <string>

#include "sstferry/archive.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Returns the new text of the metrics file after a push, check or prune.
// `before` is the file's old text: values that this command did not determine
// are copied from it.
std::string ArchiveMetricsText(const ArchiveOptions& options,
                               const ArchiveReport& report,
                               const std::string& before);

// Locks the metrics file's directory, so that jobs which share the file do not
// overwrite each other's values. Waits at most two seconds for another job. The
// lock ends when the returned descriptor is closed; if there is no lock, the
// descriptor is not open.
Descriptor LockMetrics(const std::string& file);

}  // namespace sstferry
