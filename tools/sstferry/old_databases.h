// Deletes databases that swaps have replaced, after a run.
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Deletes the databases that earlier swaps of these directories have replaced,
// except for the newest --keep-old of each. SIGINT and SIGTERM stop it. Called
// after the run has reported its result. A failure is only a warning, because
// the replicas are current and in use.
void RemoveOldDatabases(const PullArguments& arguments,
                        const std::vector<std::string>& target_dirs,
                        Console* console);

}  // namespace sstferry
