// Recognizes and ends a process that has outlived the process that waited for
// it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Returns one line that identifies the process: its id, its start time and the
// boot's id, because process ids are reused. Empty: there is no such process.
std::string NameOfProcess(pid_t process);

// Returns true if the process with this name still runs.
bool IsRunning(const std::string& name);

// Ends the process group whose leader has this name and was started with `mark`
// ("NAME=VALUE") in its environment. Sends SIGTERM, and SIGKILL after `grace`.
// Logs this, with `what` as the description. Returns OK if the leader no longer
// runs.
//   kBusy  it still runs after SIGKILL, or belongs to another user
[[nodiscard]] rocksdb::Status EndLeftProcess(const std::string& name,
                                             const std::string& mark,
                                             const std::string& what,
                                             std::chrono::seconds grace,
                                             const LogFunction& log);

}  // namespace sstferry
