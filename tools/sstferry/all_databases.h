// Runs the commands with --all on each database of a source, and shows the
// results.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sstferry/archive.h"
#include "sstferry/fleet.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/measured_pull.h"

namespace sstferry {

// Returns the address of one database's archive, below the address `all`.
StoreAddress ArchiveOfDatabase(const StoreAddress& all,
                               const std::string& name);
// Returns the common beginning of all addresses that ArchiveOfDatabase()
// returns for `all`: the part before the database's name.
std::string ArchivesBegin(const StoreAddress& all);

// Run one command for all databases and return the exit code. `reload` is
// called on SIGHUP, with the operation that covers all databases.
int PullAll(const PullArguments& arguments, Console* console,
            const MetricsWriter& write_metrics,
            const std::function<void(Operation*)>& reload);
int PlanAll(const PullArguments& arguments, Console* console);
int VerifyAll(const VerifyArguments& arguments, Console* console);
int PushAll(const ArchiveArguments& arguments, Console* console);

}  // namespace sstferry
