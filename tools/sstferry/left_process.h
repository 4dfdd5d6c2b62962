// Ends a process that still runs although the process that waited for it was
// killed. The process that waited has stored the name of the other in a file.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Returns a line that identifies a process (its name): the process id, its
// start time and the id of the boot. A process id alone is not enough, because
// the kernel reuses process ids. Returns "" if the process does not run.
std::string NameOfProcess(pid_t process);

// Returns true if the process that NameOfProcess() called `name` still runs.
bool IsRunning(const std::string& name);

// Ends the process group of the process `name` (see NameOfProcess()). Sends
// SIGTERM, and SIGKILL after the time `grace`. Logs a warning that begins with
// `what`. Does nothing and returns OK if the process does not run, or if its
// initial environment does not contain `mark` ("NAME=VALUE").
//   kBusy  the process still runs after SIGKILL, or belongs to another user
[[nodiscard]] rocksdb::Status EndLeftProcess(const std::string& name,
                                             const std::string& mark,
                                             const std::string& what,
                                             std::chrono::seconds grace,
                                             const LogFunction& log);

}  // namespace sstferry
