// Metrics of sstferry archive check.
#pragma once

#include <string>

#include "sstferry/archive.h"

namespace sstferry {

// Returns the text of the file of --metrics-file after a check. `before` is
// what the file said: what this check did not find out stays.
std::string ArchiveMetricsText(const ArchiveOptions& options,
                               const ArchiveReport& report,
                               const std::string& before);

}  // namespace sstferry
