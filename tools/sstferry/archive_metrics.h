// Metrics of sstferry archive check.
#pragma once

#include <string>

#include "sstferry/archive.h"

namespace sstferry {

// Returns the text of the file of --metrics-file after a check. `before` is the
// file's earlier text, from which values are kept that this check did not
// determine.
std::string ArchiveMetricsText(const ArchiveOptions& options,
                               const ArchiveReport& report,
                               const std::string& before);

}  // namespace sstferry
