// Deletes the old databases that sstferry swap keeps beside a new one.
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Deletes the databases that swaps have replaced by new ones in `target_dirs`.
// Keeps the newest arguments.keep_old of each directory. Call this function
// when the swap has reported its result. SIGINT or SIGTERM stops the function.
// If deleting fails, only logs a warning, because the swap itself succeeded.
void RemoveOldDatabases(const PullArguments& arguments,
                        const std::vector<std::string>& target_dirs,
                        Console* console);

}  // namespace sstferry
