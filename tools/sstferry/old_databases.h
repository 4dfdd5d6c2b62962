// The databases that swaps have replaced, after a run.
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Deletes what earlier swaps of these directories have kept, but for what
// --keep-old keeps, until SIGINT or SIGTERM. For once the run has told how it
// ended: the replicas are current and served, so what fails here is a warning.
void RemoveOldDatabases(const PullArguments& arguments,
                        const std::vector<std::string>& target_dirs,
                        Console* console);

}  // namespace sstferry
