// Deletes databases that swaps have replaced, after a run.
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Deletes what earlier swaps of these directories have kept, except for what
// --keep-old keeps, until SIGINT or SIGTERM. Called after the run has reported
// its result: the replicas are current and in use, so a failure is only a
// warning.
void RemoveOldDatabases(const PullArguments& arguments,
                        const std::vector<std::string>& target_dirs,
                        Console* console);

}  // namespace sstferry
