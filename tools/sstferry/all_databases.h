// Runs a command with --all, such as pull --all: one operation for each
// database of a source. Prints the results as one table or one JSON object.
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

// Returns the address of the archive of the database `name`: `all`, a slash and
// the name. For example, "s3://backups" and "orders" give
// "s3://backups/orders".
StoreAddress ArchiveOfDatabase(const StoreAddress& all,
                               const std::string& name);
// Returns the common beginning of the addresses of all archives. For example,
// if `all` is "s3://backups", returns "s3://backups/".
std::string ArchivesBegin(const StoreAddress& all);

// Run one command for all databases and return the exit code. When SIGHUP
// arrives, PullAll() passes its operation on all databases to `reload`.
int PullAll(const PullArguments& arguments, Console* console,
            const MetricsWriter& write_metrics,
            const std::function<void(Operation*)>& reload);
int PlanAll(const PullArguments& arguments, Console* console);
int VerifyAll(const VerifyArguments& arguments, Console* console);
int PushAll(const ArchiveArguments& arguments, Console* console);

}  // namespace sstferry
