// Metrics of sstferry archive check.
#pragma once

#include <string>

#include "sstferry/archive.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Returns the text of the file of --metrics-file after a check. `before` is the
// file's earlier text, from which values are kept that this check did not
// determine.
std::string ArchiveMetricsText(const ArchiveOptions& options,
                               const ArchiveReport& report,
                               const std::string& before);

// Waits, at most two seconds, while another job reads and replaces a metrics
// file in this directory, so that neither loses what the other wrote: jobs of
// one archive share a file. The lock ends with the returned descriptor, which is
// not open if no lock was taken.
Descriptor LockMetrics(const std::string& file);

}  // namespace sstferry
